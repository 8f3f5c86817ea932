"""Noise after the filter: the part of a filter that gives differential privacy, to each sample on its own.

A minimax filter alone promises nothing: it hides from the adversaries it was trained against. Clipping its features
to a ball of radius B and adding noise calibrated to the ball's diameter 2 B makes any two inputs hard to tell apart,
for every adversary: local differential privacy, T epsilon for a person with T samples. Every sample is handed out as it
is, so its last bits count: features are whole steps of a grid, and so is the noise. Proof: Theorem 4.9 in
docs/theory/filters.md.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal, get_args

import torch
from scipy.special import ndtri
from torch import Tensor, nn

from ppspeech.errors import PrivacyError
from ppspeech.filters.certified import (
    NamingBound,
    NamingTarget,
    named_by_codes,
    named_by_profile,
    named_by_pure,
    no_bound,
)
from ppspeech.filters.codes import codes_of, nearest
from ppspeech.privacy import (
    ExactPureEvent,
    Guarantee,
    Relation,
    Released,
    Unit,
    UnitSum,
    check_choice,
    check_count,
    check_positive,
    check_probability,
    gaussian_epsilon,
)
from ppspeech.privacy.accounting import Accountant, Event, NonPrivateEvent
from ppspeech.privacy.gradients import STEPS, whole, whole_scale
from ppspeech.privacy.samplers import LARGEST, coins, dyadic, random_below, sample_discrete_laplace

Law = Literal["laplace", "gaussian"]

COARSE = 2**24
"""Steps that stand for the ball where noise is discrete Laplace: its scale grows with them, and stays in 64 bits."""

FILTER_ASSUMPTION = "the filter was learned from public data, or what its learning cost is accounted for beside this"
NO_NOISE = (
    "a filter without noise: it was trained against some adversaries on some data and proves nothing against others; "
    "see the attacks measured on it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureNoise:
    """Clips every feature vector to |g|_2 <= bound and adds fresh noise to it.

    Formal guarantee: whatever the filter, for any two inputs x, x' of one sample and all sets S of outputs,
    P(release(x) in S) <= exp(epsilon) P(release(x') in S) + delta, for the released bits: a vector becomes whole
    numbers of a bounded length, which stands for the ball, by rounding toward zero. Each sample is released on its own,
    so nobody has to be trusted with raw features.

    The law `gaussian` is the discrete Gaussian with the least sigma that is (epsilon, delta)-DP. `laplace` is the
    discrete Laplace law, for pure privacy: two vectors are up to 2 bound sqrt(features) apart in l1, so that its noise
    is about sqrt(2) times as long as that of density exp(-epsilon |b|_2 / 2 bound), which nobody can draw to the bit.
    """

    bound: float  # B > 0, a constant chosen without looking at private data
    epsilon: float  # > 0, for one sample
    delta: float = 0.0  # 0 for `laplace`, in (0, 1) for `gaussian`
    law: Law = "laplace"
    unit: Unit = "record"

    def __post_init__(self) -> None:
        check_choice("law", self.law, get_args(Law))
        check_positive("bound", self.bound)
        check_positive("epsilon", self.epsilon)
        if self.law == "laplace" and self.delta != 0:
            raise PrivacyError(f"laplace noise is pure (delta = 0), got delta = {self.delta}; use law='gaussian'")
        if self.law == "gaussian":
            check_probability("delta", self.delta)
        _ = self.event  # refuses a unit that there is not

    @property
    def relation(self) -> Relation:
        """One sample exchanged for any other."""
        return Relation(self.unit, "replace")

    @property
    def event(self) -> Event:
        """What releasing one sample costs."""
        return self._event(self.unit)

    @property
    def guarantee(self) -> Guarantee:
        """What releasing one sample promises."""
        return Guarantee.of(self.event, self.delta, assumptions=(self._clipped, FILTER_ASSUMPTION))

    def guarantee_for(self, samples: int, unit: Unit = "speaker") -> Guarantee:
        """What is promised to someone with at most `samples` samples, all of which change between neighbors. T epsilon
        for `laplace`. For `gaussian` at the same delta, noise against T vectors each 2 bound apart.
        """
        account = Accountant(Relation(unit, "replace"))
        account.compose(self._event(unit), check_count("samples", samples))
        limit = f"at most {samples} samples of one {unit}"
        return account.guarantee(self.delta, assumptions=(limit, self._clipped, FILTER_ASSUMPTION))

    @classmethod
    def for_naming(cls, target: NamingTarget, *, bound: float, delta: float = 1e-6) -> "FeatureNoise":
        """The least Gaussian noise (to a thousandth) that keeps naming below the target; stated at `delta`."""
        apart = float(ndtri(target.at_most) - ndtri(1 / target.people))  # sqrt(T) bound / sigma of `named_in_ball`
        epsilon = gaussian_epsilon(delta, 2 * apart / math.sqrt(target.clips))
        while True:
            made = cls(bound=bound, epsilon=epsilon, delta=delta, law="gaussian")
            if made.naming(target.people, target.clips).value <= target.at_most:
                return made
            epsilon *= 1 - 1e-4

    def naming(self, people: int, clips: int) -> NamingBound:
        """How often anybody names one of so many people from so many clips: see `ppspeech.filters.certified`. The
        reference is noise around the center, from which a clipped vector is `bound` away and not 2 `bound`.
        """
        if self.law == "laplace":
            return NamingBound(named_by_pure(self.epsilon / 2, people, clips), people, clips, "pure")
        event = replace(self._ball, relation=Relation(self.unit, "add_remove")).event
        together = event.merged([(event, check_count("clips", clips))])
        if together is None:
            raise PrivacyError(
                f"noise of sigma {self._ball.sigma:.3g} is too little on this grid to state {clips} clips"
            )
        return NamingBound(named_by_profile(together.delta, people), people, clips, "gaussian")

    def release(self, features: Tensor) -> Released[Tensor]:
        """Noisy features of the same shape `(..., d)`; every vector along the last axis is one sample. The event and
        the guarantee are those of one sample. A vector that is not finite counts as zeros: a refusal would tell.
        """
        flat = features.detach().reshape(-1, features.shape[-1])
        if self.law == "gaussian":
            ball = self._ball
            noisy = ball.release(ball.whole(flat)).value
        else:
            norms = torch.linalg.vector_norm(flat, dim=1, dtype=torch.float64)
            steps = whole(flat, whole_scale(norms, self.bound) * (COARSE / STEPS))
            noise = torch.from_numpy(sample_discrete_laplace(self._scale(flat.shape[1]), steps.numel()))
            noisy = (steps + noise.reshape(steps.shape).to(steps.device)).to(torch.float64) * (self.bound / COARSE)
        return Released(noisy.reshape(features.shape).to(features.dtype), self.event, self.guarantee)

    @property
    def _clipped(self) -> str:
        return f"features are clipped to {self.bound:.6g}"

    @property
    def _ball(self) -> UnitSum:
        """Of Gaussian noise: every sample as a sum of one."""
        return _ball(self.bound, self.epsilon, self.delta, self.relation)

    def _scale(self, features: int) -> Fraction:
        """Of the discrete Laplace law: how far two samples are apart in l1, in whole steps, over epsilon."""
        scale = dyadic(math.ceil(2 * COARSE * math.sqrt(features)) / self.epsilon)
        if scale > LARGEST:
            raise PrivacyError(f"epsilon = {self.epsilon} is too small for {features} features: use law='gaussian'")
        return scale

    def _event(self, unit: Unit) -> Event:
        relation = Relation(unit, "replace")
        if self.law == "laplace":
            return ExactPureEvent(self.epsilon, relation)
        return replace(self._ball.event, relation=relation)


@lru_cache(maxsize=64)
def _ball(bound: float, epsilon: float, delta: float, relation: Relation) -> UnitSum:
    """The noise, remembered: a search, and every sample asks."""
    return UnitSum.calibrated(epsilon=epsilon, delta=delta, bound=bound, relation=relation)


@dataclass(frozen=True, eq=False, kw_only=True)
class CodeNoise:
    """Randomized response on codes: every vector becomes the nearest code, and that a uniform one with probability
    K / (e^epsilon + K - 1).

    Formal guarantee: epsilon-local differential privacy of every sample, for the released bits: the coin tells the code
    a little less often than it might, from whole 64-bit words, and uniform codes are exact.
    """

    codes: Tensor  # `(K, d)`, K >= 2, public
    epsilon: float  # > 0, for one sample
    unit: Unit = "record"

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        if self.codes.ndim != 2 or len(self.codes) < 2 or not bool(self.codes.isfinite().all()):
            raise PrivacyError(f"codes must be finite, of shape (K >= 2, d), got {tuple(self.codes.shape)}")

    @classmethod
    def for_naming(cls, target: NamingTarget, *, codes: Tensor) -> "CodeNoise":
        """The largest epsilon (to 1e-6, up to 64) that keeps naming below the target."""
        low, high = 0.0, 64.0
        while high - low > 1e-6:
            middle = (low + high) / 2
            enough = named_by_codes(middle, len(codes), target.people, target.clips) <= target.at_most
            low, high = (middle, high) if enough else (low, middle)
        return cls(codes=codes, epsilon=low)

    @property
    def relation(self) -> Relation:
        """One sample exchanged for any other."""
        return Relation(self.unit, "replace")

    @property
    def event(self) -> Event:
        """What releasing one sample costs."""
        return ExactPureEvent(self.epsilon, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What releasing one sample promises."""
        return Guarantee.of(self.event, 0.0, assumptions=(self._told, FILTER_ASSUMPTION))

    def guarantee_for(self, samples: int, unit: Unit = "speaker") -> Guarantee:
        """What is promised to someone with at most `samples` samples: T epsilon."""
        account = Accountant(Relation(unit, "replace"))
        account.compose(ExactPureEvent(self.epsilon, Relation(unit, "replace")), check_count("samples", samples))
        return account.guarantee(
            0.0, assumptions=(f"at most {samples} samples of one {unit}", self._told, FILTER_ASSUMPTION)
        )

    def naming(self, people: int, clips: int) -> NamingBound:
        """How often anybody names one of so many people from so many clips."""
        return NamingBound(named_by_codes(self.epsilon, len(self.codes), people, clips), people, clips, "codes")

    @property
    def truth(self) -> float:
        """How often the coin tells a code as it is: (e^epsilon - 1) / (e^epsilon + K - 1), rounded down."""
        return -math.expm1(-self.epsilon) / (1 + (len(self.codes) - 1) * math.exp(-self.epsilon)) * (1 - 2.0**-40)

    def release(self, features: Tensor) -> Released[Tensor]:
        """A code for every vector along the last axis of `(..., d)`."""
        own = nearest(torch.nan_to_num(features), self.codes.to(features)).cpu()
        told = torch.from_numpy(coins(self.truth, own.numel())).reshape(own.shape)
        other = torch.from_numpy(random_below(len(self.codes), own.numel())).reshape(own.shape)
        said = torch.where(told, own, other).to(features.device)
        return Released(self.codes.to(features)[said], self.event, self.guarantee)

    @property
    def _told(self) -> str:
        return f"one of {len(self.codes)} public codes is told of a sample"


Noise = FeatureNoise | CodeNoise


class NoisyFilter(nn.Module):
    """A filter and the noise after it; `noise=None` leaves the filter bare and says so. The filter maps `(n, ...)` to
    `(..., features)`, with `.features`; `unit` is what one sample is, where there is no noise to name it.
    """

    def __init__(self, filter: nn.Module, noise: Noise | None, unit: Unit = "record") -> None:
        super().__init__()
        self.filter, self.noise = filter, noise
        self.features = getattr(filter, "features", None)
        self._unit: Unit = unit if noise is None else noise.unit

    @property
    def event(self) -> Event:
        """What one sample costs: without noise, everything."""
        if self.noise is None:
            return NonPrivateEvent(NO_NOISE, Relation(self._unit, "replace"))
        return self.noise.event

    @property
    def guarantee(self) -> Guarantee:
        """What one sample is promised: kind `none` without noise."""
        if self.noise is None:
            return Guarantee(kind="none", relation=Relation(self._unit, "replace"), caveat=NO_NOISE)
        return self.noise.guarantee

    def naming(self, people: int, clips: int) -> NamingBound:
        """How often anybody names one of so many people from so many clips: kind `none` without noise."""
        if self.noise is not None:
            return self.noise.naming(people, clips)
        codes = codes_of(self.filter)
        return no_bound(people, clips, None if codes is None else len(codes))

    def release(self, inputs: Tensor) -> Released[Tensor]:
        """The filtered inputs with fresh noise, and what that promises."""
        with torch.no_grad():
            features: Tensor = self.filter(inputs)
        if self.noise is None:
            return Released(features, self.event, self.guarantee)
        return self.noise.release(features)

    def forward(self, inputs: Tensor) -> Tensor:
        """What `release` releases."""
        return self.release(inputs).value
