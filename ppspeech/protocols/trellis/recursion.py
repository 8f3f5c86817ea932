"""The recursion over frames on shares, for any structure of states.

    γ_0(j) = ln π_j + e_0(j),      γ_t(j) = op over sources i of [ γ_{t-1}(i) + ln a_ij ] + e_t(j)

Which states a path may be in at time t is public, so nothing stands for minus infinity inside the recursion: a state
with one source needs no operation, one that cannot be reached yet is left out.
"""

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto.shares import ShareEngine
from ppspeech.protocols.scores.states import WordModels, WordShape
from ppspeech.protocols.trellis.combine import Combine


class Paths:
    """Shares of γ, one frame after the other; `(utterances, words, states)`.

    Args:
        engine: this party's.
        shape: of the models.
        models: the server's; None for the client, whose shares of what the server knows are zero.
    """

    def __init__(self, engine: ShareEngine, shape: WordShape, models: WordModels | None) -> None:
        self._engine = engine
        self._shape = shape
        self._combine = Combine(shape.operation, shape.scale)
        self._models = models
        self._reached: frozenset[int] = frozenset()

    def step(self, state: Residues | None, emission: Residues) -> Residues:
        """γ of the next frame from γ of this one (None before the first) and the frame's emissions."""
        return self.land(None if state is None else self.advance(state), emission)

    def advance(self, state: Residues) -> Residues:
        """The part of a step that needs no emission, so that it can be done before the frame is spoken."""
        shape = self._shape
        targets = sorted(shape.reached_after(self._reached))
        routes = [shape.sources(target, self._reached) for target in targets]
        self._reached = frozenset(targets)
        arrived = np.zeros_like(state)
        arrived[..., targets] = self._arrive(state, targets, routes)
        return arrived

    def land(self, arrived: Residues | None, emission: Residues) -> Residues:
        """The rest of a step: γ of a frame from what `advance` gave; None for the first frame."""
        shape, ring = self._shape, self._shape.scale.ring
        if arrived is None:
            self._reached = frozenset(shape.starts)
            arrived = np.zeros_like(emission)
            if self._models is not None:
                arrived[..., list(shape.starts)] = self._models.initial_residues
        after = arrived + emission
        missing = sorted(set(range(shape.states)) - self._reached)
        after[..., missing] = unreached(shape, self._models)
        return ring.reduce(after)

    def _arrive(self, state: Residues, targets: list[int], routes: list[list[int]]) -> Residues:
        """op over each target's sources; targets with several are combined level by level, all in one batch."""
        most = max(map(len, routes))
        scores = np.zeros((*state.shape[:-1], len(targets)), np.uint64)
        for place in range(most):
            used = [at for at, sources in enumerate(routes) if len(sources) > place]
            sources = [routes[at][place] for at in used]
            arriving = state[..., sources]
            if self._models is not None:
                moves = [self._shape.moves.index(targets[at] - routes[at][place]) for at in used]
                arriving = arriving + self._models.transition_residues[:, sources, moves]
            if place:
                arriving = self._combine(self._engine, scores[..., used], self._shape.scale.ring.reduce(arriving))
            scores[..., used] = arriving
        return scores


def unreached(shape: WordShape, models: WordModels | None) -> np.uint64:
    """A share of what stands for a state that no path has reached: it may be an end, and must not win there."""
    ring = shape.scale.ring
    return ring.from_signed(np.array([-(1 << (ring.bits - 2))]))[0] if models is not None else np.uint64(0)
