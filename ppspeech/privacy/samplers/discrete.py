"""Exact samplers of the discrete Laplace and Gaussian laws on whole numbers (Canonne, Kamath and Steinke 2020).

What is sampled has the law to the last bit: floating point decides a comparison only where its error cannot matter, and
whole numbers, or more digits, decide the rest. The primitives work on whole vectors at once:

- Bernoulli(n / d) for whole n and d <= 2^62: a uniform number below d is compared with n; for larger d, one 64-bit
  digit at a time, where digits of n / d are exact quotients of Python integers, until a digit differs;
- Bernoulli(p) for a real p (`lazy_bernoulli`): 64 bits of a uniform number against a float, more bits of both where
  these are too close.

The time taken depends on the noise drawn, not on the value it is added to. Proposition 1.11 in docs/theory/release.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

from ppspeech.privacy.samplers.grid import dyadic
from ppspeech.privacy.samplers.randomness import random_below, random_bytes, random_words

WORD = 2**62
LARGEST = 2**52  # scales above this are refused, so that samples stay inside 64 bits
MARGIN = 1e-5  # more than the error of any logarithm here or of the divisible laws, in floating point
MORE = 256  # bits at a time, where 64 do not decide
HEIGHT = 2**50  # of a staircase's first step, so that weights add up to less than 2^62
PIECE = 2**18


def bernoulli(numerators: NDArray[np.int64] | list[int], denominator: int) -> NDArray[np.bool_]:
    """True with probability exactly numerators[i] / denominator, of any size: as Python integers beyond 64 bits."""
    if isinstance(numerators, np.ndarray) and denominator <= WORD:
        return random_below(denominator, len(numerators)) < numerators
    rest = [int(numerator) for numerator in numerators]
    words = random_words(len(rest))
    won = np.empty(len(rest), dtype=np.bool_)
    for index, word in enumerate(words.tolist()):
        digit, left = divmod(rest[index] << 64, denominator)
        while word == digit:  # the digits agree: look at the next ones
            word = int(random_words(1)[0])
            digit, left = divmod(left << 64, denominator)
        won[index] = word < digit
    return won


def until_enough(draw: Callable[[int], NDArray[np.int64]], count: int) -> NDArray[np.int64]:
    """`count` numbers from a sampler by refusal: `draw(missing)` gives as many as happened to be kept."""
    found = [np.zeros(0, dtype=np.int64)]
    missing = count
    while missing > 0:
        found.append(draw(missing)[:missing])
        missing -= found[-1].size
    return np.concatenate(found)


def bernoulli_exp_fraction(numerators: NDArray[np.int64] | list[int], denominator: int) -> NDArray[np.bool_]:
    """True with probability exactly exp(-numerators[i] / denominator), each ratio in [0, 1].

    Draws Bernoulli(gamma / k) for k = 1, 2, ... until the first failure; true if that k is odd.
    """
    big = not isinstance(numerators, np.ndarray) or denominator > WORD >> 8
    values: NDArray[np.int64] | list[int] = [int(n) for n in numerators] if big else numerators
    alive = np.arange(len(numerators))
    odd = np.zeros(len(numerators), dtype=np.bool_)
    k = 1
    while alive.size:
        left = [values[i] for i in alive] if isinstance(values, list) else values[alive]
        won = bernoulli(left, denominator * k)
        odd[alive[~won]] = k % 2 == 1
        alive = alive[won]
        k += 1
    return odd


def bernoulli_exp(numerators: list[int], denominator: int) -> NDArray[np.bool_]:
    """True with probability exactly exp(-numerators[i] / denominator), for any ratios >= 0."""
    whole, part = zip(*(divmod(n, denominator) for n in numerators), strict=True) if numerators else ((), ())
    kept: NDArray[np.bool_] = bernoulli_exp_fraction(list(part), denominator)
    # exp(-m) is m independent wins of exp(-1); stop at the first loss.
    remaining = np.array([min(m, 2**31) for m in whole], dtype=np.int64)
    alive = np.flatnonzero(kept & (remaining > 0))
    while alive.size:
        won = bernoulli_exp_fraction(np.ones(alive.size, dtype=np.int64), 1)
        kept[alive[~won]] = False
        alive = alive[won]
        remaining[alive] -= 1
        alive = alive[remaining[alive] > 0]
    return kept


def sample_discrete_laplace(scale: Fraction, count: int) -> NDArray[np.int64]:
    """`count` whole numbers with P(k) proportional to exp(-|k| / scale), exactly (algorithm 2).

    With scale t / s: U uniform below t kept with exp(-U/t), V the number of wins of exp(-1), and
    (U + t V) // s is geometric; a random sign, with minus zero refused, makes it two-sided.
    """
    t, s = _checked(scale)

    def draw(missing: int) -> NDArray[np.int64]:
        tries = missing + missing // 2 + 16
        u = random_below(t, 2 * tries)
        u = u[bernoulli_exp_fraction(u, t)][:tries]
        magnitude = (u + t * _wins_of_exp(u.size)) // s
        negative = random_below(2, u.size) == 1
        drawn: NDArray[np.int64] = np.where(negative, -magnitude, magnitude)[~(negative & (magnitude == 0))]
        return drawn

    return until_enough(draw, count)


def sample_geometric(scale: Fraction, count: int) -> NDArray[np.int64]:
    """`count` numbers with P(k) proportional to e^(-k / scale), k >= 0: a discrete Laplace number without its sign.

    P(|x| = 0) is half of what it must be, beside P(|x| = k): so 0 is taken always, and others every second time.
    """

    def draw(missing: int) -> NDArray[np.int64]:
        drawn = np.abs(sample_discrete_laplace(scale, 2 * missing + 16))
        kept: NDArray[np.int64] = drawn[(drawn == 0) | bernoulli(np.ones(drawn.size, dtype=np.int64), 2)]
        return kept

    return until_enough(draw, count)


def lazy_bernoulli(log_p: NDArray[np.float64], exact: Callable[[int], Any]) -> NDArray[np.bool_]:
    """Independent draws that are true with probability p exactly, where floats know p nearly.

    U < p is decided by 64 bits of a uniform U and a float, unless they are too close for that; then U gets more bits
    and p more digits, until they differ. `log_p`: ln p <= 0, `(count,)`, right within `MARGIN`; NaN where it is not
    known; `exact`: from an index to ln p as gmpy2 knows it, in a context of enough bits.
    """
    words = random_words(len(log_p))
    low = words.astype(np.float64) * 2.0**-64  # rounded by less than 2^-53, far inside the margin
    p = np.exp(np.minimum(log_p, 0.0))
    won = low < p
    for index in np.flatnonzero(~(np.abs(low - p) > MARGIN * p + 2.0**-50)).tolist():  # NaN is undecided too
        drawn, bits, decided = int(words[index]), 64, False
        while not decided:
            drawn, bits = drawn << MORE | int.from_bytes(random_bytes(MORE // 8), "big"), bits + MORE
            with gmpy2.context(gmpy2.get_context(), precision=bits + 64):
                excess = gmpy2.exp(gmpy2.mpfr(exact(index))) * gmpy2.mpfr(2) ** bits - drawn
                # U 2^bits lies in [drawn, drawn + 1), and all rounding above is far below 1
                won[index], decided = excess > 0, not -1 <= excess <= 2
    return won


def sample_discrete_gaussian(sigma: Fraction, count: int) -> NDArray[np.int64]:
    """`count` whole numbers with P(k) proportional to exp(-k^2 / 2 sigma^2), exactly; sigma up to 2^54.

    By refusal from a staircase: |k| lies in a block of equal width with a whole weight, evenly inside, and is kept with
    the ratio of the law to the staircase, a lazy comparison; beyond the last block, from a geometric law.
    """
    drawn = [_sample_from(_staircase(sigma), size) for size in _pieces(count)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *drawn])


@dataclass(frozen=True)
class _Staircase:
    """Whole weights of the blocks of |k|, of 2^shift numbers each, and last of the tail from `reach` on.

    Block b has weight w_b >= HEIGHT rho(its first number), with rho(k) = exp(-k^2 / 2 sigma^2), so that k is kept with
    HEIGHT rho(k) / w_b. The tail's law is geometric of scale s, P(k) = (1 - e^(-1/s)) e^(-(k - reach)/s), and k is kept
    with HEIGHT rho(k) / (2^shift w_tail P(k)), at most 1 because s >= sigma^2 / reach. `keep` and `other` are Walker's
    alias table of the weights, in whole numbers: of 2^bits cells, each as heavy as all weights together over 2^bits.
    """

    sigma: Fraction
    shift: int
    weights: NDArray[np.int64]
    slope: Fraction
    keep: NDArray[np.int64]
    other: NDArray[np.int64]

    @property
    def reach(self) -> int:
        return (len(self.weights) - 1) << self.shift

    @cached_property
    def total(self) -> int:
        return int(self.weights.sum())

    @cached_property
    def log_weights(self) -> NDArray[np.float64]:
        found: NDArray[np.float64] = np.log(self.weights / HEIGHT)
        return found

    def log_kept(self, k: NDArray[np.int64], step: NDArray[np.int64]) -> NDArray[np.float64]:
        """ln of the probability that |k| in block `step` is kept, by floats."""
        found: NDArray[np.float64] = k * np.float64(1 / float(self.sigma))
        found *= found
        found *= -0.5
        found -= self.log_weights[step]
        tail = step == len(self.weights) - 1
        if tail.any():
            s = float(self.slope)
            found[tail] += (k[tail] - self.reach) / s - math.log(-math.expm1(-1 / s)) - self.shift * math.log(2)
        return found

    def exact_log_kept(self, k: int, step: int) -> Any:
        """The same in gmpy2's current precision."""
        square = 2 * self.sigma**2
        found = gmpy2.log(gmpy2.mpfr(gmpy2.mpq(HEIGHT, int(self.weights[step]))))
        found -= gmpy2.mpfr(gmpy2.mpq(k * k * square.denominator, square.numerator))
        if step == len(self.weights) - 1:
            s = gmpy2.mpq(self.slope.numerator, self.slope.denominator)
            found += gmpy2.mpfr((k - self.reach) / s) - gmpy2.log(-gmpy2.expm1(gmpy2.mpfr(-1 / s)))
            found -= self.shift * gmpy2.log(gmpy2.mpfr(2))
        return found


