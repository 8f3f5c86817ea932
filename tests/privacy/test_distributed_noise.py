"""Noise shares: exact laws, sums that keep what colluders cannot take away, and bounds against exact ones."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from ppspeech.errors import PrivacyError
from ppspeech.privacy import Relation
from ppspeech.privacy.accounting.accountant import Accountant
from ppspeech.privacy.accounting.events import UnsupportedAnalysisError, event_from_json, event_to_json
from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussian
from ppspeech.privacy.mechanisms.distributed import PolyaShares, SkellamEvent, SkellamShares, shares_for
from ppspeech.privacy.samplers.discrete import lazy_bernoulli
from ppspeech.privacy.samplers.divisible import sample_negative_binomial, sample_poisson

ALARM = 1e-6
DRAWS = 50_000
TERMS: dict[str, Any] = {"sensitivity": 0.5, "dimension": 7, "relation": Relation("record", "replace")}


def fits(drawn: np.ndarray, pmf: Any, low: int, high: int) -> float:
    """p-value of a chi-square test; both tails are one cell each."""
    inside = np.arange(low, high + 1)
    observed = np.bincount(np.clip(drawn, low - 1, high + 1) - (low - 1), minlength=high - low + 3)
    expected = pmf(inside)
    below, above = pmf(np.arange(low - 4000, low)).sum(), pmf(np.arange(high + 1, high + 4000)).sum()
    expected = np.concatenate([[below], expected, [above]]) * len(drawn)
    kept = expected > 5
    merged = np.append(observed[kept], observed[~kept].sum()), np.append(expected[kept], expected[~kept].sum())
    usable = merged[1] > 0
    return float(stats.chisquare(merged[0][usable], merged[1][usable] * len(drawn) / merged[1][usable].sum()).pvalue)


@pytest.mark.parametrize("mean", [0.05, 0.9, 17.3, 4000.0])
def test_poisson_numbers_have_the_law(mean: float) -> None:
    spread = 5 * math.sqrt(mean) + 5
    low, high = max(0, int(mean - spread)), int(mean + spread)
    assert fits(sample_poisson(mean, DRAWS), lambda k: stats.poisson.pmf(k, mean), low, high) > ALARM


@pytest.mark.parametrize("mean", [2.0**21, 1e11, 2.0**50])
def test_large_poisson_numbers_have_the_law(mean: float) -> None:
    """Kolmogorov-Smirnov against scipy's own distribution function, beyond the size of the plain formula."""
    drawn = sample_poisson(mean, 20_000)
    assert stats.kstest((drawn - mean) / math.sqrt(mean), lambda z: special.ndtr(z)).pvalue > ALARM
    assert abs(drawn.astype(float).var() / mean - 1) < 0.06


@pytest.mark.parametrize("shape", [1.0, 0.25, 1 / 19])
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(7, 2), Fraction(300)])
def test_negative_binomial_numbers_have_the_law(shape: float, scale: Fraction) -> None:
    q = math.exp(-1 / float(scale))
    drawn = sample_negative_binomial(shape, scale, DRAWS)
    assert fits(drawn, lambda k: stats.nbinom.pmf(k, shape, 1 - q), 0, int(3 * float(scale)) + 3) > ALARM


def test_a_comparison_that_floats_cannot_decide_is_decided_by_more_digits() -> None:
    asked: list[int] = []

    def exact(index: int) -> float:
        asked.append(index)
        return math.log(0.25)

    won = lazy_bernoulli(np.full(20_000, np.nan), exact)
    assert len(asked) == 20_000
    assert stats.binomtest(int(won.sum()), 20_000, 0.25).pvalue > ALARM
    asked.clear()
    won = lazy_bernoulli(np.full(20_000, math.log(0.25)), exact)
    assert len(asked) < 20
    assert stats.binomtest(int(won.sum()), 20_000, 0.25).pvalue > ALARM


@pytest.mark.parametrize(("mean", "count"), [(-1.0, 1), (2.0**51, 1), (math.nan, 1)])
def test_means_out_of_range_are_refused(mean: float, count: int) -> None:
    with pytest.raises(PrivacyError, match="mean"):
        sample_poisson(mean, count)


