"""Composition theorems in closed form, two of the accountant's methods.

The advanced theorem is not optimal, as Prakash and Gujar 2020 says; the optimal one for equal pairs (Kairouz, Oh and
Viswanath 2017, theorem 3.3) is what the accountant's loss distributions give.
"""

import math
from collections.abc import Sequence

from ppspeech.privacy.parameters import check_probability

Pair = tuple[float, float, int]
"""(epsilon, delta, how often)."""


def basic_composition(pairs: Sequence[Pair]) -> tuple[float, float]:
    """Epsilons and deltas add.

    >>> basic_composition([(0.5, 0.0, 2), (1.0, 1e-6, 3)])
    (4.0, 3e-06)
    """
    return sum(epsilon * count for epsilon, _, count in pairs), sum(delta * count for _, delta, count in pairs)


def advanced_composition(pairs: Sequence[Pair], slack: float) -> tuple[float, float]:
    """Dwork, Rothblum and Vadhan 2010, for unequal pairs.

    epsilon = sqrt(2 ln(1/slack) sum epsilon_i^2) + sum epsilon_i (e^epsilon_i - 1), delta = slack + sum delta_i.

    Args:
        pairs: what is composed.
        slack: the delta paid for the square root, in (0, 1).
    """
    check_probability("slack", slack)
    if any(epsilon > 700 for epsilon, _, _ in pairs):
        return math.inf, slack + sum(delta * count for _, delta, count in pairs)
    squares = sum(count * epsilon**2 for epsilon, _, count in pairs)
    drift = sum(count * epsilon * math.expm1(epsilon) for epsilon, _, count in pairs)
    return math.sqrt(2 * math.log(1 / slack) * squares) + drift, slack + sum(d * count for _, d, count in pairs)
