"""A trellis in the clear, on integers: what the parties' shares add up to, bit for bit, as long as no score wraps."""

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
    flat = emissions.reshape(-1, lanes)
    apart = 0

    def taken(side: Side) -> tuple[Whole, Residues]:
        kept = fields[side.place] & side.keep[:, None] | side.put[:, None]
        return scores[side.place] + heavy[side.weight][:, None], kept

    def store(batch: Batch, score: Whole, field: Residues) -> None:
        emits = batch.emission >= 0
        score[emits] += flat[batch.emission[emits]]
        scores[batch.place], fields[batch.place] = score, field

    begun = plan.starts
    store(begun, np.repeat(heavy[begun.sides[0].weight][:, None], lanes, axis=1), begun.sides[0].put[:, None])
    for slot in plan.slots:
        batch = slot.joined.before(frames)
        if len(batch):
            (left, left_field), (right, right_field) = (taken(side) for side in batch.sides)
            apart = max(apart, int(np.abs(left - right).max()))
            wins = left >= right if plan.trellis.operation == "max" else left < right
            store(batch, np.where(wins, left, right), np.where(wins, left_field, right_field))
        for each in slot.passed:
            batch = each.before(frames)
            store(batch, *taken(batch.sides[0]))
    shape = (plan.frames, len(plan.nodes), lanes)
    return Walked(scores.reshape(shape), fields.reshape(shape), apart)
