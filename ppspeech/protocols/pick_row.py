"""One row of a shared matrix, by an index that only the second party knows.

The first party offers its shares of all rows, each less a fresh mask, and the second looks up the row it wants in
them: a transfer of one of n. The mask is the first party's new share, so neither learns more than before.
"""

import numpy as np
from numpy.typing import NDArray

from ppspeech.crypto.engine import ShareEngine
from ppspeech.crypto.fixed_point import Ring
from ppspeech.crypto.look_up import look_up, look_up_cost
from ppspeech.crypto.select import multiply_bit, multiply_bit_cost
from ppspeech.crypto.share_cost import Cost
from ppspeech.errors import RangeError

Words = NDArray[np.uint64]

MOST_ROWS = 256
"""In one transfer; more are cut into parts, and a part is chosen by products."""


def pick_row(engine: ShareEngine, rows: Words, index: NDArray[np.int64] | None, ring: Ring) -> Words:
    """Shares of `rows[b, index[b]]`.

    Args:
        engine: this party's.
        rows: shares, `(batch, rows, columns)`.
        index: the second party's, `(batch,)`; None for the first.
        ring: of the words.

    Returns:
        `(batch, columns)`.
    """
    batch, count = rows.shape[:2]
    if count == 1:
        return rows[:, 0]
    parts = [rows[:, at : at + MOST_ROWS] for at in range(0, count, MOST_ROWS)]
    found = np.stack([_pick_in_part(engine, part, index, at, ring) for at, part in enumerate(parts)])
    if len(parts) == 1:
        return found[0]
    own = np.zeros((len(parts), batch, 1), np.uint8)
    if index is not None:
        own[index // MOST_ROWS, np.arange(batch), 0] = 1
    bits = np.broadcast_to(own, found.shape).reshape(-1)
    chosen = multiply_bit(engine, bits, found.reshape(-1), ring).reshape(found.shape)
    return ring.reduce(chosen.sum(axis=0, dtype=np.uint64))


def pick_row_cost(batch: int, rows: int, columns: int, ring: Ring) -> Cost:
    """`pick_row` from a matrix of that shape."""
    if rows == 1:
        return Cost()
    cost, parts = Cost(), -(-rows // MOST_ROWS)
    for at in range(parts):
        cost += look_up_cost(_index_bits(min(MOST_ROWS, rows - at * MOST_ROWS)), ring, batch * columns)
    return cost + multiply_bit_cost(ring, parts * batch * columns) if parts > 1 else cost


def _pick_in_part(engine: ShareEngine, part: Words, index: NDArray[np.int64] | None, number: int, ring: Ring) -> Words:
    batch, count, columns = part.shape
    size = 1 << _index_bits(count)
    table = np.zeros((batch, columns, size), np.uint64)
    table[..., :count] = part.transpose(0, 2, 1)
    own = np.zeros(batch, np.int64)
    if index is not None:
        if not (index >= 0).all():
            raise RangeError(f"rows are counted from 0, got {index.min()}")
        own = np.where(index // MOST_ROWS == number, index % MOST_ROWS, 0)
    place = np.repeat(own, columns).astype(np.uint64)
    got = look_up(engine, place, table.reshape(-1, size), ring).reshape(batch, columns)
    if index is None:
        return got
    mine: Words = np.take_along_axis(part, own[:, None, None], axis=1)[:, 0]
    return ring.reduce(got + mine)


def _index_bits(rows: int) -> int:
    return max(1, (rows - 1).bit_length())
