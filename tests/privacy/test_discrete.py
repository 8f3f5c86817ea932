"""The exact samplers against their laws. Distribution tests have a false-alarm rate of 1e-6 each."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from ppspeech.privacy import Relation
from ppspeech.privacy.samplers import discrete
from ppspeech.privacy.samplers.discrete import (
    bernoulli,
    bernoulli_exp,
    bernoulli_exp_fraction,
    sample_discrete_gaussian,
    sample_discrete_laplace,
)

ALARM = 1e-6


def check_pmf(drawn: NDArray[np.int64], log_weight: NDArray[np.float64], support: NDArray[np.int64]) -> float:
    """p-value of a chi-square test, cells with fewer than 10 expected merged into the ends."""
    mass = np.exp(log_weight) / np.exp(log_weight).sum()
    expected = mass * len(drawn)
    inner = expected >= 10
    low, high = support[inner].min(), support[inner].max()
    counts = np.bincount(np.clip(drawn, low, high) - low, minlength=high - low + 1)
    wanted = expected[inner].copy()
    wanted[0] += expected[support < low].sum()
    wanted[-1] += expected[support > high].sum()
    return float(stats.chisquare(counts, wanted * counts.sum() / wanted.sum()).pvalue)


@pytest.mark.parametrize("big", [False, True])
def test_bernoulli_by_words_and_by_digits(big: bool) -> None:
    scale = 10**30 if big else 1
    numerators = [3 * scale] * 40_000
    won = bernoulli(numerators if big else np.array(numerators), 10 * scale)
    assert stats.binomtest(int(won.sum()), 40_000, 0.3).pvalue > ALARM
    assert bernoulli([scale, 0], scale).tolist() == [True, False]


def test_digits_that_agree_are_followed_by_the_next_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """1/3 in base 2^64 is 0x5555... for ever: one equal digit, then a smaller or a larger one."""
    third = (2**64 - 1) // 3
    for last, won in ((third - 1, True), (third + 1, False)):
        words = iter([[third], [third], [last]])
        monkeypatch.setattr(discrete, "random_words", lambda _, w=words: np.array(next(w), dtype=np.uint64))
        assert bernoulli([1], 3).tolist() == [won]


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (1, 1), (1, 3), (10**25, 10**26)])
def test_bernoulli_exp_below_one(numerator: int, denominator: int) -> None:
    won = bernoulli_exp_fraction([numerator] * 20_000, denominator)
    assert stats.binomtest(int(won.sum()), 20_000, math.exp(-numerator / denominator)).pvalue > ALARM


def test_bernoulli_exp_above_one() -> None:
    won = bernoulli_exp([5] * 20_000 + [0] * 10 + [10**6] * 10, 2)
    assert stats.binomtest(int(won[:20_000].sum()), 20_000, math.exp(-2.5)).pvalue > ALARM
    assert won[20_000:20_010].all()
    assert not won[20_010:].any()
    assert bernoulli_exp([], 1).size == 0


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(20)])
def test_discrete_laplace_law(scale: Fraction) -> None:
    drawn = sample_discrete_laplace(scale, 20_000)
    support = np.arange(-400, 401)
    assert check_pmf(drawn, -np.abs(support) / float(scale), support) > ALARM


@pytest.mark.parametrize("sigma", [Fraction(1, 3), Fraction(1), Fraction(7, 4), Fraction(15)])
def test_discrete_gaussian_law(sigma: Fraction) -> None:
    drawn = sample_discrete_gaussian(sigma, 20_000)
    support = np.arange(-200, 201)
    assert check_pmf(drawn, -(support**2) / (2 * float(sigma) ** 2), support) > ALARM


@pytest.mark.parametrize("sigma", [Fraction(2**30 + 1, 2**10), Fraction(10**9)])
def test_large_sigmas_look_gaussian(sigma: Fraction) -> None:
    drawn = sample_discrete_gaussian(sigma, 10_000)
    assert stats.kstest(drawn / float(sigma), stats.norm.cdf).pvalue > ALARM


def test_the_law_test_sees_a_wrong_scale() -> None:
    support = np.arange(-400, 401)
    assert check_pmf(sample_discrete_laplace(Fraction(10), 20_000), -np.abs(support) / 11, support) < ALARM


def test_no_float_is_involved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sampler works where numpy has no exp, log or square root."""
    for name in ("exp", "log", "sqrt"):
        monkeypatch.setattr(np, name, None)
    assert sample_discrete_gaussian(Fraction(5, 3), 100).dtype == np.int64


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(2**41), Fraction(1, 2**41)])
def test_bad_scales_are_refused(scale: Fraction) -> None:
    with pytest.raises(ValueError, match="scale"):
        sample_discrete_laplace(scale, 1)
    with pytest.raises(ValueError, match="scale"):
        sample_discrete_gaussian(scale, 1)


def test_none_wanted_none_drawn() -> None:
    assert sample_discrete_laplace(Fraction(1), 0).size == 0
    assert sample_discrete_gaussian(Fraction(1), 0).size == 0


def test_pmf_ratio_is_at_most_e_to_epsilon_exactly() -> None:
    """P(k) / P(k - s1) = exp((|k - s1| - |k|) / t) and the exponent, a fraction, never exceeds s1 / t <= epsilon."""
    from ppspeech.privacy import DiscreteLaplace

    for epsilon in (0.1, 1.0, 3.0):
        for whole in (True, False):
            mechanism = DiscreteLaplace(
                epsilon=epsilon,
                sensitivity=3.0,
                dimension=2,
                relation=Relation("record", "add_remove"),
                integer_valued=whole,
            )
            s1, t = int(mechanism.grid.sensitivity), mechanism.scale
            for k in (-5 * s1, -1, 0, 1, s1 // 2, s1, 7 * s1):
                for split in (0, 1, s1 // 2, s1):
                    loss = Fraction(abs(k - split) - abs(k) + abs(-k - (s1 - split)) - abs(-k)) / t
                    assert abs(loss) <= Fraction(s1) / t <= Fraction(epsilon)
