"""log(e^a + e^b) of shared residues: the forward recursion's addition.

With v = a - b, log(e^a + e^b) = b + [v >= 0] v + T(v), and T(v) = log(1 + e^-|v|) is 0 far from zero, a table near it:

    i = ⌊v_0 / 2^s⌋ + ⌊v_1 / 2^s⌋ mod 2^(k - s)       (each party shifts its own share: no carry is waited for)
    result = b + [i >= 32] v + [0 <= i < 64] T(i)     (after v_0 was moved up by 32 steps)

The look-up in T (64 entries) and the range test run side by side, in two rounds for rings of up to s + 20 bits (s + 22
for a few additions at once). Since v = 2^s i + l with l the sum of two remainders, T is taken at the middle,
l = 2^s - 1; where i and v differ in sign, v is at most a step below zero. A step of 1/8 nat covers ±4 nats and is right
to 1/16 nat at worst, near v = 0. Lemma 2.13 in docs/theory/asking.md.
"""

from dataclasses import dataclass
from functools import cache, cached_property

import numba
import numpy as np

from ppspeech.arrays import Bits, Residues
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.packing import packed_bytes
from ppspeech.crypto.shares.cost import TableShape
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.look_up import PublicTable, ask_tables, look_up_public, offer_public, receive_flips
from ppspeech.crypto.shares.select import check_ring, multiply_bit
from ppspeech.errors import RangeError

INDEX = 6
ENTRIES = 1 << INDEX
LONGEST = 8
"""Bits of the longest block above the table's index."""
FEW = 400
"""Additions at once up to which a round trip saved is worth more than the larger tables."""


