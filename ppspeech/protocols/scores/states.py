"""Word models as the encrypted layer sees them: what is public about them, and the numbers that are not.

A frame becomes the monomials in which its scores are linear (`monomials`). Everything is a numpy array: this room knows
no torch.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto import Scale
from ppspeech.crypto.lattice import KEPT_BITS, Precision, error_bound
from ppspeech.crypto.shares import Shared, ShareEngine, at_least, text_residues, text_size
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.protocols.params import Params
from ppspeech.protocols.scores.monomials import Terms, count_monomials, monomials_of
from ppspeech.protocols.scores.range import (
    RAREST,
    deepest_floor,
    frame_bounds,
    most_monomials,
    needed_bits,
    within_ball,
)

VAGUE = 4
"""Log of the nats above the floor within which a score may count as the floor."""
MOST_REACH = 25
"""Log of the nats over which a product may go: its rounding, spread over so many, is still a tenth of a nat."""
MOST_DEPTH = 1 << MOST_REACH

MOST_LIMIT = 100.0
MOST_RADIUS = 1e4
MOST = {"frames": 3_000, "dimensions": 200, "words": 1_000, "states": 1_000, "components": 256, "label_bytes": 252}
"""What a party agrees to: beyond, a peer's parameters are refused before anything is allocated."""
MOST_LINEAR = 6_144
"""Dimensions of vectors that are scored linearly: those of 64 embeddings of 96 numbers."""


