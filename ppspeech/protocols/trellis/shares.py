"""A trellis on shares: slot after slot, each a batch of comparisons and of products with what they found.

A slot's operands are gathered and its results stored by one compiled loop each; between them stand the two messages of
a comparison and the two of a product, which the fields of the tokens share.
"""

from typing import Any

import numba
import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto import Ring, Scale
from ppspeech.crypto.shares import ShareEngine, is_negative, multiply_bit, multiply_loaded
from ppspeech.errors import RangeError
from ppspeech.protocols.trellis.combine import Combine
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
        self._sums = np.zeros((plan.frames + 1, max(1, trellis.emissions), lanes), np.uint64)
        self._adds = Combine("forward", Scale(trellis.bits, trellis.fraction)) if trellis.operation == "add" else None
        self._done = 0

    def advance(self, emissions: Residues) -> None:
        """Take the next frames' emissions, `(frames, columns, lanes)`, and do all that they allow."""
        columns = self._plan.trellis.emissions
        if emissions.shape[1:] != (columns, self._lanes) or self.frames + len(emissions) > self._plan.frames:
            raise RangeError(
                f"up to {self._plan.frames - self.frames} frames of {columns} columns and {self._lanes} lanes may "
                f"come, got {emissions.shape}"
            )
        if columns:
            for frame, row in enumerate(emissions, self.frames):
                np.add(self._sums[frame], row, out=self._sums[frame + 1])
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
        self._plan.place(frame, vertex)
        found: Residues = self.all_scores(slice(frame, frame + 1))[0, vertex]
        return found

    def all_scores(self, frames: slice) -> Residues:
        """Shares of all vertices' scores at some frames, `(frames, vertices, lanes)`; what is where no token can be
        means nothing.
        """
        columns = self._plan.trellis.columns
        found = self._scores.reshape(self._plan.frames, -1, self._lanes)[frames, : len(columns)].copy()
        states = [(vertex, column) for vertex, column in enumerate(columns) if column is not None]
        emissions = self._sums[1:][frames] - self._sums[:-1][frames]
        found[:, [vertex for vertex, _ in states]] += emissions[:, [column for _, column in states]]
        return self._ring.reduce(found)

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
        sums = self._sums.reshape(-1, self._lanes)
        _gather(
            self._scores, self._weights, sums, left.place, left.weight, left.since, left.until, right.place,
            right.weight, right.since, right.until, difference, behind,
        )  # fmt: skip
        if self._adds is not None:
            ahead = self._ring.reduce(behind + difference).reshape(-1)
            added = self._adds(engine, ahead, self._ring.reduce(behind).reshape(-1))
            self._scores[batch.place] = added.reshape(size)
            return
        wins = is_negative(engine, difference.reshape(-1), self._ring)
        if self._plan.trellis.operation == "max":
            wins = engine.flip(wins)
        if not self._width:
            gained = multiply_bit(engine, wins, difference.reshape(-1), self._ring)
            _store(self._scores, batch.place, behind, gained.reshape(size), self._ring.mask)
            return
        loads, kept = np.empty(size, np.uint64), np.empty(size, np.uint64)
        sets = np.uint64(engine.is_first)
        _gather_fields(
            self._fields, left.place, right.place, left.keep, right.keep, left.put, right.put, sets, loads, kept
        )
        gained, moved = multiply_loaded(
            engine, wins, difference.reshape(-1), loads.reshape(-1), self._ring, self._width
        )
        _store(self._scores, batch.place, behind, gained.reshape(size), self._ring.mask)
        self._fields[batch.place] = kept ^ moved.reshape(size)

    def _pass(self, batch: Batch) -> None:
        (side,) = batch.sides
        score = self._weights[side.weight][:, None]
        if batch is not self._plan.starts:
            sums = self._sums.reshape(-1, self._lanes)
            score = self._scores[side.place] + score + sums[side.until] - sums[side.since]
        self._scores[batch.place] = self._ring.reduce(score)
        if self._width:
            put = side.put if self._engine.is_first else np.zeros_like(side.put)
            self._fields[batch.place] = self._fields[side.place] & side.keep[:, None] | put[:, None]


@numba.njit(nogil=True, cache=True)
def _gather(
    scores: Any, weights: Any, sums: Any, left: Any, left_weight: Any, left_since: Any, left_until: Any, right: Any,
    right_weight: Any, right_since: Any, right_until: Any, difference: Any, behind: Any,
) -> None:  # fmt: skip
    for j in range(len(left)):
        for lane in range(scores.shape[1]):
            one = scores[left[j], lane] + sums[left_until[j], lane] - sums[left_since[j], lane]
            other = scores[right[j], lane] + sums[right_until[j], lane] - sums[right_since[j], lane]
            other += weights[right_weight[j]]
            difference[j, lane] = one + weights[left_weight[j]] - other
            behind[j, lane] = other


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
def _store(scores: Any, place: Any, behind: Any, gained: Any, mask: Any) -> None:
    for j in range(len(place)):
        for lane in range(scores.shape[1]):
            scores[place[j], lane] = (behind[j, lane] + gained[j, lane]) & mask
