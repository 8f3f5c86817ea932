"""Smooth functions of shared residues by straight lines, in one round; and products with public fractions.

x = x_0 + x_1 mod 2^k. Each party cuts its own share, x_i = 2^s t_i + r_i, without waiting for a carry: with
t = t_0 + t_1 mod 2^m, m = k - s, and r = r_0 + r_1 < 2^(s + 1),

    f(x) = a_t + b_t r = (a_t + b_t r_0) + b_t r_1

for the line a_t, b_t that is nearest to f on the two steps from t. The first party offers a table of both, with r_0 in
it and a mask on each: a_w + b_w r_0 - μ and b_w - ν, of which the second opens t_1's. What is left of b_t r_1 is ν r_1,
a product of what one and what the other knows: by digits of r_1, in tables of ν d, asked for in the same message. Lines
have more bits after the point than residues; these are dropped at the end, by each party from its own share.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np

from ppspeech.arrays import Bytes, Reals, Residues, Whole
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.packing import packed_bytes
from ppspeech.crypto.shares.cost import TableShape
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.look_up import ask_tables, look_up, receive_flips
from ppspeech.errors import RangeError

DIGIT = 4
WIDEST = 32
"""Bits of a line's ring: two fields travel in 64."""
COARSE = 3
"""Bits of the index of a product with a public fraction."""
SAMPLES = 65


