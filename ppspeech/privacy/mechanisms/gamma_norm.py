"""Noise whose length is gamma distributed: pure privacy for an l2 sensitivity."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.privacy.accounting.events import PureEvent
from ppspeech.privacy.audit.catalogue import ONE_RECORD, exact_report, line, sampled_report, shift
from ppspeech.privacy.audit.exact import audit_exact
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.convex.subspace import gamma_norm_noise
from ppspeech.privacy.guarantee import REAL_NOISE, Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.parameters import check_positives
from ppspeech.privacy.relation import Relation


@mechanism("gamma_norm", PureEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class GammaNorm:
    """Adds noise with density proportional to exp(-kappa |b|_2), kappa = epsilon / sensitivity.

    Formal guarantee: epsilon-DP under `relation`, if the value moves by at most `sensitivity` in l2
    (Frobenius for matrices) between neighbors, inside the subspace that the noise lives in. Not float-safe.
    `sensitivity`: l2, > 0; `symmetric`: the value is `(*heads, p, p)`, symmetric; noise only there; `centered`: the
    value's heads sum to a constant that does not depend on the data; noise only there.
    """

    epsilon: float
    sensitivity: float
    relation: Relation
    symmetric: bool = False
    centered: bool = False

    def __post_init__(self) -> None:
        check_positives(self, "epsilon", "sensitivity")

    @property
    def kappa(self) -> float:
        """Rate of the noise's length."""
        return self.epsilon / self.sensitivity

    @property
    def event(self) -> PureEvent:
        """What one release costs."""
        return PureEvent(self.epsilon, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        where = " inside the noise's subspace" if self.symmetric or self.centered else ""
        assumptions = (f"l2 sensitivity at most {self.sensitivity:.6g}{where}", "real-valued noise")
        return Guarantee.of(self.event, assumptions=assumptions, caveat=REAL_NOISE)

    def release(self, value: Tensor) -> Released[Tensor]:
        """The value with fresh noise, same shape, dtype and device. Without `symmetric` or `centered`, any shape."""
        shape = value.shape if self.symmetric or self.centered else (value.numel(),)
        noise = gamma_norm_noise(shape, self.kappa, symmetric=self.symmetric, centered=self.centered, like=value)
        return Released(value.detach() + noise.reshape(value.shape), self.event, self.guarantee)

    def log_density(self, points: Tensor, value: Tensor) -> Tensor:
        """ln density at `points` `(n, d)`: kappa^d Gamma(d/2) / (2 pi^(d/2) Gamma(d)) exp(-kappa |b|)."""
        d = points.shape[-1]
        log_constant = d * math.log(self.kappa) + math.lgamma(d / 2) - math.lgamma(d)
        log_constant -= math.log(2) + d / 2 * math.log(math.pi)
        distance: Tensor = torch.linalg.vector_norm(points - value, dim=-1)
        return log_constant - self.kappa * distance

    @classmethod
    def example(cls, dimension: int = 1) -> "GammaNorm":  # noqa: ARG003
        """At standard parameters, for audits."""
        return cls(epsilon=1.0, sensitivity=1.0, relation=ONE_RECORD)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """By its density in five dimensions, along the direction of the shift, and by sampling."""
        one = cls.example()
        found = audit_exact(one.log_density, **shift(5), points=line(20.0, 5)[0])
        return [exact_report("gamma_norm", found, one.guarantee), sampled_report("gamma_norm", one, runs)]
