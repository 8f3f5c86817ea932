"""The exact samplers against their laws. Distribution tests have a false-alarm rate of 1e-6 each."""

import math
from fractions import Fraction

import gmpy2
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from ppspeech.privacy import Relation
from ppspeech.privacy.samplers import discrete
from ppspeech.privacy.samplers.discrete import (
    MARGIN,
    _alias_table,
    _sample_from,
    _Staircase,
    _staircase,
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


@pytest.mark.parametrize("sigma", [Fraction(2**30 + 1, 2**10), Fraction(10**9), Fraction(2**41 + 1), Fraction(2**54)])
def test_large_sigmas_look_gaussian(sigma: Fraction) -> None:
    drawn = sample_discrete_gaussian(sigma, 10_000)
    assert stats.kstest(drawn / float(sigma), stats.norm.cdf).pvalue > ALARM


def test_the_law_test_sees_a_wrong_scale() -> None:
    support = np.arange(-400, 401)
    assert check_pmf(sample_discrete_laplace(Fraction(10), 20_000), -np.abs(support) / 11, support) < ALARM


def test_the_law_does_not_rest_on_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where floats know nothing at all, more digits decide, and the law is the same."""
    monkeypatch.setattr(_Staircase, "log_kept", lambda _, k, step: np.full(len(k), np.nan))
    drawn = sample_discrete_gaussian(Fraction(7, 4), 3000)
    support = np.arange(-200, 201)
    assert check_pmf(drawn, -(support**2) / (2 * 1.75**2), support) > ALARM


@pytest.mark.parametrize("sigma", [Fraction(1, 3), Fraction(7, 4), Fraction(40), Fraction(2**41 + 3, 2)])
@pytest.mark.parametrize("deviations", [1, 9])
def test_a_staircase_stands_above_its_law(sigma: Fraction, deviations: int) -> None:
    """What is kept is kept with a probability, and what is proposed times that is the law, everywhere, in digits."""
    stairs = _staircase(sigma, deviations)
    last = len(stairs.weights) - 1
    with gmpy2.context(gmpy2.get_context(), precision=200):
        constants = set()
        for step in range(0, last + 1, 1 + last // 7):
            first = stairs.reach if step == last else step << stairs.shift
            for k in {first, first + (1 << stairs.shift) - 1, first + (3 * int(sigma) + 2 if step == last else 0)}:
                kept = stairs.exact_log_kept(k, step)
                assert kept <= 0
                assert float(kept) == pytest.approx(
                    float(stairs.log_kept(np.array([k]), np.array([step]))[0]), abs=MARGIN / 10
                )
                proposed = gmpy2.log(gmpy2.mpfr(int(stairs.weights[step])))
                if step == last:
                    s = gmpy2.mpq(stairs.slope.numerator, stairs.slope.denominator)
                    proposed += gmpy2.log(1 - gmpy2.exp(gmpy2.mpfr(-1 / s))) - gmpy2.mpfr((k - stairs.reach) / s)
                else:
                    proposed -= stairs.shift * gmpy2.log(gmpy2.mpfr(2))
                law = -gmpy2.mpq(k * k * sigma.denominator**2, 2 * sigma.numerator**2)
                constants.add(float(proposed + kept - gmpy2.mpfr(law)))
    assert max(constants) - min(constants) < 1e-12


@pytest.mark.parametrize("weights", [[1], [5, 0, 1], [1, 2**50, 3, 7, 2**49], [3] * 8])
def test_alias_tables_hold_their_weights_exactly(weights: list[int]) -> None:
    """What all cells together give an index is its weight, as whole numbers."""
    keep, other = _alias_table(weights)
    given = [0] * len(keep)
    for cell in range(len(keep)):
        given[cell] += int(keep[cell])
        given[other[cell]] += sum(weights) - int(keep[cell])
    assert given == [weight * len(keep) for weight in weights] + [0] * (len(keep) - len(weights))


def test_the_tail_beyond_the_stairs_follows_the_law() -> None:
    """With blocks as far as one deviation only, a third of all numbers come from the geometric proposal."""
    drawn = _sample_from(_staircase(Fraction(15), 1), 20_000)
    support = np.arange(-200, 201)
    assert check_pmf(drawn, -(support**2) / (2 * 15.0**2), support) > ALARM


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(2**55), Fraction(1, 2**53)])
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
