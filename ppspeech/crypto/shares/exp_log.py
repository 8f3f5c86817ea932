"""exp and log of shared fixed-point numbers.

exp(x), x <= 0: straight lines over segments of 1/32 nat from -254/32 nats up, and 0 below: within 1/2 unit of the
last place and 3.6e-4 (what is cut off at the bottom).

log(x), x > 0: x is compared with all powers of two at once, which gives the place of its top bit and moves that to
the front; the mantissa's log is straight lines over 64 segments: within 1/2 unit of the last place and 1.5e-4.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.shares.bits import bit_residues, from_bits_cost
from ppspeech.crypto.shares.compare import is_negative, is_negative_cost
from ppspeech.crypto.shares.cost import Cost
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.select import multiply_bit, multiply_bit_cost
from ppspeech.crypto.shares.straight_lines import StraightLines, evaluate_lines, evaluate_lines_cost
from ppspeech.crypto.shares.truncate import truncate, truncate_cost, truncate_local
from ppspeech.errors import RangeError

EXTRA = 10
"""Bits the lines carry beyond the result, so that rounding is the result's own."""


@dataclass(frozen=True)
class ExpLog:
    """How exp and log are computed; both parties hold the same.

    Attributes:
        ring: of numbers and results, up to 50 bits.
        fraction: bits after the point of both, 6 to 16; the ring has at least 6 more.
    """

    ring: Ring
    fraction: int

    def __post_init__(self) -> None:
        if not 6 <= self.fraction <= 16 or not self.fraction + 6 <= self.ring.bits <= 50:
            raise RangeError(
                "exp and log take 6 to 16 bits after the point and rings of 6 more to 50, "
                f"got {self.fraction} and {self.ring.bits}"
            )

    @cached_property
    def wide(self) -> Ring:
        """The ring the lines are in."""
        return Ring(self.ring.bits + EXTRA)

    @cached_property
    def exp_lines(self) -> StraightLines:
        """exp, for residues moved up by 255 segments."""
        width = 1 / 32
        at = (np.arange(256) - 255) * width
        # A chord lies above the curve; moved down by half its largest distance, it errs alike on both sides.
        down = np.exp(at + width) * width**2 / 4
        lines = np.exp(at) - down, np.exp(at + 2 * width) - down
        return StraightLines(self.wide, self.fraction + EXTRA, 8, self.fraction - 5, *lines)

    @property
    def mantissa(self) -> int:
        """Bits of the mantissa below its top bit."""
        return min(15, self.ring.bits - 2)

    @cached_property
    def log_lines(self) -> StraightLines:
        """log over [1, 2), for mantissas less their top bit and plus one segment."""
        width = 1 / 64
        # Each party dropped bits of its own: one unit is lost on average, where any were dropped.
        lost = 2.0**-self.mantissa if self.ring.bits - 2 > self.mantissa else 0.0
        at = 1 + lost + (np.arange(128) - 1) * width
        up = width**2 / (4 * (at + width) ** 2)
        lines = np.log(at) + up, np.log(at + 2 * width) + up
        return StraightLines(self.wide, self.fraction + EXTRA, 7, self.mantissa - 6, *lines)


def exp(engine: ShareEngine, residues: Residues, how: ExpLog) -> Residues:
    """Shares of e^x for shared x <= 0, `(count,)`; what is above 0 gives nothing of use."""
    step = how.exp_lines.step
    moved = how.ring.reduce(residues + engine.public(np.full(len(residues), 255 << step, np.uint64)))
    value = _round(engine, evaluate_lines(engine, moved, how.exp_lines), how)
    one = engine.public(np.full(len(residues), 1 << step, np.uint64))
    inside = engine.flip(is_negative(engine, how.ring.reduce(moved - one), how.ring))
    return multiply_bit(engine, inside, value, how.ring)


def exp_cost(how: ExpLog, count: int) -> Cost:
    """`exp` of `count` residues."""
    cost = evaluate_lines_cost(how.exp_lines, count) + truncate_cost(how.wide, EXTRA, count)
    return cost + is_negative_cost(how.ring, count) + multiply_bit_cost(how.ring, count)


def log(engine: ShareEngine, residues: Residues, how: ExpLog) -> Residues:
    """Shares of log x for shared x > 0, `(count,)`; log 0 is the ring's lowest residue, and nothing of use below."""
    ring, count = how.ring, len(residues)
    powers = np.uint64(1) << np.arange(ring.bits - 1, dtype=np.uint64)[:, None]
    # 1. reached[j] = [x >= 2^j]
    below = ring.reduce(residues[None, :] - engine.public(np.broadcast_to(powers, (len(powers), count))))
    reached = engine.flip(is_negative(engine, below.reshape(-1), ring)).reshape(below.shape)
    # 2. x 2^(k - 2 - j) for the last j reached: its top bit is bit k - 2
    last = reached.copy()
    last[:-1] ^= reached[1:]
    lifted = ring.reduce(residues[None, :] * powers[::-1])
    moved = multiply_bit(engine, last.reshape(-1), lifted.reshape(-1), ring).reshape(lifted.shape)
    front = ring.reduce(moved.sum(axis=0, dtype=np.uint64))
    # 3. the log of the mantissa
    lines = how.log_lines
    mantissa = truncate_local(front, ring, ring.bits - 2 - how.mantissa)
    shift = (1 << lines.step) - (1 << how.mantissa)
    index = (mantissa + engine.public(np.full(count, shift & 0xFFFFFFFF, np.uint64))) & np.uint64(0xFFFFFFFF)
    value = evaluate_lines(engine, index, lines)
    # 4. and log 2 for every power reached beyond 2^fraction
    places = bit_residues(engine, reached[1:].reshape(-1), how.wide).reshape(len(powers) - 1, count)
    unit = np.uint64(np.rint(np.log(2) * 2.0 ** (how.fraction + EXTRA)))
    value += unit * (places.sum(axis=0, dtype=np.uint64) - engine.public(np.full(count, how.fraction, np.uint64)))
    rounded = _round(engine, how.wide.reduce(value), how)
    # 5. unless x = 0
    lowest = engine.public(np.full(count, 1 << (ring.bits - 1), np.uint64))
    return ring.reduce(lowest + multiply_bit(engine, reached[0], ring.reduce(rounded - lowest), ring))


def log_cost(how: ExpLog, count: int) -> Cost:
    """`log` of `count` residues."""
    ring = how.ring
    cost = is_negative_cost(ring, count * (ring.bits - 1)) + multiply_bit_cost(ring, count * (ring.bits - 1))
    cost += evaluate_lines_cost(how.log_lines, count) + from_bits_cost(how.wide, count, ring.bits - 2)
    return cost + truncate_cost(how.wide, EXTRA, count) + multiply_bit_cost(ring, count)


def _round(engine: ShareEngine, wide: Residues, how: ExpLog) -> Residues:
    half = engine.public(np.full(len(wide), 1 << (EXTRA - 1), np.uint64))
    return truncate(engine, how.wide.reduce(wide + half), how.wide, EXTRA)
