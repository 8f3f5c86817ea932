"""Fresh encryptions of zero, many at a time.

    under a public key (b, a)     (b u + e0, a u + e1),   u ternary
    under a secret key s          (-(a s + e), a),        a expanded from a seed, which travels in its place

with the distributions that SEAL draws from: u uniform in {-1, 0, 1}, errors centered binomial on 42 bits. SEAL hands a
ciphertext out only through its file format; drawn and multiplied here they cost a third.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto.lattice.blake2xb import expand_seeds
from ppspeech.crypto.lattice.ntt import quotients_of, transform_of
from ppspeech.crypto.lattice.parameters import LARGEST_ERROR, LatticeParameters
from ppspeech.crypto.randomness import uniform_bytes, uniform_residues

SEED_BYTES = 64
"""Of the seed of a uniform polynomial."""

_FAIR = 255  # bytes below it: as many of each remainder mod 3


def add_errors_(residues: Residues, parameters: LatticeParameters) -> Residues:
    """Add to each, below the prime, an error of its own: centered binomial on 42 bits. In place."""
    drawn = uniform_residues(residues.size, 2 * LARGEST_ERROR)
    _add_errors(residues.reshape(-1), drawn, np.uint64(parameters.prime))
    return residues


@numba.njit(nogil=True, cache=True)
def _add_errors(residues: Residues, drawn: Residues, prime: np.uint64) -> None:
    for i in range(len(residues)):
        ones = _ones(drawn[i] >> np.uint64(LARGEST_ERROR))
        others = _ones(drawn[i] & np.uint64((1 << LARGEST_ERROR) - 1))
        moved = residues[i] + ones + (prime - others)
        moved -= prime if moved >= prime else np.uint64(0)
        residues[i] = moved - prime if moved >= prime else moved


@numba.njit(nogil=True, cache=True, inline="always")
def _ones(word: np.uint64) -> Any:
    """Ones of a word of 21 bits: sums of 2, of 4, of 8, and of all its bits."""
    word -= (word >> np.uint64(1)) & np.uint64(0x555555)
    word = (word & np.uint64(0x333333)) + ((word >> np.uint64(2)) & np.uint64(0x333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F)
    return (word * np.uint64(0x010101) >> np.uint64(16)) & np.uint64(0xFF)


def draw_ternary(shape: tuple[int, ...], parameters: LatticeParameters) -> Residues:
    """Uniform in {-1, 0, 1}, mod the prime."""
    drawn = np.frombuffer(uniform_bytes(int(np.prod(shape))), np.uint8).copy()
    while len(unfair := np.flatnonzero(drawn >= _FAIR)):
        drawn[unfair] = np.frombuffer(uniform_bytes(len(unfair)), np.uint8)
    values = np.array([0, 1, parameters.prime - 1], np.uint64)
    return values[drawn % 3].reshape(shape)


@dataclass(frozen=True, eq=False)
class PublicZeros:
    """Encryptions of zero under a public key, `(2, degree)`, transformed."""

    parameters: LatticeParameters
    key: Residues

    @cached_property
    def _quotients(self) -> list[Residues]:
        return [quotients_of(half, self.parameters.prime) for half in self.key]

    def __call__(self, count: int) -> list[Residues]:
        """So many, `(2, degree)` each, not transformed."""
        ring, transform = self.parameters, transform_of(self.parameters)
        u = transform.forward_(draw_ternary((count, ring.degree), ring))
        parts = [
            transform.multiply_(u.copy(), half, quotients)
            for half, quotients in zip(self.key, self._quotients, strict=True)
        ]
        zeros = np.stack(parts, axis=1)
        transform.inverse_(zeros.reshape(-1, ring.degree))
        return list(add_errors_(zeros, ring))


@dataclass(frozen=True, eq=False)
class SecretZeros:
    """Encryptions of zero under a secret key, `(degree,)`, transformed, with its `quotients_of`."""

    parameters: LatticeParameters
    secret: Residues
    quotients: Residues

    def __call__(self, count: int) -> list[tuple[Residues, bytes]]:
        """So many first parts, `(degree,)` each, not transformed, with the seeds of the second."""
        ring, transform = self.parameters, transform_of(self.parameters)
        drawn = uniform_bytes(count * SEED_BYTES)
        seeds = [drawn[at : at + SEED_BYTES] for at in range(0, len(drawn), SEED_BYTES)]
        products = transform.forward_(expand_seeds(seeds, ring))
        transform.inverse_(transform.multiply_(products, self.secret, self.quotients))
        negative = np.where(products, np.uint64(ring.prime) - products, products)
        return list(zip(add_errors_(negative, ring), seeds, strict=True))
