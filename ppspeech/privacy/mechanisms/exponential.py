"""The exponential mechanism (Prakash and Gujar 2020, section II-F): choose among candidates by utility."""

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import BoundedRangeEvent
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.parameters import check_positive
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.samplers.discrete import bernoulli_exp
from ppspeech.privacy.samplers.randomness import random_below


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential:
    """Chooses candidate r with probability proportional to exp(epsilon u(r) / 2 sensitivity).

    Formal guarantee: epsilon-DP, of bounded range, hence epsilon^2 / 8 zCDP, under `relation`, if no
    utility moves by more than `sensitivity` between neighbors. For one choice `PermuteAndFlip` is never worse; for
    many composed choices this one is.

    The choice is exact for the utilities given: candidates are drawn uniformly and kept with exp(-gamma), gamma a
    fraction (Canonne et al. 2020), until one is kept.

    Attributes:
        epsilon: > 0.
        sensitivity: of every utility, > 0.
        relation: what is protected, and what neighboring means.
        monotone: one more unit moves all utilities in the same direction, so that the 2 can be dropped.
    """

    epsilon: float
    sensitivity: float
    relation: Relation
    monotone: bool = False

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_positive("sensitivity", self.sensitivity)

    @property
    def rate(self) -> Fraction:
        """What a utility is multiplied with: epsilon / 2 sensitivity, or without the 2 where monotone."""
        return Fraction(self.epsilon) / Fraction(self.sensitivity) / (1 if self.monotone else 2)

    @property
    def event(self) -> BoundedRangeEvent:
        """What one choice costs."""
        return BoundedRangeEvent(self.epsilon, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one choice promises."""
        return selection_guarantee(self.epsilon, self.sensitivity, self.relation, monotone=self.monotone)

    def probabilities(self, utilities: Tensor) -> Tensor:
        """The law of the choice, `(candidates,)`; for analysis, not for release."""
        return torch.softmax(float(self.rate) * utilities.to(torch.float64), dim=0)

    def release(self, utilities: Tensor) -> Released[int]:
        """Choose.

        Args:
            utilities: `(candidates,)`, finite.

        Returns:
            The index of the candidate.
        """
        numerators, denominator = regrets(utilities, self.rate)
        while True:
            tried = random_below(len(numerators), 64).tolist()
            kept = bernoulli_exp([numerators[index] for index in tried], denominator).nonzero()[0]
            if kept.size:
                return Released(tried[kept[0]], self.event, self.guarantee)


def regrets(utilities: Tensor, rate: Fraction) -> tuple[list[int], int]:
    """rate (max u - u) of every candidate, as exact whole numerators over one denominator.

    Raises:
        PrivacyError: if the utilities are not one finite, non-empty vector.
    """
    if utilities.dim() != 1 or utilities.numel() == 0 or not bool(torch.isfinite(utilities).all()):
        raise PrivacyError(f"utilities must be a finite vector of candidates, got shape {tuple(utilities.shape)}")
    values = [Fraction(u) for u in utilities.detach().to(torch.float64).tolist()]
    best = max(values)
    gaps = [rate * (best - value) for value in values]
    denominator = lcm(*(gap.denominator for gap in gaps))
    return [gap.numerator * (denominator // gap.denominator) for gap in gaps], denominator


def selection_guarantee(epsilon: float, sensitivity: float, relation: Relation, *, monotone: bool) -> Guarantee:
    """What a private choice promises."""
    alike = ", all in one direction" if monotone else ""
    return Guarantee(
        kind="pure",
        relation=relation,
        epsilon=epsilon,
        float_safe=True,
        assumptions=(f"every utility, as computed, moves by at most {sensitivity:.6g}{alike}",),
    )
