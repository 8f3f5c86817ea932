"""The accountant: gold values, methods against one another, replay, and what it refuses."""

import json
import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from ppspeech.errors import PrivacyError
from ppspeech.privacy import (
    Accountant,
    ApproximateEvent,
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    NonPrivateEvent,
    ObjectiveGaussianEvent,
    PureEvent,
    Relation,
    SampledGaussianEvent,
    SkellamEvent,
    ZcdpEvent,
    gaussian_sigma,
)
from ppspeech.privacy.accounting.accountant import _by_chain
from ppspeech.privacy.accounting.composition import advanced_composition, basic_composition, split_gaussian
from ppspeech.privacy.accounting.hockey_stick import smallest_epsilon

ONE = Relation("record", "add_remove")
R: Any = {"relation": ONE}


def optimal_composition(epsilon: float, delta: float, count: int, total_delta: float) -> float:
    """The smallest epsilon of `count` adaptive (epsilon, delta)-DP mechanisms at `total_delta` (Kairouz et al. 2017).

    Infinite where total_delta is below 1 - (1 - delta)^count.
    """
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


def account(*entries: tuple[Event, int]) -> Accountant:
    made = Accountant(**R)
    for event, count in entries:
        made.compose(event, count)
    return made


def test_dp_sgd_gold() -> None:
    spent = account((SampledGaussianEvent(1.0, 0.01, 1000, **R), 1))
    assert spent.epsilon(1e-5, "pld") == pytest.approx(1.828, abs=2e-3)
    assert spent.epsilon(1e-5, "rdp") == pytest.approx(2.101, abs=2e-3)
    assert spent.epsilon(1e-5) == pytest.approx(1.828, abs=2e-3)


def test_ten_iterations_of_hmm_statistics_gold() -> None:
    """T = 10 Gaussians for (2, 1e-5): sigma = sqrt(10) sigma_AG = 6.305, and the account comes back to exactly 2."""
    sigma = math.sqrt(10) * gaussian_sigma(2.0, 1e-5)
    assert sigma == pytest.approx(6.305, abs=5e-4)
    spent = account((GaussianEvent(sigma, **R), 10))
    assert spent.epsilon(1e-5) == pytest.approx(2.0, rel=1e-9)
    assert spent.epsilon(1e-5, "pld") == pytest.approx(2.0, rel=1e-3)


def test_different_gaussians_add_like_precisions() -> None:
    spent = account((GaussianEvent(3.0, **R), 2), (GaussianEvent(5.0, **R), 1))
    one = GaussianEvent(1 / math.sqrt(2 / 9 + 1 / 25), **R)
    assert spent.epsilon(1e-6) == pytest.approx(one.epsilon(1e-6), rel=1e-9)


def test_auto_is_the_smallest_valid_method() -> None:
    spent = account((GaussianEvent(5.0, **R), 3), (LaplaceEvent(4.0, **R), 2), (BoundedRangeEvent(0.2, **R), 10))
    report = spent.report(1e-6)
    assert set(report.epsilons) == {"basic", "advanced", "zcdp", "rdp", "pld"}
    assert spent.epsilon(1e-6) == report.epsilon == min(report.epsilons.values()) == report.epsilons[report.method]
    assert "record" in str(report)
    for method, epsilon in report.epsilons.items():
        assert spent.delta(epsilon, method) <= 1e-6 * 1.01  # type: ignore[arg-type]


def test_methods_that_do_not_apply_are_skipped_by_auto_and_refused_by_name() -> None:
    spent = account((ApproximateEvent(0.5, 1e-7, **R), 2), (GaussianEvent(5.0, **R), 1))
    assert "rdp" not in spent.report(1e-5).epsilons
    assert "zcdp" not in spent.report(1e-5).epsilons
    with pytest.raises(PrivacyError):
        spent.epsilon(1e-5, "zcdp")
    with pytest.raises(PrivacyError, match="method"):
        spent.epsilon(1e-5, "moments")  # type: ignore[arg-type]


