"""The Gaussian mechanism's exact trade between epsilon, delta and sigma (Balle and Wang 2018).

H(epsilon; s) = Phi(s/2 - epsilon/s) - exp(epsilon) Phi(-s/2 - epsilon/s), with s = sensitivity / sigma, is the
smallest delta for which Gaussian noise is (epsilon, delta)-DP. Theorem 1.3 in docs/theory/release.md.
"""

import math
from collections.abc import Callable

from scipy.optimize import brentq
from scipy.special import log_ndtr

from ppspeech.errors import PrivacyError
from ppspeech.privacy.parameters import check_positive, check_probability

SMALLEST = 5e-324
"""The smallest positive float: a delta that is positive must not be rounded to the zero of pure privacy."""


def gaussian_delta(epsilon: float, s: float) -> float:
    """H(epsilon; s): delta of the Gaussian mechanism, exact also for negative epsilon and tiny delta.

    >>> round(gaussian_delta(1.0, 1 / 3.73063) * 1e5, 3)
    1.0
    """
    if s == 0:
        return max(0.0, -math.expm1(epsilon))
    upper = float(log_ndtr(s / 2 - epsilon / s))
    lower = epsilon + float(log_ndtr(-s / 2 - epsilon / s))
    return max(math.exp(upper) * -math.expm1(min(lower - upper, 0.0)), SMALLEST)


def gaussian_epsilon(delta: float, s: float) -> float:
    """The smallest epsilon >= 0 with H(epsilon; s) <= delta; infinite at delta = 0."""
    check_probability("delta", delta, zero=True)
    if s == 0:
        return 0.0
    if delta == 0:
        return math.inf
    return smallest_epsilon(lambda epsilon: gaussian_delta(epsilon, s), delta)


def gaussian_sigma(epsilon: float, delta: float) -> float:
    """sigma_AG: the smallest standard deviation that makes sensitivity 1 (epsilon, delta)-DP.

    The classic sqrt(2 ln(1.25 / delta)) / epsilon is proved for epsilon < 1 alone; for large epsilon (at delta =
    1e-5 from 9 on) it is too small.

    >>> round(gaussian_sigma(1.0, 1e-5), 5)
    3.73063
    """
    check_positive("epsilon", epsilon)
    check_probability("delta", delta)
    low, high = 1e-3, 1.0
    while gaussian_delta(epsilon, 1 / high) > delta:
        high *= 2
        if high > 1e15:
            raise PrivacyError(f"no practical noise reaches epsilon={epsilon}, delta={delta}")
    while gaussian_delta(epsilon, 1 / low) <= delta:
        low /= 2

    def excess(log_sigma: float) -> float:
        return math.log(gaussian_delta(epsilon, math.exp(-log_sigma))) - math.log(delta)

    root = float(brentq(excess, math.log(low), math.log(high), xtol=1e-13))
    sigma = math.exp(root)
    while gaussian_delta(epsilon, 1 / sigma) > delta:  # end on the private side of the rounding
        sigma *= 1 + 1e-13
    return sigma


def smallest_epsilon(delta_of: Callable[[float], float], delta: float, *, least: float = 0.0) -> float:
    """Invert a decreasing epsilon -> delta: the smallest epsilon >= `least` with delta_of(epsilon) <= delta.

    Bisection that ends on the private side, to a relative 1e-12. Returns the epsilon; infinite if none up to 1e6 is
    enough (always at delta = 0 for unbounded noise).
    """
    if delta_of(least) <= delta:
        return least
    low, high = least, max(1.0, 2 * least)
    while not delta_of(high) <= delta:
        low, high = high, 2 * high
        if high > 1e6:
            return math.inf
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if delta_of(middle) <= delta else (middle, high)
    return high


def least(enough: Callable[[float], bool], start: float, *, grow: float, tolerance: float, refusal: str) -> float:
    """The least number that is `enough`, from above and to a relative tolerance; bracketed by factors of `grow`."""
    low = high = start
    while enough(low):
        low /= grow
    while not enough(high):
        high *= grow
        if high > 1e12 * start:
            raise PrivacyError(refusal)
    while high - low > tolerance * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
