"""Words on the trellis: side by side, each a chain of states or any other structure, and what becomes of their ends."""

from functools import lru_cache

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto.shares import ShareEngine
from ppspeech.protocols.scores.range import unreached
from ppspeech.protocols.scores.states import WordArrays, WordShape
from ppspeech.protocols.trellis.graph import Arc, Operation, Start, Trellis
from ppspeech.protocols.trellis.schedule import plan_trellis
from ppspeech.protocols.trellis.shares import TrellisRun

FAR, NEAR = 8, 2
"""Frames a step, in words that never turn back: over links where a round trip is dear, and where it costs no more than
to wake up another process.
"""
FEW, LONG = 200, 64
"""States of all utterances up to which, and frames beyond which, the latter counts; for best paths, whose operations
are the cheap ones.
"""


@lru_cache(maxsize=64)
def word_trellis(shape: WordShape) -> Trellis:
    """The graph. Staying is part of what a frame scores; weights are of the beginnings, then of moves elsewhere."""
    states, moves, starts = shape.states, shape.moves, shape.starts
    begun = shape.words * len(starts)
    arcs = [
        Arc(
            word * states + source,
            word * states + source + move,
            weight=begun + (word * states + source) * len(moves) + number if move else None,
        )
        for word in range(shape.words)
        for source in range(states)
        for number, move in enumerate(moves)
        if 0 <= source + move < states
    ]
    begins = [
        Start(word * states + state, word * len(starts) + number)
        for word in range(shape.words)
        for number, state in enumerate(starts)
    ]
    operation: Operation = "add" if shape.operation == "forward" else "max"
    columns = tuple(range(shape.words * states))
    return Trellis(columns, tuple(arcs), tuple(begins), shape.bits, (), operation, shape.fraction)


def looks_ahead(shape: WordShape) -> bool:
    """Whether steps can take several frames: states are stayed in, and never come back to."""
    return shape.moves[0] == 0 and shape.frames > 1


def usual_ahead(shape: WordShape, utterances: int = 1) -> int:
    """Frames a step, on a link where round trips are cheap."""
    few = utterances * shape.words * shape.states <= FEW and shape.frames > LONG
    return NEAR if few and shape.operation == "viterbi" and looks_ahead(shape) else 1


class WordRun:
    """Shares of γ, the score of all paths or the best to a state at a frame. Only the server has `models`. `ahead`:
    frames a step.
    """

    def __init__(
        self,
        engine: ShareEngine,
        shape: WordShape,
        models: WordArrays | None,
        utterances: int = 1,
        ahead: int = 1,
    ) -> None:
        self._plan = plan_trellis(word_trellis(shape), shape.frames, ahead=ahead)
        weights = None if models is None else _weights(self._plan.trellis, models)
        self._run = TrellisRun(engine, self._plan, weights, utterances)
        ring = shape.scale.ring
        lowest = shape.scale.encode(np.array([unreached(shape)]))
        self._unreached = engine.public(ring.from_signed(lowest))

    @property
    def frames(self) -> int:
        """How many came."""
        return self._run.frames

    def advance(self, emissions: Residues) -> None:
        """Take the next frames' emissions, `(utterances, frames, words * states)`, and do all that they allow."""
        self._run.advance(np.ascontiguousarray(emissions.transpose(1, 2, 0)))

    def scores(self, frames: slice) -> Residues:
        """γ of some frames, `(utterances, frames, words * states)`; what no path has reached wins against none
        (`range`).
        """
        found = self._run.all_scores(frames)
        found[~self._plan.reached[frames, : found.shape[1]]] = self._unreached
        return found.transpose(2, 0, 1)


def _weights(trellis: Trellis, models: WordArrays) -> Residues:
    flat = np.concatenate([models.initial_residues.reshape(-1), models.transition_residues.reshape(-1)])
    return flat[: trellis.weights]
