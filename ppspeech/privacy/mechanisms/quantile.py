"""A quantile of a column: a choice among public values, by how many rows are below and above each."""

from dataclasses import dataclass
from fractions import Fraction

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
from ppspeech.privacy.mechanisms.whole_numbers import Bounds, check_release, kept_rows
from ppspeech.privacy.parameters import check_count, check_probability
from ppspeech.privacy.relation import Relation

FINEST = 10_000  # a quantile is a fraction whose denominator is at most this


@mechanism("quantile", ExactPureEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """The value that a part `alpha` of a column is below, of `candidates` evenly spread from `lower` to `upper`.

    Formal guarantee: epsilon-DP under `relation`, to the bit. With alpha = p / q a candidate v has the utility

        u(v) = -|(q - p) #(x < v) - p #(x > v)|,

    a whole number, by which permute-and-flip chooses. Of a unit M = `most` values count, random ones of more: u moves
    by at most M max(p, q - p) (add_remove), or M q (replace: from below to above). Values that are no numbers count as
    bounds do. Proof: Proposition 1.26 in docs/theory/release.md.
    """

    alpha: float
    lower: float
    upper: float
    epsilon: float
    relation: Relation
    candidates: int = 257
    most: int = 1

    def __post_init__(self) -> None:
        check_probability("alpha", self.alpha)
        check_count("candidates", self.candidates, least=2)
        check_release(self.epsilon, 0.0, self.relation, self.most)
        _ = Bounds(self.lower, self.upper)
        if abs(float(self.part) - self.alpha) > 1e-9:
            raise PrivacyError(f"alpha must be a fraction of whole numbers up to {FINEST:,}, got {self.alpha}")

    @property
    def part(self) -> Fraction:
        """alpha as p / q."""
        return Fraction(self.alpha).limit_denominator(FINEST)

    @property
    def values(self) -> Tensor:
        """The candidates, `(candidates,)`."""
        return torch.linspace(self.lower, self.upper, self.candidates, dtype=torch.float64)

    @property
    def choice(self) -> PermuteAndFlip:
        """What chooses."""
        p, q = self.part.numerator, self.part.denominator
        moved = self.most * (q if self.relation.adjacency == "replace" else max(p, q - p))
        return PermuteAndFlip(epsilon=self.epsilon, sensitivity=float(moved), relation=self.relation)

    @property
    def event(self) -> ExactPureEvent:
        """What one release costs."""
        return self.choice.event

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        return self.choice.guarantee

    def utilities(self, column: Tensor) -> Tensor:
        """Of every candidate, `(candidates,)`, whole numbers, for values `(n,)`."""
        nearest = min(max(0.0, self.lower), self.upper)
        held = column.detach().to(torch.float64).nan_to_num(nearest).clamp(self.lower, self.upper).sort().values
        below = torch.searchsorted(held, self.values, right=False)
        above = len(held) - torch.searchsorted(held, self.values, right=True)
        p, q = self.part.numerator, self.part.denominator
        return -((q - p) * below - p * above).abs().to(torch.float64)

    def release(self, values: Tensor, unit_ids: Tensor | None = None) -> Released[float]:
        """A candidate, of values `(n,)`; `unit_ids`, `(n,)`, say whose each value is."""
        told = self.choice.release(self.utilities(kept_rows(values, unit_ids, self.relation, self.most)))
        return Released(float(self.values[told.value]), told.event, told.guarantee)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """By its probabilities where the likely candidate loses by a value, an unlikely one gains; and by sampling."""
        one = cls(alpha=0.5, lower=0.0, upper=1.0, epsilon=1.0, relation=ONE_RECORD, candidates=5)
        column = torch.tensor([0.2] * 16 + [0.6] * 16)
        pair = torch.cat([column, torch.ones(1)]), column
        found = audit_exact(
            lambda _, given: one.choice.probabilities(one.utilities(given)).log(), *pair, torch.arange(5), volumes=1.0
        )
        return [
            exact_report("quantile", found, one.guarantee),
            released_report("quantile", one, lambda given: one.release(given).value, pair[0][-1:], pair[0][:0], runs),
        ]
