"""Functions of shared residues as straight lines over segments, found in tables.

Each party cuts its own share: x = 2^p i + l, with i the sum of the upper parts and l = l_0 + l_1 the sum of the lower
ones, exactly and without waiting for a carry. On the stretch of two segments that i stands for, the function is the
line c_i + s_i l. The first party folds its l_0 into the table, c_i + s_i l_0; the rest, s_i l_1, are products of
shared residues with the bits of l_1.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Residues
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.shares.cost import Cost
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.look_up import look_up, look_up_cost
from ppspeech.crypto.shares.select import multiply_bit, multiply_bit_cost

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StraightLines:
    """A function of the low `bits + step` bits of shared residues.

    Attributes:
        ring: of the result.
        fraction: bits after the point of the result.
        bits: log2 of the number of segments, 1 to 8.
        step: bits of a segment, at least 1.
        starts: the lines' values at the start of their stretch, `(2^bits,)`.
        ends: their values at its end, two segments on.
    """

    ring: Ring
    fraction: int
    bits: int
    step: int
    starts: Floats
    ends: Floats

    @cached_property
    def slopes(self) -> Residues:
        """s_i as residues."""
        return self._encode((self.ends - self.starts) / (2 << self.step))

    @cached_property
    def offsets(self) -> Residues:
        """c_i as residues."""
        return self._encode(self.starts)

    def _encode(self, values: Floats) -> Residues:
        return self.ring.reduce(np.rint(np.ldexp(values, self.fraction)).astype(np.int64).view(np.uint64))


def evaluate_lines(engine: ShareEngine, residues: Residues, lines: StraightLines) -> Residues:
    """Shares of the lines' values at shared residues `(count,)`, of which the low bits count."""
    index = residues >> np.uint64(lines.step)
    low = residues & np.uint64((1 << lines.step) - 1)
    none = np.zeros_like(low)
    ours, theirs = (low, none) if engine.is_first else (none, low)
    value = look_up(engine, index, lines.offsets[None, :] + lines.slopes[None, :] * ours[:, None], lines.ring)
    slope = look_up(engine, index, lines.slopes, lines.ring)
    places = np.arange(lines.step, dtype=np.uint64)[:, None]
    bits = ((theirs[None, :] >> places) & np.uint64(1)).astype(np.uint8)
    products = multiply_bit(engine, bits.reshape(-1), np.tile(slope, lines.step), lines.ring)
    weighted = products.reshape(bits.shape) << places
    return lines.ring.reduce(value + weighted.sum(axis=0, dtype=np.uint64))


def evaluate_lines_cost(lines: StraightLines, count: int) -> Cost:
    """`evaluate_lines` at `count` residues."""
    return look_up_cost(lines.bits, lines.ring, count) * 2 + multiply_bit_cost(lines.ring, count * lines.step)


def lines_twin(residues: tuple[Residues, Residues], lines: StraightLines) -> Residues:
    """What `evaluate_lines` computes, from both parties' shares and in the clear."""
    step, last = np.uint64(lines.step), np.uint64((1 << lines.bits) - 1)
    index = ((residues[0] >> step) + (residues[1] >> step)) & last
    keep = np.uint64((1 << lines.step) - 1)
    return lines.ring.reduce(lines.offsets[index] + lines.slopes[index] * ((residues[0] & keep) + (residues[1] & keep)))
