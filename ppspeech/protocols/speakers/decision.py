"""Accept or reject on shares: one bit of a score against a threshold, with or without T-norm.

Without T-norm the threshold is inside the score, and the bit is [score >= 0]. T-norm asks whether (s - mean) / std of
the cohort's scores is at least θ; without root and division, with D = s - mean and θ^2 std^2 = V,

    θ >= 0:  D >= 0 and D^2 >= V          θ < 0:  D >= 0 or D^2 <= V, which is not (D < 0 and D^2 > V).

Both are one `and` of [D >= 0] and [D^2 >= V], where the party that knows the sign of θ flips its share of the first
before and of the result after (at D^2 = V exactly a negative θ rejects; the plain rule accepts).
"""

import numpy as np

from ppspeech.arrays import Bits, Residues
from ppspeech.crypto import Ring
from ppspeech.crypto.shares import (
    LARGEST_RING,
    Cost,
    ShareEngine,
    and_bits,
    and_bits_cost,
    is_negative,
    is_negative_cost,
    square,
    square_cost,
)
from ppspeech.errors import RangeError


def accept(engine: ShareEngine, score: Residues, ring: Ring) -> Bits:
    """Shares of [score >= 0], `(count,)`."""
    return engine.flip(is_negative(engine, score, ring))


def accept_cost(ring: Ring, count: int = 1) -> Cost:
    """`accept` of `count` scores."""
    return is_negative_cost(ring, count)


def accept_against(engine: ShareEngine, score: Residues, deviations: Residues, ring: Ring, *, turn: bool) -> Bits:
    """Shares of the decision with T-norm.

    Args:
        engine: this party's.
        score: shares of D, `(1,)`.
        deviations: shares of θ (c_j - mean) / sqrt(cohort - 1), `(cohort,)`: their squares add up to V.
        ring: of both.
        turn: whether θ is negative; the first party's, False for the second.
    """
    wide = square_ring(ring, len(deviations))
    squares = square(engine, np.concatenate([score, deviations]), ring, wide)
    surplus = wide.reduce(squares[:1] - squares[1:].sum(keepdims=True, dtype=np.uint64))
    turned = np.uint8(turn)
    above = accept(engine, score, ring) ^ turned
    return and_bits(engine, above, accept(engine, surplus, wide)) ^ turned


def accept_against_cost(ring: Ring, cohort: int) -> Cost:
    """`accept_against`."""
    wide = square_ring(ring, cohort)
    return square_cost(ring, wide, 1 + cohort) + accept_cost(ring) + accept_cost(wide) + and_bits_cost(1)


def square_ring(ring: Ring, cohort: int) -> Ring:
    """The ring that holds D^2 less the sum of the cohort's squares, whatever they are.

    Raises:
        RangeError: if the engine has no ring so large.
    """
    bits = 2 * ring.bits - 1 + cohort.bit_length()
    if bits > LARGEST_RING:
        raise RangeError(
            f"squares of {ring.bits}-bit scores of a cohort of {cohort} need {bits} bits, more than {LARGEST_RING}: "
            "use fewer bits or a smaller cohort"
        )
    return Ring(bits)
