"""The papers' own noise, as published, kept to be reproduced and attacked. None of it feeds an accountant.

Every release carries a `NonPrivateEvent` (epsilon = infinity when composed) and a guarantee that says why.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.privacy import Guarantee, Relation, Released, Unit, check_count, check_positive, mechanism
from ppspeech.privacy.accounting import NonPrivateEvent
from ppspeech.privacy.audit import AuditReport, ExactAudit, audit_exact, exact_report
from ppspeech.privacy.samplers import erlang, standard_laplace, standard_normal


@mechanism("published_output_laplace")
@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedOutputLaplace:
    """Pathak, Rane and Raj 2010, section 4.1: logistic regression weights with iid Lap(2 / (n epsilon lambda)).

    The claim |w - w'|_1 <= 2 / (n lambda) is false: that bound holds in l2, and in l1 the truth is up to
    sqrt(d) / (n lambda). The true epsilon is up to sqrt(d) / 2 times the stated one; up to d = 4 the noise happens to
    be enough, though not by the paper's proof. Sound are l2 mechanisms with sensitivity 1 / (n lambda).

    `epsilon`: as stated by the paper; `records`: n; `penalty`: lambda of lambda w'w, beside a loss averaged over n;
    `dimension`: d, number of weights. Correction 1.15 in docs/theory/release.md.
    """

    epsilon: float
    records: int
    penalty: float
    dimension: int
    unit: Unit = "record"

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_positive("penalty", self.penalty)
        check_count("records", self.records)
        check_count("dimension", self.dimension)
        _ = self.relation  # refuses an unknown unit

    @property
    def relation(self) -> Relation:
        """One record exchanged for another, as in the paper."""
        return Relation(self.unit, "replace")

    @property
    def scale(self) -> float:
        """b of Lap(b)."""
        return 2 / (self.records * self.epsilon * self.penalty)

    @property
    def worst_epsilon(self) -> float:
        """What the noise is really worth in the worst case: epsilon sqrt(d) / 2."""
        return self.epsilon * math.sqrt(self.dimension) / 2

    @property
    def event(self) -> NonPrivateEvent:
        """Infinite epsilon: the proof does not hold."""
        return NonPrivateEvent("output perturbation with Laplace noise as published", self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """Broken for d > 4, unproven below."""
        return Guarantee(
            kind="broken" if self.dimension > 4 else "unproven",
            relation=self.relation,
            claimed_epsilon=self.epsilon,
            caveat=f"the l1 sensitivity claimed is an l2 one; the true epsilon can be {self.worst_epsilon:.4g}",
        )

    def release(self, value: Tensor) -> Released[Tensor]:
        """The weights with the paper's noise."""
        noisy = value.detach() + self.scale * standard_laplace(value.shape, like=value)
        return Released(noisy, self.event, self.guarantee)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:  # noqa: ARG003
        """When the weights move by 1 / (n lambda) in l2 along the diagonal."""
        one = cls(epsilon=1.0, records=100, penalty=0.01, dimension=64)
        shift = torch.full((64,), 1 / (100 * 0.01) / 8.0, dtype=torch.float64)
        return [exact_report("published_output_laplace", published_laplace_audit(one, shift), one.guarantee)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSharedNoise:
    """Pathak and Raj 2012, section 4: one p x p matrix b for all classes, |b| ~ Gamma(p^2, 1 / epsilon).

    The loss does not change when the same matrix is added to every class, so this noise acts only where the data
    never does, and differences of classes are released without any noise. Besides, b is not symmetric, its length has
    shape p^2 instead of p(p+1)/2, and its scale ignores the gradient's true size.

    `epsilon`: as stated by the paper; `size`: p = d + 1. Correction 1.21 in docs/theory/release.md.
    """

    epsilon: float
    size: int
    unit: Unit = "record"

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_count("size", self.size)
        _ = self.relation  # refuses an unknown unit

    @property
    def relation(self) -> Relation:
        """One record more or less, as in the paper."""
        return Relation(self.unit, "add_remove")

    @property
    def event(self) -> NonPrivateEvent:
        """Infinite epsilon: there is no privacy at all."""
        return NonPrivateEvent("large-margin training with one shared noise matrix as published", self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """Broken."""
        return Guarantee(
            kind="broken",
            relation=self.relation,
            claimed_epsilon=self.epsilon,
            caveat="the same noise for every class cancels in their differences, which are released exactly",
        )

    def noise(self, heads: int, like: Tensor | None = None) -> Tensor:
        """The matrix, once for every head: `(heads, p, p)`, all equal."""
        drawn = standard_normal((self.size, self.size), like=like)
        length = erlang(self.size**2) / self.epsilon
        drawn = drawn * (length / float(torch.linalg.vector_norm(drawn)))
        return drawn.expand(check_count("heads", heads), self.size, self.size)


def published_laplace_audit(mechanism: PublishedOutputLaplace, shift: Tensor) -> ExactAudit:
    """The published noise's densities at the two values themselves, where the loss is largest."""

    def log_density(points: Tensor, value: Tensor) -> Tensor:
        return -(points - value).abs().sum(dim=-1) / mechanism.scale

    points = torch.stack([torch.zeros_like(shift), shift])
    return audit_exact(log_density, torch.zeros_like(shift), shift, points)
