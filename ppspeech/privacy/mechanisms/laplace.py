"""The Laplace mechanism with real noise (Prakash and Gujar 2020, section II-E)."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ppspeech.privacy.accounting.events import INTERVAL, Event, PureLike, register_event
from ppspeech.privacy.accounting.loss import LossDistribution, loss_of_laplace
from ppspeech.privacy.audit.catalogue import ONE_RECORD, exact_report, line, sampled_report, shift
from ppspeech.privacy.audit.exact import audit_exact
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.guarantee import REAL_NOISE, Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.parameters import check_positive, check_positives
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.samplers.randomness import standard_laplace


@register_event("laplace")
@dataclass(frozen=True, slots=True)
class LaplaceEvent(PureLike):
    """iid Lap(b) on a value of l1 sensitivity b / scale.

    The loss distribution is that of one coordinate moving by the whole sensitivity S. It dominates a shift that
    is split over coordinates: for a split (s1 <= s2) the loss is S - 2z with z = y1 + y2, y_i the noise clamped to
    [0, s_i]. exp(t) P(z > t) is above 1/2 for t < s2 and falls from (1 + s1)/4 to 1/4 on [s2, S), while
    exp(t) P(y > t) = 1/2 for the whole shift, so the two survival functions cross once; as exp(2z) and exp(2y)
    have equal means, the likelihood ratio of the split is smaller in convex order. More coordinates follow by
    merging two at a time. Theorem 1.9 in docs/theory/release.md.
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

    def pure(self) -> float:
        """1 / scale."""
        return 1 / self.scale

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """Exact for one coordinate up to the bucket width, and dominating for more."""
        return loss_of_laplace(self.scale, interval)

    def grouped(self, size: int, relation: Relation) -> Event:
        """The value moves by `size` sensitivities."""
        return LaplaceEvent(self.scale / size, relation)


@mechanism("laplace", LaplaceEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace:
    """Adds iid Lap(sensitivity / epsilon) to every coordinate.

    Formal guarantee: epsilon-DP under `relation`, if the value moves by at most `sensitivity` in l1
    between neighbors. The samples are floats, whose low bits can tell (float_safe is False): `DiscreteLaplace` is
    the default for releases.
    """

    epsilon: float
    sensitivity: float
    relation: Relation

    def __post_init__(self) -> None:
        check_positives(self, "epsilon", "sensitivity")

    @property
    def scale(self) -> float:
        """b of Lap(b)."""
        return self.sensitivity / self.epsilon

    @property
    def event(self) -> LaplaceEvent:
        """What one release costs."""
        return LaplaceEvent(1 / self.epsilon, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        assumptions = (f"l1 sensitivity at most {self.sensitivity:.6g}", "real-valued noise")
        return Guarantee(
            kind="pure", relation=self.relation, epsilon=self.epsilon, assumptions=assumptions, caveat=REAL_NOISE
        )

    def release(self, value: Tensor) -> Released[Tensor]:
        """The value of any shape with fresh noise, same shape, dtype and device."""
        noisy = value.detach() + self.scale * standard_laplace(value.shape, like=value)
        return Released(noisy, self.event, self.guarantee)

    def log_density(self, points: Tensor, value: Tensor) -> Tensor:
        """ln density of the output at `points` `(n, d)` when the exact value is `value` `(d,)`."""
        distance = (points - value).abs().sum(dim=-1)
        return -distance / self.scale - points.shape[-1] * math.log(2 * self.scale)

    @classmethod
    def losses(cls, event: LaplaceEvent, runs: int, present: bool) -> Tensor:
        """Of one number that moves by the whole sensitivity."""
        one = cls(epsilon=event.pure(), sensitivity=1.0, relation=event.relation)
        x = one.release(torch.full((runs,), float(present), dtype=torch.float64)).value
        return (x.abs() - (x - 1).abs()) * event.pure()

    @classmethod
    def example(cls, dimension: int = 1) -> "Laplace":  # noqa: ARG003
        """At standard parameters, for audits."""
        return cls(epsilon=1.0, sensitivity=1.0, relation=ONE_RECORD)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """By its density and by sampling."""
        one = cls.example()
        found = audit_exact(one.log_density, **shift(), points=line(20.0)[0])
        return [exact_report("laplace", found, one.guarantee), sampled_report("laplace", one, runs)]
