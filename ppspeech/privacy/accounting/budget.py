"""Splitting a budget over several releases before any of them is made."""

import math
from collections.abc import Sequence

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.hockey_stick import gaussian_sigma
from ppspeech.privacy.parameters import check_positive


def normalized_shares(shares: Sequence[float]) -> tuple[float, ...]:
    """Positive weights as parts of one."""
    if not shares:
        raise PrivacyError("a budget is split over at least one release")
    total = math.fsum(check_positive("share", share) for share in shares)
    return tuple(share / total for share in shares)


def split_pure(epsilon: float, shares: Sequence[float]) -> tuple[float, ...]:
    """Epsilons that add up to `epsilon`, for pure releases.

    >>> split_pure(1.0, (1, 3))
    (0.25, 0.75)
    """
    check_positive("epsilon", epsilon)
    return tuple(epsilon * share for share in normalized_shares(shares))


def split_zcdp(rho: float, shares: Sequence[float]) -> tuple[float, ...]:
    """Rhos that add up to `rho`."""
    check_positive("rho", rho)
    return tuple(rho * share for share in normalized_shares(shares))


def split_gaussian(epsilon: float, delta: float, shares: Sequence[float]) -> tuple[float, ...]:
    """Noise multipliers of Gaussian releases that together are exactly (epsilon, delta)-DP.

    A release with the part w of the budget gets sigma_AG(epsilon, delta) / sqrt(w), as 1 / z^2 adds. T equal
    iterations get sqrt(T) sigma_AG each.

    >>> [round(z, 3) for z in split_gaussian(2.0, 1e-5, [1.0] * 10)[:1]]
    [6.305]
    """
    sigma = gaussian_sigma(epsilon, delta)
    return tuple(sigma / math.sqrt(share) for share in normalized_shares(shares))
