"""The Gaussian mechanism on a grid, sampled exactly: the default for releases with a delta."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

import numpy as np
import torch
from scipy.special import ndtr
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import INTERVAL, Event, loss_of_zcdp, register_event
from ppspeech.privacy.accounting.hockey_stick import gaussian_delta, gaussian_sigma, least
from ppspeech.privacy.accounting.loss import TAIL, LossDistribution, loss_from_survival
from ppspeech.privacy.accounting.renyi import delta_from_zcdp
from ppspeech.privacy.audit.catalogue import ONE_RECORD, exact_report, sampled_report, shift
from ppspeech.privacy.audit.exact import audit_exact
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.parameters import check_count, check_positive, check_positives, check_probability
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.samplers.discrete import sample_discrete_gaussian
from ppspeech.privacy.samplers.grid import Grid, dyadic

EXACT_SIGMA = 2.0**10
"""Up to here the one-dimensional discrete Gaussian is summed term by term; above, the shift bound is as good."""

FINE_SIGMA = 2.0**30
"""From here on the shift of several releases together costs far less than the buckets of loss distributions do."""

OUTSIDE = 1e-30  # more than the mass that the term-by-term sum leaves out


@register_event("discrete_gaussian")
@dataclass(frozen=True, slots=True)
class DiscreteGaussianEvent(Event):
    """iid P(k) proportional to exp(-k^2 / 2 sigma^2) on whole numbers, on a whole-valued vector.

    It is l2^2 / 2 sigma^2 zCDP (Canonne, Kamath and Steinke 2020). In one dimension delta is summed exactly. In
    more, for sigma >= 1, the continuous Gaussian's profile holds shifted by eta = l1 / sigma^2:
    **delta(epsilon) <= H(epsilon - eta; l2 / sigma)**. Proof: for whole k >= 1, P(x >= k) <= P(y >= k - 1) with
    y ~ N(0, sigma^2), because exp(-u^2 / 2 sigma^2) falls and its sum over all whole numbers is at least
    sigma sqrt(2 pi) (Poisson summation); for k <= 0 the same inequality is P(x >= m) >= P(y > m), m = 1 - k, where
    the sum exceeds the integral by far more than the factor 1 + 3 exp(-2 pi^2 sigma^2) of the normalizers. So x <=
    y + 1 in some coupling, for each coordinate and by symmetry each sign, and the loss
    (|s|^2 + 2 <x, s>) / 2 sigma^2 is at most the Gaussian's plus |s|_1 / sigma^2. All are in
    steps of the grid. Theorem 1.10 in docs/theory/release.md.
    """

    sigma: float
    l2: float
    l1: float
    dimension: int
    relation: Relation

    def __post_init__(self) -> None:
        check_positives(self, "sigma", "l2", "l1")
        if self.l2 < 1:
            raise PrivacyError(f"a whole-valued vector that moves at all moves by l2 >= 1, got {self.l2}")
        check_count("dimension", self.dimension)
        if self.l1 < self.l2 * (1 - 1e-12):
            raise PrivacyError(f"an l1 sensitivity ({self.l1}) is never below the l2 sensitivity ({self.l2})")

    @property
    def float_safe(self) -> bool:
        """The noise is exact, and rounding is inside the sensitivity."""
        return True

    def delta(self, epsilon: float) -> float:
        """The smallest of the exact sum (one dimension), the shifted profile and the zCDP bound."""
        if self._summable():
            return _discrete_gaussian_delta(self.sigma, math.floor(self.l2), epsilon)
        shifted = gaussian_delta(epsilon - self._shift(), self.l2 / self.sigma) if self.sigma >= 1 else 1.0
        return min(shifted, delta_from_zcdp(self.zcdp(), epsilon))

    def zcdp(self) -> float:
        """l2^2 / (2 sigma^2)."""
        return (self.l2 / self.sigma) ** 2 / 2

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """Exact in one dimension, else the Gaussian's shifted by eta; the Chernoff bound for sigma < 1."""
        if self._summable():
            return _discrete_gaussian_loss(self.sigma, math.floor(self.l2), interval)
        if self.sigma < 1:
            return loss_of_zcdp(self.zcdp(), interval)
        s = self.l2 / self.sigma
        center, reach = self._shift() + s * s / 2, s * 8.3  # Phi(-8.3) < TAIL

        def survival(t: Any) -> Any:
            return ndtr((center - t) / s)

        return loss_from_survival(survival, survival, top=center + reach, bottom=center - reach, interval=interval)

    def _summable(self) -> bool:
        return self.dimension == 1 and self.sigma <= EXACT_SIGMA

    def _shift(self) -> float:
        return self.l1 / self.sigma**2

    def grouped(self, size: int, relation: Relation) -> Event:
        """The value moves by `size` sensitivities."""
        return replace(self, l2=self.l2 * size, l1=self.l1 * size, relation=relation)

    def merged(self, entries: Sequence[tuple[Event, int]]) -> Event | None:
        """On fine grids, one release of a longer vector: (l2 / sigma)^2 adds, and so does the shift l1 / sigma^2."""
        events = [(cast(DiscreteGaussianEvent, event), count) for event, count in entries]
        sigma = min(event.sigma for event, _ in events)
        if sigma < FINE_SIGMA:
            return None
        l2 = sigma * math.sqrt(sum(count * (event.l2 / event.sigma) ** 2 for event, count in events))
        shift = sum(count * event._shift() for event, count in events)
        dimension = sum(count * event.dimension for event, count in events)
        return DiscreteGaussianEvent(sigma, max(l2, 1.0), max(shift * sigma**2, l2), dimension, self.relation)


