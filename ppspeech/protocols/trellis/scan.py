"""The recursion for links where a round trip is dear: a few wide steps a state instead of one step a frame.

For a chain, with S_j(t) = Σ_{0 < s <= t} [ln a_jj + e_s(j)], a local sum,

    γ_t(j) = S_j(t) + op over τ <= t of [ γ_{τ-1}(j - 1) + ln a_{j-1,j} - ln a_jj - S_j(τ - 1) ]

and the op over all prefixes takes ⌈log2 T⌉ levels (Sklansky 1960): 28 for 98 frames and 5 states instead of 97, with
about three times the work.
"""

from collections.abc import Iterator

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto.shares import ShareEngine, share_input
from ppspeech.crypto.transfer import Side
from ppspeech.errors import RangeError
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


def can_scan(shape: WordShape) -> bool:
    """Whether the models are chains that begin in their first state."""
    return shape.moves == (0, 1) and shape.starts == (0,)


def scan_paths(engine: ShareEngine, shape: WordShape, models: WordArrays | None, emissions: Residues) -> Residues:
    """Shares of γ of all frames, shaped as emissions: `(utterances, frames, words, states)`; chains or RangeError."""
    if not can_scan(shape):
        raise RangeError(f"a prefix scan needs chains from the first state, got moves {shape.moves}, {shape.starts}")
    ring, combine = shape.scale.ring, Combine(shape.operation, shape.scale, few_rounds=True)
    chances = Chances(engine, shape, models)
    stays, moves = chances.moves[:, :, 0], chances.moves[:, :, 1]
    stay = emissions + stays
    stay[:, 0] = 0
    sums = np.cumsum(stay, axis=1, dtype=np.uint64)  # S_j(t), mod 2^64: its residue mod 2^k is what counts
    gamma = np.empty_like(emissions)
    gamma[:] = chances.unreached
    gamma[..., 0] = sums[..., 0] + emissions[:, :1, :, 0] + chances.initial[:, 0]
    for j in range(1, min(shape.states, shape.frames)):
        enter = gamma[:, j - 1 : -1, :, j - 1] - sums[:, j - 1 : -1, :, j] + moves[:, j - 1] - stays[:, j]
        gamma[:, j:, :, j] = _scan(engine, combine, ring.reduce(enter)) + sums[:, j:, :, j]
    return ring.reduce(gamma)


def _scan(engine: ShareEngine, combine: Combine, values: Residues) -> Residues:
    """op over all prefixes along axis 1."""
    values = values.copy()
    for later, earlier in _levels(values.shape[1]):
        values[:, later] = combine(engine, values[:, later], values[:, earlier])
    return values


def _levels(length: int) -> Iterator[tuple[list[int], list[int]]]:
    """What is combined with what: at each level the upper half of a block with the last of its lower half."""
    for level in range((length - 1).bit_length()):
        later = [i for i in range(length) if (i >> level) & 1]
        yield later, [(i >> level << level) - 1 for i in later]
