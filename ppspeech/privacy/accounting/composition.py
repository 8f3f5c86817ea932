"""Composition theorems in closed form, for comparison with the accountant's numerical ones.

The advanced theorem is not optimal, as Prakash and Gujar 2020 says; the optimal one for equal pairs is Kairouz, Oh and
Viswanath's (2017, theorem 3.3), which is also what the accountant's loss distributions give.
"""

import math
from collections.abc import Sequence

from scipy.special import gammaln

from ppspeech.privacy.accounting.hockey_stick import smallest_epsilon
from ppspeech.privacy.parameters import check_count, check_positive, check_probability

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


def optimal_composition(epsilon: float, delta: float, count: int, total_delta: float) -> float:
    """The smallest epsilon of `count` adaptive (epsilon, delta)-DP mechanisms at `total_delta`; exact.

    Infinite where total_delta is below 1 - (1 - delta)^count.
    """
    check_positive("epsilon", epsilon)
    check_probability("delta", delta, zero=True)
    check_probability("total_delta", total_delta, zero=True)
    check_count("count", count)
    kept = (1 - delta) ** count
    if total_delta < 1 - kept:
        return math.inf
    allowed = (total_delta - (1 - kept)) / kept

    def profile(at: float) -> float:
        """delta of `count` randomized responses: the loss is (count - 2 l) epsilon for l lies."""
        sum_above = 0.0
        for lies in range(count + 1):
            loss = (count - 2 * lies) * epsilon
            if loss <= at:
                break
            log_mass = (
                gammaln(count + 1) - gammaln(lies + 1) - gammaln(count - lies + 1)
                + (count - lies) * epsilon - count * math.log1p(math.exp(epsilon))
            )  # fmt: skip
            sum_above += math.exp(log_mass) * -math.expm1(at - loss)
        return sum_above

    return smallest_epsilon(profile, allowed)


def group_pair(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    """(epsilon, delta) for `size` records at once: (M epsilon, delta (e^{M epsilon} - 1) / (e^epsilon - 1)).

    >>> group_pair(1.0, 0.0, 3)
    (3.0, 0.0)
    """
    check_positive("epsilon", epsilon)
    check_probability("delta", delta, zero=True)
    check_count("size", size)
    factor = math.expm1(size * epsilon) / math.expm1(epsilon) if size * epsilon < 700 else math.inf
    return size * epsilon, min(1.0, delta * factor) if delta else 0.0
