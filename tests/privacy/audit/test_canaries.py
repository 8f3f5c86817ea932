"""One run with many canaries: two bounds from the same scores, and what membership inference counts."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from ppspeech.errors import PrivacyError
from ppspeech.privacy import Gaussian, Guarantee, Relation
from ppspeech.privacy.accounting.hockey_stick import gaussian_epsilon
from ppspeech.privacy.audit import coins, found_at, guessed, separated

STATED = Gaussian.calibrated(epsilon=1.0, delta=1e-5, sensitivity=1.0, relation=Relation("record", "add_remove"))
CANARIES = 1000


def scores(noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Of canaries that are each an axis of their own in a sum with this noise."""
    generator = np.random.default_rng(seed)
    included = generator.random(CANARIES) < 0.5
    return included + noise * generator.standard_normal(CANARIES), included


def test_half_the_noise_is_seen_by_how_far_scores_lie_apart() -> None:
    """Of twenty runs each: sound ones never refute, at 99.9 %, and half the noise nearly always does."""
    verdicts = {
        factor: [
            separated(*scores(factor * STATED.sigma, seed), name="x", stated=STATED.guarantee, confidence=0.999).verdict
            for seed in range(20)
        ]
        for factor in (1.0, 0.5)
    }
    assert verdicts[1.0].count("violated") == 0
    assert verdicts[0.5].count("violated") >= 15


def test_the_bound_is_below_the_truth_as_often_as_it_says() -> None:
    """At 90 % confidence at most a tenth of 400 bounds exceed the true epsilon, by more than luck."""
    truth = gaussian_epsilon(1e-5, 1 / 2.0)
    bounds = [
        separated(*scores(2.0, seed), name="x", stated=STATED.guarantee, confidence=0.9).eps_lower
        for seed in range(400)
    ]
    wrong = sum(bound > truth for bound in bounds)
    assert wrong <= 40 + 5 * math.sqrt(36)
    assert np.median(bounds) > truth / 2


def test_guesses_hold_with_any_scores() -> None:
    known, included = scores(0.01, 0)
    perfect = guessed(known, included, 200, name="x", stated=STATED.guarantee)
    assert (perfect.tpr, perfect.fpr, perfect.verdict) == (1.0, 0.0, "violated")
    assert perfect.eps_lower == perfect.power
    luck = guessed(np.random.default_rng(1).standard_normal(CANARIES), included, 200, name="x", stated=STATED.guarantee)
    assert luck.eps_lower == 0.0


def test_coins_are_fair_and_never_the_same() -> None:
    first, second = coins(4000), coins(4000)
    assert abs(float(first.mean()) - 0.5) < 5 * 0.5 / math.sqrt(4000)
    assert 1700 < int((first ^ second).sum()) < 2300


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((np.zeros(10), np.ones(10, bool)), "two of each"),
        ((np.zeros(10), np.arange(10) % 2 == 0), "all scores are equal"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(arguments: tuple[np.ndarray, np.ndarray], words: str) -> None:
    with pytest.raises(PrivacyError, match=words):
        separated(*arguments, name="x", stated=STATED.guarantee)
    pure = Guarantee(kind="pure", epsilon=1.0, relation=Relation("record", "add_remove"))
    with pytest.raises(PrivacyError, match="delta"):
        separated(*scores(1.0, 0), name="x", stated=pure)


def test_members_found_at_few_false_accusations() -> None:
    generator = np.random.default_rng(0)
    members, others = generator.standard_normal(200_000) + 1, generator.standard_normal(200_000)
    for rate in (0.001, 0.01):
        assert found_at(members, others, rate) == pytest.approx(norm.sf(norm.isf(rate) - 1), rel=0.1)
    assert found_at(members, others, 0.0) <= found_at(members, others, 0.001)
    with pytest.raises(PrivacyError, match="members and others"):
        found_at(members, others[:0], 0.01)
