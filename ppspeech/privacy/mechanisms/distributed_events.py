"""The event of Skellam noise: the sum of whole-numbered shares that several parties drew apart."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import INTERVAL, Event, UnsupportedAnalysisError, register_event
from ppspeech.privacy.accounting.loss import LossDistribution, loss_from_survival
from ppspeech.privacy.accounting.noise_events import DiscreteGaussianEvent
from ppspeech.privacy.accounting.renyi import delta_at_order
from ppspeech.privacy.parameters import check_count, check_positive
from ppspeech.privacy.relation import Relation

CORE = 12.0
"""Noise beyond so many deviations is given up: it has less mass than `OUTSIDE` a coordinate."""
OUTSIDE = 1e-30
LEAST_VARIANCE = 1e4
"""Below it the comparison with the discrete Gaussian is not used."""
ORDERS = tuple(sorted({round(2 ** (step / 4)) for step in range(4, 81)}))
"""Whole Renyi orders, from 2 to 2^20."""


@register_event("skellam")
@dataclass(frozen=True, slots=True)
class SkellamEvent(Event):
    r"""iid Skellam noise (a difference of two Poisson numbers) on a whole-valued vector.

    Two bounds hold, and the better one counts. Renyi (Agarwal, Kairouz and Liu 2021), for whole orders alpha >= 2:

        alpha l2^2 / 2 mu + min{ ((2 alpha - 1) l2^2 + 6 l1) / 4 mu^2,  3 l1 / 2 mu }.

    And the discrete Gaussian's own profile, because for a large mu the two laws agree almost as numbers. Proof:
    p(i - 1) / p(i) = I_{i-1}(mu) / I_i(mu) lies, for i >= 1, between e^asinh(u) and e^(asinh(u) + i / mu^2) with
    u = (i - 1/2) / mu (Amos 1974), and u - u^3 / 6 <= asinh(u) <= u. Adding up,

        k^2 / 2 mu - k^4 / 24 mu^3  <=  -ln p(k) / p(0)  <=  k^2 / 2 mu + k (k + 1) / 2 mu^2,

    so that for |k| <= c sqrt(mu) the laws' logarithms differ by at most tau = (c^2 + c / sqrt(mu)) / 2 mu + c^4 / 24 mu
    once both are normalized. With c = 12 + l2 / sqrt(mu), noise within 12 deviations stays inside also after the
    shift, and over d coordinates

        delta(epsilon) <= e^(tau d) delta_G(epsilon - 2 tau d) + 2 d 1e-30,

    with delta_G that of the discrete Gaussian of variance mu. For mu = 1e9 and d = 100, 2 tau d is 2e-4.

    Attributes:
        variance: mu of the noise that nobody in a coalition knows, in squared steps of the grid.
        l2: l2 sensitivity in steps.
        l1: l1 sensitivity in steps.
        dimension: number of coordinates.
    """

    variance: float
    l2: float
    l1: float
    dimension: int
    relation: Relation

    def __post_init__(self) -> None:
        check_positive("variance", self.variance)
        check_positive("l2", self.l2)
        check_positive("l1", self.l1)
        check_count("dimension", self.dimension)
        if self.l2 < 1 or self.l1 < self.l2 * (1 - 1e-12):
            raise PrivacyError(f"whole vectors that differ have 1 <= l2 <= l1, got {self.l2} and {self.l1}")

    def delta(self, epsilon: float) -> float:
        """The smaller of both bounds."""
        by_order = min(delta_at_order(alpha, self.rdp(alpha), epsilon) for alpha in ORDERS)
        gap = self._gap()
        if gap is None or epsilon <= 2 * gap:
            return by_order
        near = math.exp(gap) * self._gaussian().delta(epsilon - 2 * gap) + self._outside()
        return min(by_order, near, 1.0)

    def rdp(self, alpha: float) -> float:
        """The bound at the next whole order: divergences do not fall with the order."""
        order = max(2, math.ceil(alpha))
        square, variance = self.l2**2, self.variance
        rest = min(((2 * order - 1) * square + 6 * self.l1) / (4 * variance**2), 3 * self.l1 / (2 * variance))
        return order * square / (2 * variance) + rest

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """The Gaussian's, shifted by what the laws differ and by the grid.

        Raises:
            UnsupportedAnalysisError: for a variance below 1e4, where only the Renyi bound is known.
        """
        gap = self._gap()
        if gap is None:
            raise UnsupportedAnalysisError(f"Skellam noise of variance {self.variance} has no loss distribution here")
        s = self.l2 / math.sqrt(self.variance)
        center = 2 * gap + self.l1 / self.variance + s * s / 2
        more, outside = math.exp(gap), self._outside()

        def survival(t: Any) -> Any:  # of the discrete Gaussian's loss: see DiscreteGaussianEvent
            return np.minimum(1.0, more * ndtr((center - t) / s) + outside)

        reach = s * 8.3
        return loss_from_survival(survival, survival, top=center + reach, bottom=center - reach, interval=interval)

    def _gaussian(self) -> DiscreteGaussianEvent:
        sigma = math.sqrt(self.variance)
        return DiscreteGaussianEvent(sigma, self.l2, self.l1, self.dimension, self.relation)

    def _gap(self) -> float | None:
        """tau d, or None where the comparison is not used."""
        if self.variance < LEAST_VARIANCE:
            return None
        sigma = math.sqrt(self.variance)
        c = CORE + self.l2 / sigma
        return self.dimension * ((c * c + c / sigma) / 2 + c**4 / 24) / self.variance

    def _outside(self) -> float:
        return 2 * self.dimension * OUTSIDE