@dataclass(frozen=True)
class LogAdd:
    """How log-add is computed; both parties hold the same.

    Attributes:
        fraction: bits after the point of the residues, in nats.
        step: bits each party drops from its share of v; the table has a step of 2^(step - fraction) nats.
    """

    ring: Ring
    fraction: int
    step: int

    def __post_init__(self) -> None:
        check_ring(self.ring)
        if not 0 <= self.step < self.ring.bits - INDEX:
            raise RangeError(f"a step of 2^{self.step} leaves no range for the table in {self.ring.bits} bits")

    @cached_property
    def table(self) -> Residues:
        """T at the middle of each step, as residues."""
        middle = (np.arange(ENTRIES) - ENTRIES // 2) * 2.0**self.step + (2**self.step - 1)
        # Below the middle entry v is not added, whatever its sign: softplus(v), which is T(v) unless v > 0.
        exponent = np.where(np.arange(ENTRIES) < ENTRIES // 2, middle, -middle) * 2.0**-self.fraction
        values: Residues = np.rint(np.logaddexp(0, exponent) * 2.0**self.fraction).astype(np.uint64)
        return values

    def upper(self, count: int) -> list[int]:
        """Widths of the blocks above the table's index, the lowest first, for `count` additions at once.

        Of 6 bits, and what is left on top. Where two blocks do, of up to 7 bits, they save tables and a round. Two of 8
        bits save a round too, which counts in a recursion; but their tables are four times as large, which counts where
        many are added at once.
        """
        bits = self.ring.bits - self.step - INDEX
        most = LONGEST if count <= FEW else LONGEST - 1
        if 2 * INDEX < bits <= 2 * most:
            return [bits // 2, bits - bits // 2]
        whole, rest = divmod(bits - 1, INDEX)
        return [INDEX] * whole + [rest + 1]


def log_add(engine: ShareEngine, left: Residues, right: Residues, how: LogAdd) -> Residues:
    """Shares of log(e^left + e^right), `(count,)`.

    The residues must differ by less than 2^(bits - 1) less half the table's range. The result depends on how v is
    shared, by up to one step of the table; `log_add_twin` gives the same from both parties' shares.
    """
    ring = how.ring
    difference = ring.reduce(left - right)
    moved = difference
    if engine.is_first:
        moved = ring.reduce(difference + np.uint64(ENTRIES // 2 << how.step))
    upper = how.upper(len(left))
    low, blocks = _cut(moved >> np.uint64(how.step), upper)
    entry, place, parts = _first_round(engine, low, blocks, how)
    top, middle = parts[-1], parts[:-1]
    while len(middle) > 1:
        middle = _join_middle(engine, middle)
    index = place | top << np.uint8(2)
    if middle:
        index |= middle[0] << np.uint8(5)
    (found,) = look_up_public(engine, [_last_table(len(upper) > 1)], [index])
    bits = np.concatenate([found & np.uint8(1), found >> np.uint8(1)])
    products = multiply_bit(engine, bits, np.concatenate([difference, entry]), ring)
    return ring.reduce(right + products[: len(right)] + products[len(right) :])


def log_add_twin(left: tuple[Residues, Residues], right: tuple[Residues, Residues], how: LogAdd) -> Residues:
    """What `log_add` computes, from both parties' shares and in the clear."""
    ring = how.ring
    shares = [ring.reduce(one - other) for one, other in zip(left, right, strict=True)]
    difference = ring.join(*shares)
    moved = ring.reduce(shares[0] + np.uint64(ENTRIES // 2 << how.step))
    shift = np.uint64(how.step)
    index = Ring(ring.bits - how.step).to_signed((moved >> shift) + (shares[1] >> shift))
    inside = np.where((index >= 0) & (index < ENTRIES), how.table[np.clip(index, 0, ENTRIES - 1)], np.uint64(0))
    return ring.reduce(ring.join(*right) + np.where(index >= ENTRIES // 2, difference, np.uint64(0)) + inside)


def _first_round(engine: ShareEngine, low: Bits, blocks: list[Bits], how: LogAdd) -> tuple[Residues, Bits, list[Bits]]:
    """Shares of T's entry, of its index's carry and top bit, and of what the blocks above do with a carry."""
    last = len(blocks) - 1
    tables = [_block_table(width, at < last) for at, width in enumerate(how.upper(len(low)))]
    shape = TableShape(INDEX, how.ring.bits + 2)
    shapes = [shape, *(table.shape for table in tables)]
    if engine.is_first:
        flips = receive_flips(engine, shapes, [len(low)] * len(shapes))
        offered = engine.correlations.take_offered(shape, len(low))
        out = np.zeros(packed_bytes(len(low) << INDEX, shape.width), np.uint8)
        packed = offered.masks.astype(np.uint64, copy=False)
        _conceal_entries(
            how.table, low, packed, offered.pads.astype(np.uint64, copy=False), flips[0], how.ring.bits, out
        )
        offers = [offer_public(engine, *each) for each in zip(tables, blocks, flips[1:], strict=True)]
        engine.channel.send(Kind.TABLES, b"".join([out.tobytes(), *(message for message, _ in offers)]))
        parts = [mask for _, mask in offers]
    else:
        opened, *rest = ask_tables(engine, shapes, [low, *blocks])
        packed = opened.astype(np.uint64, copy=False)
        parts = [each.astype(np.uint8, copy=False) for each in rest]
    return how.ring.reduce(packed), (packed >> np.uint64(how.ring.bits)).astype(np.uint8), parts


def _join_middle(engine: ShareEngine, middle: list[Bits]) -> list[Bits]:
    """Neighboring blocks joined in pairs; one that is left over stays."""
    pairs = [low | high << np.uint8(3) for low, high in zip(middle[::2], middle[1::2], strict=False)]
    joined = look_up_public(engine, [_pair_table()] * len(pairs), pairs)
    return [*joined, *middle[2 * len(pairs) :]]


def _cut(residues: Residues, upper: list[int]) -> tuple[Bits, list[Bits]]:
    low = (residues & np.uint64(ENTRIES - 1)).astype(np.uint8)
    blocks, at = [], INDEX
    for width in upper:
        blocks.append(((residues >> np.uint64(at)) & np.uint64((1 << width) - 1)).astype(np.uint8))
        at += width
    return low, blocks


@cache
def _block_table(width: int, is_middle: bool) -> PublicTable:
    """Of the sum of both parties' blocks, without and with a carry coming in.

    A middle block, three bits: generate, propagate, zero without carry (with carry, it is zero iff it propagates). The
    top block, a number: 0 if it is zero without carry, 1 if it is zero with one, 2 if a carry makes it negative, else 3
    if it is not negative and 4 if it is; 5 if it is zero and a carry makes it negative, as in a block of one bit.
    """
    total = np.arange(2 << width)
    size = 1 << width
    rest = total % size
    if is_middle:
        zero, through = rest == 0, rest == size - 1
        return PublicTable(TableShape(width, 3), (total >= size) | through << 1 | zero << 2, of_sums=True)
    cases = [rest == 0, rest == size - 1, rest == size // 2 - 1, rest < size // 2]
    return PublicTable(TableShape(width, 3), np.select(cases, [0 if width > 1 else 5, 1, 2, 3], 4), of_sums=True)


@cache
def _pair_table() -> PublicTable:
    index = np.arange(1 << 6)
    low = [(index >> place) & 1 for place in range(3)]
    high = [(index >> place) & 1 for place in range(3, 6)]
    generate = high[0] | high[1] & low[0]
    zero = low[2] & np.where(low[0], high[1], high[2])
    return PublicTable(TableShape(6, 3), generate | (low[1] & high[1]) << 1 | zero << 2)


@cache
def _last_table(has_middle: bool) -> PublicTable:
    """Bit 0: at or above the middle of the table; bit 1: inside it."""
    bits = 8 if has_middle else 5
    index = np.arange(1 << bits)
    carried, upper, top = index & 1, (index >> 1) & 1, (index >> 2) & 7
    comes_in, zero_below = carried, np.ones_like(index)
    if has_middle:
        generate, through, zero = ((index >> place) & 1 for place in (5, 6, 7))
        comes_in = generate | through & carried
        zero_below = np.where(carried, through, zero)
    negative = np.where(comes_in, (top == 2) | (top == 4) | (top == 5), (top == 1) | (top == 4))
    inside = zero_below & np.where(comes_in, top == 1, (top == 0) | (top == 5))
    return PublicTable(TableShape(bits, 2), np.where(inside, upper, 1 - negative) | inside << 1)


@numba.njit(nogil=True, cache=True)
def _conceal_entries(
    table: Residues, own: Bits, masks: Residues, pads: Residues, flips: Bits, width: int, out: Bits
) -> None:
    """T less the mask, with the index's carry and top bit above it; `width` is that of the ring."""
    size = (width + 9) // 8
    keep = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    at = 0
    for j in range(pads.shape[0]):
        x, mask, flip = np.int64(own[j]), masks[j], flips[j]
        for w in range(pads.shape[1]):
            total = x + w
            entry = (table[total & 63] - mask) & keep
            place = np.uint64(total >> 6) | np.uint64((total >> 5) & 1) << np.uint64(1)
            entry |= (place ^ (mask >> np.uint64(width))) << np.uint64(width)
            entry ^= pads[j, w ^ flip]
            for _ in range(size):
                out[at] = entry & np.uint64(255)
                entry >>= np.uint64(8)
                at += 1
