"""Counts by bin: the sensitivity of a histogram, so that nobody has to work it out."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.audit.catalogue import ONE_RECORD, released_report
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussian, DiscreteGaussianEvent
from ppspeech.privacy.mechanisms.discrete_laplace import DiscreteLaplace, DiscreteLaplaceEvent
from ppspeech.privacy.mechanisms.whole_numbers import check_release, kept_rows, whole_mechanism
from ppspeech.privacy.parameters import check_count
from ppspeech.privacy.relation import Relation


@mechanism("histogram", DiscreteLaplaceEvent, DiscreteGaussianEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How many values fall into each of `bins`, which are public.

    Formal guarantee: (epsilon, delta)-DP under `relation`, to the bit; noise is discrete Laplace for `delta` = 0, else
    discrete Gaussian. A unit has at most `most` values, M, which is enforced: of more, M random ones are kept. It then
    moves the counts by at most M in l1 and in l2 (add_remove), or 2 M in l1 and sqrt(2) M in l2 (replace: some counts
    fall, others rise). Proof: Proposition 1.26 in docs/theory/release.md.
    """

    bins: int
    epsilon: float
    relation: Relation
    delta: float = 0.0
    most: int = 1

    def __post_init__(self) -> None:
        check_count("bins", self.bins)
        check_release(self.epsilon, self.delta, self.relation, self.most)

    @property
    def mechanism(self) -> DiscreteLaplace | DiscreteGaussian:
        """What adds the noise."""
        l1, l2 = (2.0, math.sqrt(2.0)) if self.relation.adjacency == "replace" else (1.0, 1.0)
        return whole_mechanism(self.epsilon, self.delta, self.most * l1, self.most * l2, self.bins, self.relation)

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
        values = kept_rows(values, unit_ids, self.relation, self.most)
        inside = values[(values >= 0) & (values < self.bins)].to(torch.int64)
        return self.mechanism.release(torch.bincount(inside, minlength=self.bins).to(torch.float64))

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """By sampling: with one value, and without."""
        one = cls(bins=1, epsilon=1.0, relation=ONE_RECORD)
        rows = torch.zeros(1, dtype=torch.int64)
        return [released_report("histogram", one, lambda given: float(one.release(given).value), rows, rows[:0], runs)]
