"""Which is most frequent: report noisy max over the counts of a column."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import ExactPureEvent
from ppspeech.privacy.audit.catalogue import ONE_RECORD, exact_report, released_report
from ppspeech.privacy.audit.exact import audit_exact
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.mechanisms.selection import PermuteAndFlip
from ppspeech.privacy.mechanisms.whole_numbers import check_release, kept_rows
from ppspeech.privacy.parameters import check_count
from ppspeech.privacy.relation import Relation


@mechanism("noisy_max", ExactPureEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMax:
    """The bin that most values are in, of `bins` that are public: the counts themselves stay here.

    Formal guarantee: epsilon-DP under `relation`, to the bit. It is permute-and-flip on the counts, which is report
    noisy max with exponential noise (Ding et al. 2021). A unit has at most M = `most` values, random ones of more: no
    count moves by more than M; under add_remove all move one way, which halves the noise, under replace they do not.
    """

    bins: int
    epsilon: float
    relation: Relation
    most: int = 1

    def __post_init__(self) -> None:
        check_count("bins", self.bins)
        check_release(self.epsilon, 0.0, self.relation, self.most)

    @property
    def choice(self) -> PermuteAndFlip:
        """What chooses."""
        one_way = self.relation.adjacency == "add_remove"
        return PermuteAndFlip(
            epsilon=self.epsilon, sensitivity=float(self.most), relation=self.relation, monotone=one_way
        )

    @property
    def event(self) -> ExactPureEvent:
        """What one release costs."""
        return self.choice.event

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        return self.choice.guarantee

    def counts(self, values: Tensor) -> Tensor:
        """How many values `(n,)`, whole numbers, are in each bin; those that are in none count nowhere."""
        inside = values[(values >= 0) & (values < self.bins)].to(torch.int64)
        return torch.bincount(inside, minlength=self.bins).to(torch.float64)

    def release(self, values: Tensor, unit_ids: Tensor | None = None) -> Released[int]:
        """A bin, of values `(n,)`; `unit_ids`, `(n,)`, say whose each value is."""
        if values.is_floating_point() or values.is_complex():
            raise PrivacyError(f"values are bins, whole numbers, got {values.dtype}")
        return self.choice.release(self.counts(kept_rows(values, unit_ids, self.relation, self.most)))

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """By its probabilities where an unlikely bin gains by one value, and by sampling."""
        one = cls(bins=2, epsilon=1.0, relation=ONE_RECORD)
        likely = torch.tensor([0] * 16)
        pair = torch.tensor([*likely.tolist(), 1]), likely
        found = audit_exact(
            lambda _, given: one.choice.probabilities(one.counts(given)).log(), *pair, torch.arange(2), volumes=1.0
        )
        even = torch.tensor([1]), torch.zeros(0, dtype=torch.int64)
        return [
            exact_report("noisy_max", found, one.guarantee),
            released_report("noisy_max", one, lambda given: one.release(given).value, *even, runs),
        ]
