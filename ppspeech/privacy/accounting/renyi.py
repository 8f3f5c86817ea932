"""Renyi and zero-concentrated privacy, and what they say about epsilon and delta.

From an (alpha, r)-Renyi bound (Canonne, Kamath and Steinke 2020, Proposition 12):
epsilon = r + [ln(1/delta) + (alpha - 1) ln(1 - 1/alpha) - ln alpha] / (alpha - 1). Theorem 1.4 in
docs/theory/release.md.
"""

import math
from collections.abc import Callable

from scipy.optimize import minimize_scalar

from ppspeech.privacy.accounting.hockey_stick import SMALLEST, smallest_epsilon

ORDERS: tuple[float, ...] = (
    *(1 + step / 10 for step in range(1, 100)),
    *(float(order) for order in range(11, 64)),
    *(float(order) for order in (64, 72, 80, 96, 112, 128, 160, 192, 256, 320, 384, 512, 768, 1024, 2048, 4096)),
)
"""Orders tried for sums of curves that have no closed form."""


def epsilon_at_order(alpha: float, divergence: float, delta: float) -> float:
    """The epsilon that one Renyi bound of order alpha > 1 gives at delta > 0."""
    return divergence + math.log1p(-1 / alpha) - math.log(delta * alpha) / (alpha - 1)


def delta_at_order(alpha: float, divergence: float, epsilon: float) -> float:
    """The delta that one Renyi bound of order alpha > 1 gives at epsilon."""
    exponent = (alpha - 1) * (divergence - epsilon + math.log1p(-1 / alpha)) - math.log(alpha)
    return max(math.exp(min(exponent, 0.0)), SMALLEST)


def epsilon_from_renyi(curve: Callable[[float], float], delta: float) -> float:
    """The best epsilon over `ORDERS` for a curve alpha -> divergence; infinite at delta = 0."""
    if delta == 0:
        return math.inf
    return max(0.0, min(epsilon_at_order(alpha, curve(alpha), delta) for alpha in ORDERS))


def delta_from_renyi(curve: Callable[[float], float], epsilon: float) -> float:
    """The best delta over `ORDERS` for a curve alpha -> divergence."""
    return min(delta_at_order(alpha, curve(alpha), epsilon) for alpha in ORDERS)


def delta_from_zcdp(rho: float, epsilon: float) -> float:
    """The delta of rho-zCDP at epsilon, over all real orders."""
    if rho == 0:
        return 0.0
    # The exponent is convex in g = alpha - 1; its derivative (1 + 2 g) rho - epsilon - ln(1 + 1 / g) is zero below
    # epsilon / 2 rho + 1 / sqrt(2 rho). Search the logarithm.
    best = minimize_scalar(
        lambda log_gap: (
            math.exp(log_gap) * ((1 + math.exp(log_gap)) * rho - epsilon - math.log1p(math.exp(-log_gap)))
            - math.log1p(math.exp(log_gap))
        ),
        bounds=(-7.0, math.log(max(2.0, epsilon / (2 * rho) + (2 * rho) ** -0.5))),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return delta_at_order(1 + math.exp(float(best.x)), (1 + math.exp(float(best.x))) * rho, epsilon)


def epsilon_from_zcdp(rho: float, delta: float) -> float:
    """The epsilon of rho-zCDP at delta, over all real orders.

    >>> round(epsilon_from_zcdp(0.1, 1e-5), 4)
    1.9142
    """
    if rho == 0:
        return 0.0
    return math.inf if delta == 0 else smallest_epsilon(lambda epsilon: delta_from_zcdp(rho, epsilon), delta)