def test_nothing_is_drawn_for_nothing() -> None:
    assert sample_poisson(3.0, 0).shape == (0,)
    assert sample_poisson(0.0, 4).tolist() == [0] * 4
    with pytest.raises(PrivacyError, match="shape"):
        sample_negative_binomial(1.5, Fraction(2), 1)


@pytest.mark.parametrize(("parties", "colluders"), [(2, 1), (5, 1), (6, 3)])
def test_what_honest_parties_add_is_skellam_of_the_stated_variance(parties: int, colluders: int) -> None:
    """The view of t colluders who take off their own shares: the rest has the target's law, exactly."""
    shares = SkellamShares(parties=parties, colluders=colluders, sigma=0.0015, delta=1e-5, **TERMS)
    variance = shares.event.variance
    assert variance < 1e4  # small enough to see that these are whole numbers
    honest = sum(shares.share(8000) for _ in range(parties - colluders))
    deviation = math.sqrt(variance)
    law = stats.skellam(variance / 2, variance / 2)
    assert fits(np.asarray(honest), law.pmf, int(-4 * deviation), int(4 * deviation)) > ALARM
    everyone = honest + sum(shares.share(8000) for _ in range(colluders))
    assert np.var(everyone) > np.var(honest)


@pytest.mark.parametrize(("parties", "colluders"), [(2, 1), (5, 2)])
def test_what_honest_parties_add_is_discrete_laplace(parties: int, colluders: int) -> None:
    shares = PolyaShares(parties=parties, colluders=colluders, epsilon=5000.0, **TERMS)
    scale = float(shares.scale)
    honest = np.asarray(sum(shares.share(8000) for _ in range(parties - colluders)))
    assert fits(honest, stats.dlaplace(1 / scale).pmf, int(-6 * scale), int(6 * scale)) > ALARM


def test_one_share_alone_is_too_little_noise() -> None:
    """The tests above have power: a share of one of four honest parties is not the target."""
    shares = SkellamShares(parties=5, sigma=0.0015, delta=1e-5, **TERMS)
    variance = shares.event.variance
    deviation = math.sqrt(variance)
    law = stats.skellam(variance / 2, variance / 2)
    assert fits(shares.share(8000), law.pmf, int(-4 * deviation), int(4 * deviation)) < ALARM


