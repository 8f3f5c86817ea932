"""The recursion over frames on shares, for any public structure of states.

    γ_0(j) = ln π_j + e_0(j),      γ_t(j) = op over sources i of [ γ_{t-1}(i) + ln a_ij ] + e_t(j)

Which states a path may be in at time t is public, so nothing stands for minus infinity inside the recursion: a state
with one source needs no operation, one that cannot be reached yet is left out.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto.shares import ShareEngine, share_input
from ppspeech.crypto.transfer import Side
from ppspeech.protocols.scores.range import unreached
from ppspeech.protocols.scores.states import WordArrays, WordShape
from ppspeech.protocols.trellis.combine import Combine


class Chances:
    """This party's shares of what the server knows of moving and beginning, in nats: the client's are zero. `models`:
    the server's; None for the client.

    Attributes:
        initial: of beginning in each of `starts`, `(words, starts)`.
        moves: of moving from a state by each move, `(words, states, moves)`.
        unreached: what stands for a state that no path has reached: it may be an end, and never wins there (`range`).
    """

    def __init__(self, engine: ShareEngine, shape: WordShape, models: WordArrays | None) -> None:
        ring = shape.scale.ring
        initial, moves = (None, None) if models is None else (models.initial_residues, models.transition_residues)
        sizes = (shape.words, len(shape.starts)), (shape.words, shape.states, len(shape.moves))
        self.initial = share_input(engine, Side.FIRST, initial, sizes[0], ring).own
        self.moves = share_input(engine, Side.FIRST, moves, sizes[1], ring).own
        lowest = shape.scale.encode(np.array([unreached(shape)]))
        self.unreached = engine.public(ring.from_signed(lowest))


@dataclass(frozen=True)
class _Step:
    """The graph between two frames. `levels`: for the first source of every target, the second of those that have one,
    and so on: the targets' places among `targets`, the sources, and which of the moves leads from one to the other.
    """

    targets: list[int]
    levels: list[tuple[list[int], list[int], list[int]]]
    missing: list[int]


@lru_cache(maxsize=1024)
def _step(shape: WordShape, reached: frozenset[int]) -> _Step:
    targets = sorted(shape.reached_after(reached))
    routes = [shape.sources(target, reached) for target in targets]
    levels = []
    for place in range(max(map(len, routes))):
        used = [at for at, sources in enumerate(routes) if len(sources) > place]
        sources = [routes[at][place] for at in used]
        moves = [shape.moves.index(targets[at] - routes[at][place]) for at in used]
        levels.append((used, sources, moves))
    return _Step(targets, levels, sorted(set(range(shape.states)) - set(targets)))


class Paths:
    """Shares of γ, one frame after the other; `(utterances, words, states)`. Only the server has `models`."""

    def __init__(self, engine: ShareEngine, shape: WordShape, models: WordArrays | None) -> None:
        self._engine = engine
        self._shape = shape
        self._combine = Combine(shape.operation, shape.scale)
        self._chances = Chances(engine, shape, models)
        self._reached = frozenset(shape.starts)
        self._missing = sorted(set(range(shape.states)) - self._reached)

    def step(self, state: Residues | None, emission: Residues) -> Residues:
        """γ of the next frame from γ of this one (None before the first) and the frame's emissions."""
        return self.land(None if state is None else self.advance(state), emission)

    def advance(self, state: Residues) -> Residues:
        """The part of a step that needs no emission, so that it can be done before the frame is spoken.

        Targets with several sources are combined level by level, all in one batch.
        """
        step = _step(self._shape, self._reached)
        self._reached, self._missing = frozenset(step.targets), step.missing
        scores = np.zeros((*state.shape[:-1], len(step.targets)), np.uint64)
        for level, (used, sources, moves) in enumerate(step.levels):
            arriving = state[..., sources] + self._chances.moves[:, sources, moves]
            scores[..., used] = self._combine(self._engine, scores[..., used], arriving) if level else arriving
        arrived = np.zeros_like(state)
        arrived[..., step.targets] = scores
        return arrived

    def land(self, arrived: Residues | None, emission: Residues) -> Residues:
        """The rest of a step: γ of a frame from what `advance` gave; None for the first frame."""
        if arrived is None:
            arrived = np.zeros_like(emission)
            arrived[..., list(self._shape.starts)] = self._chances.initial
        after = arrived + emission
        after[..., self._missing] = self._chances.unreached
        return self._shape.scale.ring.reduce(after)