@dataclass(frozen=True, slots=True)
class WordShape(Params):
    """What both parties know: sizes and structure. Nothing here depends on a voice or a weight.

    Attributes:
        frames: T, the length that every utterance is padded to.
        dimensions: d, numbers of a frame.
        terms: `full`, `diagonal` or `linear`: which monomials a frame becomes.
        ends: states a path may end in.
        components: Gaussians of a state.
        moves: how far a path may move in a step: (0, 1) for a chain; negative moves make any structure.
        starts: states a path may begin in.
        operation: `forward` adds up all paths, `viterbi` takes the best.
        reject: whether there is a garbage model, whose victory means "none of the words".
        label_bytes: every label is padded to this.
        bits: of a share in the recursion; its range is proved to hold all scores (`range`), or the shape refused.
        fraction: bits of a share after the point of a nat.
        limit: bound on the magnitude of every feature; frames are clipped to it, and before to
        radius: the largest norm of a frame, if any.
        floor: nats below the highest that the score of a frame can lie; None: as many as the shares hold.
        reach: log of the nats that a frame's scores range over before the floor is applied, on shares; None: they lie
            above it by themselves.
    """

    WHAT: ClassVar[str] = "word models"

    frames: int
    dimensions: int
    terms: Terms
    words: int
    states: int
    ends: tuple[int, ...]
    components: int = 1
    moves: tuple[int, ...] = (0, 1)
    starts: tuple[int, ...] = (0,)
    operation: Literal["forward", "viterbi"] = "forward"
    reject: bool = False
    label_bytes: int = 28
    bits: int = 25
    fraction: int = 7
    limit: float = 8.0
    radius: float | None = None
    floor: int | None = None
    reach: int | None = None

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            given = getattr(self, name)
            if name == "dimensions" and self.terms == "linear":
                most = MOST_LINEAR
            if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= most:
                raise RangeError(f"{name} must lie in 1..{most}, got {given!r}")
        if self.terms not in {"full", "diagonal", "linear"} or self.operation not in {"forward", "viterbi"}:
            raise RangeError(f"terms or operation are not known: {self.terms!r}, {self.operation!r}")
        for name in ("starts", "ends"):
            states = getattr(self, name)
            if not states or sorted(set(states)) != list(states) or not 0 <= states[0] <= states[-1] < self.states:
                raise RangeError(f"{name} are states in ascending order, got {states}")
        if not self.moves or sorted(set(self.moves)) != list(self.moves) or abs(self.moves[-1]) >= MOST["states"]:
            raise RangeError(f"moves are ascending, got {self.moves}")
        if not 12 <= self.bits <= 32 or not 0 <= self.fraction <= 10:
            raise RangeError(f"shares have 12 to 32 bits, at most 10 after the point, got {self.bits}, {self.fraction}")
        if not isinstance(self.reject, bool) or not 0 < self.limit <= MOST_LIMIT:
            raise RangeError(
                f"reject is true or false and the limit in (0, {MOST_LIMIT:g}], got {self.reject!r}, {self.limit!r}"
            )
        if self.radius is not None and not (isinstance(self.radius, float | int) and 0 < self.radius <= MOST_RADIUS):
            raise RangeError(f"a radius lies in (0, {MOST_RADIUS:g}], got {self.radius!r}")
        self._check_range()

    def _check_range(self) -> None:
        depth = 1 if self.floor is None else self.floor
        if not isinstance(depth, int) or isinstance(depth, bool) or not 1 <= depth <= MOST_DEPTH:
            raise RangeError(f"a floor is a whole number of nats, 1 to {MOST_DEPTH:,}, got {depth!r}")
        if depth > deepest_floor(self):
            raise RangeError(
                f"scores of {self.frames} frames down to {depth} nats below the highest need "
                f"{needed_bits(self, depth)} bits, got {self.bits}: raise bits, or serve fewer frames"
            )
        least, most = max(self.bits - self.fraction, VAGUE + 2), min(MOST_REACH, KEPT_BITS - self.fraction)
        if self.reach is not None and (self.floor is None or not least <= self.reach <= most):
            raise RangeError(
                f"scores that a floor is applied to have one, and a reach of 2^{least} to 2^{most} nats, "
                f"got {self.floor}, {self.reach}"
            )

    @property
    def depth(self) -> int:
        """F: the nats below the highest that the score of a frame can lie."""
        return deepest_floor(self) if self.floor is None else self.floor

    @property
    def monomials(self) -> int:
        """Numbers of a frame on the wire."""
        return count_monomials(self.dimensions, self.terms)

    @property
    def columns(self) -> int:
        """Scores of a frame: all components of all states, and the garbage model's."""
        return self.words * self.states * self.components + self.reject

    @property
    def candidates(self) -> int:
        """What is chosen among."""
        return self.words + self.reject

    @property
    def answer_bits(self) -> int:
        """Bits that one answer tells a client, whatever it does: which candidate, or none.

        Theorem 2.1 in docs/theory/asking.md.
        """
        return self.candidates.bit_length()

    @property
    def label_residues(self) -> int:
        """Residues of the engine that a label takes."""
        return text_size(self.label_bytes)

    @property
    def scale(self) -> Scale:
        """Of the shares, in nats."""
        return Scale(self.bits, self.fraction)

    @property
    def score_scale(self) -> Scale:
        """Of the shares of a frame's scores, as the encrypted product leaves them."""
        return self.scale if self.reach is None else Scale(KEPT_BITS, KEPT_BITS - self.reach)

    @property
    def precision(self) -> Precision:
        """Of the encrypted product, where the client holds the key."""
        return Precision(limit=max(1.0, self.limit**2), weights=Scale(28, 13), result=self.score_scale)

    @property
    def streaming_precision(self) -> Precision:
        """Of the encrypted product, where the server holds the key and the frames are the plain factor."""
        return Precision(limit=2.0**13, weights=Scale(24, 14), result=self.score_scale)

    def floored(self, engine: ShareEngine, scores: Residues) -> Residues:
        """Shares of a frame's scores as they count, at `scale`, from those at `score_scale`; of any shape.

        What is below the floor counts as it, and so may what is less than 16 nats above it.
        """
        if self.reach is None:
            return scores
        product, fewer = self.score_scale, self.score_scale.fraction - self.fraction
        given = Shared(engine, scores, product.ring)
        least = -self.depth << product.fraction
        return at_least(given, least, product.fraction + VAGUE, fewer, self.scale.ring).residues

    def sources(self, state: int, reached: frozenset[int]) -> list[int]:
        """From where a path can come to a state, given which states it may be in."""
        return [state - move for move in self.moves if state - move in reached]

    def reached_after(self, reached: frozenset[int]) -> frozenset[int]:
        """Which states a path may be in one step later."""
        return frozenset(state for state in range(self.states) if self.sources(state, reached))

    @property
    def shortest(self) -> int:
        """Frames of the shortest path from a start to an end."""
        reached = frozenset(self.starts)
        for frames in range(1, self.states + 1):
            if reached & set(self.ends):
                return frames
            reached = self.reached_after(reached)
        raise RangeError(f"no path leads from {self.starts} to {self.ends} by moves {self.moves}")

    def clipped(self, frames: Reals) -> Reals:
        """Frames as they count: within the radius, then within the limit. The same in the clear."""
        near = frames if self.radius is None else within_ball(frames, self.radius)
        return np.clip(near, -self.limit, self.limit)

    def frame_monomials(self, frames: Reals) -> Reals:
        """Frames `(count, dimensions)`, clipped, as monomials; RangeError for others, or not finite."""
        given = np.asarray(frames, np.float64)
        if given.ndim != 2 or given.shape[1] != self.dimensions or not len(given):
            raise RangeError(f"frames must be (frames, {self.dimensions}), at least one, got {given.shape}")
        if not np.isfinite(given).all():
            raise RangeError("frames hold values that are not finite")
        return monomials_of(self.clipped(given), self.terms)

    def padded_monomials(self, frames: Reals) -> Reals:
        """Monomials of an utterance, its last frame repeated up to the public length: `(frames, monomials)`.

        Raises RangeError if it is shorter than the shortest path or longer than the public length.
        """
        if not self.shortest <= len(frames) <= self.frames:
            raise RangeError(
                f"an utterance has {self.shortest} to {self.frames} frames here, got {len(frames)}: "
                "speak longer or shorter, or serve with another --frames"
            )
        monomials = self.frame_monomials(frames)
        return np.concatenate((monomials, np.repeat(monomials[-1:], self.frames - len(frames), axis=0)))


