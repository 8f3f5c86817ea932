"""A trellis in the clear, on integers: what the parties' shares add up to, bit for bit, as long as no score wraps.

Where tokens are added up it takes the best of them: sums of tokens depend on how they are shared, a little.
"""

from dataclasses import dataclass

import numpy as np

from ppspeech.arrays import Residues, Whole
from ppspeech.protocols.trellis.schedule import Batch, Schedule, Side


@dataclass(frozen=True, eq=False)
class Walked:
    """All scores and fields, `(frames, nodes, lanes)`; the vertices come first among the nodes. `apart`: how far two
    scores that were compared were from each other.
    """

    scores: Whole
    fields: Residues
    apart: int


def walk(plan: Schedule, weights: Whole, emissions: Whole) -> Walked:
    """The twin. `emissions`: `(frames, columns, lanes)`; for fewer frames than the plan's, the rest stays zero."""
    frames, _, lanes = emissions.shape
    scores = np.zeros((plan.places, lanes), np.int64)
    fields = np.zeros((plan.places, lanes), np.uint64)
    heavy = np.append(weights, 0)
    sums = np.zeros((plan.frames + 1, max(1, plan.trellis.emissions), lanes), np.int64)
    sums[1 : 1 + frames, : emissions.shape[1]] = np.cumsum(emissions, axis=0)
    flat = sums.reshape(-1, lanes)
    apart = 0

    def taken(side: Side) -> tuple[Whole, Residues]:
        kept = fields[side.place] & side.keep[:, None] | side.put[:, None]
        return scores[side.place] + heavy[side.weight][:, None] + flat[side.until] - flat[side.since], kept

    def store(batch: Batch, score: Whole, field: Residues) -> None:
        scores[batch.place], fields[batch.place] = score, field

    begun = plan.starts
    store(begun, np.repeat(heavy[begun.sides[0].weight][:, None], lanes, axis=1), begun.sides[0].put[:, None])
    for slot in plan.slots:
        batch = slot.joined.before(frames)
        if len(batch):
            (left, left_field), (right, right_field) = (taken(side) for side in batch.sides)
            apart = max(apart, int(np.abs(left - right).max()))
            wins = left < right if plan.trellis.operation == "min" else left >= right
            store(batch, np.where(wins, left, right), np.where(wins, left_field, right_field))
        for each in slot.passed:
            batch = each.before(frames)
            store(batch, *taken(batch.sides[0]))
    shape = (plan.frames, len(plan.nodes), lanes)
    scores = scores.reshape(shape)
    for vertex, column in enumerate(plan.trellis.columns):
        if column is not None:
            scores[:frames, vertex] += emissions[:, column]
    return Walked(scores, fields.reshape(shape), apart)
