"""Exact samplers of the discrete Laplace and Gaussian laws (Canonne, Kamath and Steinke 2020), in whole numbers.

No floating-point number touches a sample. Each step of the algorithms is done for a whole vector at once, and
stays exact because its only primitive is Bernoulli(n / d) for whole n, d:

- d <= 2^62: a uniform word below d, by refusal, is compared with n;
- larger d: a uniform real number is compared with n / d one 64-bit digit at a time; digits of n / d are exact
  quotients of Python integers, and the comparison goes on (with probability 2^-64) until a digit differs.

The time taken depends on the noise drawn, not on the value it is added to.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ppspeech.privacy.samplers.randomness import random_below, random_words

WORD = 2**62
LARGEST = 2**40  # scales above this are refused, so that samples stay far inside 64 bits


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


def sample_discrete_gaussian(sigma: Fraction, count: int) -> NDArray[np.int64]:
    """`count` whole numbers with P(k) proportional to exp(-k^2 / 2 sigma^2), exactly (algorithm 3).

    Proposals are discrete Laplace of scale t = floor(sigma) + 1, kept with probability
    exp(-(|y| - sigma^2 / t)^2 / 2 sigma^2), an exponent that is formed in exact integers.
    """
    _checked(sigma)
    t = int(sigma) + 1
    a, b = (sigma**2).numerator, (sigma**2).denominator
    denominator = 2 * a * b * t * t  # (|y| - a / (b t))^2 / (2 a / b) = (|y| b t - a)^2 / denominator

    def draw(missing: int) -> NDArray[np.int64]:
        y = sample_discrete_laplace(Fraction(t), missing + missing // 2 + 16)
        return y[bernoulli_exp([(abs(k) * b * t - a) ** 2 for k in y.tolist()], denominator)]

    return until_enough(draw, count)


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
        raise ValueError(f"scale must be a positive fraction of whole numbers up to 2^40, got {scale}")
    return scale.numerator, scale.denominator
