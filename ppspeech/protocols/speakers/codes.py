"""Voices as signs: a direction becomes a code of as many bits as are asked for, and no code is longer than another.

    code(φ) = the signs of the first numbers of R φ,      R = H D_3 H D_2 H D_1

H is the Walsh-Hadamard transform of the next power of two, each D_i turns numbers by public random signs: a rotation
that looks random and takes no room (Andoni et al. 2015). The codes of two voices agree in a part 1 - ω / π of their
bits, up to chance, where ω is the angle between them (Charikar 2002). So a number of bits that agree stands for a
cosine; whatever bits somebody makes up, they are as good a code as any, of the same length.
"""

import hashlib
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals
from ppspeech.errors import RangeError

TURNS = 3
AT_A_TIME = 512  # vectors, so that thousands of templates take little memory

Code = NDArray[np.bool_]


def voice_codes(vectors: Reals, bits: int) -> Code:
    """The codes of vectors `(count, features)`, whatever their lengths: `(count, bits)`.

    Raises RangeError for numbers that are not finite, or a vector without direction.
    """
    given = np.asarray(vectors, np.float64)
    if not np.isfinite(given).all() or not given.any(axis=1).all():
        raise RangeError("a voice is a vector of finite numbers, not all of them 0")
    codes = np.empty((len(given), bits), np.bool_)
    for start in range(0, len(given), AT_A_TIME):
        codes[start : start + AT_A_TIME] = _turned(given[start : start + AT_A_TIME], bits)[:, :bits] >= 0
    return codes


def cosines_of(agreeing: NDArray[Any], bits: int) -> Reals:
    """What numbers of agreeing bits stand for."""
    found: Reals = -np.cos(np.pi * np.asarray(agreeing) / bits)
    return found


def least_agreeing(cosines: Reals, bits: int) -> NDArray[np.int64]:
    """The fewest bits, 1 to all, that must agree for at least these cosines. Raises RangeError beyond ±1."""
    asked = np.asarray(cosines, np.float64)
    if not (np.abs(asked) <= 1).all():
        raise RangeError(f"cosines lie within ±1, got {asked[~(np.abs(asked) <= 1)][0]}")
    return np.clip(np.ceil(bits * (1 - np.arccos(asked) / np.pi) - 1e-9), 1, bits).astype(np.int64)


def _turned(vectors: Reals, bits: int) -> Reals:
    size = max(bits, 1 << (vectors.shape[1] - 1).bit_length())
    rows = 1 << (size.bit_length() // 2)
    left, right = _hadamard(rows), _hadamard(size // rows)  # whose Kronecker product is H
    turned: Reals = np.zeros((len(vectors), size))
    turned[:, : vectors.shape[1]] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for signs in _signs(size):
        turned = (left @ (turned * signs).reshape(-1, rows, size // rows) @ right).reshape(-1, size)
    return turned


@lru_cache(maxsize=8)
def _hadamard(size: int) -> Reals:
    """Sylvester's matrix of ±1, of a power of two; a client that has no scipy needs it too."""
    found: Reals = np.ones((1, 1))
    while len(found) < size:
        found = np.block([[found, found], [found, -found]])
    return found


@lru_cache(maxsize=8)
def _signs(size: int) -> Reals:
    """The same for everybody, `(turns, size)`."""
    drawn = hashlib.shake_256(f"ppspeech voice codes of {size}".encode()).digest(TURNS * size // 8)
    return np.unpackbits(np.frombuffer(drawn, np.uint8)).reshape(TURNS, size) * 2.0 - 1.0