@lru_cache(maxsize=64)
def _staircase(sigma: Fraction, deviations: int = 9) -> _Staircase:
    """Blocks of at most a sixteenth of sigma, as far as so many deviations; beyond 9 there is a mass of 2^-60."""
    if not 0 < sigma <= 4 * LARGEST or sigma.denominator > LARGEST:
        raise ValueError(f"the scale sigma must be in (0, 2^54] with a denominator up to 2^52, got {sigma}")
    shift = max(0, int(sigma / 16).bit_length() - 1)
    starts = np.arange(max(1, math.ceil(deviations * sigma / 2**shift)), dtype=np.int64) << shift
    reach = len(starts) << shift
    slope = dyadic(float(sigma**2 / reach) * (1 + 2.0**-40), bits=16)
    # Floats know these to 2^-45, so that a hair more, and 1, is never below.
    law = np.exp(-0.5 * (np.append(starts, reach).astype(np.float64) / float(sigma)) ** 2)
    law[-1] /= 2.0**shift * -math.expm1(-1 / float(slope))
    weights = (law * (HEIGHT * (1 + 2.0**-40))).astype(np.int64) + 1
    return _Staircase(sigma, shift, weights, slope, *_alias_table(weights.tolist()))


def _alias_table(weights: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each of 2^bits cells, how much of it is its own index (of `sum(weights)`), and whose the rest is; exactly."""
    cells = 1 << (len(weights) - 1).bit_length()
    total = sum(weights)
    left = [weight * cells for weight in weights] + [0] * (cells - len(weights))
    keep, other = [total] * cells, list(range(cells))
    small = [cell for cell in range(cells) if left[cell] < total]
    large = [cell for cell in range(cells) if left[cell] > total]
    while small:
        cell, rich = small.pop(), large[-1]
        keep[cell], other[cell] = left[cell], rich
        left[rich] -= total - left[cell]
        if left[rich] <= total:
            large.pop()
            if left[rich] < total:
                small.append(rich)
    return np.array(keep, dtype=np.int64), np.array(other, dtype=np.int64)


def _sample_from(stairs: _Staircase, count: int) -> NDArray[np.int64]:
    last, cells = len(stairs.weights) - 1, len(stairs.keep)
    inside, sign = np.uint64((1 << stairs.shift) - 1), np.uint64(63)

    def draw(missing: int) -> NDArray[np.int64]:
        tries = missing + missing // 16 + 16
        words, places = random_words(tries), random_words(tries)
        cell = (places & np.uint64(cells - 1)).astype(np.int64)
        step = np.where(random_below(stairs.total, tries) < stairs.keep[cell], cell, stairs.other[cell])
        k = (step << stairs.shift) + (words & inside).astype(np.int64)
        tail = np.flatnonzero(step == last)
        if tail.size:
            k[tail] = stairs.reach + sample_geometric(stairs.slope, tail.size)
        negative = (words >> sign).astype(np.bool_)
        kept = lazy_bernoulli(stairs.log_kept(k, step), lambda i: stairs.exact_log_kept(int(k[i]), int(step[i])))
        kept &= ~(negative & (k == 0))  # zero has one sign
        drawn: NDArray[np.int64] = np.where(negative, -k, k)[kept]
        return drawn

    return until_enough(draw, count)


def _pieces(count: int) -> list[int]:
    """So many at a time that long vectors take no more memory than their own."""
    return [min(PIECE, count - start) for start in range(0, count, PIECE)]


def _wins_of_exp(count: int) -> NDArray[np.int64]:
    """How often exp(-1) wins before it first loses: geometric."""
    wins = np.zeros(count, dtype=np.int64)
    alive = np.arange(count)
    while alive.size:
        alive = alive[bernoulli_exp_fraction(np.ones(alive.size, dtype=np.int64), 1)]
        wins[alive] += 1
    return wins


def _checked(scale: Fraction) -> tuple[int, int]:
    if scale <= 0 or scale.numerator > LARGEST or scale.denominator > LARGEST:
        raise ValueError(f"scale must be a positive fraction of whole numbers up to 2^52, got {scale}")
    return scale.numerator, scale.denominator