@settings(max_examples=15, deadline=None)
@given(st.floats(0.02, 1.0), st.integers(1, 40), st.sampled_from([1e-3, 1e-6]))
def test_loss_distributions_reach_the_optimal_composition(epsilon: float, count: int, delta: float) -> None:
    """Kairouz, Oh and Viswanath's theorem is exact for pure mechanisms; ours is at most the buckets above it."""
    exact = optimal_composition(epsilon, 0.0, count, delta)
    found = account((PureEvent(epsilon, **R), count)).epsilon(delta, "pld")
    assert exact - 1e-9 <= found <= exact + count * 1e-4 + 1e-4


def test_composition_theorems_in_order() -> None:
    epsilon, count, delta = 0.1, 100, 1e-6
    basic, _ = basic_composition([(epsilon, 0.0, count)])
    advanced, _ = advanced_composition([(epsilon, 0.0, count)], delta)
    optimal = optimal_composition(epsilon, 0.0, count, delta)
    assert optimal < advanced < basic
    assert advanced == pytest.approx(0.1 * math.sqrt(200 * math.log(1e6)) + 10 * math.expm1(0.1))
    assert optimal_composition(epsilon, 1e-3, count, 1e-3) == math.inf
    assert optimal_composition(epsilon, 0.0, count, 0.0) == pytest.approx(10.0)


