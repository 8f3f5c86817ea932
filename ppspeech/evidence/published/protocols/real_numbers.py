"""How the paper writes real numbers as integers, with the scale that each integer is at.

Six decimal places: x is sent as round(10^6 x) (Pathak 2010, 4.2.1, "fixed precision"). A product of two such integers
is at scale 10^12, which the paper does not account for and nobody can divide out of a ciphertext. Here logarithms are
at 10^12 throughout, since the log-densities come as such products, and probabilities and weights at 10^6.
"""

import math
from collections.abc import Iterable

from ppspeech.errors import RangeError

FACTOR = 10**6
LOG_SCALE = FACTOR * FACTOR

LOG_ZERO = -1e6  # what stands for the logarithm of zero, in nats: e to it is no more than 0 at any scale used here


def encode(value: float, scale: int = FACTOR) -> int:
    """The nearest integer to scale times value.

    Raises `RangeError` for NaN or an infinity.

    >>> encode(-1.5), encode(2.0, LOG_SCALE)
    (-1500000, 2000000000000)
    """
    if not math.isfinite(value):
        raise RangeError(f"{value} cannot be encoded: values must be finite numbers")
    return round(value * scale)


def encode_log(probability: float) -> int:
    """The logarithm of a probability at `LOG_SCALE`, `LOG_ZERO` for 0; refuses negative numbers, NaN and infinity."""
    if not probability >= 0:
        raise RangeError(f"{probability} has no logarithm: probabilities are 0 or more")
    return encode(math.log(probability) if probability else LOG_ZERO, LOG_SCALE)


def decode(integers: Iterable[int], scale: int = FACTOR) -> list[float]:
    """The real numbers that integers of a scale stand for."""
    return [integer / scale for integer in integers]
