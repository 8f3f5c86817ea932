"""A trellis on shares: slot after slot, each a batch of comparisons and of products with what they found.

A slot's operands are gathered and its results stored by one compiled loop each; between them stand the two messages of
a comparison and the two of a product, which the fields of the tokens share.
"""

from typing import Any

import numba
import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto import Ring
from ppspeech.crypto.shares import ShareEngine, is_negative, multiply_bit, multiply_loaded
from ppspeech.errors import RangeError
from ppspeech.protocols.trellis.schedule import Batch, Schedule


class TrellisRun:
    """One party's side. Both `advance` alike, in flights of an engine; then each has shares of every score and field.

    `weights`: residues of this party, for the arcs; None for one that has none. (Where both have some, they add up.)
    `lanes`: recursions in lock step, of one graph and the same weights.
    """

    def __init__(self, engine: ShareEngine, plan: Schedule, weights: Residues | None, lanes: int = 1) -> None:
        trellis = plan.trellis
        if weights is not None and weights.shape != (trellis.weights,):
            raise RangeError(f"the arcs speak of {trellis.weights} weights, got {weights.shape}")
        self.frames = 0
        self._engine, self._plan, self._lanes = engine, plan, lanes
        self._ring, self._width = Ring(trellis.bits), sum(trellis.fields)
        self._weights = np.zeros(trellis.weights + 1, np.uint64)
        if weights is not None:
            self._weights[:-1] = weights
        self._scores = np.zeros((plan.places, lanes), np.uint64)
        self._fields = np.zeros((plan.places if self._width else 1, lanes), np.uint64)
        self._emissions = np.zeros((plan.frames * trellis.emissions, lanes), np.uint64)
        self._done = 0

    def advance(self, emissions: Residues) -> None:
        """Take the next frames' emissions, `(frames, columns, lanes)`, and do all that they allow."""
        columns = self._plan.trellis.emissions
        if emissions.shape[1:] != (columns, self._lanes) or self.frames + len(emissions) > self._plan.frames:
            raise RangeError(
                f"up to {self._plan.frames - self.frames} frames of {columns} columns and {self._lanes} lanes may "
                f"come, got {emissions.shape}"
            )
        at = self.frames * columns
        self._emissions[at : at + len(emissions) * columns] = emissions.reshape(-1, self._lanes)
        if self.frames == 0 and len(emissions):
            self._pass(self._plan.starts)
        self.frames += len(emissions)
        while self._done < len(self._plan.slots) and self._plan.needs[self._done] <= self.frames:
            self._run(self._plan.frames)

    def finish(self) -> None:
        """No further frame comes: do what is left of those that came."""
        while self._done < len(self._plan.slots):
            self._run(self.frames)

    def scores(self, frame: int, vertex: int) -> Residues:
        """Shares of a vertex' scores at a frame, `(lanes,)`."""
        found: Residues = self._scores[self._plan.place(frame, vertex)]
        return found

    def fields(self, vertices: list[int]) -> Residues:
        """Shares, by exclusive or, of the fields of tokens in these vertices, `(frames, vertices, lanes)`."""
        shape = (self._plan.frames, len(self._plan.nodes), self._lanes)
        return self._fields.reshape(shape)[: self.frames, vertices]

    def _run(self, frames: int) -> None:
        slot = self._plan.slots[self._done]
        self._done += 1
        batch = slot.joined.before(frames)
        if len(batch):
            self._join(batch)
        for passed in slot.passed:
            self._pass(passed.before(frames))

    def _join(self, batch: Batch) -> None:
        engine, (left, right), size = self._engine, batch.sides, (len(batch), self._lanes)
        difference, behind = np.empty(size, np.uint64), np.empty(size, np.uint64)
        _gather(self._scores, self._weights, left.place, right.place, left.weight, right.weight, difference, behind)
        wins = is_negative(engine, difference.reshape(-1), self._ring)
        if self._plan.trellis.operation == "max":
            wins = engine.flip(wins)
        if not self._width:
            gained = multiply_bit(engine, wins, difference.reshape(-1), self._ring)
            _store(self._scores, batch.place, behind, gained.reshape(size), self._emissions, batch.emission, self._mask)
            return
        loads, kept = np.empty(size, np.uint64), np.empty(size, np.uint64)
        sets = np.uint64(engine.is_first)
        _gather_fields(
            self._fields, left.place, right.place, left.keep, right.keep, left.put, right.put, sets, loads, kept
        )
        gained, moved = multiply_loaded(
            engine, wins, difference.reshape(-1), loads.reshape(-1), self._ring, self._width
        )
        _store(self._scores, batch.place, behind, gained.reshape(size), self._emissions, batch.emission, self._mask)
        self._fields[batch.place] = kept ^ moved.reshape(size)

    def _pass(self, batch: Batch) -> None:
        (side,) = batch.sides
        behind = self._scores[side.place] + self._weights[side.weight][:, None]
        if batch is self._plan.starts:
            behind = np.repeat(self._weights[side.weight][:, None], self._lanes, axis=1)
        nothing = np.zeros_like(behind)
        _store(self._scores, batch.place, behind, nothing, self._emissions, batch.emission, self._mask)
        if self._width:
            put = side.put if self._engine.is_first else np.zeros_like(side.put)
            self._fields[batch.place] = self._fields[side.place] & side.keep[:, None] | put[:, None]

    @property
    def _mask(self) -> np.uint64:
        return self._ring.mask


@numba.njit(nogil=True, cache=True)
def _gather(
    scores: Any, weights: Any, left: Any, right: Any, left_weight: Any, right_weight: Any, difference: Any, behind: Any
) -> None:
    for j in range(len(left)):
        gain = weights[left_weight[j]] - weights[right_weight[j]]
        for lane in range(scores.shape[1]):
            other = scores[right[j], lane]
            difference[j, lane] = scores[left[j], lane] - other + gain
            behind[j, lane] = other + weights[right_weight[j]]


@numba.njit(nogil=True, cache=True)
def _gather_fields(
    fields: Any, left: Any, right: Any, left_keep: Any, right_keep: Any, left_put: Any, right_put: Any, sets: Any,
    loads: Any, kept: Any,
) -> None:  # fmt: skip
    for j in range(len(left)):
        for lane in range(fields.shape[1]):
            one = (fields[left[j], lane] & left_keep[j]) | (left_put[j] * sets)
            other = (fields[right[j], lane] & right_keep[j]) | (right_put[j] * sets)
            loads[j, lane] = one ^ other
            kept[j, lane] = other


@numba.njit(nogil=True, cache=True)
def _store(scores: Any, place: Any, behind: Any, gained: Any, emissions: Any, emission: Any, mask: Any) -> None:
    for j in range(len(place)):
        for lane in range(scores.shape[1]):
            score = behind[j, lane] + gained[j, lane]
            if emission[j] >= 0:
                score += emissions[emission[j], lane]
            scores[place[j], lane] = score & mask
