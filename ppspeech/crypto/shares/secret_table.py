"""Look-ups in one large table that is the first party's secret, in one round: a row it knows, a place the second knows.

    x, y → bitwise shares of table[x, y],    x the first's, y the second's, of n bits

Transfers are of one of 256 at the most. Of a longer row, what belongs to one low digit of y is laid side by side in a
residue, each field under a mask of its own, and asked for by that digit; among the masks, one is asked for by the high
digit at the same time. The second opens one field; the others, and the one it opens, are uniform to it.
"""

from dataclasses import dataclass

import numba
import numpy as np

from ppspeech.arrays import Bytes, Residues, Whole
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.packing import Numbers, packed_bytes
from ppspeech.crypto.shares.cost import TableShape
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.look_up import ask_tables, receive_flips
from ppspeech.crypto.transfer.codes import LARGEST_BITS
from ppspeech.errors import RangeError

MOST_BITS = 2 * LARGEST_BITS


@dataclass(frozen=True, slots=True)
class RowShape:
    """Rows of 2^bits entries, 1 to 16 bits, each of `width` bits, 1 to 63. Raises RangeError for others."""

    bits: int
    width: int

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= MOST_BITS or not 1 <= self.width <= 63:
            raise RangeError(f"a secret table has 1..{MOST_BITS} bits of index and entries of 1..63, got {self}")

    @property
    def high(self) -> int:
        """Bits of the high digit."""
        return max(0, self.bits - LARGEST_BITS)

    @property
    def beside(self) -> int:
        """Fields of one residue."""
        return min(1 << self.high, 1 << ((64 // self.width).bit_length() - 1))

    @property
    def residues(self) -> int:
        """Residues that hold all fields of a low digit."""
        return (1 << self.high) // self.beside

    @property
    def tables(self) -> list[TableShape]:
        """What is looked up in: the fields and, where there are several, their masks."""
        low = TableShape(min(self.bits, LARGEST_BITS), self.width * self.beside)
        return [low, TableShape(self.high, self.width)] if self.high else [low]


@dataclass(frozen=True, eq=False)
class SecretTable:
    """A table as the first party offers it; `laid_out`: `(rows * residues, 2^low bits)`. `of` makes one."""

    shape: RowShape
    laid_out: Numbers

    @classmethod
    def of(cls, entries: Residues, width: int) -> "SecretTable":
        """From entries `(rows, 2^bits)`, below 2^width. Raises RangeError for a length that is no power of two."""
        bits = entries.shape[1].bit_length() - 1
        if entries.shape[1] != 1 << bits:
            raise RangeError(f"a row has 2, 4, 8, … entries, got {entries.shape[1]}")
        shape = RowShape(bits, width)
        low = shape.tables[0]
        fields = entries.astype(np.uint64).reshape(len(entries) * shape.residues, shape.beside, 1 << low.bits)
        places = np.uint64(width) * np.arange(shape.beside, dtype=np.uint64)
        laid = np.bitwise_or.reduce(fields << places[:, None], axis=1)
        return cls(shape, laid.astype(np.uint8) if low.width <= 8 else laid)


def look_up_secret(engine: ShareEngine, shape: RowShape, table: SecretTable | None, own: Whole) -> Residues:
    """Bitwise shares of the entries, `(count,)`. `table`: the first party's, None for the second. `own`: the first's
    rows or the second's places, `(count,)`.
    """
    if not engine.is_first:
        return _ask(engine, shape, own)
    if table is None or table.shape != shape:
        raise RangeError(f"a table of {shape} was agreed on, got {None if table is None else table.shape}")
    low, count = shape.tables[0], len(own)
    offered = engine.correlations.take_offered(low, count * shape.residues)
    rows = (own[:, None] * shape.residues + np.arange(shape.residues)).reshape(-1)
    if not shape.high:
        (flips,) = receive_flips(engine, [low], [count])
        engine.channel.send(Kind.TABLES, _conceal(table.laid_out, rows, offered.masks, offered.pads, flips, low))
        return offered.masks.astype(np.uint64)
    above = shape.tables[1]
    inner = engine.correlations.take_offered(above, count)
    flips, turns = receive_flips(engine, shape.tables, [len(rows), count])
    message = _conceal(table.laid_out, rows, offered.masks, offered.pads, flips, low)
    places = np.uint64(shape.width) * np.arange(shape.beside, dtype=np.uint64)
    split = (offered.masks.astype(np.uint64)[:, None] >> places) & np.uint64((1 << shape.width) - 1)
    masks = split.reshape(count, 1 << shape.high).astype(inner.pads.dtype)
    message += _conceal(masks, np.arange(count), inner.masks, inner.pads, turns, above)
    engine.channel.send(Kind.TABLES, message)
    return inner.masks.astype(np.uint64)


def _ask(engine: ShareEngine, shape: RowShape, places: Whole) -> Residues:
    low = shape.tables[0]
    digit = (places & ((1 << low.bits) - 1)).astype(np.uint8)
    if not shape.high:
        return ask_tables(engine, [low], [digit])[0].astype(np.uint64)
    high = places >> low.bits
    opened, mask = ask_tables(engine, shape.tables, [np.repeat(digit, shape.residues), high.astype(np.uint8)])
    residue = opened.astype(np.uint64).reshape(-1, shape.residues)[np.arange(len(places)), high // shape.beside]
    field = residue >> (np.uint64(shape.width) * (high % shape.beside).astype(np.uint64))
    told: Residues = (field ^ mask.astype(np.uint64)) & np.uint64((1 << shape.width) - 1)
    return told


def _conceal(table: Numbers, rows: Whole, masks: Numbers, pads: Numbers, flips: Bytes, shape: TableShape) -> bytes:
    out = np.zeros(packed_bytes(len(rows) << shape.bits, shape.width), np.uint8)
    if shape.width <= 8:
        _conceal_bits(table, rows, masks, pads, flips, shape.width, out)
    else:
        _conceal_bytes(table, rows, masks, pads, flips, -(-shape.width // 8), out)
    return out.tobytes()


@numba.njit(nogil=True, cache=True)
def _conceal_bits(
    table: Numbers, rows: Whole, masks: Numbers, pads: Numbers, flips: Bytes, width: int, out: Bytes
) -> None:
    held = np.uint64(0)
    bits, at = 0, 0
    for j in range(pads.shape[0]):
        x, mask, flip = rows[j], masks[j], flips[j]
        for w in range(pads.shape[1]):
            held |= np.uint64(table[x, w] ^ mask ^ pads[j, w ^ flip]) << np.uint64(bits)
            bits += width
            while bits >= 8:
                out[at] = held & np.uint64(255)
                held >>= np.uint64(8)
                bits -= 8
                at += 1
    if bits:
        out[at] = held


@numba.njit(nogil=True, cache=True)
def _conceal_bytes(
    table: Numbers, rows: Whole, masks: Numbers, pads: Numbers, flips: Bytes, size: int, out: Bytes
) -> None:
    at = 0
    for j in range(pads.shape[0]):
        x, mask, flip = rows[j], masks[j], flips[j]
        for w in range(pads.shape[1]):
            entry = table[x, w] ^ mask ^ pads[j, w ^ flip]
            for b in range(size):
                out[at + b] = (entry >> np.uint64(8 * b)) & np.uint64(255)
            at += size
