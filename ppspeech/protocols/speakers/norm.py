"""T-norm of mixtures' scores on shares, after the Z-norm's scaling.

With S the sums over frames (the Z-norm's means are in them), a = 1 / σ and K cohort members, accept iff

    D >= 0 and D^2 >= E (θ >= 0; `speaker_decision` has the other case),
    D = K a_u S_u - sum_j a_j S_j,   E = sum_i (θ / sqrt(K - 1) (K a_i S_i - sum_j a_j S_j))^2.

The number of frames scales D and the root of E alike. The factors are the server's: products on shares, no division.
"""

import numpy as np

from ppspeech.arrays import Bits, Residues
from ppspeech.crypto import Ring
from ppspeech.crypto.shares import (
    Cost,
    ShareEngine,
    choose,
    choose_cost,
    maximum,
    maximum_cost,
    minimum,
    multiply,
    multiply_cost,
    scale_by_first,
    scale_by_first_cost,
    truncate_local,
)
from ppspeech.protocols.scores.mixture import MixturePlan, MixtureScorer
from ppspeech.protocols.speakers.decision import accept_against, accept_against_cost

HELD = 24
"""Bits that sums are held to: ±32,768 nats over all frames, far beyond what voices give; more counts as so much."""

FRACTION = 10
"""Bits after the point of the factors: a, whose largest is 1, and θ / sqrt(K - 1), below 4."""

FACTOR = Ring(FRACTION + 2)
SCALED = Ring(48)
CENTRED = Ring(24)
WEIGHED = Ring(40)
COMPARED = Ring(27)


def accept_normed(
    engine: ShareEngine, plan: MixturePlan, totals: Residues, claimed: int | None, scorer: MixtureScorer | None
) -> Bits:
    """Shares of the decision, from shares of the claimed model's and the cohort's sums, `(1 + cohort,)`.

    Args:
        engine: this party's.
        plan: sizes.
        totals: our shares.
        claimed: the second party's; None for the first.
        scorer: the first party's; None for the second.
    """
    held, ring = _hold(engine, plan, totals)
    inverse, theta = _factors(plan, scorer)
    own = choose(engine, inverse[None, : plan.models], claimed, FACTOR)
    claimed_score = multiply(engine, held[:1], own, (ring, FACTOR), SCALED)
    others = scale_by_first(engine, held[1:], inverse[plan.models :], ring, SCALED)
    both = np.concatenate([claimed_score, others])
    centered = SCALED.reduce(np.uint64(plan.cohort) * both - others.sum(dtype=np.uint64))
    short = CENTRED.reduce(truncate_local(centered, SCALED, _dropped(plan.cohort)))
    weighed = scale_by_first(engine, short, theta, CENTRED, WEIGHED)
    compared = COMPARED.reduce(truncate_local(weighed, WEIGHED, FRACTION))
    turn = scorer is not None and scorer.threshold < 0
    return accept_against(engine, compared[:1], compared[1:], COMPARED, turn=turn)


def accept_normed_cost(plan: MixturePlan) -> Cost:
    """`accept_normed`."""
    ring = _held_ring(plan)
    holding = maximum_cost(plan.total_ring, 1 + plan.cohort) * 2 if plan.total_ring.bits > HELD else Cost()
    return (
        holding
        + choose_cost(FACTOR, 1, plan.models)
        + multiply_cost((ring, FACTOR), SCALED, 1)
        + scale_by_first_cost(ring, SCALED, plan.cohort)
        + scale_by_first_cost(CENTRED, WEIGHED, 1 + plan.cohort)
        + accept_against_cost(COMPARED, plan.cohort)
    )


def _hold(engine: ShareEngine, plan: MixturePlan, totals: Residues) -> tuple[Residues, Ring]:
    """Sums held to the range of 24 bits, so that nothing wraps around later, and the ring they are in."""
    ring = plan.total_ring
    if ring.bits > HELD:
        most = (1 << (HELD - 1)) - 1
        for operation, limit in ((minimum, most), (maximum, -most)):
            residues = np.full(len(totals), limit, np.int64)
            totals = operation(engine, totals, engine.public(ring.from_signed(residues)), ring)
    held = _held_ring(plan)
    return held.reduce(totals), held


def _held_ring(plan: MixturePlan) -> Ring:
    return Ring(min(HELD, plan.total_ring.bits))


def _factors(plan: MixturePlan, scorer: MixtureScorer | None) -> tuple[Residues, Residues]:
    """Shares of 1 / σ of models and cohort, the largest 1; and of what D and the cohort's terms are multiplied by."""
    count = plan.models + plan.cohort
    if scorer is None:
        return np.zeros(count, np.uint64), np.zeros(1 + plan.cohort, np.uint64)
    inverse = np.rint(scorer.spreads.min() / scorer.spreads * 2.0**FRACTION).astype(np.uint64)
    theta = np.full(1 + plan.cohort, abs(scorer.threshold) / np.sqrt(plan.cohort - 1))
    theta[0] = 1
    return inverse, np.rint(theta * 2.0**FRACTION).astype(np.uint64)


def _dropped(cohort: int) -> int:
    """Low bits that K a S - sum(a S) can do without: what is left has magnitudes below 2^23."""
    return (2 * cohort).bit_length() + HELD + FRACTION - CENTRED.bits
