"""Noise that several parties make together, so that no coalition of `colluders` of them knows what was added.

Every party rounds its vector to a common grid and adds a whole-numbered share. The shares of any K - t parties
already have the target's law, so what t colluders subtract leaves the whole guarantee, and their own shares come on
top. Real-valued noise cannot be shared so: rounded parts are not a rounding of their sum. Proofs: Theorems 3.1 and 3.2
in docs/theory/together.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtr
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.accountant import Accountant
from ppspeech.privacy.accounting.events import INTERVAL, Event, UnsupportedAnalysisError, register_event
from ppspeech.privacy.accounting.hockey_stick import gaussian_sigma, least
from ppspeech.privacy.accounting.loss import LossDistribution, loss_from_survival
from ppspeech.privacy.accounting.renyi import delta_at_order
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussianEvent
from ppspeech.privacy.mechanisms.discrete_laplace import DiscreteLaplaceEvent
from ppspeech.privacy.parameters import check_count, check_positive, check_positives, check_probability
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.samplers.divisible import LARGEST_MEAN, sample_negative_binomial, sample_poisson
from ppspeech.privacy.samplers.grid import Grid, dyadic

Law = Literal["skellam", "polya"]

MOST_PARTIES = 100

CORE = 12.0  # noise beyond so many deviations is given up: it has less mass than `OUTSIDE` a coordinate
OUTSIDE = 1e-30
LEAST_VARIANCE = 1e4  # below it the comparison with the discrete Gaussian is not used
ORDERS = tuple(sorted({round(2 ** (step / 4)) for step in range(4, 81)}))  # whole Renyi orders, from 2 to 2^20


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
    All is in steps of the grid; `variance` is mu of the noise that nobody in a coalition knows.
    """

    variance: float
    l2: float
    l1: float
    dimension: int
    relation: Relation

    def __post_init__(self) -> None:
        check_positives(self, "variance", "l2", "l1")
        check_count("dimension", self.dimension)
        if self.l2 < 1 or self.l1 < self.l2 * (1 - 1e-12):
            raise PrivacyError(f"whole vectors that differ have 1 <= l2 <= l1, got {self.l2} and {self.l1}")

    @property
    def float_safe(self) -> bool:
        """The noise is exact, and rounding is inside the sensitivity."""
        return True

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
        """The Gaussian's, shifted by what the laws differ and by the grid; for variances from 1e4."""
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

    def grouped(self, size: int, relation: Relation) -> Event:
        """The value moves by `size` sensitivities."""
        return replace(self, l2=self.l2 * size, l1=self.l1 * size, relation=relation)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shares:
    """What all shares have in common."""

    parties: int
    sensitivity: float
    dimension: int
    relation: Relation
    colluders: int = 1

    def __post_init__(self) -> None:
        check_count("parties", self.parties, least=2)
        check_count("colluders", self.colluders)
        if self.parties > MOST_PARTIES or self.colluders >= self.parties:
            raise PrivacyError(
                f"parties are 2 to {MOST_PARTIES}, and fewer of them collude (every party knows its own share: at "
                f"least 1), got {self.parties} with {self.colluders} colluders"
            )
        check_positive("sensitivity", self.sensitivity)
        check_count("dimension", self.dimension)

    @property
    def honest(self) -> int:
        """K - t: how many shares together have the target's law."""
        return self.parties - self.colluders

    @property
    def grid(self) -> Grid:
        """The grid, and how far one unit moves one party's rounded vector, in l2 steps."""
        return Grid.for_values(self.sensitivity, self.dimension, 2, integer_valued=False)

    @property
    def l1(self) -> float:
        """How far one unit moves one party's rounded vector, in l1 steps."""
        return math.sqrt(self.dimension) * self.grid.sensitivity

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold outside the mechanism."""
        return (
            f"l2 sensitivity of the sum at most {self.sensitivity:.6g}",
            f"at most {self.colluders} of {self.parties} parties share what they know, with the curator or without",
            "all parties follow the protocol and keep their noise to themselves",
        )


@mechanism("skellam", SkellamEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class SkellamShares(_Shares):
    """Shares Poisson(mu / 2 (K - t)) - Poisson(mu / 2 (K - t)): together Skellam noise of variance mu, or more.

    Formal guarantee: the profile of `SkellamEvent` against any coalition of `colluders` parties and the curator, for
    the released bits: the samplers are exact and rounding is inside the sensitivity.

    K = `parties` is 2 to 100, t = `colluders` from 1; `sensitivity` is the sum's in l2, `sigma` that of the honest
    noise in the value's own units.
    """

    sigma: float
    delta: float

    def __post_init__(self) -> None:
        _Shares.__post_init__(self)
        check_positive("sigma", self.sigma)
        check_probability("delta", self.delta)
        if self._mean > LARGEST_MEAN:
            raise PrivacyError(f"noise of {self.sigma / self.sensitivity:.3g} sensitivities is more than can be drawn")

    @property
    def _mean(self) -> float:
        return (self.sigma / self.grid.step) ** 2 / (2 * self.honest)

    @property
    def event(self) -> SkellamEvent:
        """What one release costs."""
        variance = 2 * self.honest * self._mean
        return SkellamEvent(variance, self.grid.sensitivity, self.l1, self.dimension, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        return Guarantee.of(self.event, self.delta, assumptions=self.assumptions)

    @classmethod
    def losses(cls, event: SkellamEvent, runs: int, present: bool) -> Tensor:
        """Of one whole number that moves by the whole sensitivity, under one honest party's share; as a Gaussian's."""
        two: dict[str, Any] = {"parties": 2, "sensitivity": 1.0, "dimension": 1, "relation": event.relation}
        grid = cls(**two, sigma=1.0, delta=1e-5).grid
        shares = cls(**two, sigma=math.sqrt(event.variance) * grid.step, delta=1e-5)
        step = float(math.floor(event.l2))
        x = torch.from_numpy(shares.share(runs)).to(torch.float64) + step * present
        return (2 * x * step - step**2) / (2 * event.variance)

    def share(self, count: int = 1) -> NDArray[np.int64]:
        """Fresh noise of one party in steps of the grid, `(dimension,)`; `count` times that for experiments."""
        size = count * self.dimension
        noise: NDArray[np.int64] = np.subtract(*sample_poisson(self._mean, 2 * size).reshape(2, size))
        return noise

    def release(self, vectors: Sequence[Tensor]) -> Released[Tensor]:
        """What all parties release together, where they are all in one place; `JointSum` is where they are not."""
        return _released(self, vectors)


@mechanism("polya", DiscreteLaplaceEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class PolyaShares(_Shares):
    """Shares NB(1 / (K - t)) - NB(1 / (K - t)): together discrete Laplace noise, for pure privacy.

    Formal guarantee: epsilon-DP as `DiscreteLaplaceEvent` states it, against any coalition of `colluders` parties and
    the curator, for the released bits. The l1 sensitivity is sqrt(d) times the l2 one.
    """

    epsilon: float

    def __post_init__(self) -> None:
        _Shares.__post_init__(self)
        check_positive("epsilon", self.epsilon)

    @property
    def scale(self) -> Fraction:
        """Of the discrete Laplace law in steps, rounded up to a short fraction."""
        return max(Fraction(1), dyadic(math.ceil(self.l1) / self.epsilon))

    @property
    def event(self) -> DiscreteLaplaceEvent:
        """What one release costs."""
        return DiscreteLaplaceEvent(float(self.scale), math.ceil(self.l1), self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        return Guarantee.of(self.event, assumptions=self.assumptions)

    @classmethod
    def losses(cls, event: DiscreteLaplaceEvent, runs: int, present: bool) -> Tensor:
        """Of one whole number that moves by the whole sensitivity, under one honest party's share."""
        two: dict[str, Any] = {"parties": 2, "sensitivity": 1.0, "dimension": 1, "relation": event.relation}
        steps = math.ceil(cls(**two, epsilon=1.0).l1)
        shares = cls(**two, epsilon=steps / event.scale)
        x = torch.from_numpy(shares.share(runs)).to(torch.float64) + event.l1 * present
        return (x.abs() - (x - event.l1).abs()) / event.scale

    def share(self, count: int = 1) -> NDArray[np.int64]:
        """Fresh noise of one party in steps of the grid, `(dimension,)`; `count` times that for experiments."""
        size = count * self.dimension
        shape = min(1.0, math.nextafter(1 / self.honest, 1.0))  # rounded up: more noise, never less
        drawn = sample_negative_binomial(shape, self.scale, 2 * size)
        noise: NDArray[np.int64] = np.subtract(*drawn.reshape(2, size))
        return noise

    def release(self, vectors: Sequence[Tensor]) -> Released[Tensor]:
        """What all parties release together, where they are all in one place; `JointSum` is where they are not."""
        return _released(self, vectors)


