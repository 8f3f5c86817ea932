"""The Laplace mechanism on a grid, sampled exactly: the default for pure releases."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ppspeech.privacy.accounting.events import INTERVAL, Event, PureLike, register_event
from ppspeech.privacy.accounting.loss import LossDistribution, loss_from_survival
from ppspeech.privacy.audit.catalogue import ONE_RECORD, exact_report, sampled_report, shift
from ppspeech.privacy.audit.exact import audit_exact
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.parameters import check_count, check_positive, check_positives
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.samplers.discrete import sample_discrete_laplace
from ppspeech.privacy.samplers.grid import Grid, dyadic


@register_event("discrete_laplace")
@dataclass(frozen=True, slots=True)
class DiscreteLaplaceEvent(PureLike):
    """iid P(k) proportional to exp(-|k| / scale) on whole numbers, on a whole-valued value of l1 sensitivity `l1`.

    A split shift is dominated as for `LaplaceEvent`: with q = exp(-1/scale) the tail of the clamped noise is
    q^(k+1)/(1+q), and the same sums show that q^-k P(z > k) crosses q/(1+q) once. Theorem 1.9 in
    docs/theory/release.md.
    """

    scale: float
    l1: int
    relation: Relation

    def __post_init__(self) -> None:
        check_positive("scale", self.scale)
        check_count("l1", self.l1)

    @property
    def float_safe(self) -> bool:
        """The noise is exact, and rounding is inside the sensitivity."""
        return True

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

    def grouped(self, size: int, relation: Relation) -> Event:
        """The value moves by `size` sensitivities."""
        return replace(self, l1=self.l1 * size, relation=relation)


@mechanism("discrete_laplace", DiscreteLaplaceEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace:
    """Rounds to a grid and adds whole noise with P(k) proportional to exp(-|k| epsilon / s1).

    Formal guarantee: epsilon-DP under `relation`, if the value moves by at most `sensitivity` in l1
    between neighbors. It holds for the released bits: rounding is inside the sensitivity (s1 = l1/g + d steps), and
    the sampler uses whole numbers only. `integer_valued`: a vector of whole numbers (counts), step 1, no growth.
    """

    epsilon: float
    sensitivity: float
    dimension: int
    relation: Relation
    integer_valued: bool = False

    def __post_init__(self) -> None:
        check_positives(self, "epsilon", "sensitivity")
        check_count("dimension", self.dimension)

    @property
    def grid(self) -> Grid:
        """The grid and the sensitivity on it."""
        return Grid.for_values(self.sensitivity, self.dimension, 1, integer_valued=self.integer_valued)

    @property
    def scale(self) -> Fraction:
        """Scale of the noise in steps of the grid: at least s1 / epsilon, rounded up to a short fraction."""
        return dyadic(self.grid.sensitivity / self.epsilon)

    @property
    def event(self) -> DiscreteLaplaceEvent:
        """What one release costs."""
        return DiscreteLaplaceEvent(float(self.scale), int(self.grid.sensitivity), self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        assumptions = (f"l1 sensitivity at most {self.sensitivity:.6g}",)
        return Guarantee.of(self.event, assumptions=assumptions)

    def release(self, value: Tensor) -> Released[Tensor]:
        """The value of any shape with `dimension` coordinates, rounded and with fresh noise."""
        noise = sample_discrete_laplace(self.scale, self.dimension)
        return Released(self.grid.add(value, noise), self.event, self.guarantee)

    def log_density(self, points: Tensor, value: Tensor) -> Tensor:
        """ln probability of the output, `points` `(n, d)` in whole steps of the grid, value in its own units."""
        t = float(self.scale)
        log_constant = math.log(math.tanh(1 / (2 * t)))  # (1 - q) / (1 + q)
        distance = (points - self.grid.to_steps(value)).abs().sum(dim=-1).to(torch.float64)
        return points.shape[-1] * log_constant - distance / t

    @classmethod
    def losses(cls, event: DiscreteLaplaceEvent, runs: int, present: bool) -> Tensor:
        """Of one whole number that moves by the whole sensitivity."""
        terms: dict[str, Any] = {"sensitivity": event.l1, "relation": event.relation}
        one = cls(epsilon=event.pure(), dimension=runs, integer_valued=True, **terms)
        x = one.release(torch.full((runs,), float(event.l1 * present), dtype=torch.float64)).value
        return (x.abs() - (x - event.l1).abs()) / event.scale

    @classmethod
    def example(cls, dimension: int = 1) -> "DiscreteLaplace":
        """At standard parameters, for audits."""
        return cls(epsilon=1.0, sensitivity=1.0, dimension=dimension, relation=ONE_RECORD)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """By its probabilities and by sampling."""
        one = cls.example()
        reach = math.ceil(20 / one.grid.step)
        points = torch.arange(-reach, reach + 1).unsqueeze(1)
        found = audit_exact(one.log_density, **shift(), points=points, volumes=1.0)
        return [exact_report("discrete_laplace", found, one.guarantee), sampled_report("discrete_laplace", one, runs)]
