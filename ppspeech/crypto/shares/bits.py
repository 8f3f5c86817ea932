"""From shared residues to shared bits and back."""

import numpy as np

from ppspeech.arrays import Bits, Residues
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.shares.compare import carry, carry_cost
from ppspeech.crypto.shares.cost import Cost, TableShape
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.look_up import PublicTable, look_up_public, tables_cost
from ppspeech.crypto.shares.select import check_ring, multiply_bit, multiply_bit_cost
from ppspeech.errors import RangeError


def to_bits(engine: ShareEngine, residues: Residues, ring: Ring) -> Bits:
    """Shares of the bits of residues, `(count,)` to `(count, bits)`, the lowest first.

    Bit j of a sum is the exclusive or of the terms' bits j and of the carry from below: all carries in one batch.
    """
    check_ring(ring)
    places = np.arange(ring.bits, dtype=np.uint64)
    bits = ((residues[:, None] >> places) & np.uint64(1)).astype(np.uint8)
    if ring.bits > 1:
        # The carry out of the low j bits is that of the residues moved up until only those are left.
        width = ring.bits - 1
        moved = (residues[:, None] << (np.uint64(width) - places[1:])) & np.uint64((1 << width) - 1)
        bits[:, 1:] ^= carry(engine, moved.reshape(-1), width).reshape(len(residues), width)
    return bits


def to_bits_cost(ring: Ring, count: int) -> Cost:
    """`to_bits` of `count` residues."""
    return carry_cost(ring.bits - 1, count * (ring.bits - 1)) if ring.bits > 1 else Cost()


def bit_residues(engine: ShareEngine, bits: Bits, ring: Ring) -> Residues:
    """Shares of 0 or 1 as residues, from shared bits `(count,)`."""
    return multiply_bit(engine, bits, engine.public(np.ones(len(bits), np.uint64)), ring)


def from_bits(engine: ShareEngine, bits: Bits, ring: Ring) -> Residues:
    """Shares of residues from shares of their bits, `(count, at most ring.bits)` to `(count,)`, the lowest first."""
    if bits.ndim != 2 or bits.shape[1] > ring.bits:
        raise RangeError(f"residues of {ring.bits} bits are made from (count, bits), got shape {bits.shape}")
    weights = np.uint64(1) << np.arange(bits.shape[1], dtype=np.uint64)
    residues = bit_residues(engine, bits.reshape(-1), ring).reshape(bits.shape)
    return ring.reduce((residues * weights).sum(axis=1, dtype=np.uint64))


def from_bits_cost(ring: Ring, count: int, bits: int) -> Cost:
    """`from_bits` of `count` residues of `bits` bits; with `bits=1`, `bit_residues`."""
    return multiply_bit_cost(ring, count * bits)


def all_bits(engine: ShareEngine, bits: Bits) -> Bits:
    """Shares of the and of each row, `(count, bits)` to `(count,)`: tables of up to 8 bits, and tables of those."""
    while bits.shape[1] > 1:
        sizes = _group_sizes(bits.shape[1])
        ends = np.cumsum(sizes)
        joined = [_join(bits[:, end - size : end]) for size, end in zip(sizes, ends, strict=True)]
        tables = [_and_table(size) for size in sizes]
        bits = np.stack(look_up_public(engine, tables, joined), axis=1)
    return bits[:, 0]


def all_bits_cost(count: int, bits: int) -> Cost:
    """`all_bits` of `count` rows of `bits` bits."""
    cost = Cost()
    while bits > 1:
        sizes = _group_sizes(bits)
        cost += tables_cost([(TableShape(size, 1), count) for size in sizes])
        bits = len(sizes)
    return cost


def _group_sizes(bits: int) -> list[int]:
    """As few groups of at most 8 as there can be, of sizes as alike as can be; none of a single bit."""
    groups = -(-bits // 8)
    return [len(part) for part in np.array_split(np.arange(bits), groups)]


def _join(bits: Bits) -> Bits:
    index = np.zeros(len(bits), np.uint8)
    for place in range(bits.shape[1]):
        index |= bits[:, place] << np.uint8(place)
    return index


def _and_table(bits: int) -> PublicTable:
    return PublicTable(TableShape(bits, 1), np.arange(1 << bits) == (1 << bits) - 1)
