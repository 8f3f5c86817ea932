"""From a shared matrix of nearly rank one to its direction, and to nothing else.

C is close to c u u', and c says something about the eigenvalues. The column with the largest diagonal entry is c u_j u,
never orthogonal to u and never small; divided by its own j-th entry it is u / u_j, in which c is gone. The column is
chosen on shares and divided on shares, bit by bit; the bits of the quotients are opened, 16 after the point: what is
left of other eigenvectors after enough squarings lies below them.
"""

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Bits, Residues, Whole
from ppspeech.crypto.shares import Shared, ShareEngine, argmax, is_negative, multiply_bit, open_bits_to
from ppspeech.crypto.transfer import Side
from ppspeech.protocols.eigen.matrix import NARROW, whole

QUOTIENT_FRACTION = 16  # bits after the point of the released quotients, which are at most 1


def reveal_direction(engine: ShareEngine, residues: Residues, features: int) -> Whole:
    """u / u_j in steps of 2^-16, `(k,)`, to both parties, from narrow shares of the upper half."""
    column, largest = _largest_column(engine, whole(residues, features))
    negative = is_negative(engine, column, NARROW)
    turned = multiply_bit(engine, negative, NARROW.reduce(column * np.uint64(2)), NARROW)
    quotient = _divide(engine, NARROW.reduce(column - turned), np.repeat(largest, features))
    released = np.concatenate([negative, quotient.reshape(-1)])
    answers = [open_bits_to(engine, receiver, released) for receiver in (Side.SECOND, Side.FIRST)]
    opened = next(answer for answer in answers if answer is not None)
    places = np.int64(1) << np.arange(QUOTIENT_FRACTION, -1, -1, dtype=np.int64)
    magnitudes = places @ opened[features:].reshape(-1, features).astype(np.int64)
    return np.where(opened[:features] == 1, -magnitudes, magnitudes)


def unit_vector(quotients: Whole) -> NDArray[np.float64]:
    """The direction of length 1 that released quotients stand for; its largest entry is positive."""
    numbers = quotients.astype(np.float64)
    return numbers / np.linalg.norm(numbers)


def _largest_column(engine: ShareEngine, matrix: Residues) -> tuple[Residues, Residues]:
    """Shares of the column `(k,)` whose diagonal entry is largest, and of that entry `(1,)`."""
    given = Shared(engine, matrix, NARROW)
    chosen = argmax(given[np.arange(len(matrix)), np.arange(len(matrix))][None]) * given
    return chosen.sum(axis=1).residues, NARROW.reduce(np.trace(chosen.own, dtype=np.uint64).reshape(1))


def _divide(engine: ShareEngine, rest: Residues, divisor: Residues) -> Bits:
    """Shares of the bits of rest / divisor, the bit before the point first, `(17, k)`: long division."""
    bits = []
    for place in range(QUOTIENT_FRACTION + 1):
        if place:
            rest = NARROW.reduce(rest * np.uint64(2))
        fits = engine.flip(is_negative(engine, NARROW.reduce(rest - divisor), NARROW))
        rest = NARROW.reduce(rest - multiply_bit(engine, fits, divisor, NARROW))
        bits.append(fits)
    return np.stack(bits)
