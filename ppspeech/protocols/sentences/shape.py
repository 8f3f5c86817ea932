"""Sentences as the encrypted layer sees them: a public graph of words, and the numbers of models that are not public.

Tokens walk through states of words from one junction to another. A token knows, by its fields, in which frame its word
began, which word it is, and from which junction it set out. So the best token of a junction at a frame is a record of
the last word before it, and of where to look for the one before that.

What a frame scores in every state is a product of its monomials by weights (Gaussians), or comes out of a network.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto import Scale
from ppspeech.crypto.lattice import LatticeParameters, MatrixPlan, Precision, error_bound, plan_product
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.protocols.networks import NetworkArrays, NetworkShape
from ppspeech.protocols.params import Params
from ppspeech.protocols.scores.monomials import Terms, count_monomials, monomials_of
from ppspeech.protocols.scores.range import frame_bounds, most_monomials, within_ball
from ppspeech.protocols.trellis import KEEP, Arc, Rule, Schedule, Set, Start, Trellis, most_apart, plan_trellis

MOST = {"frames": 3_000, "dimensions": 200, "most_words": 1_000}
MOST_WORDS = 4_000
MOST_ARCS = 1 << 17
MOST_CELLS = 1 << 22  # arcs times frames: a gigabyte for an answer
MOST_LIMIT = 100.0
LABEL_BYTES = 252
CHUNK = 2
"""Frames that are scored at once while somebody speaks; only the last ones of an utterance may be fewer."""
PART, ROUND = 128, 32  # frames whose products are made at once, at the most, and what their number is a multiple of
STREAM_RING = LatticeParameters(degree=4096)


@dataclass(frozen=True)
class SentenceShape(Params):
    """What both parties know. Nothing here depends on a voice or a weight.

    Attributes:
        frames: the length that every utterance is padded to.
        terms: which monomials a frame becomes.
        columns: of the scores, one a vertex; -1 for a junction.
        arcs: source, target, 1 where a word begins with it (else 0), and the word that is known from then on (else -1).
        starts: vertices in which an utterance may begin, and the word that is known there (else -1).
        end: the junction in which an utterance ends.
        words: what may be heard; an empty text for silence and the like.
        bits: of a score; their range is proved to hold all differences (`trellis.range`), or models refused.
        fraction: bits of a score after the point of a nat.
        limit: bound on the magnitude of every feature; frames are clipped to it, and to
        radius: the largest norm of a frame.
        most_words: silence counted: so many are asked for, whatever is said.
        network: whose outputs are the scores, a frame for a frame; None where they are products of monomials. Its
            frames are those of an utterance and zeros on both sides, its radius that of the shape, its last layer has
            the bits of a score.
    """

    WHAT: ClassVar[str] = "a service for sentences"

    frames: int
    dimensions: int
    terms: Terms
    columns: tuple[int, ...]
    arcs: tuple[tuple[int, int, int, int], ...]
    starts: tuple[tuple[int, int], ...]
    end: int
    words: tuple[str, ...] = field(metadata={"empty": True})
    most_words: int
    bits: int = 21
    fraction: int = 3
    limit: float = 8.0
    radius: float = 16.0
    network: NetworkShape | None = None

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            given = getattr(self, name)
            if not _is_whole(given) or not 1 <= given <= most:
                raise RangeError(f"{name} must lie in 1..{most}, got {given!r}")
        if self.terms not in {"full", "diagonal", "linear"}:
            raise RangeError(f"terms are full, diagonal or linear, got {self.terms!r}")
        bits, fraction = self.bits, self.fraction
        if not (_is_whole(bits) and _is_whole(fraction) and 4 <= bits <= 32 and 0 <= fraction <= 10):
            raise RangeError(f"scores have 4 to 32 bits, at most 10 after the point, got {self.bits}, {self.fraction}")
        if not all(isinstance(x, float | int) and 0 < x <= most for x, most in ((self.limit, 100), (self.radius, 1e4))):
            raise RangeError(f"limit and radius are above 0, got {self.limit!r} and {self.radius!r}")
        if not 1 <= len(self.words) <= MOST_WORDS or not all(
            isinstance(word, str) and len(word.encode()) <= LABEL_BYTES for word in self.words
        ):
            raise RangeError(f"there are 1 to {MOST_WORDS:,} words, of up to {LABEL_BYTES} bytes")
        numbers = [*self.columns, self.end, *(n for each in (*self.arcs, *self.starts) for n in each)]
        if not all(map(_is_whole, numbers)) or len(self.arcs) > MOST_ARCS or max(self.columns, default=-1) >= MOST_ARCS:
            raise RangeError(f"a graph of words is made of whole numbers, and has at most {MOST_ARCS:,} arcs")
        if self.frames * (len(self.arcs) + len(self.columns)) > MOST_CELLS:
            raise RangeError(
                f"{len(self.arcs):,} arcs over {self.frames:,} frames are more than can be followed: take fewer frames"
            )
        if any(len(arc) != 4 for arc in self.arcs) or any(len(start) != 2 for start in self.starts):
            raise RangeError("an arc is (source, target, begins, word), a start (vertex, word)")
        self._check_graph()
        if self.network is not None:
            self._check_network(self.network)

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """What a peer proposes, checked."""
        given = dict(params)
        if isinstance(given.get("network"), Mapping):
            given["network"] = NetworkShape.from_params(given["network"])
        return super().from_params(given)

    def _check_network(self, network: NetworkShape) -> None:
        if not isinstance(network, NetworkShape) or network.output != "scores" or network.span[1] != 1:
            raise RangeError("a network of sentences gives scores, of every frame")
        expected = {
            "frames": self.frames + network.span[0] - 1,
            "dimensions": self.dimensions,
            "labels": self.scores,
            "radius": self.radius,
        }
        for name, wanted in expected.items():
            if getattr(network, name) != wanted:
                raise RangeError(f"the network needs {name} {wanted}, got {getattr(network, name)}")
        whole = self.bits - self.fraction
        if network.layers[-1].range_bits != whole or network.fraction < self.fraction:
            raise RangeError(
                f"the network's scores need {whole} bits before the point and {self.fraction} or more after it, got "
                f"{network.layers[-1].range_bits} and {network.fraction}"
            )

    def _check_graph(self) -> None:
        words = [arc[3] for arc in self.arcs] + [word for _, word in self.starts]
        if not all(-1 <= word < len(self.words) for word in words):
            raise RangeError(f"words have the numbers 0 to {len(self.words) - 1}, or -1 where none is known yet")
        if not 0 <= self.end < len(self.columns) or self.columns[self.end] != -1:
            raise RangeError(f"an utterance ends in a junction, got {self.end}")
        ends = [vertex for arc in self.arcs for vertex in arc[:2]] + [vertex for vertex, _ in self.starts]
        if not all(0 <= vertex < len(self.columns) for vertex in ends):
            raise RangeError(f"vertices have the numbers 0 to {len(self.columns) - 1}")
        if any(arc[2] and self.columns[arc[0]] != -1 for arc in self.arcs):
            raise RangeError("words begin where junctions lead")
        if set(self.columns) - {-1} != set(range(max(self.columns) + 1)):
            raise RangeError("every column of the scores is some vertex'")
        if self.shortest > self.frames:
            raise RangeError(f"nothing that the graph allows is as short as {self.frames} frames")

    @property
    def scores(self) -> int:
        """Columns of the scores of a frame."""
        return max(self.columns) + 1

    @property
    def monomials(self) -> int:
        """Numbers of a frame on the wire; 0 where a network takes the frames."""
        return 0 if self.network is not None else count_monomials(self.dimensions, self.terms)

    @property
    def weights(self) -> int:
        """Numbers that scores are computed with."""
        return self.monomials * self.scores if self.network is None else self.network.weights

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
        """Of the encrypted product, where the server holds the key and the frames are the plain factor. A larger ring:
        an answer tells more bits than a word, and the key must be able to lose them.
        """
        return Precision(STREAM_RING, limit=2.0**13, weights=Scale(24, 14), result=self.scale)

    @cached_property
    def records(self) -> tuple[int, ...]:
        """Junctions whose tokens are kept: words set out from them, or all ends there."""
        return tuple(sorted({arc[0] for arc in self.arcs if arc[2]} | {self.end}))

    @cached_property
    def fields(self) -> tuple[int, int, int]:
        """Bits of a token's fields: the frame in which its word began, the word, the junction it set out from."""
        return self.frames.bit_length(), len(self.words).bit_length(), len(self.records).bit_length()

    @cached_property
    def trellis(self) -> Trellis:
        """The graph, with rules for what a token knows; weights are of the arcs that lead elsewhere, then of starts."""
        junctions = {vertex: place for place, vertex in enumerate(self.records)}
        shared: dict[tuple[int, int], tuple[Rule, ...]] = {}
        arcs, weight = [], 0
        for source, target, begins, word in self.arcs:
            itself, alike = source == target, (junctions[source] if begins else -1, word)
            if alike not in shared:
                origin = Rule(Set.CONSTANT, junctions[source]) if begins else KEEP
                known = KEEP if word < 0 else Rule(Set.CONSTANT, word)
                shared[alike] = (Rule(Set.FRAME) if begins else KEEP, known, origin)
            delay = 0 if self.columns[target] < 0 else 1
            arcs.append(Arc(source, target, delay, None if itself else weight, shared[alike]))
            weight += not itself
        starts = []
        for vertex, word in self.starts:
            known = KEEP if word < 0 else Rule(Set.CONSTANT, word)
            rules = (Rule(Set.CONSTANT, 0), known, Rule(Set.CONSTANT, 0))
            starts.append(Start(vertex, weight, rules))
            weight += 1
        columns = tuple(None if column < 0 else column for column in self.columns)
        return Trellis(columns, tuple(arcs), tuple(starts), self.bits, self.fields)

    @cached_property
    def plan(self) -> Schedule:
        """When which vertex is computed."""
        return plan_trellis(self.trellis, self.frames)

    @cached_property
    def shortest(self) -> int:
        """Frames of the shortest utterance. Raises RangeError if none leads to the end."""
        return _shortest(self.trellis, self.end, self.frames)

    @property
    def answer_bits(self) -> int:
        """Bits that the answer tells a client, whatever it does: that many records, of its choice."""
        return self.most_words * sum(self.fields)

    def clipped(self, frames: Reals) -> Reals:
        """Frames as they count: within the radius, then within the limit. The same in the clear."""
        return np.clip(within_ball(frames, self.radius), -self.limit, self.limit)

    def frame_monomials(self, frames: Reals) -> Reals:
        """Frames `(count, dimensions)`, clipped, as monomials; RangeError for others, or not finite."""
        given = np.asarray(frames, np.float64)
        if given.ndim != 2 or given.shape[1] != self.dimensions or not len(given):
            raise RangeError(f"frames must be (frames, {self.dimensions}), at least one, got {given.shape}")
        if not np.isfinite(given).all():
            raise RangeError("frames hold values that are not finite")
        return monomials_of(self.clipped(given), self.terms)

    def factor(self, frames: Reals) -> Reals:
        """What the client multiplies: monomials of an utterance, or its clipped frames with zeros on both sides, for a
        network. Raises RangeError if it is too short or long, or has other dimensions.
        """
        if self.network is None:
            return self.padded_monomials(frames)
        self._check_length(frames)
        before = np.zeros(((self.network.span[0] - 1) // 2, self.dimensions))
        given = np.asarray(frames, np.float64)
        if given.ndim != 2 or given.shape[1] != self.dimensions:
            raise RangeError(f"frames must be (frames, {self.dimensions}), at least one, got {given.shape}")
        return self.network.clipped(np.concatenate((before, given)))

    def padded_monomials(self, frames: Reals) -> Reals:
        """Monomials of an utterance, zeros up to the public length. Raises RangeError if it is too short or long."""
        self._check_length(frames)
        monomials = np.zeros((self.frames, self.monomials))
        monomials[: len(frames)] = self.frame_monomials(frames)
        return monomials

    def _check_length(self, frames: Reals) -> None:
        if not self.shortest <= len(frames) <= self.frames:
            raise RangeError(
                f"an utterance has {self.shortest} to {self.frames} frames here, got {len(frames)}: "
                "speak longer or shorter, or serve with another --frames"
            )


@dataclass(frozen=True, eq=False)
class SentenceArrays:
    """What the server keeps to itself: `weights` of the monomials, `(monomials, scores)`, ln of staying in a state in
    the constant's row; `arcs`, nats of the shape's arcs relative to staying where they lead (not read where they lead
    back to their source); `starts`, of the starts; `network`, where the shape has one, with ln of staying in its last
    biases: there are no monomials then. Raises PpspeechError for arrays that are not of the shape; RangeError if two
    scores that are compared can differ by more than the shape's bits hold.
    """

    shape: SentenceShape
    weights: Reals
    arcs: Reals
    starts: Reals
    network: NetworkArrays | None = None

    def __post_init__(self) -> None:
        shape = self.shape
        expected = {
            "weights": (shape.monomials, shape.scores),
            "arcs": (len(shape.arcs),),
            "starts": (len(shape.starts),),
        }
        if (None if self.network is None else self.network.shape) != shape.network:
            raise PpspeechError("the network must have the shape that it is told to have")
        for name, size in expected.items():
            given = getattr(self, name)
            if given.shape != size or not np.isfinite(given).all():
                raise PpspeechError(f"{name} must be finite and have shape {size}, got {given.shape}")
        apart = self.most_apart
        if not apart < shape.scale.bound:
            raise RangeError(
                f"scores of these models can be {apart:,.0f} nats apart, and {shape.bits} bits with {shape.fraction} "
                f"after the point hold {shape.scale.bound:,.0f}: raise bits, or lower the radius of frames"
            )

    @cached_property
    def most_apart(self) -> float:
        """Nats that two scores which are compared can differ by, whatever is said; errors of products included."""
        if self.network is None:
            depths = score_depths(self.shape, self.weights)
        else:
            depths = network_depths(self.shape, self.network)
        nats = self.shape.scale.decode(self.shape.scale.encode(self._moves))
        return most_apart(self.shape.trellis, nats, depths, self.shape.frames)

    @property
    def _moves(self) -> Reals:
        elsewhere = [number for number, arc in enumerate(self.shape.arcs) if arc[0] != arc[1]]
        return np.concatenate([self.arcs[elsewhere], self.starts])

    @cached_property
    def move_residues(self) -> Residues:
        """Weights of the trellis, at the scale of the shares."""
        scale = self.shape.scale
        return scale.ring.from_signed(scale.encode(self._moves))


def products_of(shape: SentenceShape) -> Sequence[MatrixPlan]:
    """The encrypted products of an utterance: one, or one a layer of the network."""
    if shape.network is None:
        return (product_plan(shape),)
    return tuple(shape.network.product(number) for number in range(len(shape.network.layers)))


def product_plan(shape: SentenceShape) -> MatrixPlan:
    """The encrypted product of a whole utterance: in parts of up to `PART` frames, cut as one that has a multiple of
    `ROUND` is. So whoever serves any number of lengths encodes weights in as many forms as there are such parts.
    """
    parts = -(-shape.frames // PART)
    rows = min(shape.frames, -(-shape.frames // (parts * ROUND)) * ROUND)
    return replace(plan_product(rows, shape.monomials, shape.scores, shape.precision), rows=shape.frames)


def network_depths(shape: SentenceShape, network: NetworkArrays) -> Reals:
    """How far below the highest output each output can lie, whatever was said; nats. Bits that are dropped count."""
    low, high = network.bounds
    depths: Reals = high.max() - low + 2 * 2.0**-shape.fraction
    return depths


def score_depths(shape: SentenceShape, weights: Reals) -> Reals:
    """How far below the highest score that any frame has in any column each column's can lie, errors included; nats."""
    lowest, highest = frame_bounds(weights, shape.terms, shape.limit, shape.radius)
    row = most_monomials(shape.dimensions, shape.terms, shape.limit, shape.radius)
    column, packed = float(np.abs(weights).sum(axis=0).max()), product_plan(shape).block_columns
    error = max(
        error_bound(shape.precision, row, column, shape.monomials, packed).total,
        error_bound(shape.streaming_precision, column, row, shape.monomials, CHUNK).total,
    )
    depths: Reals = highest.max() - lowest + 2 * error
    return depths


@lru_cache(maxsize=64)
def _shortest(trellis: Trellis, end: int, frames: int) -> int:
    reached = plan_trellis(trellis, frames).reached[:, end]
    if not reached.any():
        raise RangeError(f"no way leads from a start to the end within {frames} frames")
    first = int(reached.argmax())
    if not reached[first:].all():
        raise RangeError("utterances of some lengths cannot end: a graph of words can always be stayed in")
    return first + 1


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
