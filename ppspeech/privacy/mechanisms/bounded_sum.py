"""Sums and means of a column whose bounds are public."""

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
from ppspeech.privacy.mechanisms.whole_numbers import Bounds, check_release, kept_rows, whole_mechanism, whole_tensor
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.rows import OWN_ROWS


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """What sums and means share: bounds that are chosen without looking at the column, and a budget."""

    lower: float
    upper: float
    epsilon: float
    relation: Relation
    delta: float = 0.0
    most: int = 1

    def __post_init__(self) -> None:
        check_release(self.epsilon, self.delta, self.relation, self.most)
        _ = self.bounds

    @property
    def bounds(self) -> Bounds:
        """In which the column's values are held."""
        return Bounds(self.lower, self.upper)

    @property
    def mechanism(self) -> DiscreteLaplace | DiscreteGaussian:
        """What adds the noise, in steps."""
        raise NotImplementedError

    @property
    def event(self) -> DiscreteLaplaceEvent | DiscreteGaussianEvent:
        """What one release costs."""
        return self.mechanism.event

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        return self.mechanism.guarantee

    def _kept(self, values: Tensor, unit_ids: Tensor | None) -> Tensor:
        return self.bounds.steps(kept_rows(values, unit_ids, self.relation, self.most))


@mechanism("sum", DiscreteLaplaceEvent, DiscreteGaussianEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class Sum(_Column):
    """The sum of a column, each value held within `lower` and `upper`.

    Formal guarantee: (epsilon, delta)-DP under `relation`, to the bit. Of a unit M = `most` values are added, random
    ones of more. One unit moves the sum by at most M max(|lower|, |upper|) (add_remove); under replace, where it has
    one value at least, by max(upper, M upper) - min(lower, M lower), which is upper - lower for a record. Proof:
    Proposition 1.26 in docs/theory/release.md.
    """

    @property
    def sensitivity(self) -> int:
        """How far one unit moves the sum, in steps."""
        low, high = self.bounds.whole
        if self.relation.adjacency == "replace":
            return max(high, self.most * high) - min(low, self.most * low)
        return self.most * max(abs(low), abs(high))

    @property
    def mechanism(self) -> DiscreteLaplace | DiscreteGaussian:
        """What adds the noise, in steps."""
        return whole_mechanism(self.epsilon, self.delta, self.sensitivity, self.sensitivity, 1, self.relation)

    def release(self, values: Tensor, unit_ids: Tensor | None = None) -> Released[float]:
        """The noisy sum of values `(n,)`; `unit_ids`, `(n,)`, say whose each value is."""
        total = whole_tensor(int(self._kept(values, unit_ids).sum()))
        made = self.mechanism
        return Released(float(made.release(total).value) * self.bounds.step, made.event, made.guarantee)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """By sampling: with a value beyond a bound, and without."""
        one = cls(lower=-1.0, upper=2.0, epsilon=1.0, relation=ONE_RECORD)
        column = torch.tensor([0.5, 9.0])
        return [released_report("sum", one, lambda given: one.release(given).value, column, column[:1], runs)]


@mechanism("mean", DiscreteLaplaceEvent, DiscreteGaussianEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class Mean(_Column):
    """The mean of a column, each value held within `lower` and `upper`.

    Formal guarantee: (epsilon, delta)-DP under `relation`, to the bit. Where a row is a unit and replaced, their number
    n is public, and the sum over n is released. Else their number is private too. Then with w = upper - lower

        a = sum (x - lower),   b = sum (upper - x),   mean = lower + w a / (a + b)

    are released together: a row adds w to a + b wherever x is, so that one unit moves both by at most M w in l1, and
    the whole budget serves sum and number: half the variance in the mean that a budget split in two would leave. Under
    replace a unit of several values moves them by 2 M w in l1, sqrt(2) M w in l2. Proof: Proposition 1.26 in
    docs/theory/release.md.
    """

    @property
    def counted(self) -> bool:
        """Whether the number of rows is private, and released with noise."""
        return self.relation.adjacency == "add_remove" or self.relation.unit not in OWN_ROWS

    @property
    def mechanism(self) -> DiscreteLaplace | DiscreteGaussian:
        """What adds the noise, in steps: to a and b, or to a alone."""
        low, high = self.bounds.whole
        reach, both = self.most * (high - low), self.counted and self.relation.adjacency == "replace"
        l1, l2 = (2 * reach, math.sqrt(2) * reach) if both else (reach, reach)
        return whole_mechanism(self.epsilon, self.delta, l1, l2, 2 if self.counted else 1, self.relation)

    def release(self, values: Tensor, unit_ids: Tensor | None = None) -> Released[float]:
        """The noisy mean of values `(n,)`, within the bounds; `unit_ids`, `(n,)`, say whose each value is."""
        kept, (low, high), made = self._kept(values, unit_ids), self.bounds.whole, self.mechanism
        above = int((kept - low).sum())
        if not self.counted:
            if not len(kept):
                raise PrivacyError("a mean of no values is none: their number is public, so look before")
            share = float(made.release(whole_tensor(above)).value) / len(kept) / (high - low)
        else:
            a, b = made.release(whole_tensor(above, int((high - kept).sum()))).value.tolist()
            share = a / (a + b) if a + b > 0 else 0.5
        mean = self.lower + (self.upper - self.lower) * min(max(share, 0.0), 1.0)
        return Released(mean, made.event, made.guarantee)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """By sampling: with a value at a bound, and without, among few others."""
        one = cls(lower=0.0, upper=1.0, epsilon=1.0, relation=ONE_RECORD)
        column = torch.tensor([0.5, 0.5, 1.0])
        return [released_report("mean", one, lambda given: one.release(given).value, column, column[:2], runs)]
