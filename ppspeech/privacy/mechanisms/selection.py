"""One private choice among candidates, by their utilities.

Theorem 1.27 in docs/theory/release.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np
import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import ExactPureEvent, PureLike, pure_delta, register_event
from ppspeech.privacy.accounting.renyi import delta_from_zcdp
from ppspeech.privacy.audit.catalogue import ONE_RECORD, exact_report
from ppspeech.privacy.audit.exact import audit_exact
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.parameters import check_positive, check_positives
from ppspeech.privacy.relation import Relation, check_monotone
from ppspeech.privacy.samplers.discrete import bernoulli_exp
from ppspeech.privacy.samplers.randomness import random_below, random_order

UTILITIES = (torch.tensor([0.0, -1, -2, -4, -16]), torch.tensor([-1.0, -2, -3, -5, -15]))
"""Candidates' utilities on two neighboring data sets: an unlikely one rises by the sensitivity, the others fall."""


@register_event("bounded_range")
@dataclass(frozen=True, slots=True)
class BoundedRangeEvent(PureLike):
    """The exponential mechanism: its loss lies in some interval of length epsilon (Dong, Durfee and Rogers 2020).

    That makes it epsilon-DP and (epsilon^2 / 8)-zCDP, four times better under composition than pure epsilon.
    """

    stated_epsilon: float
    relation: Relation

    def __post_init__(self) -> None:
        check_positive("stated_epsilon", self.stated_epsilon, zero=True)

    @property
    def float_safe(self) -> bool:
        """Its coins are exact."""
        return True

    def delta(self, epsilon: float) -> float:
        """The smaller of the pure profile and that of zCDP."""
        return min(pure_delta(self.stated_epsilon, epsilon), delta_from_zcdp(self.zcdp(), epsilon))

    def zcdp(self) -> float:
        """epsilon^2 / 8. The loss distribution stays that of randomized response, which is loose for many choices."""
        return self.stated_epsilon**2 / 8

    def pure(self) -> float:
        """The stated epsilon."""
        return self.stated_epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """What both ways to choose share; `monotone`: one more unit moves all utilities in one direction (add_remove)."""

    epsilon: float
    sensitivity: float
    relation: Relation
    monotone: bool = False

    def __post_init__(self) -> None:
        check_positives(self, "epsilon", "sensitivity")
        check_monotone(self.monotone, self.relation)

    @property
    def rate(self) -> Fraction:
        """What a utility is multiplied with: epsilon / 2 sensitivity, or without the 2 where monotone."""
        return Fraction(self.epsilon) / Fraction(self.sensitivity) / (1 if self.monotone else 2)

    @property
    def event(self) -> PureLike:
        """What one choice costs."""
        raise NotImplementedError

    @property
    def guarantee(self) -> Guarantee:
        """What one choice promises."""
        alike = ", all in one direction" if self.monotone else ""
        assumptions = (f"every utility, as computed, moves by at most {self.sensitivity:.6g}{alike}",)
        return Guarantee.of(self.event, assumptions=assumptions)


@mechanism("exponential", BoundedRangeEvent, work=1_000)
@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(_Choice):
    """Chooses candidate r with probability proportional to exp(epsilon u(r) / 2 sensitivity) (Prakash and Gujar 2020,
    section II-F).

    Formal guarantee: epsilon-DP, of bounded range, hence epsilon^2 / 8 zCDP, under `relation`, if no
    utility moves by more than `sensitivity` between neighbors. For one choice `PermuteAndFlip` is never worse; for
    many composed choices this one is.

    The choice is exact for the utilities given: candidates are drawn uniformly and kept with exp(-gamma), gamma a
    fraction (Canonne et al. 2020), until one is kept.
    """

    @property
    def event(self) -> BoundedRangeEvent:
        """What one choice costs."""
        return BoundedRangeEvent(self.epsilon, self.relation)

    def probabilities(self, utilities: Tensor) -> Tensor:
        """The law of the choice, `(candidates,)`; for analysis, not for release."""
        return torch.softmax(float(self.rate) * utilities.to(torch.float64), dim=0)

    def release(self, utilities: Tensor) -> Released[int]:
        """Choose. `utilities`: `(candidates,)`, finite. Returns the index of the candidate."""
        numerators, denominator = regrets(utilities, self.rate)
        while True:
            tried = random_below(len(numerators), 64).tolist()
            kept = bernoulli_exp([numerators[index] for index in tried], denominator).nonzero()[0]
            if kept.size:
                return Released(tried[kept[0]], self.event, self.guarantee)

    @classmethod
    def losses(cls, event: BoundedRangeEvent, runs: int, present: bool) -> Tensor:
        """Of choices between candidates of whom an unlikely one gains by the unit."""
        one = cls(epsilon=event.stated_epsilon, sensitivity=1.0, relation=event.relation)
        out, within = (one.probabilities(utilities).log() for utilities in UTILITIES)
        chosen = [one.release(UTILITIES[present]).value for _ in range(runs)]
        return (within - out)[chosen]

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:  # noqa: ARG003
        """By its probabilities."""
        return [_audited("exponential", cls(epsilon=1.0, sensitivity=1.0, relation=ONE_RECORD))]


@mechanism("permute_and_flip", ExactPureEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlip(_Choice):
    """Goes through the candidates in random order and takes r with probability exp(-epsilon (u* - u(r)) / 2 sens)
    (McKenna and Sheldon 2020): the default for one choice.

    Formal guarantee: epsilon-DP under `relation`, if no utility moves by more than `sensitivity`
    between neighbors. The expected utility is never below the exponential mechanism's. Booked as pure epsilon: when
    many choices are composed, `Exponential` is cheaper. The coin flips are exact for the utilities given; how many
    there were is visible to whoever can time the call.
    """

    @property
    def event(self) -> ExactPureEvent:
        """What one choice costs."""
        return ExactPureEvent(self.epsilon, self.relation)

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
        """Choose. `utilities`: `(candidates,)`, finite. Returns the index of the candidate."""
        numerators, denominator = regrets(utilities, self.rate)
        order = random_order(len(numerators)).tolist()
        # The best candidate is always taken when reached, so some flip wins.
        taken = bernoulli_exp([numerators[index] for index in order], denominator).nonzero()[0]
        return Released(order[int(taken[0])], self.event, self.guarantee)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:  # noqa: ARG003
        """By its probabilities."""
        return [_audited("permute_and_flip", cls(epsilon=1.0, sensitivity=1.0, relation=ONE_RECORD))]


def regrets(utilities: Tensor, rate: Fraction) -> tuple[list[int], int]:
    """rate (max u - u) of every candidate of a finite vector, as exact whole numerators over one denominator."""
    if utilities.dim() != 1 or utilities.numel() == 0 or not bool(torch.isfinite(utilities).all()):
        raise PrivacyError(f"utilities must be a finite vector of candidates, got shape {tuple(utilities.shape)}")
    values = [Fraction(u) for u in utilities.detach().to(torch.float64).tolist()]
    best = max(values)
    gaps = [rate * (best - value) for value in values]
    denominator = lcm(*(gap.denominator for gap in gaps))
    return [gap.numerator * (denominator // gap.denominator) for gap in gaps], denominator


def _audited(name: str, choice: Exponential | PermuteAndFlip) -> AuditReport:
    found = audit_exact(
        lambda _, utilities: choice.probabilities(utilities).log(), *UTILITIES, torch.arange(5), volumes=1.0
    )
    return exact_report(name, found, choice.guarantee)
