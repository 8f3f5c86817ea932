"""The largest of several shared residues: where it stands, and what it is.

All pairs are compared in one batch, then each candidate's wins are joined by tables: three rounds for up to 9
candidates, four for up to 65. Of equal residues the first wins.
"""

import numpy as np

from ppspeech.arrays import Bits, Residues
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.shares.bits import all_bits, all_bits_cost
from ppspeech.crypto.shares.compare import is_negative, is_negative_cost
from ppspeech.crypto.shares.cost import Cost
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.select import multiply_bit, multiply_bit_cost
from ppspeech.errors import RangeError


def argmax(engine: ShareEngine, residues: Residues, ring: Ring) -> Bits:
    """Shares of a 1 where each row's largest residue stands, `(count, candidates)`; the lowest index wins a tie.

    The residues of a row must differ by less than 2^(bits - 1).
    """
    count, candidates = _check(residues)
    if candidates == 1:
        return engine.public(np.ones((count, 1), np.uint64)).astype(np.uint8)
    lower, higher = np.triu_indices(candidates, 1)
    differences = ring.reduce(residues[:, lower] - residues[:, higher])
    loses = is_negative(engine, differences.reshape(-1), ring).reshape(count, len(lower))
    wins = np.empty((count, candidates, candidates - 1), np.uint8)
    wins[:, lower, higher - 1] = engine.flip(loses)
    wins[:, higher, lower] = loses
    return all_bits(engine, wins.reshape(count * candidates, -1)).reshape(count, candidates)


def argmax_cost(ring: Ring, count: int, candidates: int) -> Cost:
    """`argmax` of `count` rows."""
    pairs = candidates * (candidates - 1) // 2
    if not pairs:
        return Cost()
    return is_negative_cost(ring, count * pairs) + all_bits_cost(count * candidates, candidates - 1)


def argmin(engine: ShareEngine, residues: Residues, ring: Ring) -> Bits:
    """As `argmax`, for the smallest residue of each row: it costs the same."""
    return argmax(engine, ring.reduce(np.uint64(0) - residues), ring)


def largest(engine: ShareEngine, residues: Residues, ring: Ring) -> Residues:
    """Shares of each row's largest residue, `(count,)`."""
    places = argmax(engine, residues, ring)
    chosen = multiply_bit(engine, places.reshape(-1), residues.reshape(-1), ring).reshape(residues.shape)
    return ring.reduce(chosen.sum(axis=1, dtype=np.uint64))


def smallest(engine: ShareEngine, residues: Residues, ring: Ring) -> Residues:
    """Shares of each row's smallest residue, `(count,)`: secure minimum."""
    return ring.reduce(np.uint64(0) - largest(engine, ring.reduce(np.uint64(0) - residues), ring))


def largest_cost(ring: Ring, count: int, candidates: int) -> Cost:
    """`largest` or `smallest` of `count` rows."""
    return argmax_cost(ring, count, candidates) + multiply_bit_cost(ring, count * candidates)


def _check(residues: Residues) -> tuple[int, int]:
    if residues.ndim != 2 or residues.shape[1] < 1:
        raise RangeError(f"candidates come as (count, candidates), got shape {residues.shape}")
    return residues.shape[0], residues.shape[1]