@dataclass(frozen=True, eq=False)
class WordArrays:
    """What the server keeps to itself.

    Attributes:
        weights: of the monomials, `(monomials, columns)`; columns in the order word, state, component, then the
            garbage model. Component weights are in the constant's row.
        transitions: ln of moving from a state by each move, `(words, states, moves)`; impossible ones count as RAREST.
        initial: ln of beginning in each of `starts`, `(words, starts)`.
        labels: what the client learns, one a word.
        top: what the server takes off its share of every score of a frame, so that none is above 0; None: the highest
            that one can be.

    Raises PpspeechError for arrays that are not of the shape; RangeError if a frame's scores could be above 0, or below
    what the shape says.
    """

    shape: WordShape
    weights: Reals
    transitions: Reals
    initial: Reals
    labels: tuple[str, ...]
    top: float | None = None

    def __post_init__(self) -> None:
        shape = self.shape
        expected = {
            "weights": (shape.monomials, shape.columns),
            "transitions": (shape.words, shape.states, len(shape.moves)),
            "initial": (shape.words, len(shape.starts)),
        }
        for name, size in expected.items():
            if getattr(self, name).shape != size:
                raise PpspeechError(f"{name} must have shape {size}, got {getattr(self, name).shape}")
        if len(self.labels) != shape.words:
            raise PpspeechError(f"{shape.words} words need as many labels, got {len(self.labels)}")
        long = [label for label in self.labels if not 0 < len(label.encode()) <= shape.label_bytes]
        if long:
            raise PpspeechError(f"labels have 1 to {shape.label_bytes} bytes, got {long[0]!r}: raise label_bytes")
        if max(self.transitions.max(), self.initial.max()) > 1e-6:
            raise PpspeechError("transitions and beginnings are logarithms of probabilities: none is above 0")
        self._check_range()

    def _check_range(self) -> None:
        shape, (lowest, highest) = self.shape, score_bounds(self.shape, self.score_weights)
        top = highest if self.top is None else self.top
        room = float(shape.depth) if shape.reach is None else 2.0 ** (shape.reach - 1) - (2 << VAGUE)
        if not highest <= top <= lowest + room:
            raise RangeError(
                f"for features within {shape.limit:g} a frame can score {lowest:.0f} to {highest:.0f} nats, and there "
                f"is room for {top - room:.0f} to {top:.0f}: raise bits, lower the limit or radius of features, or set "
                "a floor"
            )
        object.__setattr__(self, "top", top)

    @cached_property
    def stays(self) -> Reals:
        """ln of staying in each state, `(words, states)`, which every frame in it pays: it goes with the frame's score.

        The shares' scale is coarse; a rounded ln of staying, added a hundred times, would not be what it was.
        """
        return staying(self.shape, self.transitions)

    @cached_property
    def score_weights(self) -> Reals:
        """`weights` with `stays` in the constant's row."""
        return with_stays(self.shape, self.weights, self.transitions)

    @property
    def highest(self) -> float:
        """`top`, as it was given or found."""
        assert self.top is not None
        return self.top

    def below_top(self, scores: Residues) -> Residues:
        """The server's shares of frames' scores, at `score_scale`, less `top`."""
        scale = self.shape.score_scale
        return scale.ring.reduce(scores - scale.ring.reduce(scale.encode(np.array(self.highest)).view(np.uint64)))

    @cached_property
    def transition_residues(self) -> Residues:
        """`transitions` less what the target's score holds already, at the scale of the shares."""
        relative = np.maximum(self.transitions, RAREST)
        for number, move in enumerate(self.shape.moves):
            for source in range(max(0, -move), min(self.shape.states, self.shape.states - move)):
                relative[:, source, number] -= self.stays[:, source + move]
        return self._as_residues(relative)

    @cached_property
    def initial_residues(self) -> Residues:
        """`initial` less what the state's score holds already, at the scale of the shares."""
        return self._as_residues(np.maximum(self.initial, RAREST) - self.stays[:, list(self.shape.starts)])

    @cached_property
    def label_numbers(self) -> Residues:
        """Labels as residues, `(candidates, label_residues)`; the garbage model's is empty."""
        numbers = np.zeros((self.shape.candidates, self.shape.label_residues), np.uint64)
        numbers[: self.shape.words] = text_residues(self.labels, self.shape.label_bytes)
        return numbers

    def _as_residues(self, values: Reals) -> Residues:
        scale = self.shape.scale
        return scale.ring.from_signed(scale.encode(values))


