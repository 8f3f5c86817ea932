"""Noise for releases: bits of the operating system's generator, and the laws drawn from them.

There is no seed, no generator object and no state: every call takes fresh bytes (long ones stretched by AES-256 in
counter mode under a one-time key from the operating system), so nothing can be set, stored, printed or pickled,
and a forked process cannot repeat its parent's noise. Experiments are seeded elsewhere; releases never are.
"""

import os
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray
from torch import Tensor

DIRECT = 1024  # up to so many bytes come straight from the operating system


def random_bytes(count: int) -> bytes:
    """`count` bytes that nobody can predict or repeat."""
    if count <= DIRECT:
        return os.urandom(count)
    cipher = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()
    return cipher.update(bytes(count))


def random_words(count: int) -> NDArray[np.uint64]:
    """`count` independent uniform 64-bit words."""
    return np.frombuffer(random_bytes(8 * count), dtype=np.uint64)


def random_below(bound: int, count: int) -> NDArray[np.int64]:
    """`count` uniform whole numbers in 0..bound-1 (bound up to 2^62), exactly.

    Words modulo the bound, without those above its last whole multiple.
    """
    if not 1 <= bound <= 2**62:
        raise ValueError(f"bound must be in 1..2^62, got {bound}")
    most = np.uint64(2**64 // bound * bound - 1)
    drawn: NDArray[np.uint64] = random_words(count)
    wrong = np.flatnonzero(drawn > most)
    if wrong.size:
        drawn = drawn.copy()
    while wrong.size:
        drawn[wrong] = random_words(wrong.size)
        wrong = wrong[drawn[wrong] > most]
    return (drawn % np.uint64(bound)).astype(np.int64)


def coins(probability: float, count: int) -> NDArray[np.bool_]:
    """`count` coins, true with `probability` in [0, 1] rounded down to a multiple of 2^-64: never more often."""
    below = int(Fraction(probability) * 2**64)
    if not 0 <= below <= 2**64:
        raise ValueError(f"a probability is in [0, 1], got {probability}")
    return np.ones(count, dtype=np.bool_) if below == 2**64 else random_words(count) < np.uint64(below)


def uniform(count: int) -> NDArray[np.float64]:
    """`count` uniform numbers in (0, 1): odd multiples of 2^-53, which floats hold, so that neither end is drawn."""
    return ((random_words(count) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def exponential(count: int) -> NDArray[np.float64]:
    """`count` standard exponential numbers."""
    return -np.log(uniform(count))


def standard_normal(shape: Sequence[int], *, like: Tensor | None = None) -> Tensor:
    """Independent N(0, 1) of any shape by Box and Muller, float64 unless `like` says otherwise."""
    count = int(np.prod(shape, dtype=np.int64))
    half = (count + 1) // 2
    radius = np.sqrt(2 * exponential(half))
    angle = 2 * np.pi * uniform(half)
    drawn = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]
    return _tensor(drawn.reshape(tuple(shape)), like)


def standard_laplace(shape: Sequence[int], *, like: Tensor | None = None) -> Tensor:
    """Independent Lap(1) of any shape: the difference of two exponentials."""
    count = int(np.prod(shape, dtype=np.int64))
    drawn = exponential(count) - exponential(count)
    return _tensor(drawn.reshape(tuple(shape)), like)


def erlang(shape_parameter: int) -> float:
    """One Gamma(n, 1) number for a whole n >= 1: the sum of n exponentials."""
    if shape_parameter < 1:
        raise ValueError(f"the shape of an Erlang law must be >= 1, got {shape_parameter}")
    return float(exponential(shape_parameter).sum())


def random_order(count: int) -> NDArray[np.int64]:
    """A uniform permutation of 0..count-1, by sorting random words (equal words are drawn again)."""
    while True:
        words = random_words(count)
        if np.unique(words).size == count:
            return np.argsort(words)


def _tensor(values: NDArray[np.float64], like: Tensor | None) -> Tensor:
    drawn = torch.from_numpy(values)
    return drawn if like is None else drawn.to(dtype=like.dtype, device=like.device)