NoiseShares = SkellamShares | PolyaShares  # one party's part of a joint release


def _released(shares: NoiseShares, vectors: Sequence[Tensor]) -> Released[Tensor]:
    """The noisy sum of all parties' vectors `(dimension,)`, each rounded by its owner with a share of its own."""
    if len(vectors) != shares.parties:
        raise PrivacyError(f"noise was shared among {shares.parties} parties, got {len(vectors)} vectors")
    parts = [shares.grid.add(vector.detach().to(torch.float64), shares.share()) for vector in vectors]
    return Released(torch.stack(parts).sum(0), shares.event, shares.guarantee)


def shares_for(
    law: Law,
    *,
    epsilon: float,
    delta: float,
    parties: int,
    sensitivity: float,
    dimension: int,
    relation: Relation,
    colluders: int = 1,
    releases: int = 1,
) -> NoiseShares:
    """The least noise with which `releases` joint releases together are (epsilon, delta)-DP.

    `law`: `skellam` for delta > 0, `polya` for delta = 0; `sensitivity`: l2, of each sum; `releases`: how many there
    will be, fixed in advance.
    """
    check_positive("epsilon", epsilon)
    check_positive("sensitivity", sensitivity)
    check_count("releases", releases)
    fixed: dict[str, Any] = {"parties": parties, "sensitivity": sensitivity, "dimension": dimension}
    fixed |= {"relation": relation, "colluders": colluders}
    if law == "polya":
        if delta != 0:
            raise PrivacyError(f"Polya shares give pure privacy: delta must be 0, got {delta}; use law='skellam'")
        return PolyaShares(**fixed, epsilon=epsilon / releases)
    if law != "skellam":
        raise PrivacyError(f"law must be skellam or polya, got {law!r}")
    check_probability("delta", delta)

    def at(sigma: float) -> SkellamShares:
        return SkellamShares(**fixed, sigma=sigma, delta=delta)

    def enough(sigma: float) -> bool:  # several releases are one of a longer vector: l2 grows with the root
        one, n = at(sigma).event, releases
        together = replace(one, l2=math.sqrt(n) * one.l2, l1=n * one.l1, dimension=n * one.dimension)
        return together.delta(epsilon) <= delta

    refusal = "no practical noise reaches this epsilon and delta together"
    start = sensitivity * math.sqrt(releases) * gaussian_sigma(epsilon, delta)
    chosen = at(least(enough, start, grow=1.02, tolerance=1e-4, refusal=refusal))
    start, more = chosen.sigma, 1e-3  # the accountant rounds losses up to its buckets
    while releases > 1:
        account = Accountant(relation)
        account.compose(chosen.event, releases)
        if account.epsilon(delta, "pld") <= epsilon:
            break
        if more > 1:
            raise PrivacyError(
                f"the accountant cannot show epsilon = {epsilon} for {releases} releases: use fewer, or more epsilon"
            )
        chosen = at(start * (1 + more))
        more *= 2
    return chosen
