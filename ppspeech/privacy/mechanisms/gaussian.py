"""The Gaussian mechanism with real noise, calibrated analytically (Balle and Wang 2018)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from ppspeech.privacy.accounting.events import INTERVAL, Event, ZcdpEvent, register_event
from ppspeech.privacy.accounting.hockey_stick import gaussian_delta, gaussian_epsilon, gaussian_sigma
from ppspeech.privacy.accounting.loss import LossDistribution, loss_of_gaussian
from ppspeech.privacy.audit.catalogue import ONE_RECORD, exact_report, line, sampled_report, shift
from ppspeech.privacy.audit.exact import audit_exact
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.guarantee import REAL_NOISE, Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.parameters import check_positive, check_positives, check_probability
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.samplers.randomness import standard_normal


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

    def zcdp(self) -> float:
        """1 / (2 noise_multiplier^2)."""
        return 1 / (2 * self.noise_multiplier**2)

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """Exact up to the bucket width."""
        return loss_of_gaussian(self.noise_multiplier, interval)

    def grouped(self, size: int, relation: Relation) -> Event:
        """The value moves by `size` sensitivities."""
        return GaussianEvent(self.noise_multiplier / size, relation)

    def merged(self, entries: Sequence[tuple[Event, int]]) -> Event:
        """All plain Gaussians are exactly one: 1 / z^2 adds (Dong, Roth and Su 2022)."""
        total = sum(count / cast(GaussianEvent, event).noise_multiplier ** 2 for event, count in entries)
        return GaussianEvent(1 / math.sqrt(total), self.relation)


@mechanism("gaussian", GaussianEvent, ZcdpEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian:
    """Adds iid N(0, sigma^2) to every coordinate.

    Formal guarantee: (epsilon, delta)-DP with delta = H(epsilon; sensitivity / sigma) for every epsilon, and
    sensitivity^2 / 2 sigma^2 zCDP, under `relation`, if the value moves by at most `sensitivity` in
    l2 between neighbors. Not float-safe: `DiscreteGaussian` is the default for releases. The guarantee is stated at
    `delta`; the event holds the whole profile.
    """

    sigma: float
    sensitivity: float
    delta: float
    relation: Relation

    def __post_init__(self) -> None:
        check_positives(self, "sigma", "sensitivity")
        check_probability("delta", self.delta)

    @classmethod
    def calibrated(cls, *, epsilon: float, delta: float, sensitivity: float, relation: Relation) -> "Gaussian":
        """The least noise that is (epsilon, delta)-DP."""
        check_positive("sensitivity", sensitivity)
        sigma = sensitivity * gaussian_sigma(epsilon, delta)
        return cls(sigma=sigma, sensitivity=sensitivity, delta=delta, relation=relation)

    @property
    def event(self) -> GaussianEvent:
        """What one release costs."""
        return GaussianEvent(self.sigma / self.sensitivity, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        event, assumptions = self.event, (f"l2 sensitivity at most {self.sensitivity:.6g}", "real-valued noise")
        return Guarantee.of(event, self.delta, rho=event.zcdp(), assumptions=assumptions, caveat=REAL_NOISE)

    def release(self, value: Tensor) -> Released[Tensor]:
        """The value of any shape with fresh noise, same shape, dtype and device."""
        noisy = value.detach() + self.sigma * standard_normal(value.shape, like=value)
        return Released(noisy, self.event, self.guarantee)

    def log_density(self, points: Tensor, value: Tensor) -> Tensor:
        """ln density of the output at `points` `(n, d)` when the exact value is `value` `(d,)`."""
        square = (points - value).square().sum(dim=-1) / (2 * self.sigma**2)
        return -square - points.shape[-1] * math.log(self.sigma * math.sqrt(2 * math.pi))

    @classmethod
    def losses(cls, event: GaussianEvent | ZcdpEvent, runs: int, present: bool) -> Tensor:
        """Of releases of one number that moves by the whole sensitivity: no rho-zCDP mechanism has a worse mean."""
        z = math.sqrt(1 / (2 * event.zcdp()))
        one = cls(sigma=z, sensitivity=1.0, delta=1e-5, relation=event.relation)
        x = one.release(torch.full((runs,), float(present), dtype=torch.float64)).value
        return (2 * x - 1) / (2 * z**2)

    @classmethod
    def example(cls, dimension: int = 1) -> "Gaussian":  # noqa: ARG003
        """At standard parameters, for audits."""
        return cls.calibrated(epsilon=1.0, delta=1e-5, sensitivity=1.0, relation=ONE_RECORD)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """By its density and by sampling."""
        one = cls.example()
        points, step = line(35.0)
        found = audit_exact(one.log_density, **shift(), points=points, volumes=step)
        return [exact_report("gaussian", found, one.guarantee), sampled_report("gaussian", one, runs)]
