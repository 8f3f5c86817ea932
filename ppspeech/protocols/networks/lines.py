"""Activations by straight lines: what both parties know of them, and how they are computed on shares.

    f(x) = Σ_i c_i max(x - t_i, 0)

with public knots t_i and changes of slope c_i, whole multiples of 2^-s. A rectifier is one line, from 0 on; a sigmoid
and x Φ(x) (GELU) are a dozen, flat far below zero. On shares every knot costs a comparison and a product of its bit.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.crypto import Ring
from ppspeech.crypto.shares import Shared, round_local
from ppspeech.errors import RangeError

Activation = Literal["none", "relu", "sigmoid", "gelu"]
ACTIVATIONS: tuple[Activation, ...] = get_args(Activation)

SLOPE_BITS = 7
KNOT_BITS = 4
"""Knots are multiples of 2^-4: every scale of shares here holds them."""


@dataclass(frozen=True, slots=True)
class Polyline:
    """A function by its knots, `steps` of slope at them in units of 2^-`fraction`, and how far it is from what it
    stands for, anywhere.
    """

    knots: tuple[float, ...]
    steps: tuple[int, ...]
    fraction: int
    error: float

    def __call__(self, values: Reals) -> Reals:
        """f, in real numbers."""
        above = np.maximum(np.asarray(values, np.float64)[..., None] - np.array(self.knots), 0.0)
        return np.asarray(above @ np.ldexp(np.array(self.steps, np.float64), -self.fraction))

    @property
    def furthest(self) -> float:
        """The knot that is furthest from zero."""
        return max(map(abs, self.knots))

    @property
    def steepest(self) -> float:
        """The largest slope."""
        return float(np.abs(np.cumsum(self.steps)).max()) * 2.0**-self.fraction

    def of_shares(self, values: Shared, signs: Ring, fraction: int) -> Shared:
        """f of shared values of any shape, with `fraction` bits after the point; both parties at once. `signs`: a ring
        that holds all x - t_i. The result has the ring of `values` less `self.fraction` bits, and is off by
        a step at the most.
        """
        engine, ring = values.engine, values.ring
        knots = np.array([round(knot * 2**fraction) % (1 << 64) for knot in self.knots], np.uint64)
        apart = Shared(engine, values.own[..., None] - engine.public(knots), ring)
        above = ~apart.in_ring(signs).is_negative()
        slopes = np.array(self.steps, np.int64).view(np.uint64)
        lines = above * Shared(engine, ring.reduce(apart.own * slopes), ring)
        return round_local(lines.sum(axis=-1), self.fraction)


@cache
def lines_of(activation: Activation) -> Polyline | None:
    """An activation as lines; None for none."""
    if activation == "none":
        return None
    if activation == "relu":
        return Polyline((0.0,), (1,), 0, 0.0)
    if activation == "sigmoid":
        return _drawn(_sigmoid, (-7.0, -5.0, -4.0, -3.0, -2.25, -1.5, -0.75, 0.75, 1.5, 2.25, 3.0, 4.0, 5.0, 7.0), 1.0)
    if activation == "gelu":
        return _drawn(_gelu, (-3.0, -2.25, -1.75, -1.25, -0.75, -0.375, 0.0, 0.375, 0.75, 1.25, 1.75, 2.25, 3.0), None)
    raise RangeError(f"an activation is one of {', '.join(ACTIVATIONS)}, got {activation!r}")


def _drawn(function: Callable[[float], float], knots: tuple[float, ...], ends_at: float | None) -> Polyline:
    """Lines from knot to knot, each ending as near to the function as its slope allows. From the last knot on the slope
    is 0 where the function ends at a value, else 1.
    """
    assert all((knot * 2**KNOT_BITS).is_integer() for knot in knots)
    slopes, height = [], 0.0
    for here, there in itertools.pairwise(knots):
        aim = function(there) if there != knots[-1] or ends_at is None else ends_at
        slope = round((aim - height) / (there - here) * 2**SLOPE_BITS)
        height += slope * (there - here) * 2.0**-SLOPE_BITS
        slopes.append(slope)
    slopes.append(0 if ends_at is not None else 1 << SLOPE_BITS)
    turns = [(knot, int(step)) for knot, step in zip(knots, np.diff([0, *slopes]), strict=True) if step]
    knots, steps = tuple(knot for knot, _ in turns), tuple(step for _, step in turns)
    found = Polyline(knots, steps, SLOPE_BITS, 0.0)
    grid = np.linspace(-20.0, 20.0, 20_001)
    wanted = np.array([function(x) for x in grid])
    return Polyline(knots, steps, SLOPE_BITS, float(np.abs(found(grid) - wanted).max()))


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def _gelu(x: float) -> float:
    return x * (1 + math.erf(x / math.sqrt(2))) / 2
