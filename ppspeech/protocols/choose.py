"""One of many shared words, by an index that only the second party knows.

The second party picks its own share by itself; what it needs obliviously is the first party's share at the index:

    low digit    tables of 256 of the first party's words: the second opens one masked word a table
    next digit   it keeps the word of the table it wants, and looks up that table's mask among all masks

and so on, one round for every factor of 256. The first party sees blinded digits, the second masked words.
"""

import numpy as np
from numpy.typing import NDArray

from ppspeech.crypto.engine import ShareEngine
from ppspeech.crypto.fixed_point import Ring
from ppspeech.crypto.look_up import look_up, look_up_cost
from ppspeech.crypto.share_cost import Cost
from ppspeech.errors import RangeError

Words = NDArray[np.uint64]

DIGIT = 8
"""Bits of an index that one look-up takes."""


def choose(engine: ShareEngine, words: Words, index: int | NDArray[np.int64] | None, ring: Ring) -> Words:
    """Shares of the words at `index`, `(rows, candidates)` to `(rows,)`.

    Args:
        engine: this party's.
        words: our shares.
        index: of the candidate, one for all rows or one for each, `(rows,)`; None for the first party.
        ring: of the words.

    Raises:
        RangeError: if the second party's index is not that of a candidate.
    """
    rows, candidates = words.shape
    if engine.is_first:
        return _choose_first(engine, words, ring).reshape(rows)
    for each in index if isinstance(index, np.ndarray) else [index]:
        check_index(each, candidates)
    return _choose_second(engine, words, np.broadcast_to(np.asarray(index, np.int64), (rows,)), ring)


def choose_cost(ring: Ring, rows: int, candidates: int) -> Cost:
    """`choose` among `candidates` in each of some rows."""
    cost = Cost()
    while candidates > 1:
        bits = _digit_bits(candidates)
        candidates = -(-candidates >> bits)
        cost += look_up_cost(bits, ring, rows * candidates)
    return cost


def check_index(index: int | None, candidates: int) -> None:
    """Refuse what is not the index of a candidate.

    Raises:
        RangeError: unless it is a whole number from 0 to candidates - 1.
    """
    if not isinstance(index, int | np.integer) or isinstance(index, bool) or not 0 <= index < candidates:
        raise RangeError(f"the candidates have the numbers 0 to {candidates - 1}, got {index!r}")


def _choose_first(engine: ShareEngine, words: Words, ring: Ring) -> Words:
    while words.shape[1] > 1:
        tables = _tables(words)
        masks = look_up(engine, np.zeros(tables.shape[0] * tables.shape[1], np.uint64), _flat(tables), ring)
        words = masks.reshape(tables.shape[:2])
    return words


def _choose_second(engine: ShareEngine, words: Words, index: NDArray[np.int64], ring: Ring) -> Words:
    every, candidates = np.arange(len(words)), words.shape[1]
    total = words[every, index]
    while candidates > 1:
        bits = _digit_bits(candidates)
        candidates = tables = -(-candidates >> bits)
        asked = np.repeat((index & ((1 << bits) - 1)).astype(np.uint64), tables)
        index = index >> bits
        opened = look_up(engine, asked, np.empty((len(asked), 1 << bits), np.uint64), ring)
        total = total + opened.reshape(len(words), tables)[every, index]
    return ring.reduce(total)


def _tables(words: Words) -> Words:
    """The candidates of each row in tables of one digit, `(rows, tables, 2^bits)`; what is left over is never asked."""
    bits = _digit_bits(words.shape[1])
    tables = -(-words.shape[1] >> bits)
    whole = np.zeros((len(words), tables << bits), np.uint64)
    whole[:, : words.shape[1]] = words
    return whole.reshape(len(words), tables, 1 << bits)


def _flat(tables: Words) -> Words:
    return tables.reshape(-1, tables.shape[-1])


def _digit_bits(candidates: int) -> int:
    return min(DIGIT, max(1, (candidates - 1).bit_length()))