@lru_cache(maxsize=64)
def _discrete_gaussian_masses(sigma: float, shift: int) -> tuple[Any, Any]:
    """pmf and privacy loss, ascending, at every whole number that carries mass; 1e-31 lies outside."""
    reach = math.ceil(12 * sigma) + 1
    k = np.arange(-reach, reach + 1, dtype=np.float64)
    mass = np.exp(-(k**2) / (2 * sigma**2))
    return mass / mass.sum(), (shift * shift + 2 * k * shift) / (2 * sigma**2)


def _discrete_gaussian_delta(sigma: float, shift: int, epsilon: float) -> float:
    mass, loss = _discrete_gaussian_masses(sigma, shift)
    first = int(np.searchsorted(loss, epsilon, side="right"))
    return OUTSIDE + float(np.sum(mass[first:] * -np.expm1(epsilon - loss[first:])))


def _discrete_gaussian_loss(sigma: float, shift: int, interval: float) -> LossDistribution:
    mass, loss = _discrete_gaussian_masses(sigma, shift)
    above = np.concatenate([np.cumsum(mass[::-1])[::-1], [0.0]]) + OUTSIDE

    def survival(t: Any) -> Any:  # a hair below t, so that rounding cannot lose a point
        return above[np.searchsorted(loss, t - 1e-12 * np.maximum(1.0, np.abs(t)), side="right")]

    top = float(loss[np.flatnonzero(above[:-1] > TAIL)[-1]])
    return loss_from_survival(survival, survival, top=top, bottom=float(loss[0]), interval=interval)


