"""How losses add up in closed form, and how a budget is split before anything is released.

The advanced theorem, which Prakash and Gujar 2020 calls optimal, is not; the one that is, for equal pairs (Kairouz, Oh
and Viswanath 2017, theorem 3.3), is what the accountant's loss distributions give. Theorem 1.5 in
docs/theory/release.md.
"""

import math
from collections.abc import Sequence

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.hockey_stick import gaussian_sigma
from ppspeech.privacy.parameters import check_positive, check_probability

Pair = tuple[float, float, int]  # (epsilon, delta, how often)


def basic_composition(pairs: Sequence[Pair]) -> tuple[float, float]:
    """Epsilons and deltas add.

    >>> basic_composition([(0.5, 0.0, 2), (1.0, 1e-6, 3)])
    (4.0, 3e-06)
    """
    return sum(epsilon * count for epsilon, _, count in pairs), sum(delta * count for _, delta, count in pairs)


def advanced_composition(pairs: Sequence[Pair], slack: float) -> tuple[float, float]:
    """Dwork, Rothblum and Vadhan 2010, for unequal pairs.

    epsilon = sqrt(2 ln(1/slack) sum epsilon_i^2) + sum epsilon_i (e^epsilon_i - 1), delta = slack + sum delta_i.
    `slack`: the delta paid for the square root, in (0, 1).
    """
    check_probability("slack", slack)
    if any(epsilon > 700 for epsilon, _, _ in pairs):
        return math.inf, slack + sum(delta * count for _, delta, count in pairs)
    squares = sum(count * epsilon**2 for epsilon, _, count in pairs)
    drift = sum(count * epsilon * math.expm1(epsilon) for epsilon, _, count in pairs)
    return math.sqrt(2 * math.log(1 / slack) * squares) + drift, slack + sum(d * count for _, d, count in pairs)


def split_gaussian(epsilon: float, delta: float, shares: Sequence[float]) -> tuple[float, ...]:
    """Noise multipliers of Gaussian releases that together are exactly (epsilon, delta)-DP.

    A release with the part w of the budget gets sigma_AG(epsilon, delta) / sqrt(w), as 1 / z^2 adds. T equal
    iterations get sqrt(T) sigma_AG each.

    >>> [round(z, 3) for z in split_gaussian(2.0, 1e-5, [1.0] * 10)[:1]]
    [6.305]
    """
    if not shares:
        raise PrivacyError("a budget is split over at least one release")
    sigma, total = gaussian_sigma(epsilon, delta), math.fsum(check_positive("share", share) for share in shares)
    return tuple(sigma / math.sqrt(share / total) for share in shares)
