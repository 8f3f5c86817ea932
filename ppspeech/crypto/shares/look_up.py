"""Look-ups in tables that the first party offers: the engine room of every operation on shares.

    second:  asks for index x with the random choice ρ of a prepared transfer: sends x ⊕ ρ
    first:   sends entry(w) ⊕ pad(w ⊕ x ⊕ ρ) for every w
    second:  opens entry(x) with pad(ρ)

The first party puts a mask on all entries of a table; the mask is its share of the result, the opened entry the
second's. It sees x ⊕ ρ, uniform; the second opens one masked entry a table, uniform. Two messages. Lemma 2.12 in
docs/theory/asking.md.
"""

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Bytes, Residues
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.packing import Numbers, pack_numbers, packed_bytes, unpack_numbers
from ppspeech.crypto.shares.cost import TableShape
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.errors import RangeError


@dataclass(frozen=True, eq=False)
class PublicTable:
    """A function of both parties' small numbers, known to both. `shape`: bits of an index, and of an entry (at most 8).
    `entries`: the function of first ⊕ second, of first + second where `of_sums`, or a row for each number of the first.
    """

    shape: TableShape
    entries: NDArray[Any]
    of_sums: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "entries", self.entries.astype(np.uint8))


def look_up_public(engine: ShareEngine, tables: list[PublicTable], own: list[Bytes]) -> list[Bytes]:
    """Bitwise shares of every table's entries for the parties' own numbers; all in one round."""
    shapes = [table.shape for table in tables]
    if not engine.is_first:
        return [each.astype(np.uint8, copy=False) for each in ask_tables(engine, shapes, own)]
    flips = receive_flips(engine, shapes, [len(numbers) for numbers in own])
    offers = [offer_public(engine, *each) for each in zip(tables, own, flips, strict=True)]
    engine.channel.send(Kind.TABLES, b"".join([message for message, _ in offers]))
    return [mask for _, mask in offers]


def offer_public(engine: ShareEngine, table: PublicTable, own: Bytes, flips: Bytes) -> tuple[bytes, Bytes]:
    """The first party's message for some look-ups in a public table, and its shares of the results."""
    shape = table.shape
    offered = engine.correlations.take_offered(shape, len(own))
    out = np.zeros(packed_bytes(len(own) << shape.bits, shape.width), np.uint8)
    hide = _conceal_rows if table.entries.ndim == 2 else _conceal_sums if table.of_sums else _conceal_flips
    masks = offered.masks.astype(np.uint8, copy=False)
    hide(table.entries, own, masks, offered.pads, flips, shape.width, out)
    return out.tobytes(), masks


def ask_tables(engine: ShareEngine, shapes: list[TableShape], indices: list[Bytes]) -> list[Numbers]:
    """Be the second party: the masked entries at `indices`, one array of them a shape."""
    pads, flips, size = [], [], 0
    for shape, index in zip(shapes, indices, strict=True):
        asked = engine.correlations.take_asked(shape, len(index))
        pads.append(asked.pads)
        flips.append(pack_numbers(index ^ asked.choices, shape.bits))
        size += packed_bytes(len(index) << shape.bits, shape.width)
    engine.channel.send(Kind.ASK, b"".join(flips))
    reply = np.frombuffer(engine.channel.receive(Kind.TABLES, size), np.uint8)
    results, at = [], 0
    for shape, index, own in zip(shapes, indices, pads, strict=True):
        results.append(np.empty_like(own))
        uncover = _open_bits if shape.width <= 8 else _open_bytes
        uncover(reply, at, shape.bits, shape.width, index, own, results[-1])
        at += packed_bytes(len(index) << shape.bits, shape.width)
    return results


def receive_flips(engine: ShareEngine, shapes: list[TableShape], counts: list[int]) -> list[Bytes]:
    """Be the first party: what the second asked for, blinded."""
    sizes = [packed_bytes(count, shape.bits) for shape, count in zip(shapes, counts, strict=True)]
    asked = memoryview(engine.channel.receive(Kind.ASK, sum(sizes)))
    flips, at = [], 0
    for shape, count, size in zip(shapes, counts, sizes, strict=True):
        flips.append(unpack_numbers(asked[at : at + size], count, shape.bits).astype(np.uint8, copy=False))
        at += size
    return flips


