"""Comparison of shared residues: the carry of an addition whose terms two parties hold.

x = x_0 + x_1 mod 2^k is negative iff bit k - 1 is set: the exclusive or of the shares' own top bits and of the carry
out of the k - 1 bits below. The carry of blocks of 5 bits (generate g, propagate p) is looked up in tables of 32
entries; the carry across 4 blocks in one table of 128, so a comparison of 21-bit residues takes two rounds:

    g(block) = [y + x >= 32],  p(block) = [y + x = 31],  carry = g_3 ∨ p_3 (g_2 ∨ p_2 (g_1 ∨ p_1 g_0)).

Where blocks of 6 bits are fewer they are taken, so that residues of up to 25 bits keep to two rounds; longer ones take
one more round for every factor of 4. Where rounds are cheap and comparisons many, the carry walks instead from block to
block, a round each, in tables that take it in: fewer of them, and smaller (`walking_carry`). Lemma 2.12 in
docs/theory/asking.md.
"""

from collections.abc import Callable
from functools import cache

import numba
import numpy as np

from ppspeech.arrays import Bits, Residues
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.shares.cost import TableShape
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.look_up import PublicTable, look_up_public
from ppspeech.crypto.shares.select import check_ring
from ppspeech.errors import RangeError

BLOCK = 5
WIDER = 6
GROUP = 4
STEP = 5
"""Bits of a block that a carry walks through."""
MIDDLE = TableShape(2 * GROUP, 2)


def carry(engine: ShareEngine, own: Residues, width: int) -> Bits:
    """Shares of [a + b >= 2^width], for the lowest `width` bits, 1 to 60, of the first party's a and the second's b."""
    size, blocks = block_sizes(width)
    parts = np.empty(len(own) * blocks, np.uint8)
    _cut(own, size, blocks, width, parts)
    (pairs,) = look_up_public(engine, [_leaf_table(size)], [parts])
    while blocks > GROUP:
        (pairs,) = look_up_public(engine, [_middle_table()], [_join_groups(engine, pairs.reshape(-1, blocks))])
        blocks = -(-blocks // GROUP)
    index = np.empty(len(own), np.uint8)
    _join_last(pairs, blocks, index)
    return look_up_public(engine, [_last_table(blocks)], [index])[0]


def walking_carry(
    engine: ShareEngine, own: Residues, width: int, step: int = STEP, *, wide_first: bool = False
) -> Bits:
    """As `carry`, in one table a block and a round each: the carry so far, as both share it, is part of the index.
    `step`: bits of a block, up to 7, which an index holds beside a carry. `wide_first`: the first block, which takes no
    carry in, has a bit more than others where they cannot be alike, instead of a bit less.
    """
    if not 1 <= width <= 60 or not 1 <= step <= 7:
        raise RangeError(f"numbers of 1 to 60 bits can be compared in steps of up to 7, got {width} in {step}")
    steps = -(-width // step)
    carried, at = np.zeros(len(own), np.uint8), 0
    for number in range(steps):
        size = (width - at) // (steps - number)
        if wide_first and at == 0:
            size = -(-width // steps)
        block = ((own >> np.uint64(at)) & np.uint64((1 << size) - 1)).astype(np.uint8)
        table = _walk_table(size, at > 0)
        (carried,) = look_up_public(engine, [table], [block | carried << np.uint8(size)])
        at += size
    return carried


def is_negative(
    engine: ShareEngine, residues: Residues, ring: Ring, carry: Callable[[ShareEngine, Residues, int], Bits] = carry
) -> Bits:
    """Shares of [residue < 0], for shares `(count,)` of signed residues. `carry`: how it is found."""
    check_ring(ring)
    if ring.bits == 1:
        return residues.astype(np.uint8)
    result = np.empty(len(residues), np.uint8)
    _add_top(residues, ring.bits - 1, carry(engine, residues, ring.bits - 1), result)
    return result


def block_sizes(width: int) -> tuple[int, int]:
    """Bits of a block, and how many blocks, for numbers of `width` bits."""
    if not 1 <= width <= 60:
        raise RangeError(f"numbers of 1 to 60 bits can be compared, got {width}")
    wider = width <= GROUP * WIDER and -(-width // WIDER) < -(-width // BLOCK)  # fewer tables
    size = WIDER if wider else BLOCK
    return size, -(-width // size)


def _join_groups(engine: ShareEngine, pairs: Bits) -> Bits:
    """Indices of middle tables from (g, p) of up to 4 blocks; missing blocks let the carry through."""
    missing = -pairs.shape[1] % GROUP
    through = np.full((len(pairs), missing), 2 if engine.is_first else 0, np.uint8)
    whole = np.concatenate([pairs, through], axis=1).reshape(-1, GROUP)
    index = np.zeros(len(whole), np.uint8)
    for place in range(GROUP):
        index |= whole[:, place] << np.uint8(2 * place)
    return index


@cache
def _leaf_table(size: int) -> PublicTable:
    total = np.arange(2 << size)
    return PublicTable(TableShape(size, 2), (total >> size) | ((total == (1 << size) - 1) * 2), of_sums=True)


@cache
def _walk_table(size: int, takes_carry: bool) -> PublicTable:
    """[x + y + c >= 2^size]: of the first's x and share of c (rows), and the second's y and share of c."""
    number = np.arange(1 << (size + takes_carry))
    block, share = number & ((1 << size) - 1), number >> size
    total = block[:, None] + block + (share[:, None] ^ share)
    return PublicTable(TableShape(size + takes_carry, 1), total >> size)


@cache
def _middle_table() -> PublicTable:
    index = np.arange(1 << (2 * GROUP))
    generate, through = np.zeros_like(index), np.ones_like(index)
    for place in range(GROUP):
        own, lets = (index >> (2 * place)) & 1, (index >> (2 * place + 1)) & 1
        generate, through = own | (lets & generate), lets & through
    return PublicTable(MIDDLE, generate | through << 1)


@cache
def _last_table(blocks: int) -> PublicTable:
    """The lowest block has no p: nothing comes in below it."""
    index = np.arange(1 << (2 * blocks - 1))
    result = index & 1
    for place in range(1, blocks):
        result = (index >> (2 * place - 1)) & 1 | (index >> (2 * place)) & 1 & result
    return PublicTable(TableShape(2 * blocks - 1, 1), result)


@numba.njit(nogil=True, cache=True)
def _cut(residues: Residues, size: int, blocks: int, width: int, parts: Bits) -> None:
    """Blocks of `size` bits, the lowest first, of the lowest `width` bits, moved up to fill the last block."""
    block = (np.uint64(1) << np.uint64(size)) - np.uint64(1)
    keep = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    shift = np.uint64(blocks * size - width)
    for j in range(len(residues)):
        residue = (residues[j] & keep) << shift
        for b in range(blocks):
            parts[j * blocks + b] = residue & block
            residue >>= np.uint64(size)


@numba.njit(nogil=True, cache=True)
def _join_last(pairs: Bits, blocks: int, index: Bits) -> None:
    for j in range(len(index)):
        joined = pairs[j * blocks] & 1
        for place in range(1, blocks):
            joined |= pairs[j * blocks + place] << (2 * place - 1)
        index[j] = joined


@numba.njit(nogil=True, cache=True)
def _add_top(residues: Residues, place: int, carried: Bits, result: Bits) -> None:
    for j in range(len(result)):
        result[j] = carried[j] ^ np.uint8((residues[j] >> np.uint64(place)) & np.uint64(1))
