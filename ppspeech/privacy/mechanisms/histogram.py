"""Counts by bin: the sensitivity of a histogram, so that nobody has to work it out."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.audit.catalogue import CONFIDENCE, ONE_RECORD
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.audit.sampling import audit_sampling
from ppspeech.privacy.gradients.clipping import limit_contributions
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussian, DiscreteGaussianEvent
from ppspeech.privacy.mechanisms.discrete_laplace import DiscreteLaplace, DiscreteLaplaceEvent
from ppspeech.privacy.parameters import check_count, check_positive, check_probability
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.rows import OWN_ROWS, check_rows


@mechanism("histogram", DiscreteLaplaceEvent, DiscreteGaussianEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How many values fall into each of `bins`, which are public.

    Formal guarantee: (epsilon, delta)-DP under `relation`, to the bit; noise is discrete Laplace for `delta` = 0, else
    discrete Gaussian. A unit has at most `most` values, M, which is enforced: of more, M random ones are kept. It then
    moves the counts by at most M in l1 and in l2 (add_remove), or 2 M in l1 and sqrt(2) M in l2 (replace: some counts
    fall, others rise).
    """

    bins: int
    epsilon: float
    relation: Relation
    delta: float = 0.0
    most: int = 1

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_probability("delta", self.delta, zero=True)
        check_count("bins", self.bins)
        check_count("most", self.most)
        if self.relation.unit in OWN_ROWS and self.most > 1:
            raise PrivacyError(f"a {self.relation.unit} is one value: most must be 1, got {self.most}")

    @property
    def mechanism(self) -> DiscreteLaplace | DiscreteGaussian:
        """What adds the noise."""
        terms: dict[str, Any] = {"epsilon": self.epsilon, "dimension": self.bins, "relation": self.relation}
        replaces = self.relation.adjacency == "replace"
        if self.delta == 0:
            return DiscreteLaplace(sensitivity=self.most * (2.0 if replaces else 1.0), integer_valued=True, **terms)
        reach = self.most * (math.sqrt(2.0) if replaces else 1.0)
        return DiscreteGaussian.calibrated(delta=self.delta, sensitivity=reach, integer_valued=True, **terms)

    @property
    def event(self) -> DiscreteLaplaceEvent | DiscreteGaussianEvent:
        """What one release costs."""
        return self.mechanism.event

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        return self.mechanism.guarantee

    def release(self, values: Tensor, unit_ids: Tensor | None = None) -> Released[Tensor]:
        """Noisy counts `(bins,)` of values `(n,)`, whole numbers; those that are not 0 to bins - 1 count nowhere.

        `unit_ids`, `(n,)`, say whose each value is; only for the unit `record` or `frame` is it its own.
        """
        if values.dim() != 1 or values.is_floating_point() or values.is_complex():
            raise PrivacyError(f"values are bins, a vector of whole numbers, got {values.dtype} {tuple(values.shape)}")
        check_rows(self.relation.unit, len(values), unit_ids)
        if unit_ids is not None:
            values = values[limit_contributions(unit_ids, self.most)]
        inside = values[(values >= 0) & (values < self.bins)].to(torch.int64)
        return self.mechanism.release(torch.bincount(inside, minlength=self.bins).to(torch.float64))

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """By sampling: with one value, and without."""
        one = cls(bins=1, epsilon=1.0, relation=ONE_RECORD)
        held: dict[str, Any] = {"name": "histogram", "stated": one.guarantee, "confidence": CONFIDENCE}
        count = partial(torch.zeros, dtype=torch.int64)
        return [audit_sampling(lambda n: one.release(count(n)).value, 1, 0, float, runs, **held)]
