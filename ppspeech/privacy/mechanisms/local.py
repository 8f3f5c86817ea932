r"""Records perturbed where they are, before anybody collects them (local differential privacy; Pathak 2010, 5.1.2).

A record is a vector x with |x| <= R and a class y of C. The vector gets noise for the diameter 2 R of the ball; the
class is told as it is with probability e^e / (e^e + C - 1), else one of the others. Any two records are neighbors, and
nobody has to be trusted. Several parties simply put perturbed records together.

What a learner knows about the noise is free. E x~ x~' = x x' + v I, with v = sigma^2, or (d + 1) / kappa^2 for noise of
density exp(-kappa |b|); and the columns of the inverse of the response's matrix,

    (e^e + C - 2) / (e^e - 1)  where the class was told,    -1 / (e^e - 1)  elsewhere,

have the class itself as their mean. They sum to 1 and are not all positive. Proof: Theorem 1.37 in
docs/theory/release.md.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.accountant import ComposedEvent
from ppspeech.privacy.accounting.events import Event, ExactPureEvent, PureEvent
from ppspeech.privacy.audit.catalogue import exact_report, scored_report
from ppspeech.privacy.audit.exact import audit_exact
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.gradients.clipping import clip_norm, limit_contributions
from ppspeech.privacy.guarantee import REAL_NOISE, Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussian, DiscreteGaussianEvent
from ppspeech.privacy.parameters import check_count, check_positive, check_positives, check_probability
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.rows import OWN_ROWS, check_rows
from ppspeech.privacy.samplers.discrete import sample_discrete_gaussian
from ppspeech.privacy.samplers.randomness import coins, exponential, random_below, standard_normal

ONE_RECORD = Relation("record", "replace")
CAREFUL = 1 - 2.0**-48  # a probability of the truth that rounding cannot lift above the one stated


@mechanism("label_response", ExactPureEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class LabelResponse:
    """Tells classes, each as it is with probability e^epsilon / (e^epsilon + C - 1), else any other.

    Formal guarantee: epsilon-DP for every class told, to the bit: coins and choices are exact, the truth never more
    often than stated.
    """

    classes: int
    epsilon: float
    relation: Relation = ONE_RECORD

    def __post_init__(self) -> None:
        check_count("classes", self.classes, least=2)
        check_positive("epsilon", self.epsilon)

    @property
    def event(self) -> ExactPureEvent:
        """What one class costs."""
        return ExactPureEvent(self.epsilon, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one class is promised."""
        return Guarantee.of(self.event)

    @property
    def truth(self) -> float:
        """How often the class itself is told."""
        return 1 / (1 + (self.classes - 1) * math.exp(-self.epsilon))

    def release(self, labels: Tensor) -> Released[Tensor]:
        """What is told of classes 0 to C - 1, `(n,)`."""
        if labels.dim() != 1 or labels.is_floating_point():
            raise PrivacyError(f"classes are a vector of whole numbers, got {labels.dtype} {tuple(labels.shape)}")
        if labels.numel() and not 0 <= int(labels.min()) <= int(labels.max()) < self.classes:
            raise PrivacyError(f"classes lie in 0..{self.classes - 1}, got {int(labels.min())}..{int(labels.max())}")
        kept = torch.from_numpy(coins(self.truth * CAREFUL, len(labels)))
        step = 1 + torch.from_numpy(random_below(self.classes - 1, len(labels)))
        true = labels.to(torch.int64)
        return Released(torch.where(kept, true, (true + step) % self.classes), self.event, self.guarantee)

    def matrix(self) -> Tensor:
        """How likely each class (row) is told of each (column), `(C, C)`, its own transpose."""
        lie = (1 - self.truth) / (self.classes - 1)
        return torch.full((self.classes, self.classes), lie, dtype=torch.float64).fill_diagonal_(self.truth)

    def inverse(self) -> Tensor:
        """Its inverse `(C, C)`: rows that have the true class as their mean, and sum to 1."""
        less = math.expm1(self.epsilon)
        own = (less + self.classes - 1) / less
        return torch.full((self.classes, self.classes), -1 / less, dtype=torch.float64).fill_diagonal_(own)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """By its probabilities, and by what is told."""
        one = cls(classes=3, epsilon=1.0)
        found = audit_exact(lambda said, true: one.matrix()[said, true].log(), 0, 1, torch.arange(3))
        worth = torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64)
        inside, outside = (worth[one.release(torch.full((runs,), true)).value] for true in (0, 1))
        sampled = scored_report("label_response", inside, outside, one.guarantee, [(one.event, 1)])
        return [exact_report("label_response", found, one.guarantee), sampled]


