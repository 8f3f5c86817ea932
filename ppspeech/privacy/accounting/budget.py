"""A budget that stops: what does not fit is refused before anything is released."""

import math
from typing import Any, Protocol, TypeVar

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.accountant import Accountant
from ppspeech.privacy.accounting.events import Event
from ppspeech.privacy.accounting.renyi import epsilon_from_zcdp
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.parameters import check_count, check_positive, check_probability
from ppspeech.privacy.relation import Relation

Output = TypeVar("Output", covariant=True)

ROUNDING = 1e-12  # of a sum of costs, relative: ten tenths are one


class Releases(Protocol[Output]):
    """A mechanism, as a budget sees it."""

    @property
    def event(self) -> Event:
        """What one release costs."""

    def release(self, *value: Any) -> Released[Output]:
        """The value with noise."""


class Budget:
    """An (epsilon, delta) that is spent release by release, and never exceeded.

    Formal guarantee: everything released through it together is (epsilon, delta)-DP under `relation`, also if each
    mechanism, and whether to go on at all, is chosen by what was released before. Only sums whose bound holds for
    such choices are counted (a privacy filter): epsilons at delta = 0 (Rogers, Roth, Ullman and Vadhan 2016), else
    zCDP parameters up to the rho whose epsilon at delta is the budget's (Feldman and Zrnic 2021). An `Accountant` may
    find less for the same events, if all of them were fixed in advance.

    >>> from ppspeech.privacy import Histogram
    >>> import torch
    >>> one = Relation("record", "add_remove")
    >>> budget = Budget(one, epsilon=1.0)
    >>> counts = budget.release(Histogram(bins=3, epsilon=0.6, relation=one), torch.tensor([0, 2, 2]))
    >>> round(budget.left, 6)
    0.4
    """

    def __init__(self, relation: Relation, *, epsilon: float, delta: float = 0.0) -> None:
        self.epsilon = check_positive("epsilon", epsilon)
        self.delta = check_probability("delta", delta, zero=True)
        self.account = Accountant(relation)
        self._most = epsilon if delta == 0 else _rho(epsilon, delta)
        self._spent = 0.0

    @property
    def left(self) -> float:
        """What may still be spent: an epsilon where delta is 0, else a rho."""
        return max(self._most - self._spent, 0.0)

    def spend(self, event: Event, count: int = 1) -> None:
        """Book an event. Raises PrivacyError, and books nothing, if it is more than is left or cannot be counted."""
        cost, name = (event.pure(), "epsilon") if self.delta == 0 else (event.zcdp(), "rho")
        if cost is None:
            raise PrivacyError(
                f"an event of type {event.type_name!r} has no {name} by itself, and a budget adds up {name}s: release "
                "by another mechanism, or fix all releases in advance and use an Accountant"
            )
        after = self._spent + check_count("count", count) * cost
        if not after <= self._most * (1 + ROUNDING):
            raise PrivacyError(
                f"the budget is {name} = {self._most:.6g}, of which {self.left:.6g} is left: {count * cost:.6g} more "
                "would exceed it, and nothing was released"
            )
        self.account.compose(event, count)
        self._spent = after

    def release(self, mechanism: Releases[Output], *value: Any) -> Released[Output]:
        """Spend what a release costs, then release. What does not fit is refused before the value is looked at; a
        mechanism that fails afterwards has spent all the same.
        """
        self.spend(mechanism.event)
        return mechanism.release(*value)

    def guarantee(self) -> Guarantee:
        """What all releases promise together, those to come included: the whole budget."""
        return Guarantee(
            kind="pure" if self.delta == 0 else "approximate",
            relation=self.account.relation,
            epsilon=self.epsilon,
            delta=self.delta,
            float_safe=self.account.float_safe,
            assumptions=("all that is released about the data goes through the budget",),
        )


def _rho(epsilon: float, delta: float) -> float:
    """The largest rho that is (epsilon, delta)-DP, from below."""
    low, high = 0.0, 1.0
    while epsilon_from_zcdp(high, delta) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1e-12 * high and not math.isclose(low, high, rel_tol=1e-12):
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon_from_zcdp(middle, delta) <= epsilon else (low, middle)
    return low
