"""How many: the sensitivity of a count, so that nobody has to work it out."""

import math
from dataclasses import dataclass

import torch
from scipy.special import ndtri
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.audit.catalogue import ONE_RECORD, released_report
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussian, DiscreteGaussianEvent
from ppspeech.privacy.mechanisms.discrete_laplace import DiscreteLaplace, DiscreteLaplaceEvent
from ppspeech.privacy.mechanisms.whole_numbers import check_release, kept_rows, whole_mechanism, whole_tensor
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.rows import check_rows


@mechanism("count", DiscreteLaplaceEvent, DiscreteGaussianEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many rows are so, each unit counted at most `most` times: with 1, how many units have such a row.

    Formal guarantee: (epsilon, delta)-DP under `relation`, to the bit; a unit moves the count by at most M = `most`,
    under `replace` as under `add_remove`. Noise is discrete Laplace for `delta` = 0, else discrete Gaussian.

    >>> from ppspeech.privacy import Relation
    >>> one = Relation("speaker", "add_remove")
    >>> said_yes, who = torch.tensor([True, True, False]), torch.tensor([7, 7, 8])
    >>> type(Count(epsilon=1.0, relation=one).release(said_yes, who).value)
    <class 'int'>
    """

    epsilon: float
    relation: Relation
    delta: float = 0.0
    most: int = 1

    def __post_init__(self) -> None:
        check_release(self.epsilon, self.delta, self.relation, self.most)

    @property
    def mechanism(self) -> DiscreteLaplace | DiscreteGaussian:
        """What adds the noise."""
        return whole_mechanism(self.epsilon, self.delta, self.most, self.most, 1, self.relation)

    @property
    def event(self) -> DiscreteLaplaceEvent | DiscreteGaussianEvent:
        """What one release costs."""
        return self.mechanism.event

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        return self.mechanism.guarantee

    def within(self, sure: float) -> int:
        """How far a count is off at most, with this probability."""
        made = self.mechanism
        if isinstance(made, DiscreteLaplace):
            return math.ceil(-math.log(1 - sure) * float(made.scale))
        return math.ceil(float(ndtri((1 + sure) / 2)) * made.sigma)

    def release(self, is_so: Tensor, unit_ids: Tensor | None = None) -> Released[int]:
        """The noisy number of rows `(n,)` that are true; `unit_ids`, `(n,)`, say whose each row is."""
        if is_so.dtype != torch.bool or is_so.dim() != 1:
            raise PrivacyError(f"rows are so or not, a vector of bool, got {is_so.dtype} {tuple(is_so.shape)}")
        check_rows(self.relation.unit, len(is_so), unit_ids)
        found = kept_rows(is_so[is_so], None if unit_ids is None else unit_ids[is_so], self.relation, self.most)
        made = self.mechanism
        return Released(int(made.release(whole_tensor(len(found))).value), made.event, made.guarantee)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """By sampling: with one more row that is so, and without."""
        one = cls(epsilon=1.0, relation=ONE_RECORD)
        rows = torch.ones(3, dtype=torch.bool)
        return [released_report("count", one, lambda given: one.release(given).value, rows, rows[:2], runs)]