@mechanism("local_records", PureEvent, DiscreteGaussianEvent, ExactPureEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRecords:
    """Perturbs records `(x, y)`, each on its own.

    Formal guarantee: under `relation`, replace, what is told of one record is (epsilon_vector + epsilon_label,
    delta)-DP; of a unit of several, all of it is what the event composes to. `delta` = 0 is gamma-norm noise, of
    density exp(-kappa |b|), kappa = epsilon_vector / 2 R, and not float-safe; else exact discrete Gaussian noise on a
    grid. `radius`: R, public and enforced; `classes`: C; `most`: records of a unit, M, enforced: of more, M random ones
    are told.
    """

    features: int
    classes: int
    radius: float
    epsilon_vector: float
    epsilon_label: float
    delta: float = 0.0
    most: int = 1
    relation: Relation = ONE_RECORD

    def __post_init__(self) -> None:
        check_count("features", self.features)
        check_count("most", self.most)
        check_positives(self, "radius", "epsilon_vector")
        check_probability("delta", self.delta, zero=True)
        _ = self.label  # refuses the rest
        if self.relation.adjacency != "replace":
            raise PrivacyError("everybody tells something: one record is replaced by another, not added or removed")
        if self.relation.unit in OWN_ROWS and self.most > 1:
            raise PrivacyError(f"a {self.relation.unit} is one row: most must be 1, got {self.most}")

    @property
    def label(self) -> LabelResponse:
        """What tells the class."""
        return LabelResponse(classes=self.classes, epsilon=self.epsilon_label, relation=self.relation)

    @property
    def kappa(self) -> float:
        """Rate of the length of gamma-norm noise."""
        return self.epsilon_vector / (2 * self.radius)

    @property
    def gaussian(self) -> DiscreteGaussian:
        """What adds Gaussian noise to one vector."""
        return _gaussian(self.epsilon_vector, self.delta, self.radius, self.features, self.relation)

    @property
    def variance(self) -> float:
        """v of the noise on every number of a vector."""
        if self.delta == 0:
            return (self.features + 1) / self.kappa**2
        return (float(self.gaussian.scale) * self.gaussian.grid.step) ** 2

    def moment_noise(self, records: int) -> float:
        """The deviation of a mean of b_j b_k, j != k, over so many records: what hides second moments."""
        fourth = self.variance**2 if self.delta else (self.features + 1) * (self.features + 3) / self.kappa**4
        return math.sqrt(fourth / records)

    @property
    def event(self) -> ComposedEvent:
        """What all records of one unit cost."""
        vector: Event = PureEvent(self.epsilon_vector, self.relation) if self.delta == 0 else self.gaussian.event
        return ComposedEvent((vector, self.label.event) * self.most)

    @property
    def guarantee(self) -> Guarantee:
        """What a unit is promised."""
        assumptions = (f"vectors of norm at most {self.radius:.6g}, by clipping", "everybody perturbs their own")
        return _guarantee(self.event, self.most * self.delta, assumptions)

    def release(
        self, records: tuple[Tensor, Tensor], unit_ids: Tensor | None = None
    ) -> Released[tuple[Tensor, Tensor]]:
        """What is told of vectors `(n, features)` and classes `(n,)`; `unit_ids` `(n,)` where units have several."""
        x, y = records
        if x.dim() != 2 or x.shape[1] != self.features or y.shape != x.shape[:1]:
            shapes = f"{tuple(x.shape)} and {tuple(y.shape)}"
            raise PrivacyError(f"records are {self.features} numbers and a class each, got shapes {shapes}")
        if not bool(torch.isfinite(x).all()):
            raise PrivacyError("the vectors hold infinities or NaN; clip them before")
        check_rows(self.relation.unit, len(x), unit_ids)
        if unit_ids is not None and self.relation.unit not in OWN_ROWS:
            kept = limit_contributions(unit_ids, self.most)
            x, y = x[kept], y[kept]
        bounded = clip_norm(x.detach().to(torch.float64), self.radius)
        told = bounded + _lengths(bounded, self.kappa) if self.delta == 0 else self._on_grid(bounded)
        return Released((told, self.label.release(y).value), self.event, self.guarantee)

    def _on_grid(self, x: Tensor) -> Tensor:
        """Every row with noise of its own on the grid of one."""
        grid = replace(self.gaussian.grid, dimension=x.numel())
        return grid.add(x, sample_discrete_gaussian(self.gaussian.scale, x.numel())) if x.numel() else x

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """Of records at opposite ends of the ball, of different classes, by the exact ratio of both laws."""
        reports = []
        for delta in (0.0, 1e-5):
            one = cls(features=2, classes=3, radius=1.0, epsilon_vector=1.0, epsilon_label=0.5, delta=delta)
            ends = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
            inside, outside = (_ratio(one, ends, at, runs) for at in (0, 1))
            booked = [(part, 1) for part in one.event.parts]
            reports.append(scored_report("local_records", inside, outside, one.guarantee, booked, f"delta {delta:g}"))
        return reports


@lru_cache(maxsize=64)
def _gaussian(epsilon: float, delta: float, radius: float, features: int, relation: Relation) -> DiscreteGaussian:
    """The noise, remembered: a search, and every release asks."""
    terms: dict[str, Any] = {"sensitivity": 2 * radius, "dimension": features, "relation": relation}
    return DiscreteGaussian.calibrated(epsilon=epsilon, delta=delta, **terms)


@lru_cache(maxsize=64)
def _guarantee(event: ComposedEvent, delta: float, assumptions: tuple[str, ...]) -> Guarantee:
    return Guarantee.of(event, delta, assumptions=assumptions, caveat="" if event.float_safe else REAL_NOISE)


def _lengths(x: Tensor, kappa: float) -> Tensor:
    """Noise of density proportional to exp(-kappa |b|) for every row of `(n, d)`: |b| is the sum of d exponentials."""
    direction = standard_normal(x.shape)
    length = torch.from_numpy(exponential(x.numel()).reshape(tuple(x.shape))).sum(1, keepdim=True) / kappa
    noise: Tensor = direction * (length / torch.linalg.vector_norm(direction, dim=1, keepdim=True))
    return noise


def _ratio(one: LocalRecords, ends: Tensor, at: int, runs: int) -> Tensor:
    """ln of how much likelier releases of `ends[at]`, of class `at`, are from the first end than from the second."""
    told, said = one.release((ends[at].expand(runs, 2), torch.full((runs,), at))).value
    distances = torch.linalg.vector_norm(told.unsqueeze(1) - ends, dim=2)
    if one.delta == 0:
        by_vector = one.kappa * (distances[:, 1] - distances[:, 0])
    else:
        by_vector = (distances[:, 1].square() - distances[:, 0].square()) / (2 * one.variance)
    by_label = one.label.matrix()[said, 0].log() - one.label.matrix()[said, 1].log()
    ratio: Tensor = by_vector + by_label
    return ratio
