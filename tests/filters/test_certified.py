"""Bounds on naming, against the best attacker there is on laws where that is known."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm
from torch import nn

from ppspeech.errors import PrivacyError
from ppspeech.filters import CodeNoise, FeatureNoise, LinearFilter, NamingTarget, NoisyFilter, learn_codes
from ppspeech.filters.certified import (
    named_by_codes,
    named_by_profile,
    named_by_pure,
    named_in_ball,
    no_bound,
)
from ppspeech.privacy import gaussian_delta, gaussian_epsilon


def best_on_simplex(people: int, apart: float) -> float:
    """The Bayes attacker's rate where people are the corners of a simplex, `apart` deviations from its center: corners
    are unit vectors, scaled by sqrt(S / (S - 1)), less their mean, which tells nothing.
    """
    shift = apart * math.sqrt(people / (people - 1))
    return float(quad(lambda z: norm.pdf(z) * norm.cdf(z + shift) ** (people - 1), -9, 9 + shift)[0])


@pytest.mark.parametrize("people", [2, 3, 10, 60])
@pytest.mark.parametrize("clips", [1, 10])
@pytest.mark.parametrize("ratio", [0.05, 0.25, 1.0])
def test_no_attacker_beats_the_bound_on_a_ball_and_the_best_comes_close(people: int, clips: int, ratio: float) -> None:
    """Each person says the same vector in every clip, which the attacker knows: their mean has sigma / sqrt(T)."""
    bound, best = named_in_ball(people, clips, ratio, 1.0), best_on_simplex(people, math.sqrt(clips) * ratio)
    assert best <= bound + 1e-9
    assert best - 1 / people >= 0.6 * (bound - 1 / people)
    if people == 2:
        assert best == pytest.approx(bound, abs=1e-9)


def best_on_codes(known: np.ndarray, epsilon: float, codes: int) -> float:
    """The Bayes attacker's rate on randomized response, by going through everything that can be told of T clips."""
    people, clips = known.shape
    own = math.exp(epsilon) / (math.exp(epsilon) + codes - 1)
    total = 0.0
    for told in itertools.product(range(codes), repeat=clips):
        right = (known == np.array(told)).sum(1)
        total += float((own**right * (own * math.exp(-epsilon)) ** (clips - right)).max())
    return total / people


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_no_attacker_beats_the_bound_on_codes_and_the_best_attains_it(epsilon: float) -> None:
    every = np.array(list(itertools.product(range(3), repeat=4)))
    assert best_on_codes(every, epsilon, 3) == pytest.approx(named_by_codes(epsilon, 3, 81, 4))
    generator = np.random.default_rng(0)
    for people in (2, 5, 20):
        known = generator.integers(3, size=(people, 4))
        assert best_on_codes(known, epsilon, 3) <= named_by_codes(epsilon, 3, people, 4) + 1e-12


def test_two_coins_are_the_worst_of_pure_noise() -> None:
    """Two people who say opposite bits T times; and two at the ends of an interval, with Laplace noise: the one in the
    middle is half as far from either as they are apart.
    """
    assert best_on_codes(np.array([[0] * 5, [1] * 5]), 1.0, 2) <= named_by_pure(1.0, 2, 5)
    assert named_by_pure(1.0, 2, 1) == pytest.approx(1 - 1 / (2 * math.e))
    assert named_by_pure(1e-9, 60, 10) == pytest.approx(1 / 60, abs=1e-6)
    noise, runs = FeatureNoise(bound=1.0, epsilon=1.0), 20_000
    who = 2.0 * torch.randint(2, (runs, 1), generator=torch.Generator().manual_seed(0)) - 1
    right = float((noise.release(who).value.sign() == who).double().mean())
    margin = 5 * math.sqrt(0.25 / runs)
    assert abs(right - noise.naming(2, 1).value) < margin  # never above, and no slack


