"""More bits of shared residues, or fewer; a least value; and whether all of several bits are 1."""

import numpy as np

from ppspeech.arrays import Bits
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.shares.compare import carry, is_negative, walking_carry
from ppspeech.crypto.shares.cost import TableShape
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.look_up import PublicTable, look_up, look_up_public
from ppspeech.crypto.shares.select import check_ring
from ppspeech.crypto.shares.shared import Shared, SharedBits
from ppspeech.errors import RangeError


def extend(residues: Shared, wider: Ring) -> Shared:
    """The same signed residues in a wider ring.

    Moved up by 2^(bits - 1) the residues are not negative, and their shares add up to them, or to 2^bits more.
    """
    check_ring(wider)
    engine, ring = residues.engine, residues.ring
    if wider.bits < ring.bits or ring.bits > 60:
        raise RangeError(
            f"residues of up to 60 bits are extended to rings that are wider, got {ring.bits} to {wider.bits}"
        )
    half = engine.public(np.array(1 << (ring.bits - 1), np.uint64))
    moved = ring.reduce(residues.own + half)
    carried = SharedBits(engine, carry(engine, moved.reshape(-1), ring.bits).reshape(moved.shape))
    wrapped = carried * Shared(engine, engine.public(np.ones(moved.shape, np.uint64)), wider)
    return Shared(engine, wider.reduce(moved - (wrapped.own << np.uint64(ring.bits)) - half), wider)


def widen(residues: Shared, wider: Ring) -> Shared:
    """The same signed residues in a wider ring, where they are known to lie within ±2^(bits - 2): for one table of two.

    Moved up by 2^(bits - 2) they are below half of the ring, and so are both shares, unless the shares add up to
    2^bits more: they wrap around iff the top bit of one or the other is set. The first party offers what that is for
    either top bit of the second.
    """
    check_ring(wider)
    engine, ring = residues.engine, residues.ring
    more = wider.bits - ring.bits
    if more < 1 or ring.bits < 3:
        raise RangeError(f"residues of 3 bits or more are widened, got {ring.bits} to {wider.bits}")
    quarter = engine.public(np.array(1 << (ring.bits - 2), np.uint64))
    moved = ring.reduce(residues.own + quarter)
    top = (moved >> np.uint64(ring.bits - 1)).reshape(-1)
    if engine.is_first:
        index, table = np.zeros_like(top), np.stack((top, np.ones_like(top)), axis=1)
    else:
        index, table = top, np.zeros((len(top), 2), np.uint64)
    wrapped = look_up(engine, index, table, Ring(more)).reshape(moved.shape)
    return Shared(engine, wider.reduce(moved - (wrapped << np.uint64(ring.bits)) - quarter), wider)


def truncate_local(residues: Shared, bits: int) -> Shared:
    """⌊x / 2^bits⌋ or one less, in the ring of `ring.bits - bits`: each party drops the low bits of its own share.

    One less than the lowest residue is the highest: keep values a step away from it.
    """
    ring = residues.ring
    check_ring(ring)
    if not 0 <= bits < ring.bits:
        raise RangeError(f"0 to {ring.bits - 1} bits can be dropped from {ring.bits}, got {bits}")
    return Shared(residues.engine, residues.residues >> np.uint64(bits), Ring(ring.bits - bits))


def round_local(residues: Shared, bits: int) -> Shared:
    """x / 2^bits in the ring of `ring.bits - bits`, off by a step at the most and by nothing on average: each
    party drops the low bits of its share, which takes a step off on average, and one is added. Keep values a step away
    from the ends of the ring.
    """
    if not bits:
        return residues
    dropped = truncate_local(residues, bits)
    return dropped + Shared(residues.engine, residues.engine.public(np.ones(dropped.shape, np.uint64)), dropped.ring)


def at_least(residues: Shared, least: int, vague: int, fewer: int, narrow: Ring) -> Shared:
    """max(x, least) in steps of 2^fewer, in a ring that need not hold x: x where x >= least + 2^vague, least where
    x < least, one of the two between. In no case less than least.

    With m = x - least = m_0 + m_1 mod 2^k and l_i the lowest `vague` bits of m_i, both parties drop these: what is left
    is (m - l_0 - l_1) / 2^vague, a whole number, negative iff m < l_1 (as m - l_1 = l_0 mod 2^vague and l_0 is not
    negative): certainly where m < 0, never where m >= 2^vague. m is taken in steps of 2^fewer, each party rounding its
    share: it becomes a step more at the most, and less than a step less, so that m >= 0 stays at least 0; and mod
    2^narrow it is right wherever it is taken.

    `residues` must hold -2^(k - 1) + 2^(vague + 1) <= x - least < 2^(k - 1); `least` is a multiple of 2^fewer. Raises
    RangeError for a narrow ring of more than k - fewer bits, of which shares of k say nothing.
    """
    engine, ring = residues.engine, residues.ring
    if least % (1 << fewer) or not 1 <= narrow.bits <= ring.bits - fewer:
        raise RangeError(f"{least} in steps of 2^{fewer} and {narrow.bits} bits cannot be had from {ring.bits} bits")
    above = residues - Shared(engine, engine.public(np.array(least % (1 << ring.bits), np.uint64)), ring)
    short = truncate_local(above, vague)
    below = is_negative(engine, short.own.reshape(-1), short.ring, walking_carry)
    half = np.uint64(1 << fewer >> 1)
    taken = Shared(engine, narrow.reduce((above.residues + half) >> np.uint64(fewer)), narrow)
    kept = ~SharedBits(engine, below.reshape(above.shape)) * taken
    return kept + Shared(engine, engine.public(np.array((least >> fewer) % (1 << narrow.bits), np.uint64)), narrow)


def all_bits(engine: ShareEngine, bits: Bits) -> Bits:
    """Shares of the and of each row, `(count, bits)` to `(count,)`: tables of up to 8 bits, and tables of those."""
    while bits.shape[1] > 1:
        # As few groups of at most 8 as there can be, of sizes as alike as can be; none of a single bit.
        groups = np.array_split(bits, -(-bits.shape[1] // 8), axis=1)
        sizes = [group.shape[1] for group in groups]
        tables = [PublicTable(TableShape(size, 1), np.arange(1 << size) == (1 << size) - 1) for size in sizes]
        joined = [np.packbits(group, axis=1, bitorder="little")[:, 0] for group in groups]
        bits = np.stack(look_up_public(engine, tables, joined), axis=1)
    return bits[:, 0]