def exact_loss(variance: float, shift: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of one Skellam coordinate and its privacy loss under a shift."""
    reach = int(14 * math.sqrt(variance)) + shift + 2
    k = np.arange(-reach, reach + 1)
    log_mass = np.log(special.ive(np.abs(k), variance))
    log_shifted = np.log(special.ive(np.abs(k + shift), variance))
    return np.exp(log_mass), log_mass - log_shifted


@pytest.mark.parametrize("variance", [20.0, 900.0, 2e4])
@pytest.mark.parametrize("shift", [1, 4])
def test_bounds_are_above_the_exact_ones_in_one_dimension(variance: float, shift: int) -> None:
    event = SkellamEvent(variance, float(shift), float(shift), 1, Relation("record", "replace"))
    mass, loss = exact_loss(variance, shift)
    for alpha in (2, 5, 17):
        divergence = math.log(np.sum(mass * np.exp((alpha - 1) * loss))) / (alpha - 1)
        assert divergence <= event.rdp(alpha) * (1 + 1e-9)
    for epsilon in (0.01, 0.1, 0.5):
        delta = np.sum(mass * np.maximum(0.0, -np.expm1(epsilon - loss)))
        assert delta <= event.delta(epsilon) * (1 + 1e-9) + 1e-300
        if variance >= 1e4:
            assert delta <= event.pld(1e-5).get_delta_for_epsilon(epsilon) * (1 + 1e-6) + 1e-15


@pytest.mark.parametrize("variance", [1e4, 3e5])
def test_the_laws_agree_as_closely_as_the_proof_says(variance: float) -> None:
    """tau of the docstring against scipy's Bessel functions, and Amos's bounds that it rests on."""
    event = SkellamEvent(variance, 1.0, 1.0, 1, Relation("record", "replace"))
    reach = int(12 * math.sqrt(variance))
    k = np.arange(reach + 1)
    log_skellam = np.log(special.ive(k, variance))
    log_gaussian = -(k**2) / (2 * variance) - 0.5 * math.log(2 * math.pi * variance)
    tau = event._gap()
    assert tau is not None
    assert np.abs(log_skellam - log_gaussian).max() <= tau
    i = k[1 : reach // 2]
    ratio = log_skellam[i - 1] - log_skellam[i]
    u = (i - 0.5) / variance
    assert (ratio >= np.arcsinh(u) - 1e-12).all()
    assert (ratio <= np.arcsinh(u) + i / variance**2 + 1e-12).all()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_joint_noise_costs_as_little_as_one_partys_gaussian(epsilon: float) -> None:
    shares = shares_for("skellam", epsilon=epsilon, delta=1e-5, parties=5, **TERMS)
    central = DiscreteGaussian.calibrated(epsilon=epsilon, delta=1e-5, **TERMS)
    assert isinstance(shares, SkellamShares)
    assert shares.event.epsilon(1e-5) <= epsilon
    assert shares.sigma == pytest.approx(central.sigma, rel=3e-3)
    assert shares.guarantee.epsilon <= epsilon
    assert shares.guarantee.float_safe
    assert "1 of 5 parties" in " ".join(shares.guarantee.assumptions)


def test_a_budget_of_several_releases_holds_in_the_account() -> None:
    shares = shares_for("skellam", epsilon=1.0, delta=1e-5, parties=4, releases=6, **TERMS)
    account = Accountant(Relation("record", "replace"))
    account.compose(shares.event, 6)
    assert 0.95 < account.epsilon(1e-5) <= 1.0
    polya = shares_for("polya", epsilon=1.0, delta=0.0, parties=4, releases=4, **TERMS)
    account = Accountant(Relation("record", "replace"))
    account.compose(polya.event, 4)
    assert account.epsilon(0.0) == pytest.approx(1.0, rel=1e-3)
    assert account.epsilon(0.0) <= 1.0 + 1e-12


@settings(max_examples=30, deadline=None)
@given(st.floats(1e3, 1e12), st.floats(1, 1e4), st.integers(1, 500))
def test_the_event_is_replayed_and_consistent(variance: float, l2: float, dimension: int) -> None:
    event = SkellamEvent(variance, l2, math.sqrt(dimension) * l2, dimension, Relation("speaker", "add_remove"))
    assert event_from_json(event_to_json(event)) == event
    assert event.rdp(2.3) == event.rdp(3) <= event.rdp(4)
    assert event.delta(0.5) >= event.delta(1.0)


def test_an_event_without_a_loss_distribution_says_so() -> None:
    event = SkellamEvent(100.0, 1.0, 1.0, 1, Relation("record", "replace"))
    with pytest.raises(UnsupportedAnalysisError):
        event.pld()
    account = Accountant(Relation("record", "replace"))
    account.compose(event)
    assert account.epsilon(1e-5) < math.inf


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"parties": 1}, "parties"),
        ({"parties": 101}, "2 to 100"),
        ({"colluders": 0}, "colluders"),
        ({"colluders": 5}, "collude"),
        ({"sensitivity": 0.0}, "sensitivity"),
        ({"dimension": 0}, "dimension"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"law": "gaussian"}, "law"),
        ({"law": "polya"}, "pure"),
        ({"epsilon": 1e-9, "delta": 1e-12}, "noise"),
        ({"epsilon": 1e-3, "releases": 20}, "cannot show epsilon"),
    ],
)
def test_terms_that_protect_nobody_are_refused(change: dict[str, Any], said: str) -> None:
    terms = {"law": "skellam", "epsilon": 1.0, "delta": 1e-5, "parties": 5, **TERMS} | change
    with pytest.raises(PrivacyError, match=said):
        shares_for(terms.pop("law"), **terms)


@pytest.mark.parametrize("fields", [(1.0, 0.5, 0.5, 1), (1.0, 2.0, 1.0, 1), (0.0, 1.0, 1.0, 1), (1.0, 1.0, 1.0, 0)])
def test_events_that_cannot_be_are_refused(fields: tuple[float, float, float, int]) -> None:
    with pytest.raises(PrivacyError):
        SkellamEvent(*fields, Relation("record", "replace"))