@pytest.mark.parametrize("people", [2, 5, 60])
@pytest.mark.parametrize("apart", [0.1, 0.8, 3.0])
def test_a_profile_and_its_closed_form_agree(people: int, apart: float) -> None:
    by_profile = named_by_profile(lambda epsilon: gaussian_delta(epsilon, apart), people)
    assert by_profile == pytest.approx(named_in_ball(people, 1, apart, 1.0), abs=1e-6)


@pytest.mark.parametrize("clips", [1, 10])
def test_released_vectors_name_people_no_more_often_than_is_stated(clips: int) -> None:
    """The best attacker on what is really released: two people at the ends of the ball, told by the sign of the sum."""
    noise = FeatureNoise(bound=1.0, epsilon=gaussian_epsilon(1e-6, 2 * 0.25), delta=1e-6, law="gaussian")
    stated, runs = noise.naming(2, clips), 20_000
    who = torch.randint(2, (runs,), generator=torch.Generator().manual_seed(0))
    said = (1e3 * (2.0 * who - 1)).reshape(-1, 1, 1).expand(runs, clips, 1)
    right = float(((noise.release(said).value.sum((1, 2)) > 0) == (who == 1)).double().mean())
    margin = 5 * math.sqrt(0.25 / runs)
    assert (stated.kind, stated.clips) == ("gaussian", clips)
    assert stated.value == pytest.approx(named_in_ball(2, clips, 0.25, 1.0), abs=1e-4)
    assert abs(right - stated.value) < margin  # never above, and no slack


def test_released_codes_name_people_no_more_often_than_is_stated() -> None:
    codes, runs = torch.eye(3), 20_000
    noise = CodeNoise(codes=codes, epsilon=1.5)
    who = torch.randint(9, (runs,), generator=torch.Generator().manual_seed(0))
    told = noise.release(codes[torch.stack([who // 3, who % 3], dim=1)]).value.argmax(-1)
    right = float((3 * told[:, 0] + told[:, 1] == who).double().mean())
    assert abs(right - noise.naming(9, 2).value) < 5 * math.sqrt(0.25 / runs)


@pytest.mark.parametrize("target", [NamingTarget(0.10, 60, 10), NamingTarget(0.6, 2, 1), NamingTarget(0.05, 30, 100)])
def test_noise_is_chosen_for_a_target_and_hardly_more(target: NamingTarget) -> None:
    in_ball = FeatureNoise.for_naming(target, bound=3.0).naming(target.people, target.clips).value
    on_codes = CodeNoise.for_naming(target, codes=torch.eye(10)).naming(target.people, target.clips).value
    for value in (in_ball, on_codes):
        assert 0.99 * target.at_most <= value <= target.at_most


def test_without_noise_nothing_is_certain_but_what_can_be_counted() -> None:
    bare = NoisyFilter(LinearFilter(4, 2), None).naming(60, 10)
    assert (bare.kind, bare.value) == ("none", 1.0)
    assert "nothing is certain" in str(bare)
    codes = NoisyFilter(learn_codes(torch.randn(40, 4), torch.arange(40) % 10, epochs=1), None)
    assert (codes.naming(60, 1).kind, codes.naming(60, 1).value) == ("counted", pytest.approx(1 / 6))
    assert (codes.naming(60, 10).kind, codes.naming(60, 10).value) == ("none", 1.0)
    assert "from 1 clip more often than 0.167" in str(codes.naming(60, 1))
    assert "from 10 clips: no noise" in str(codes.naming(60, 10))
    assert no_bound(60, 1, 60).kind == "none"
    laplace = NoisyFilter(nn.Identity(), FeatureNoise(bound=1.0, epsilon=0.2)).naming(60, 10)
    assert (laplace.kind, laplace.value) == ("pure", pytest.approx(named_by_pure(0.1, 60, 10)))
    assert "0.0" in str(laplace)


@pytest.mark.parametrize("wrong", [(0.01, 60, 10), (1.0, 60, 10), (0.1, 60, 0), (0.5, 0, 1)])
def test_targets_that_cannot_be_are_refused(wrong: tuple[float, int, int]) -> None:
    with pytest.raises(PrivacyError):
        NamingTarget(*wrong)
