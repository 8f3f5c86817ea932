"""Exact samplers of the infinitely divisible laws on whole numbers that noise shares are made of.

A sum of K independent shares has a law that a single party could have drawn: Poisson for Skellam noise, negative
binomial for discrete Laplace noise. Both are drawn by refusal from exact proposals, with lazy comparisons.
"""

import math
from fractions import Fraction

import gmpy2
import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ppspeech.arrays import Whole
from ppspeech.errors import PrivacyError
from ppspeech.privacy.samplers.discrete import (
    MARGIN,
    lazy_bernoulli,
    sample_discrete_laplace,
    sample_geometric,
    until_enough,
)
from ppspeech.privacy.samplers.grid import dyadic
from ppspeech.privacy.samplers.randomness import random_below, random_words

LARGEST_MEAN = 2.0**50  # whole numbers around this mean, and their distance from it, are exact in a float64
DIRECT_MEAN = 2.0**20  # up to here the plain formula of the Poisson law keeps more digits than are asked


def sample_poisson(mean: float, count: int) -> Whole:
    """`count` numbers with P(k) = e^-mean mean^k / k!.

    Proposals are discrete Laplace of scale about sqrt(mean) around floor(mean). The law is log-concave, so its ratio
    to the proposal is largest where the ratio of neighbors, mean / (k + 1), crosses e^-1/scale or e^1/scale. `mean`: in
    [0, 2^50].
    """
    if not 0 <= mean <= LARGEST_MEAN:
        raise PrivacyError(f"the mean of a Poisson law must be in [0, 2^50], got {mean}: use a coarser grid")
    if mean == 0:
        return np.zeros(count, dtype=np.int64)
    center = math.floor(mean)
    scale = dyadic(max(1.0, math.sqrt(mean)), bits=16)
    inverse = float(1 / scale)
    peaks = np.array([math.floor(mean * math.exp(sign * inverse)) + step for sign in (-1, 1) for step in (-1, 0, 1)])
    peaks = np.append(peaks[peaks >= 0], center)
    most = float((_log_ratio(peaks, mean, center) + np.abs(peaks - center) * inverse).max()) + 10 * MARGIN

    def draw(missing: int) -> Whole:
        k = center + sample_discrete_laplace(scale, missing + missing // 2 + 16)
        k = k[k >= 0]
        tilt = np.abs(k - center).astype(np.float64) * inverse

        def exact(index: int) -> object:
            value, distance = int(k[index]), Fraction(abs(int(k[index]) - center)) / scale
            log_pmf = (value - center) * gmpy2.log(gmpy2.mpfr(mean))
            log_pmf -= gmpy2.lgamma(gmpy2.mpfr(value + 1))[0] - gmpy2.lgamma(gmpy2.mpfr(center + 1))[0]
            return log_pmf + gmpy2.mpq(distance.numerator, distance.denominator) - gmpy2.mpfr(most)

        return k[lazy_bernoulli(_log_ratio(k, mean, center) + tilt - most, exact)]

    return until_enough(draw, count)


def _log_ratio(k: Whole, mean: float, center: int) -> NDArray[np.float64]:
    """ln P(k) / P(center) of the Poisson law; NaN where floating point does not know it."""
    if mean <= DIRECT_MEAN:
        ratio: NDArray[np.float64] = (k - center) * math.log(mean) - gammaln(k + 1.0) + gammaln(center + 1.0)
        return ratio
    # Loader's saddle-point form: deviance, half a logarithm, and the difference of Stirling's corrections.
    d = np.where(k > center // 2, (k - mean) / mean, np.nan)
    here = (center - mean) / mean
    deviance = mean * ((1 + d) * np.log1p(d) - d) - mean * ((1 + here) * math.log1p(here) - here)
    rest = 0.5 * (np.log1p(d) - math.log1p(here)) + (1 / np.maximum(k, 1) - 1 / center) / 12
    return np.asarray(-deviance - rest, dtype=np.float64)


def sample_negative_binomial(shape: float, scale: Fraction, count: int) -> Whole:
    """`count` numbers whose 1 / shape-fold sum is geometric, P(k) proportional to e^(-k / scale).

    A Poisson number of logarithmic ones, P(k) proportional to e^(-k / scale) / k, k >= 1. The Poisson mean is rounded
    up, which adds an independent part to the noise and takes nothing away. `shape`: in (0, 1]; `scale`: >= 1.
    """
    if not 0 < shape <= 1 or scale < 1:
        raise PrivacyError(f"shape must be in (0, 1] and scale >= 1, got {shape} and {scale}")
    mean = math.nextafter(shape * -math.log(-math.expm1(-1 / float(scale))) * (1 + 1e-12), math.inf)
    terms = sample_poisson(mean, count)
    drawn = _sample_logarithmic(scale, int(terms.sum()))
    total = np.zeros(count, dtype=np.int64)
    np.add.at(total, np.repeat(np.arange(count), terms), drawn)
    return total


def _sample_logarithmic(scale: Fraction, count: int) -> Whole:
    """`count` numbers with P(k) proportional to e^(-k / scale) / k, k >= 1.

    Blocks [2^j, 2^(j+1)) below the scale are proposed evenly, with k even inside; what lies beyond is proposed twice
    as often, as 2^J plus a geometric number. Every slot then holds at most a mass of 1, and the refusals are exact.
    """
    blocks = max(1, math.ceil(math.log2(float(scale))))
    end = 1 << blocks
    inverse = float(1 / scale)
    # The envelope of the last slots is 2 (1 - q) q^(k - end): the ratio is q^end / (2 k (1 - q)), at most 1.
    beyond = -end * inverse - math.log(2) - math.log(-math.expm1(-inverse))

    def draw(missing: int) -> Whole:
        block = random_below(blocks + 2, 2 * missing + 16)
        is_tail = block >= blocks
        start = np.where(is_tail, end, np.left_shift(1, np.minimum(block, blocks - 1)))
        k = start.copy()
        inside = np.flatnonzero(~is_tail)
        k[inside] += (random_words(inside.size) & (start[inside] - 1).astype(np.uint64)).astype(np.int64)
        k[is_tail] += sample_geometric(scale, int(is_tail.sum()))

        def exact(index: int) -> object:
            slope = gmpy2.mpq(scale.denominator, scale.numerator)
            log_k = gmpy2.log(gmpy2.mpfr(int(k[index])))
            if is_tail[index]:
                return -end * slope - gmpy2.log(2 * (1 - gmpy2.exp(gmpy2.mpfr(-slope)))) - log_k
            return -int(k[index]) * slope + gmpy2.log(gmpy2.mpfr(int(start[index]))) - log_k

        log_p = np.where(is_tail, beyond, -k * inverse + np.log(start)) - np.log(k)
        kept: Whole = k[lazy_bernoulli(log_p, exact)]
        return kept

    return until_enough(draw, count)