def look_up(engine: ShareEngine, index: Residues, table: Residues, ring: Ring) -> Residues:
    """Shares of table[index], for a table of 2^bits entries and shares of the index mod 2^bits. `index`: shares mod
    2^bits of the indices, `(count,)`. `table`: residues of `ring`: `(2^bits,)` the same for all or `(count, 2^bits)`.
    Only the first party's is read; it may be the first party's secret. Raises RangeError for a table whose length is
    not 2 to 256 and a power of two, or does not fit the indices.
    """
    bits = table.shape[-1].bit_length() - 1
    if not 1 <= bits <= 8 or table.shape[-1] != 1 << bits:
        raise RangeError(f"a table has 2, 4, 8, … or 256 entries, got {table.shape[-1]}")
    if table.ndim == 2 and len(table) != len(index):
        raise RangeError(f"{len(index)} indices need as many tables or one, got {len(table)}")
    shape = TableShape(bits, ring.bits)
    own = (index & np.uint64((1 << bits) - 1)).astype(np.uint8)
    if not engine.is_first:
        return ask_tables(engine, [shape], [own])[0].astype(np.uint64)
    offered = engine.correlations.take_offered(shape, len(index))
    (flips,) = receive_flips(engine, [shape], [len(index)])
    turned = (np.arange(1 << bits)[None, :] + own[:, None]) & ((1 << bits) - 1)
    entries = table[turned] if table.ndim == 1 else np.take_along_axis(table, turned, axis=1)
    masks = offered.masks.astype(np.uint64)
    masked = ring.reduce(entries - masks[:, None])
    out = np.zeros(packed_bytes(masked.size, ring.bits), np.uint8)
    if ring.bits <= 8:
        _conceal_bits(masked, offered.pads, flips, ring.bits, out)
    else:
        _conceal_bytes(masked, offered.pads, flips, -(-ring.bits // 8), out)
    engine.channel.send(Kind.TABLES, out.tobytes())
    return masks


@numba.njit(nogil=True, cache=True)
def _conceal_bits(entries: Numbers, pads: Numbers, flips: Bytes, width: int, out: Bytes) -> None:
    held = np.uint64(0)
    bits, at = 0, 0
    for j in range(entries.shape[0]):
        flip = flips[j]
        for w in range(entries.shape[1]):
            held |= np.uint64(entries[j, w] ^ pads[j, w ^ flip]) << np.uint64(bits)
            bits += width
            while bits >= 8:
                out[at] = held & np.uint64(255)
                held >>= np.uint64(8)
                bits -= 8
                at += 1
    if bits:
        out[at] = held


@numba.njit(nogil=True, cache=True)
def _conceal_bytes(entries: Numbers, pads: Numbers, flips: Bytes, size: int, out: Bytes) -> None:
    at = 0
    for j in range(entries.shape[0]):
        flip = flips[j]
        for w in range(entries.shape[1]):
            entry = entries[j, w] ^ pads[j, w ^ flip]
            for _ in range(size):
                out[at] = entry & np.uint64(255)
                entry >>= np.uint64(8)
                at += 1


@numba.njit(nogil=True, cache=True)
def _open_bits(stream: Bytes, at: int, bits: int, width: int, index: Bytes, pads: Numbers, result: Numbers) -> None:
    mask = np.uint64((1 << width) - 1)
    for j in range(len(index)):
        place = ((j << bits) + index[j]) * width
        byte = at + (place >> 3)
        held = np.uint64(stream[byte])
        if (place & 7) + width > 8:
            held |= np.uint64(stream[byte + 1]) << np.uint64(8)
        result[j] = ((held >> np.uint64(place & 7)) & mask) ^ pads[j]


@numba.njit(nogil=True, cache=True)
def _open_bytes(stream: Bytes, at: int, bits: int, width: int, index: Bytes, pads: Numbers, result: Numbers) -> None:
    size = (width + 7) // 8
    mask = ~np.uint64(0) >> np.uint64(64 - width)
    for j in range(len(index)):
        place = at + ((j << bits) + index[j]) * size
        held = np.uint64(0)
        for b in range(size):
            held |= np.uint64(stream[place + b]) << np.uint64(8 * b)
        result[j] = (held & mask) ^ pads[j]


@numba.njit(nogil=True, cache=True)
def _conceal_sums(table: Bytes, own: Bytes, masks: Bytes, pads: Numbers, flips: Bytes, width: int, out: Bytes) -> None:
    held = np.uint64(0)
    bits, at = 0, 0
    for j in range(pads.shape[0]):
        x, mask, flip = np.int64(own[j]), masks[j], flips[j]
        for w in range(pads.shape[1]):
            held |= np.uint64(table[x + w] ^ mask ^ pads[j, w ^ flip]) << np.uint64(bits)
            bits += width
            while bits >= 8:
                out[at] = held & np.uint64(255)
                held >>= np.uint64(8)
                bits -= 8
                at += 1
    if bits:
        out[at] = held


@numba.njit(nogil=True, cache=True)
def _conceal_flips(table: Bytes, own: Bytes, masks: Bytes, pads: Numbers, flips: Bytes, width: int, out: Bytes) -> None:
    held = np.uint64(0)
    bits, at = 0, 0
    for j in range(pads.shape[0]):
        x, mask, flip = own[j], masks[j], flips[j]
        for w in range(pads.shape[1]):
            held |= np.uint64(table[w ^ x] ^ mask ^ pads[j, w ^ flip]) << np.uint64(bits)
            bits += width
            while bits >= 8:
                out[at] = held & np.uint64(255)
                held >>= np.uint64(8)
                bits -= 8
                at += 1
    if bits:
        out[at] = held


@numba.njit(nogil=True, cache=True)
def _conceal_rows(table: Bytes, own: Bytes, masks: Bytes, pads: Numbers, flips: Bytes, width: int, out: Bytes) -> None:
    held = np.uint64(0)
    bits, at = 0, 0
    for j in range(pads.shape[0]):
        x, mask, flip = own[j], masks[j], flips[j]
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
