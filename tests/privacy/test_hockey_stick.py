"""The Gaussian trade-off and the Renyi conversions against gold values and dp-accounting."""

import math

import dp_accounting
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.hockey_stick import gaussian_delta, gaussian_epsilon, gaussian_sigma, smallest_epsilon
from ppspeech.privacy.accounting.renyi import delta_from_zcdp, epsilon_at_order, epsilon_from_renyi, epsilon_from_zcdp


@pytest.mark.parametrize(("epsilon", "delta", "sigma"), [(1, 1e-5, 3.73063), (1, 1e-6, 4.22468), (2, 1e-5, 1.99381)])
def test_gold_sigmas(epsilon: float, delta: float, sigma: float) -> None:
    found = gaussian_sigma(epsilon, delta)
    assert found == pytest.approx(sigma, abs=5e-6)
    assert found == pytest.approx(dp_accounting.get_sigma_gaussian(epsilon, delta), rel=1e-9)
    assert gaussian_delta(epsilon, 1 / found) <= delta


def test_delta_is_the_integral_it_stands_for() -> None:
    s, epsilon = 0.7, 0.4
    p, q = norm(s, 1).pdf, norm(0, 1).pdf
    brute, _ = quad(lambda x: max(p(x) - math.exp(epsilon) * q(x), 0.0), -10, 10, limit=500, points=[0.9])
    assert gaussian_delta(epsilon, s) == pytest.approx(brute, rel=1e-7)


@settings(max_examples=50, deadline=None)
@given(st.floats(0.05, 20), st.floats(1e-12, 0.3))
def test_epsilon_inverts_delta(sigma: float, delta: float) -> None:
    epsilon = gaussian_epsilon(delta, 1 / sigma)
    assert gaussian_delta(epsilon, 1 / sigma) <= delta
    assert epsilon == pytest.approx(dp_accounting.get_epsilon_gaussian(sigma, delta), rel=1e-6, abs=1e-7)


def test_the_gaussian_loss_exceeds_epsilon_more_often_than_delta() -> None:
    """ "|loss| <= epsilon with probability 1 - delta" is sufficient only: at (1, 1e-5) it is exceeded 1.6e-4 often."""
    s = 1 / gaussian_sigma(1, 1e-5)
    assert norm.sf((1 - s * s / 2) / s) == pytest.approx(1.6e-4, rel=0.05)


def test_zcdp_gold() -> None:
    assert epsilon_from_zcdp(0.1, 1e-5) == pytest.approx(1.9142, abs=5e-5)


@settings(max_examples=10, deadline=None)
@given(st.floats(1e-4, 5), st.floats(1e-10, 1e-2))
@example(rho=1e-4, delta=2.0**-7)  # the best order is far above (epsilon + rho) / 2 rho
def test_zcdp_is_the_infimum_over_orders(rho: float, delta: float) -> None:
    best = min(epsilon_at_order(1 + 1.005**k / 100, (1 + 1.005**k / 100) * rho, delta) for k in range(3000))
    assert epsilon_from_zcdp(rho, delta) <= max(best, 0) * (1 + 1e-9) + 1e-9
    assert epsilon_from_zcdp(rho, delta) >= max(best, 0) * (1 - 1e-3) - 1e-9
    # The fixed orders reach no order above 4096, which tiny rho would want.
    assert epsilon_from_renyi(lambda alpha: alpha * rho, delta) >= epsilon_from_zcdp(rho, delta) * (1 - 1e-9)


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-3, 3), st.floats(0, 8))
def test_zcdp_never_undercuts_the_gaussian_it_covers(rho: float, epsilon: float) -> None:
    assert delta_from_zcdp(rho, epsilon) >= gaussian_delta(epsilon, math.sqrt(2 * rho)) * (1 - 1e-9)


def test_smallest_epsilon_gives_infinity_where_nothing_is_enough() -> None:
    assert smallest_epsilon(lambda _: 0.5, 0.1) == math.inf
    assert gaussian_epsilon(0.0, 1.0) == math.inf


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 1e-5), (-1, 1e-5), (1, 0), (1, 1), (math.nan, 1e-5)])
def test_bad_targets_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(PrivacyError):
        gaussian_sigma(epsilon, delta)
