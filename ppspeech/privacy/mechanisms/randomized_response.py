"""Randomized response: the worst mechanism with a given epsilon and delta, and so what such an event is attacked by."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.privacy.accounting.events import ApproximateEvent, ExactPureEvent, PureEvent
from ppspeech.privacy.audit.catalogue import ONE_RECORD, exact_report
from ppspeech.privacy.audit.exact import audit_exact
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.parameters import check_positive, check_probability
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.samplers.randomness import uniform

CERTAIN = 2  # added to a bit that is told as it is, and said to be so


@mechanism("randomized_response", ExactPureEvent, PureEvent, ApproximateEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse:
    """Tells bits, each wrong with probability 1 / (1 + e^epsilon); with probability delta as it is, marked as certain.

    Formal guarantee: (epsilon, delta)-DP for every bit, and no mechanism with this pair says more (Kairouz, Oh and
    Viswanath 2015). The coins are floats of 53 bits; what is released is whole.
    """

    epsilon: float
    relation: Relation
    delta: float = 0.0

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon, zero=True)
        check_probability("delta", self.delta, zero=True)

    @property
    def event(self) -> PureEvent | ApproximateEvent:
        """What one bit costs."""
        if self.delta == 0:
            return PureEvent(self.epsilon, self.relation)
        return ApproximateEvent(self.epsilon, self.delta, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one bit is promised."""
        return Guarantee.of(self.event, self.delta)

    def release(self, bits: Tensor) -> Released[Tensor]:
        """What is told of bits (0 or 1) of any shape: 0 or 1, or 2 or 3 where it is certain."""
        lie, told = (torch.from_numpy(uniform(bits.numel())).reshape(bits.shape) for _ in range(2))
        truth = bits.to(torch.int64)
        said = truth ^ (lie < 1 / (1 + math.exp(self.epsilon))).to(torch.int64)
        return Released(torch.where(told < self.delta, CERTAIN + truth, said), self.event, self.guarantee)

    @classmethod
    def losses(cls, event: ExactPureEvent | PureEvent | ApproximateEvent, runs: int, present: bool) -> Tensor:
        """Of bits that are 1 if the unit is in."""
        delta = event.stated_delta if isinstance(event, ApproximateEvent) else 0.0
        one = cls(epsilon=event.stated_epsilon, delta=delta, relation=event.relation)
        said = one.release(torch.full((runs,), int(present))).value
        worth = torch.tensor([-one.epsilon, one.epsilon, -1e9, 1e9], dtype=torch.float64)
        return worth[said]

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """By its probabilities."""
        del runs
        one = cls(epsilon=1.0, relation=ONE_RECORD)

        def law(said: Tensor, truth: int) -> Tensor:
            right = 1 / (1 + math.exp(-one.epsilon))
            return torch.where(said == truth, right, 1 - right).double().log()

        found = audit_exact(law, 1, 0, torch.arange(2))
        return [exact_report("randomized_response", found, one.guarantee)]
