"""Noise after the filter: the part of a filter that gives differential privacy, to each sample on its own.

A minimax filter alone promises nothing: it hides from the adversaries it was trained against. Clipping its features
to a ball of radius B and adding noise calibrated to the ball's diameter 2 B makes any two inputs hard to tell apart,
for every adversary: local differential privacy, T epsilon for a person with T samples.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from ppspeech.errors import PrivacyError
from ppspeech.privacy import Guarantee, Relation, Released, Unit, check_choice, check_count, check_positive
from ppspeech.privacy.accounting import Accountant, Event, NonPrivateEvent
from ppspeech.privacy.gradients import clip_norm
from ppspeech.privacy.mechanisms import GammaNorm, Gaussian
from ppspeech.privacy.samplers import exponential, standard_normal

Law = Literal["gamma_norm", "gaussian"]

FILTER_ASSUMPTION = "the filter was learned from public data, or what its learning cost is accounted for beside this"
NO_NOISE = (
    "a filter without noise: it was trained against some adversaries on some data and proves nothing against others; "
    "see the attacks measured on it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureNoise:
    """Clips every feature vector to |g|_2 <= bound and adds fresh noise to it.

    Formal guarantee: whatever the filter, for any two inputs x, x' of one sample and all sets S of outputs,
    P(release(x) in S) <= exp(epsilon) P(release(x') in S) + delta: two vectors in the ball are at most 2 bound apart.
    Each sample is released on its own, so nobody has to be trusted with raw features. Not float-safe. The law
    `gamma_norm` has density proportional to exp(-epsilon |b|_2 / (2 B)); `gaussian` is N(0, (2 B sigma)^2 I) with the
    least sigma that is (epsilon, delta)-DP.
    """

    bound: float  # B > 0, a constant chosen without looking at private data
    epsilon: float  # > 0, for one sample
    delta: float = 0.0  # 0 for `gamma_norm`, in (0, 1) for `gaussian`
    law: Law = "gamma_norm"
    unit: Unit = "record"

    def __post_init__(self) -> None:
        check_choice("law", self.law, get_args(Law))
        check_positive("bound", self.bound)
        if self.law == "gamma_norm" and self.delta != 0:
            raise PrivacyError(f"gamma_norm noise is pure (delta = 0), got delta = {self.delta}; use law='gaussian'")
        self._mechanism(self.unit)  # refuses an epsilon, delta or unit that is out of range

    def _mechanism(self, unit: Unit) -> GammaNorm | Gaussian:
        about: dict[str, Any] = {"sensitivity": 2 * self.bound, "relation": Relation(unit, "replace")}
        if self.law == "gamma_norm":
            return GammaNorm(epsilon=self.epsilon, **about)
        return Gaussian.calibrated(epsilon=self.epsilon, delta=self.delta, **about)

    @property
    def relation(self) -> Relation:
        """One sample exchanged for any other."""
        return Relation(self.unit, "replace")

    @property
    def event(self) -> Event:
        """What releasing one sample costs."""
        return self._mechanism(self.unit).event

    @property
    def guarantee(self) -> Guarantee:
        """What releasing one sample promises."""
        stated = self._mechanism(self.unit).guarantee
        return replace(stated, assumptions=(*stated.assumptions, FILTER_ASSUMPTION))

    def guarantee_for(self, samples: int, unit: Unit = "speaker") -> Guarantee:
        """What is promised to someone with at most `samples` samples, all of which change between neighbors. T epsilon
        for `gamma_norm`. For `gaussian` at the same delta, noise against T vectors each 2 bound apart.
        """
        account = Accountant(Relation(unit, "replace"))
        account.compose(self._mechanism(unit).event, check_count("samples", samples))
        limit = f"at most {samples} samples of one {unit}"
        return account.guarantee(self.delta, assumptions=(limit, "real-valued noise", FILTER_ASSUMPTION))

    def release(self, features: Tensor) -> Released[Tensor]:
        """Noisy features of the same shape `(..., d)`; every vector along the last axis is one sample. The event and
        the guarantee are those of one sample. Raises PrivacyError for features that are not finite.
        """
        clipped = clip_norm(features.detach(), self.bound)
        mechanism = self._mechanism(self.unit)
        if isinstance(mechanism, Gaussian):
            noisy = mechanism.release(clipped).value
        else:
            noisy = clipped + _gamma_norm_rows(clipped.shape, mechanism.kappa).to(clipped)
        return Released(noisy, self.event, self.guarantee)


class NoisyFilter(nn.Module):
    """A filter and the noise after it; `noise=None` leaves the filter bare and says so. The filter maps `(n, ...)` to
    `(..., features)`, with `.features`; `unit` is what one sample is, where there is no noise to name it.
    """

    def __init__(self, filter: nn.Module, noise: FeatureNoise | None, unit: Unit = "record") -> None:
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


def _gamma_norm_rows(shape: torch.Size, kappa: float) -> Tensor:
    """Independent rows with density proportional to exp(-kappa |b|_2): a uniform direction and a Gamma(d) length."""
    direction = standard_normal(shape)
    lengths = torch.from_numpy(exponential(direction.numel())).reshape(shape).sum(-1, keepdim=True) / kappa
    noise: Tensor = direction * (lengths / direction.norm(dim=-1, keepdim=True))
    return noise
