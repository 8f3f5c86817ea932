"""Events of additive noise. Scales are relative to the sensitivity under the event's adjacency."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtr

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import INTERVAL, Event, loss_of_zcdp, register_event
from ppspeech.privacy.accounting.hockey_stick import gaussian_delta, gaussian_epsilon
from ppspeech.privacy.accounting.loss import (
    TAIL,
    LossDistribution,
    loss_from_survival,
    loss_of_gaussian,
    loss_of_laplace,
)
from ppspeech.privacy.accounting.renyi import delta_from_zcdp
from ppspeech.privacy.parameters import check_count, check_positive
from ppspeech.privacy.relation import Relation

EXACT_SIGMA = 2.0**10
"""Up to here the one-dimensional discrete Gaussian is summed term by term; above, the shift bound is as good."""

OUTSIDE = 1e-30
"""More than the mass that the term-by-term sum leaves out."""


@register_event("gaussian")
@dataclass(frozen=True, slots=True)
class GaussianEvent(Event):
    """N(0, sigma^2 I) on a value of l2 sensitivity sigma / noise_multiplier. All its bounds are exact."""

    noise_multiplier: float
    relation: Relation

    def __post_init__(self) -> None:
        check_positive("noise_multiplier", self.noise_multiplier)

    def delta(self, epsilon: float) -> float:
        """H(epsilon; 1 / noise_multiplier)."""
        return gaussian_delta(epsilon, 1 / self.noise_multiplier)

    def epsilon(self, delta: float) -> float:
        """The root of H."""
        return gaussian_epsilon(delta, 1 / self.noise_multiplier)

    def rdp(self, alpha: float) -> float:
        """Alpha rho."""
        return alpha * self.zcdp()

    def zcdp(self) -> float:
        """1 / (2 noise_multiplier^2)."""
        return 1 / (2 * self.noise_multiplier**2)

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """Exact up to the bucket width."""
        return loss_of_gaussian(self.noise_multiplier, interval)


@register_event("laplace")
@dataclass(frozen=True, slots=True)
class LaplaceEvent(Event):
    """iid Lap(b) on a value of l1 sensitivity b / scale.

    The loss distribution is that of one coordinate moving by the whole sensitivity S. It dominates a shift that
    is split over coordinates: for a split (s1 <= s2) the loss is S - 2z with z = y1 + y2, y_i the noise clamped to
    [0, s_i]. exp(t) P(z > t) is above 1/2 for t < s2 and falls from (1 + s1)/4 to 1/4 on [s2, S), while
    exp(t) P(y > t) = 1/2 for the whole shift, so the two survival functions cross once; as exp(2z) and exp(2y)
    have equal means, the likelihood ratio of the split is smaller in convex order. More coordinates follow by
    merging two at a time.
    """

    scale: float
    relation: Relation

    def __post_init__(self) -> None:
        check_positive("scale", self.scale)

    def delta(self, epsilon: float) -> float:
        """1 - exp((epsilon - 1/scale) / 2), at least 0."""
        return max(0.0, -math.expm1((epsilon - self.pure()) / 2))

    def rdp(self, alpha: float) -> float:
        """Closed form of Mironov 2017, table II."""
        epsilon = self.pure()
        grow = math.log(alpha / (2 * alpha - 1)) + (alpha - 1) * epsilon
        fall = math.log((alpha - 1) / (2 * alpha - 1)) - alpha * epsilon
        return float(np.logaddexp(grow, fall)) / (alpha - 1)

    def zcdp(self) -> float:
        """epsilon^2 / 2, as for any pure mechanism."""
        return self.pure() ** 2 / 2

    def pure(self) -> float:
        """1 / scale."""
        return 1 / self.scale

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """Exact for one coordinate up to the bucket width, and dominating for more."""
        return loss_of_laplace(self.scale, interval)


@register_event("discrete_laplace")
@dataclass(frozen=True, slots=True)
class DiscreteLaplaceEvent(Event):
    """iid P(k) proportional to exp(-|k| / scale) on whole numbers, on a whole-valued value of l1 sensitivity `l1`.

    A split shift is dominated as for `LaplaceEvent`: with q = exp(-1/scale) the tail of the clamped noise is
    q^(k+1)/(1+q), and the same sums show that q^-k P(z > k) crosses q/(1+q) once.
    """

    scale: float
    l1: int
    relation: Relation

    def __post_init__(self) -> None:
        check_positive("scale", self.scale)
        check_count("l1", self.l1)

    def delta(self, epsilon: float) -> float:
        """The sum of (1 - exp(epsilon - loss)) over the losses above epsilon, in closed form."""
        # Loss (l1 - 2y) / scale, y the noise clamped to 0..l1; P(y = 0) = 1/(1+q), P(y = k) = (1-q) q^k / (1+q).
        if epsilon >= self.pure():
            return 0.0
        last = min(math.ceil((self.l1 - self.scale * epsilon) / 2) - 1, self.l1 - 1)  # largest y with loss > epsilon
        # sum_{y<=last} P(y) - e^epsilon sum_{y<=last} P'(y); under the other data set the roles are mirrored.
        upper = 1 - self._tail(last)
        lower = self._tail(self.l1 - 1 - last)
        return max(0.0, upper - math.exp(epsilon) * lower)

    def rdp(self, alpha: float) -> float:
        """min(epsilon, alpha epsilon^2 / 2), as for any pure mechanism."""
        return min(self.pure(), alpha * self.zcdp())

    def zcdp(self) -> float:
        """epsilon^2 / 2."""
        return self.pure() ** 2 / 2

    def pure(self) -> float:
        """l1 / scale."""
        return self.l1 / self.scale

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """Every loss rounded up to its bucket."""
        q = math.exp(-1 / self.scale)

        def survival(t: Any) -> Any:  # P(loss > t) = P(y < (l1 - scale t) / 2)
            # A hair more than t's own edge, so that rounding cannot lose a point.
            below = np.ceil((self.l1 - self.scale * t) / 2 * (1 + 1e-12) + 1e-9)
            tail = np.where(below <= 0, 1.0, np.exp(-below / self.scale) / (1 + q))
            return np.where(below > self.l1, 1.0, 1 - tail)

        top = self.pure() + interval
        return loss_from_survival(survival, survival, top=top, bottom=-top, interval=interval)

    def _tail(self, k: int) -> float:
        """P(y > k) of the clamped noise."""
        if k < 0:
            return 1.0
        return math.exp(-(k + 1) / self.scale) / (1 + math.exp(-1 / self.scale)) if k < self.l1 else 0.0


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
    (|s|^2 + 2 <x, s>) / 2 sigma^2 is at most the Gaussian's plus |s|_1 / sigma^2.

    Attributes:
        sigma: in steps of the grid.
        l2: l2 sensitivity in steps of the grid.
        l1: l1 sensitivity in steps of the grid.
        dimension: number of coordinates.
    """

    sigma: float
    l2: float
    l1: float
    dimension: int
    relation: Relation

    def __post_init__(self) -> None:
        check_positive("sigma", self.sigma)
        check_positive("l2", self.l2)
        check_positive("l1", self.l1)
        if self.l2 < 1:
            raise PrivacyError(f"a whole-valued vector that moves at all moves by l2 >= 1, got {self.l2}")
        check_count("dimension", self.dimension)
        if self.l1 < self.l2 * (1 - 1e-12):
            raise PrivacyError(f"an l1 sensitivity ({self.l1}) is never below the l2 sensitivity ({self.l2})")

    def delta(self, epsilon: float) -> float:
        """The smallest of the exact sum (one dimension), the shifted profile and the zCDP bound."""
        if self._summable():
            return _discrete_gaussian_delta(self.sigma, math.floor(self.l2), epsilon)
        shifted = gaussian_delta(epsilon - self._shift(), self.l2 / self.sigma) if self.sigma >= 1 else 1.0
        return min(shifted, delta_from_zcdp(self.zcdp(), epsilon))

    def rdp(self, alpha: float) -> float:
        """Alpha rho."""
        return alpha * self.zcdp()

    def zcdp(self) -> float:
        """l2^2 / (2 sigma^2)."""
        return (self.l2 / self.sigma) ** 2 / 2

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """Exact in one dimension, else the Gaussian's shifted by eta; the Chernoff bound for sigma < 1."""
        if self._summable():
            return _discrete_gaussian_loss(self.sigma, math.floor(self.l2), interval)
        if self.sigma < 1:
            return loss_of_zcdp(self.zcdp(), interval)
        s, shift = self.l2 / self.sigma, self._shift()

        def survival(t: Any) -> Any:
            return ndtr((shift + s * s / 2 - t) / s)

        reach = s * 8.3  # Phi(-8.3) < TAIL
        center = shift + s * s / 2
        return loss_from_survival(survival, survival, top=center + reach, bottom=center - reach, interval=interval)

    def _summable(self) -> bool:
        return self.dimension == 1 and self.sigma <= EXACT_SIGMA

    def _shift(self) -> float:
        return self.l1 / self.sigma**2


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
