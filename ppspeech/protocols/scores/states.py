"""Word models as the encrypted layer sees them: what is public about them, and the numbers that are not.

A frame becomes the monomials in which its scores are linear (`monomials`). Everything is a numpy array: this room knows
no torch.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto import Scale
from ppspeech.crypto.lattice import Precision
from ppspeech.crypto.shares import text_residues, text_size
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.protocols.scores.monomials import Terms, count_monomials, monomials_of

RAREST = -100.0  # ln of the rarest transition: what is rarer, or impossible, counts as this rare

MOST_LIMIT = 100.0
MOST = {"frames": 3_000, "dimensions": 200, "words": 1_000, "states": 1_000, "components": 256, "label_bytes": 252}
"""What a party agrees to: beyond, a peer's parameters are refused before anything is allocated."""


@dataclass(frozen=True, slots=True)
class WordShape:
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
        fraction: bits of a share after the point of a nat.
        limit: bound on the magnitude of every feature; frames are clipped to it.
    """

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

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            given = getattr(self, name)
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
        """Bits that one answer tells a client, whatever it does: which candidate, or none (`docs/THEORY.md`)."""
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
    def precision(self) -> Precision:
        """Of the encrypted product, where the client holds the key."""
        return Precision(limit=max(1.0, self.limit**2), weights=Scale(28, 13), result=self.scale)

    @property
    def streaming_precision(self) -> Precision:
        """Of the encrypted product, where the server holds the key and the frames are the plain factor."""
        return Precision(limit=2.0**13, weights=Scale(24, 14), result=self.scale)

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

    def to_params(self) -> dict[str, Any]:
        """As public parameters of a session: what JSON can hold."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """What a peer proposes, checked. Raises RangeError for anything that is not a shape this party agrees to."""
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in params.items()}
        try:
            return cls(**given)
        except TypeError as error:
            raise RangeError(f"not the shape of word models: {error}") from None

    def frame_monomials(self, frames: Reals) -> Reals:
        """Frames `(count, dimensions)`, clipped to the limit, as monomials; RangeError for others, or not finite."""
        given = np.asarray(frames, np.float64)
        if given.ndim != 2 or given.shape[1] != self.dimensions or not len(given):
            raise RangeError(f"frames must be (frames, {self.dimensions}), at least one, got {given.shape}")
        if not np.isfinite(given).all():
            raise RangeError("frames hold values that are not finite")
        return monomials_of(np.clip(given, -self.limit, self.limit), self.terms)

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
    """

    shape: WordShape
    weights: Reals
    transitions: Reals
    initial: Reals
    labels: tuple[str, ...]

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

    @cached_property
    def stays(self) -> Reals:
        """ln of staying in each state, `(words, states)`, which every frame in it pays: it goes with the frame's score.

        The shares' scale is coarse; a rounded ln of staying, added a hundred times, would not be what it was.
        """
        if 0 not in self.shape.moves:
            return np.zeros((self.shape.words, self.shape.states))
        stays: Reals = np.maximum(self.transitions[:, :, self.shape.moves.index(0)], RAREST)
        return stays

    @cached_property
    def score_weights(self) -> Reals:
        """`weights` with `stays` in the constant's row."""
        weights = self.weights.astype(np.float64)
        weights[-1, : self.stays.size * self.shape.components] += np.repeat(self.stays, self.shape.components)
        return weights

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