@mechanism("discrete_gaussian", DiscreteGaussianEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian:
    """Rounds to a grid and adds whole noise with P(k) proportional to exp(-k^2 g^2 / 2 sigma^2).

    Formal guarantee: the profile of `DiscreteGaussianEvent` (zCDP, and the Gaussian's delta with a small shift), under
    `relation`, if the value moves by at most `sensitivity` in l2 between neighbors. It holds for the released bits:
    rounding is inside the sensitivity (s2 = l2/g + sqrt(d) steps), and the sampler uses whole numbers only. `sigma` > 0
    is in the value's own units, rounded up by at most one part in 2^23; the guarantee is stated at `delta`, the event
    holds the whole profile. `integer_valued`: a vector of whole numbers (counts), step 1, no growth.
    """

    sigma: float
    sensitivity: float
    dimension: int
    delta: float
    relation: Relation
    integer_valued: bool = False

    def __post_init__(self) -> None:
        check_positives(self, "sigma", "sensitivity")
        check_count("dimension", self.dimension)
        check_probability("delta", self.delta)

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float,
        sensitivity: float,
        dimension: int,
        relation: Relation,
        integer_valued: bool = False,
    ) -> "DiscreteGaussian":
        """The least noise (to 1e-6) that this analysis shows to be (epsilon, delta)-DP."""
        check_positive("sensitivity", sensitivity)
        check_count("dimension", dimension)

        fixed: dict[str, Any] = {
            "sensitivity": sensitivity,
            "dimension": dimension,
            "delta": delta,
            "relation": relation,
        }

        def at(sigma: float) -> DiscreteGaussian:
            return cls(sigma=sigma, integer_valued=integer_valued, **fixed)

        start = sensitivity * gaussian_sigma(epsilon, delta)
        refusal = f"no practical noise reaches epsilon={epsilon}, delta={delta}"
        enough = least(lambda s: at(s).event.delta(epsilon) <= delta, start, grow=1.01, tolerance=1e-6, refusal=refusal)
        return at(enough)

    @property
    def grid(self) -> Grid:
        """The grid and the sensitivity on it."""
        return Grid.for_values(self.sensitivity, self.dimension, 2, integer_valued=self.integer_valued)

    @property
    def scale(self) -> Fraction:
        """sigma in steps of the grid, rounded up to a short fraction."""
        return dyadic(self.sigma / self.grid.step)

    @property
    def event(self) -> DiscreteGaussianEvent:
        """What one release costs."""
        l2 = self.grid.sensitivity
        l1 = min(math.sqrt(self.dimension) * l2, l2**2) if self.integer_valued else math.sqrt(self.dimension) * l2
        return DiscreteGaussianEvent(float(self.scale), l2, l1, self.dimension, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        event, assumptions = self.event, (f"l2 sensitivity at most {self.sensitivity:.6g}",)
        return Guarantee.of(event, self.delta, rho=event.zcdp(), assumptions=assumptions)

    def release(self, value: Tensor) -> Released[Tensor]:
        """The value of any shape with `dimension` coordinates, rounded and with fresh noise."""
        noise = sample_discrete_gaussian(self.scale, self.dimension)
        return Released(self.grid.add(value, noise), self.event, self.guarantee)

    def log_density(self, points: Tensor, value: Tensor) -> Tensor:
        """ln probability of the output, `points` `(n, d)` in whole steps of the grid, value in its own units."""
        sigma = float(self.scale)
        reach = math.ceil(40 * sigma)
        k = torch.arange(-reach, reach + 1, dtype=torch.float64)
        log_constant = torch.logsumexp(-k.square() / (2 * sigma**2), dim=0)
        square = (points - self.grid.to_steps(value)).to(torch.float64).square().sum(dim=-1)
        return -square / (2 * sigma**2) - points.shape[-1] * log_constant

    @classmethod
    def losses(cls, event: DiscreteGaussianEvent, runs: int, present: bool) -> Tensor:
        """Of one whole number that moves by the whole sensitivity."""
        step = float(math.floor(event.l2))
        terms: dict[str, Any] = {"sensitivity": step, "delta": 1e-5, "relation": event.relation}
        one = cls(sigma=event.sigma, dimension=runs, integer_valued=True, **terms)
        x = one.release(torch.full((runs,), step * present, dtype=torch.float64)).value
        return (2 * x * step - step**2) / (2 * event.sigma**2)

    @classmethod
    def example(cls, dimension: int = 1) -> "DiscreteGaussian":
        """At standard parameters, for audits."""
        return cls.calibrated(epsilon=1.0, delta=1e-5, sensitivity=1.0, dimension=dimension, relation=ONE_RECORD)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """By its probabilities and by sampling."""
        one = cls.example()
        reach = math.ceil(35 / one.grid.step)
        points = torch.arange(-reach, reach + 1).unsqueeze(1)
        found = audit_exact(one.log_density, **shift(), points=points, volumes=1.0)
        return [exact_report("discrete_gaussian", found, one.guarantee), sampled_report("discrete_gaussian", one, runs)]
