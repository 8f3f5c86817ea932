"""Permute-and-flip (McKenna and Sheldon 2020): the default for one private choice."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from ppspeech.privacy.accounting.events import PureEvent
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanisms.exponential import regrets, selection_guarantee
from ppspeech.privacy.parameters import check_positive
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.samplers.discrete import bernoulli_exp
from ppspeech.privacy.samplers.randomness import random_order


@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlip:
    """Goes through the candidates in random order and takes r with probability exp(-epsilon (u* - u(r)) / 2 sens).

    Formal guarantee: epsilon-DP under `relation`, if no utility moves by more than `sensitivity`
    between neighbors. The expected utility is never below the exponential mechanism's. Booked as pure epsilon: when
    many choices are composed, `Exponential` is cheaper. The coin flips are exact for the utilities given; how many
    there were is visible to whoever can time the call.

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
    def event(self) -> PureEvent:
        """What one choice costs."""
        return PureEvent(self.epsilon, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one choice promises."""
        return selection_guarantee(self.epsilon, self.sensitivity, self.relation, monotone=self.monotone)

    def probabilities(self, utilities: Tensor) -> Tensor:
        """The law of the choice, `(candidates,)`; for analysis, not for release.

        P(r) = p_r times the integral over t in [0, 1] of prod_{s != r} (1 - p_s t), p = exp(rate (u - u*)): a
        polynomial of degree candidates - 1, which Gauss-Legendre quadrature integrates exactly.
        """
        p = torch.exp(float(self.rate) * (utilities - utilities.max()).to(torch.float64))
        nodes, weights = np.polynomial.legendre.leggauss(max(1, (len(p) + 1) // 2))
        t = torch.from_numpy((nodes + 1) / 2)
        factors = 1 - p.unsqueeze(0) * t.unsqueeze(1)
        others = torch.stack(
            [torch.cat([factors[:, :r], factors[:, r + 1 :]], dim=1).prod(dim=1) for r in range(len(p))], dim=1
        )
        return p * (torch.from_numpy(weights / 2).unsqueeze(1) * others).sum(dim=0)

    def release(self, utilities: Tensor) -> Released[int]:
        """Choose.

        Args:
            utilities: `(candidates,)`, finite.

        Returns:
            The index of the candidate.
        """
        numerators, denominator = regrets(utilities, self.rate)
        order = random_order(len(numerators)).tolist()
        # The best candidate is always taken when reached, so some flip wins.
        taken = bernoulli_exp([numerators[index] for index in order], denominator).nonzero()[0]
        return Released(order[int(taken[0])], self.event, self.guarantee)