def test_the_optimal_theorem_against_its_published_form() -> None:
    """delta_i = sum_{l<i} C(k,l) (e^{(k-l)eps} - e^{(k-2i+l)eps}) / (1+e^eps)^k at epsilon (k - 2i) eps."""
    eps, k = 0.3, 6
    for i in range(1, k // 2 + 1):
        delta = (
            sum(math.comb(k, j) * (math.exp((k - j) * eps) - math.exp((k - 2 * i + j) * eps)) for j in range(i))
            / (1 + math.exp(eps)) ** k
        )
        assert optimal_composition(eps, 0.0, k, delta * (1 + 1e-12)) == pytest.approx((k - 2 * i) * eps, abs=1e-9)


def test_pure_accounts_at_delta_zero() -> None:
    spent = account((PureEvent(0.3, **R), 3), (LaplaceEvent(2.0, **R), 1))
    assert spent.epsilon(0.0) == pytest.approx(1.4)
    assert spent.delta(1.4 + 1e-9) == 0.0
    assert account((GaussianEvent(1.0, **R), 1)).epsilon(0.0) == math.inf
    assert spent.guarantee(0.0).kind == "pure"


def test_an_empty_account_has_spent_nothing() -> None:
    empty = Accountant(**R)
    assert (empty.epsilon(0.0), empty.delta(0.0), empty.report(1e-6).method) == (0.0, 0.0, "none")


@pytest.mark.parametrize("method", ["auto", "basic", "advanced", "zcdp", "rdp", "pld"])
def test_one_unprotected_touch_makes_epsilon_infinite(method: Any) -> None:
    spent = account((PureEvent(0.1, **R), 1), (NonPrivateEvent("tuned on private data", **R), 1))
    assert spent.epsilon(1e-5, method) == math.inf
    assert spent.delta(5.0, method) == 1.0
    guarantee = spent.guarantee(1e-5)
    assert guarantee.kind == "none"
    assert "tuned" in guarantee.caveat


@pytest.mark.parametrize(
    "event", [PureEvent(1.0, Relation("speaker", "add_remove")), PureEvent(1.0, Relation("record", "replace"))]
)
def test_units_and_adjacencies_do_not_mix(event: Event) -> None:
    with pytest.raises(PrivacyError, match="one record under add_remove"):
        Accountant(**R).compose(event)


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_bad_counts_are_refused(count: Any) -> None:
    with pytest.raises(PrivacyError):
        Accountant(**R).compose(PureEvent(1.0, **R), count)


def test_replay_gives_the_same_epsilon() -> None:
    spent = account(
        (GaussianEvent(5.0, **R), 3),
        (DiscreteGaussianEvent(3000.0, 1000.0, 4000.0, 16, **R), 2),
        (ObjectiveGaussianEvent(6.0, 0.2, ((2, 1.5),), 1.5, 2, False, **R), 1),
        (ZcdpEvent(0.01, **R), 1),
    )
    spent.compose(GaussianEvent(5.0, **R))
    again = Accountant.from_json(json.loads(json.dumps(spent.to_json(), allow_nan=False)))
    assert again.events == spent.events
    assert again.events[0][1] == 4
    assert again.epsilon(1e-6, "pld") == spent.epsilon(1e-6, "pld")
    assert again.epsilon(1e-6) == spent.epsilon(1e-6)


@pytest.mark.parametrize(
    "damage",
    [
        {"format": 2},
        {"format": True},
        {"unit": None},
        {"events": {}},
        {"events": [{"count": 1}]},
        {"events": [{"count": 0, "event": {}}]},
        {"more": 1},
        {"unit": "speaker"},
    ],
)
def test_damaged_accounts_are_refused(damage: dict[str, Any]) -> None:
    plain = account((PureEvent(1.0, **R), 1)).to_json() | damage
    with pytest.raises(PrivacyError):
        Accountant.from_json(plain)


def test_a_mixed_account_by_loss_distribution_covers_its_parts() -> None:
    """Gaussian and discrete Gaussian of equal noise: the mixed PLD lies between the exact and the zCDP answer."""
    mixed = account((GaussianEvent(4.0, **R), 1), (DiscreteGaussianEvent(4000.0, 1000.0, 4000.0, 16, **R), 1))
    exact = account((GaussianEvent(4.0, **R), 2))
    assert exact.epsilon(1e-6) <= mixed.epsilon(1e-6, "pld") <= exact.epsilon(1e-6) + 2e-3
    assert mixed.epsilon(1e-6, "pld") < mixed.epsilon(1e-6, "zcdp")


def test_the_parts_of_a_budget_add_up_to_it() -> None:
    account = Accountant(**R)
    for z in split_gaussian(1.5, 1e-6, (0.2, 0.5, 0.3)):
        account.compose(GaussianEvent(z, **R))
    assert account.epsilon(1e-6) == pytest.approx(1.5, rel=1e-9)


@pytest.mark.parametrize("shares", [(), (0.0, 1.0), (-1.0, 2.0)])
def test_bad_shares_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(PrivacyError):
        split_gaussian(1.0, 1e-5, shares)


@pytest.mark.parametrize(
    "event",
    [
        GaussianEvent(6.0, ONE),
        PureEvent(0.2, ONE),
        LaplaceEvent(5.0, ONE),
        DiscreteGaussianEvent(9000.0, 1000.0, 4000.0, 16, ONE),
        SkellamEvent(1e8, 1000.0, 4000.0, 16, ONE),
        SampledGaussianEvent(4.0, 0.1, 20, ONE),
        SampledGaussianEvent(9.0, 1.0, 2, ONE),
        ApproximateEvent(0.3, 1e-9, ONE),
    ],
    ids=lambda event: event.type_name,
)
def test_a_group_is_told_no_less_than_its_members(event: Event) -> None:
    """A person with more units is never promised more than one with fewer, nor than one with a single unit."""
    account = Accountant(ONE)
    account.compose(event, 2)
    found = [account.group_epsilon(size, 1e-5) for size in (1, 2, 5, 20)]
    assert found[0] >= account.epsilon(1e-5) * (1 - 1e-3)
    assert all(more > fewer for fewer, more in pairwise(found))
    assert found[1] > 1.5 * found[0]


def test_a_chain_of_neighbors_is_never_better_than_the_sensitivity() -> None:
    account = Accountant(ONE)
    account.compose(GaussianEvent(6.0, ONE), 2)
    for size in (2, 3, 5):
        assert _by_chain(account, size, 1e-5) > account.group_epsilon(size, 1e-5)


def test_deltas_of_a_chain_add_up_also_where_epsilon_is_zero() -> None:
    """Whoever publishes one in a million as it is publishes one of a hundred units once in ten thousand."""
    account = Accountant(ONE)
    account.compose(ApproximateEvent(0.0, 1e-6, ONE))
    assert account.epsilon(1e-5) == 0
    assert account.group_epsilon(5, 1e-5) < 1e-3
    assert account.group_epsilon(100, 1e-5) == math.inf
