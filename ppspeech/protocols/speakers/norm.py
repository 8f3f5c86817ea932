"""Accept or reject on shares: one bit of a score against a threshold, with or without T-norm.

Without T-norm the threshold is inside the score, and the bit is [score >= 0]. T-norm asks whether (s - mean) / std of
the cohort's scores is at least θ; without root and division, with D = s - mean and θ^2 std^2 = V,

    θ >= 0:  D >= 0 and D^2 >= V          θ < 0:  D >= 0 or D^2 <= V, which is not (D < 0 and D^2 > V).

Both are one `and` of [D >= 0] and [D^2 >= V], where the party that knows the sign of θ flips its share of the first
before and of the result after (at D^2 = V exactly a negative θ rejects; the plain rule accepts).

Linear scores have mean, σ of Z-norm and θ in their weights. Sums S of mixtures over frames (Z-norm's means are in them)
are scaled here, with a = 1 / σ and K cohort members:

    D = K a_u S_u - sum_j a_j S_j,   V = sum_i (θ / sqrt(K - 1) (K a_i S_i - sum_j a_j S_j))^2.

The number of frames scales D and the root of V alike. The factors are the server's: products on shares, no division.
"""

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto import Ring
from ppspeech.crypto.shares import (
    LARGEST_RING,
    Shared,
    SharedBits,
    choose,
    concatenate,
    is_negative,
    maximum,
    minimum,
    multiply,
    scale_by_first,
    square,
    truncate_local,
)
from ppspeech.errors import RangeError
from ppspeech.protocols.scores.linear import LinearPlan, LinearScorer
from ppspeech.protocols.scores.mixture import MixturePlan, MixtureScorer

Scorer = LinearScorer | MixtureScorer

HELD = 24
"""Bits that sums are held to: ±32,768 nats over all frames, far beyond what voices give; more counts as so much."""

FRACTION = 10  # bits after the point of the factors: a, whose largest is 1, and θ / sqrt(K - 1), below 4

FACTOR = Ring(FRACTION + 2)
SCALED = Ring(48)
CENTERED = Ring(24)
WEIGHED = Ring(40)
COMPARED = Ring(27)


def accept(
    plan: LinearPlan | MixturePlan, scores: Shared, claimed: int | None = None, scorer: Scorer | None = None
) -> SharedBits:
    """The decision, `(1,)`, from the tried model's score and the cohort's, `(1 + cohort,)`.

    `claimed` is the second party's, needed for mixtures with T-norm; `scorer` the first party's.
    """
    if not plan.cohort:
        return is_positive(scores)
    if isinstance(plan, MixturePlan):
        scores = _scaled(plan, scores, claimed, scorer if isinstance(scorer, MixtureScorer) else None)
    return accept_against(scores[:1], scores[1:], turn=scorer is not None and scorer.turn)


def is_positive(scores: Shared) -> SharedBits:
    """[score >= 0], `(count,)`."""
    return ~SharedBits(scores.engine, is_negative(scores.engine, scores.residues, scores.ring))


def accept_against(score: Shared, deviations: Shared, *, turn: bool) -> SharedBits:
    """The decision with T-norm of D, `(1,)`, where the squares of deviations, `(cohort,)`, add up to V.

    A deviation is θ (c_j - mean) / sqrt(cohort - 1); `turn`, whether θ is negative, is the first party's.
    """
    wide = square_ring(score.ring, len(deviations))
    squares = square(concatenate([score, deviations]), wide)
    surplus = squares[:1] - squares[1:].reshape(1, -1).sum(axis=1)
    return _turned(_turned(is_positive(score), turn) & is_positive(surplus), turn)


def _turned(bits: SharedBits, turn: bool) -> SharedBits:
    """The opposite bits if the party that knows says so."""
    return SharedBits(bits.engine, bits.own ^ np.uint8(turn))


def square_ring(ring: Ring, cohort: int) -> Ring:
    """The ring that holds D^2 less the cohort's squares, whatever they are. Raises RangeError if it is too large."""
    bits = 2 * ring.bits - 1 + cohort.bit_length()
    if bits > LARGEST_RING:
        raise RangeError(
            f"squares of {ring.bits}-bit scores of a cohort of {cohort} need {bits} bits, more than {LARGEST_RING}: "
            "use fewer bits or a smaller cohort"
        )
    return Ring(bits)


def _scaled(plan: MixturePlan, totals: Shared, claimed: int | None, scorer: MixtureScorer | None) -> Shared:
    """D and the roots of V's terms, `(1 + cohort,)`, from sums over frames."""
    engine, held = totals.engine, _hold(totals)
    inverse, theta = _factors(plan, scorer)
    own = choose(Shared(engine, inverse[None, : plan.models], FACTOR), claimed)
    claimed_score = multiply(held[:1], own, SCALED)
    others = scale_by_first(held[1:], inverse[plan.models :], SCALED)
    centered = plan.cohort * concatenate([claimed_score, others]) - others.sum(axis=0)
    # Of K a S - sum(a S) the low bits are dropped: what is left has magnitudes below 2^23.
    dropped = (2 * plan.cohort).bit_length() + HELD + FRACTION - CENTERED.bits
    weighed = scale_by_first(truncate_local(centered, dropped).in_ring(CENTERED), theta, WEIGHED)
    return truncate_local(weighed, FRACTION).in_ring(COMPARED)


def _hold(totals: Shared) -> Shared:
    """Sums held to the range of 24 bits, so that nothing wraps around later."""
    engine, ring = totals.engine, totals.ring
    if ring.bits > HELD:
        most = (1 << (HELD - 1)) - 1
        for operation, limit in ((minimum, most), (maximum, -most)):
            residues = ring.from_signed(np.full(len(totals), limit, np.int64))
            totals = operation(totals, Shared(engine, engine.public(residues), ring))
    return totals.in_ring(Ring(min(HELD, ring.bits)))


def _factors(plan: MixturePlan, scorer: MixtureScorer | None) -> tuple[Residues, Residues]:
    """Shares of 1 / σ of models and cohort, the largest 1; and of what D and the cohort's terms are multiplied by."""
    if scorer is None:
        return np.zeros(plan.models + plan.cohort, np.uint64), np.zeros(1 + plan.cohort, np.uint64)
    inverse = np.rint(scorer.spreads.min() / scorer.spreads * 2.0**FRACTION).astype(np.uint64)
    theta = np.full(1 + plan.cohort, abs(scorer.threshold) / np.sqrt(plan.cohort - 1))
    theta[0] = 1
    return inverse, np.rint(theta * 2.0**FRACTION).astype(np.uint64)
