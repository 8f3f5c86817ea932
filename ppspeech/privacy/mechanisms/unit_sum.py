"""Sums over units with Gaussian noise, exact to the bit: each unit adds whole numbers, and so does the noise."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.hockey_stick import gaussian_sigma, least
from ppspeech.privacy.audit.catalogue import CONFIDENCE, ONE_RECORD
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.audit.sampling import audit_sampling
from ppspeech.privacy.gradients.clipping import MOST_NUMBERS, STEPS, whole, whole_scale, whole_sum
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussianEvent
from ppspeech.privacy.parameters import check_count, check_positives, check_probability
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.samplers.discrete import sample_discrete_gaussian
from ppspeech.privacy.samplers.grid import dyadic
from ppspeech.ranks import ONE_RANK, Ranks

ALONE = "what one {unit} adds does not depend, to the last bit, on who else is computed beside it"
"""What floating point before the noise must keep: an assumption, as fast kernels may round a batch differently."""


@mechanism("unit_sum", DiscreteGaussianEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSum:
    """Releases a sum of vectors, one a unit, each clipped to l2 norm `bound`, with Gaussian noise.

    Formal guarantee: the profile of `DiscreteGaussianEvent` under `relation`, for the released bits. A unit adds whole
    numbers of l2 norm at most 2^40, made of its own vector alone: clipped to a hair below, and rounded. They are added
    as whole numbers, exactly and in any order, and so is noise of an exact sampler. Under
    `replace` a unit moves the sum by twice as much. A unit with a vector that is not finite adds zeros. The event
    counts 2^28 numbers, as if the rest were zeros that nobody looks at; longer vectors are refused. `sigma` is in the
    vectors' own units; the guarantee is stated at `delta`. Proof: Theorem 1.13 in docs/theory/release.md.
    """

    sigma: float
    bound: float
    delta: float
    relation: Relation

    def __post_init__(self) -> None:
        check_positives(self, "sigma", "bound")
        check_probability("delta", self.delta)

    @classmethod
    def calibrated(
        cls, *, epsilon: float, delta: float, bound: float, relation: Relation, releases: int = 1
    ) -> "UnitSum":
        """The least noise (to 1e-6) with which so many releases together are (epsilon, delta)-DP.

        >>> one = Relation("record", "add_remove")
        >>> round(UnitSum.calibrated(epsilon=1.0, delta=1e-5, bound=1.0, relation=one).sigma, 4)
        3.7306
        """
        check_count("releases", releases)
        fixed: dict[str, Any] = {"bound": bound, "delta": delta, "relation": relation}

        def enough(sigma: float) -> bool:
            event = cls(sigma=sigma, **fixed).event
            together = event.merged([(event, releases)])
            return together is not None and together.delta(epsilon) <= delta

        start = bound * _reach(relation) * math.sqrt(releases) * gaussian_sigma(epsilon, delta)
        refusal = f"no practical noise reaches epsilon={epsilon}, delta={delta}"
        return cls(sigma=least(enough, start, grow=1.01, tolerance=1e-6, refusal=refusal), **fixed)

    @property
    def sensitivity(self) -> float:
        """How far one unit moves the sum, in l2."""
        return self.bound * _reach(self.relation)

    @property
    def scale(self) -> Fraction:
        """sigma in steps of bound / 2^40, rounded up."""
        return dyadic(self.sigma / self.bound * STEPS)

    @property
    def event(self) -> DiscreteGaussianEvent:
        """What one release costs."""
        l2 = float(STEPS * _reach(self.relation))
        return DiscreteGaussianEvent(float(self.scale), l2, math.sqrt(MOST_NUMBERS) * l2, MOST_NUMBERS, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        event, unit = self.event, self.relation.unit
        assumptions = (f"what one {unit} adds is clipped to {self.bound:.6g}", ALONE.format(unit=unit))
        return Guarantee.of(event, self.delta, rho=event.zcdp(), assumptions=assumptions)

    def whole(self, vectors: Tensor) -> Tensor:
        """What units with these vectors `(n, numbers)` add: whole steps, int64."""
        return whole(vectors, self._scale_of(vectors))

    def add_up(self, vectors: Tensor) -> Tensor:
        """The sum of what these units add, `(numbers,)`: whole steps, int64, to be added to others or released."""
        return whole_sum(vectors, self._scale_of(vectors))

    def _scale_of(self, vectors: Tensor) -> Tensor:
        return whole_scale(torch.linalg.vector_norm(vectors, dim=1, dtype=torch.float64), self.bound)

    def release(self, total: Tensor, place: Ranks = ONE_RANK) -> Released[Tensor]:
        """A sum of whole steps, of any shape, with fresh noise: float64, in the vectors' own units.

        Of several ranks each brings the sum over its own units, and all get the same.
        """
        if total.dtype != torch.int64:
            raise PrivacyError(f"a sum of whole steps is int64, got {total.dtype}: make what units add `whole` first")
        if total.numel() > MOST_NUMBERS:
            raise PrivacyError(f"a sum has at most {MOST_NUMBERS} numbers, got {total.numel()}")
        noisy = noisy_sum(total, self.scale, place)
        return Released(noisy.to(torch.float64) * (self.bound / STEPS), self.event, self.guarantee)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """One number that one unit moves by its bound, end to end."""
        one = cls.calibrated(epsilon=1.0, delta=1e-5, bound=1.0, relation=ONE_RECORD)
        terms: dict[str, Any] = {"name": "unit_sum", "stated": one.guarantee, "confidence": CONFIDENCE}
        terms["entries"] = [(one.event, 1)]
        with_unit, without = torch.tensor([[5.0], [0.3]]), torch.tensor([[0.3]])
        return [
            audit_sampling(lambda units: one.release(one.add_up(units)).value, with_unit, without, float, runs, **terms)
        ]


def noisy_sum(part: Tensor, scale: Fraction, place: Ranks) -> Tensor:
    """The sum of all ranks' parts, whole numbers, with one noise of full size: the first rank's. All get the same.

    Proof: Theorem 1.39 in docs/theory/release.md.
    """
    return place.added(part + whole_noise(scale, part) if place.first else part)


def whole_noise(scale: Fraction, like: Tensor) -> Tensor:
    """Exact discrete Gaussian noise for every number of a tensor, int64 and on its device."""
    return torch.from_numpy(sample_discrete_gaussian(scale, like.numel())).reshape(like.shape).to(like.device)


def _reach(relation: Relation) -> int:
    return 1 if relation.adjacency == "add_remove" else 2
