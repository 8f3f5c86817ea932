"""One of many shared residues, by an index that only the second party knows.

The second party picks its own share by itself; what it needs obliviously is the first party's share at the index:

    low digit    tables of 256 of the first party's residues: the second opens one masked residue a table
    next digit   it keeps the residue of the table it wants, and looks up that table's mask among all masks

and so on, one round for every factor of 256. The first party sees blinded digits, the second masked residues.
"""

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Residues
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.look_up import look_up
from ppspeech.crypto.shares.shared import Shared
from ppspeech.errors import RangeError

DIGIT = 8
"""Bits of an index that one look-up takes."""


def choose(residues: Shared, index: int | NDArray[np.int64] | None) -> Shared:
    """The residues at `index`, `(rows, candidates)` to `(rows,)`. `index`: of the candidate, one for all rows or one
    for each, `(rows,)`; None for the first party. Raises RangeError if the second party's index is not that of a
    candidate.
    """
    engine, ring = residues.engine, residues.ring
    rows, candidates = residues.shape
    if engine.is_first:
        return Shared(engine, _choose_first(engine, residues.own, ring).reshape(rows), ring)
    for each in index if isinstance(index, np.ndarray) else [index]:
        check_index(each, candidates)
    every = np.broadcast_to(np.asarray(index, np.int64), (rows,))
    return Shared(engine, _choose_second(engine, residues.own, every, ring), ring)


def check_index(index: int | None, candidates: int) -> None:
    """Raises RangeError unless the index is a whole number from 0 to candidates - 1."""
    if not isinstance(index, int | np.integer) or isinstance(index, bool) or not 0 <= index < candidates:
        raise RangeError(f"the candidates have the numbers 0 to {candidates - 1}, got {index!r}")


def _choose_first(engine: ShareEngine, residues: Residues, ring: Ring) -> Residues:
    while residues.shape[1] > 1:
        tables = _tables(residues)
        flat = tables.reshape(-1, tables.shape[-1])
        residues = look_up(engine, np.zeros(len(flat), np.uint64), flat, ring).reshape(tables.shape[:2])
    return residues


def _choose_second(engine: ShareEngine, residues: Residues, index: NDArray[np.int64], ring: Ring) -> Residues:
    every, candidates = np.arange(len(residues)), residues.shape[1]
    total = residues[every, index]
    while candidates > 1:
        bits = _digit_bits(candidates)
        candidates = tables = -(-candidates >> bits)
        asked = np.repeat((index & ((1 << bits) - 1)).astype(np.uint64), tables)
        index = index >> bits
        opened = look_up(engine, asked, np.empty((len(asked), 1 << bits), np.uint64), ring)
        total = total + opened.reshape(len(residues), tables)[every, index]
    return ring.reduce(total)


def _tables(residues: Residues) -> Residues:
    """The candidates of each row in tables of one digit, `(rows, tables, 2^bits)`; what is left over is never asked."""
    bits = _digit_bits(residues.shape[1])
    tables = -(-residues.shape[1] >> bits)
    whole = np.zeros((len(residues), tables << bits), np.uint64)
    whole[:, : residues.shape[1]] = residues
    return whole.reshape(len(residues), tables, 1 << bits)


def _digit_bits(candidates: int) -> int:
    return min(DIGIT, max(1, (candidates - 1).bit_length()))