@dataclass(frozen=True, eq=False)
class Lines:
    """Functions by straight lines; both parties hold the same.

    Attributes:
        ring: of x and of f(x), k bits.
        fraction: bits of both after the point.
        index: m, bits of a table's index: 2^m lines over the ring.
        slope: bits that lines have more after the point.
        heights: a, of each function and line, `(functions, 2^m)`, mod 2^(k + slope).
        slopes: b, likewise.
        error: how far the lines are from their functions at most, rounding included.
    """

    ring: Ring
    fraction: int
    index: int
    slope: int
    heights: Residues
    slopes: Residues
    error: float

    @classmethod
    def of(
        cls, functions: Sequence[Callable[[Reals], Reals]], ring: Ring, fraction: int, index: int, slope: int = 8
    ) -> "Lines":
        """The lines nearest to some functions, in the largest difference. x must be two steps above the lowest that the
        ring holds, or it wraps around. Raises RangeError for sizes that cannot be.
        """
        bits, cut = ring.bits + slope, ring.bits - index
        if not 2 <= index <= 8 or cut < 1 or not 8 < bits <= WIDEST:
            raise RangeError(f"2^{index} lines of {bits} bits in a ring of {ring.bits} cannot be had")
        step = 2.0 ** (cut - fraction)
        starts = (np.arange(1 << index) + (1 << index >> 1)) % (1 << index) - (1 << index >> 1)
        at = starts[:, None] * step + np.linspace(0, 2 * step, SAMPLES)
        unit = 2.0**-slope  # of a slope; heights have `fraction` bits more
        heights, slopes, error = [], [], 0.0
        for function in functions:
            wanted = function(at)
            chosen = np.rint((wanted[:, -1] - wanted[:, 0]) / (2 * step) / unit) * unit
            off = wanted - chosen[:, None] * (at - at[:, :1])
            level = (off.max(axis=1) + off.min(axis=1)) / 2
            error = max(error, float(((off.max(axis=1) - off.min(axis=1)) / 2).max()))
            heights.append(np.rint(level * 2.0 ** (fraction + slope)))
            slopes.append(np.rint(chosen * 2.0**slope))
        line = Ring(bits)
        # Dropping bits from two shares takes up to two units off, one on average: it is added here.
        raised = np.array(heights).astype(np.int64) + (1 << slope)
        rounding = 1.01 * 2.0**-fraction
        return cls(
            ring, fraction, index, slope, line.from_signed(raised), line.from_signed(np.array(slopes).astype(np.int64)),
            error + rounding,
        )  # fmt: skip

    @property
    def line(self) -> Ring:
        """Where lines are computed."""
        return Ring(self.ring.bits + self.slope)

    @property
    def cut(self) -> int:
        """s, bits of what is left of a share."""
        return self.ring.bits - self.index

    @property
    def digits(self) -> int:
        """Of what is left of the second's share."""
        return -(-self.cut // DIGIT)

    @cached_property
    def tables(self) -> list[TableShape]:
        """Of lines, and of digits."""
        bits = self.line.bits
        return [TableShape(self.index, 2 * bits), TableShape(DIGIT, bits)]


def follow_lines(engine: ShareEngine, own: Residues, lines: Lines, which: Whole) -> Residues:
    """Shares of f(x), `(count,)`, for shares of x; right to `lines.error`. `which`: the function of each, which both
    know.
    """
    mask, bits = lines.line.mask, np.uint64(lines.line.bits)
    reduced = lines.ring.reduce(own)
    low, high = reduced & np.uint64((1 << lines.cut) - 1), (reduced >> np.uint64(lines.cut)).astype(np.uint8)
    if engine.is_first:
        share = _offer(engine, lines, which, low, high)
    else:
        places = np.uint64(DIGIT) * np.arange(lines.digits, dtype=np.uint64)
        digits = ((low[:, None] >> places) & np.uint64((1 << DIGIT) - 1)).astype(np.uint8)
        both, crossed = ask_tables(engine, lines.tables, [high, digits.reshape(-1)])
        opened, products = both.astype(np.uint64), crossed.astype(np.uint64).reshape(len(own), lines.digits)
        share = (opened & mask) + (opened >> bits) * low + products.sum(axis=1, dtype=np.uint64)
    kept: Residues = (share & mask) >> np.uint64(lines.slope)
    return kept


def _offer(engine: ShareEngine, lines: Lines, which: Whole, low: Residues, high: Bytes) -> Residues:
    bits, count, shapes = lines.line.bits, len(low), lines.tables
    offered = engine.correlations.take_offered(shapes[0], count)
    crossed = engine.correlations.take_offered(shapes[1], count * lines.digits)
    flips, turns = receive_flips(engine, shapes, [count, count * lines.digits])
    sizes = [packed_bytes(n << shape.bits, shape.width) for n, shape in zip((count, len(turns)), shapes, strict=True)]
    out = np.empty(sum(sizes), np.uint8)
    masks = offered.masks.astype(np.uint64, copy=False)
    products = crossed.masks.astype(np.uint64, copy=False)
    _conceal_lines(
        lines.heights, lines.slopes, which, low, high, masks, offered.pads, flips, bits, -(-2 * bits // 8), out
    )
    _conceal_products(masks, products, crossed.pads, turns, lines.digits, bits, -(-bits // 8), out[sizes[0] :])
    engine.channel.send(Kind.TABLES, out.tobytes())
    found: Residues = (masks & lines.line.mask) + products.reshape(count, lines.digits).sum(axis=1, dtype=np.uint64)
    return found


def scale_public(engine: ShareEngine, own: Residues, ring: Ring, eighths: int) -> Residues:
    """Shares of x eighths / 8, to a unit of the last place, for shares `(count,)` of residues within a half of the
    ring's range. Cut as for lines: the slope is public, so that only the height is looked up.
    """
    if not 0 <= eighths <= 8 or ring.bits <= COARSE:
        raise RangeError(f"a public factor is 0 to 8 eighths, got {eighths}")
    wider, cut = Ring(ring.bits + 3), ring.bits - COARSE
    starts = Ring(COARSE).to_signed(np.arange(1 << COARSE, dtype=np.uint64)) * (eighths << cut) + 8
    reduced = ring.reduce(own)
    height = look_up(engine, reduced >> np.uint64(cut), wider.from_signed(starts), wider)
    rest = (reduced & np.uint64((1 << cut) - 1)) * np.uint64(eighths)
    kept: Residues = wider.reduce(height + rest) >> np.uint64(3)
    return kept


@numba.njit(nogil=True, cache=True)
def _conceal_lines(
    heights: Residues, slopes: Residues, which: Whole, low: Residues, high: Bytes, masks: Residues, pads: Residues,
    flips: Bytes, bits: int, size: int, out: Bytes,
) -> None:  # fmt: skip
    width = np.uint64(bits)
    field = (np.uint64(1) << width) - np.uint64(1)
    last = pads.shape[1] - 1
    at = 0
    for j in range(pads.shape[0]):
        function, start, rest, flip = which[j], np.int64(high[j]), low[j], flips[j]
        height_mask, slope_mask = masks[j] & field, masks[j] >> width
        for w in range(last + 1):
            t = (start + w) & last
            slope = slopes[function, t]
            entry = (heights[function, t] + slope * rest - height_mask) & field
            entry |= ((slope - slope_mask) & field) << width
            entry ^= pads[j, w ^ flip]
            for b in range(size):
                out[at + b] = (entry >> np.uint64(8 * b)) & np.uint64(255)
            at += size


@numba.njit(nogil=True, cache=True)
def _conceal_products(
    masks: Residues, products: Residues, pads: Residues, flips: Bytes, digits: int, bits: int, size: int, out: Bytes
) -> None:
    field = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    at = 0
    for j in range(pads.shape[0]):
        slope_mask = (masks[j // digits] >> np.uint64(bits)) << np.uint64(4 * (j % digits))
        product, flip = products[j], flips[j]
        for d in range(pads.shape[1]):
            entry = ((slope_mask * np.uint64(d) - product) & field) ^ pads[j, d ^ flip]
            for b in range(size):
                out[at + b] = (entry >> np.uint64(8 * b)) & np.uint64(255)
            at += size