def staying(shape: WordShape, transitions: Reals) -> Reals:
    """ln of staying in each state, `(words, states)`; 0 where no path stays."""
    if 0 not in shape.moves:
        return np.zeros((shape.words, shape.states))
    stays: Reals = np.maximum(transitions[:, :, shape.moves.index(0)], RAREST)
    return stays


def with_stays(shape: WordShape, weights: Reals, transitions: Reals) -> Reals:
    """Weights with ln of staying in the constant's row."""
    stays, scored = staying(shape, transitions), weights.astype(np.float64)
    scored[-1, : stays.size * shape.components] += np.repeat(stays, shape.components)
    return scored


def score_bounds(shape: WordShape, weights: Reals) -> tuple[float, float]:
    """The least and the most that a frame within limit and radius can score in any column, errors of either encrypted
    product included. Certain.
    """
    lowest, highest = frame_bounds(weights, shape.terms, shape.limit, shape.radius)
    row = most_monomials(shape.dimensions, shape.terms, shape.limit, shape.radius)
    column = float(np.abs(weights).sum(axis=0).max())
    error = max(
        error_bound(shape.precision, row, column, shape.monomials, packed=shape.columns).total,
        error_bound(shape.streaming_precision, column, row, shape.monomials, packed=1).total,
    )
    return float(lowest.min()) - error, float(highest.max()) + error
