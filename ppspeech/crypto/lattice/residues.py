"""Rounding between residues mod q and words mod 2^32: the change of modulus that makes replies short."""

import numba
import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto.lattice.ntt import high_residue
from ppspeech.crypto.lattice.parameters import KEPT_BITS, LatticeParameters


@numba.njit(nogil=True, cache=True)
def _to_residues(residues: Residues, words: Residues, reciprocal: np.uint64, shift: np.uint64) -> None:
    half = np.uint64(1) << (shift - np.uint64(1))
    for i in range(residues.size):
        words[i] = ((high_residue(residues[i], reciprocal) + half) >> shift) & np.uint64(0xFFFFFFFF)


@numba.njit(nogil=True, cache=True)
def _from_residues(words: Residues, residues: Residues, prime: np.uint64) -> None:
    low, high = prime & np.uint64(0xFFFFFFFF), prime >> np.uint64(32)
    for i in range(words.size):
        value = words[i] * high + ((words[i] * low + np.uint64(1 << 31)) >> np.uint64(32))
        residues[i] = value - prime if value >= prime else value


def to_residues(residues: Residues, parameters: LatticeParameters) -> Residues:
    """round(x 2^32 / q) mod 2^32: off by at most 1/2 + 2^-30.

    >>> ring = LatticeParameters()
    >>> to_residues(np.array([0, ring.prime // 2, ring.prime - 1], np.uint64), ring).tolist()
    [0, 2147483648, 0]
    """
    bits = parameters.prime_bits
    reciprocal = (1 << (63 + bits)) // parameters.prime  # below 2^64 since q > 2^(bits - 1)
    flat = np.ascontiguousarray(residues).reshape(-1)
    words = np.empty_like(flat)
    _to_residues(flat, words, np.uint64(reciprocal), np.uint64(bits - 1 - KEPT_BITS))
    return words.reshape(residues.shape)


def from_residues(words: Residues, parameters: LatticeParameters) -> Residues:
    """round(x q / 2^32) mod q: off by at most 1/2."""
    flat = np.ascontiguousarray(words).reshape(-1)
    residues = np.empty_like(flat)
    _from_residues(flat, residues, np.uint64(parameters.prime))
    return residues.reshape(words.shape)
