"""Dynamic time warping: the client has an utterance, the server templates; the client learns the nearest one's label.

    1. client → server   the frames of its utterance, of a public number, encrypted
    2. server → client   their products with all frames of all templates, masked: shares of <x_i, y_j>; each party takes
                         its own |x_i|²/2 or |y_j|²/2 off its share
    3. both              all templates in lock step (`trellis`): rows as states, diagonals of the square as frames
    4. both              a tournament of the templates; the winner's label, one of the server's, by transfer

    v(i, j) = s(i, j) + max(v(i-1, j-1), v(i-1, j), v(i, j-1)),    s = <x, y> - |x|²/2 - |y|²/2,    |i - j| <= band

Or there is one template, and the client learns whether it is alike and, if so, at which of its own frames some public
rows of the template begin (`alignment`). Ranges: `search.range`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto import Scale
from ppspeech.crypto.lattice import EncodedWeights, MatrixPlan, Precision, encode_weights, error_bound, plan_product
from ppspeech.crypto.shares import Cost, Shared, ShareEngine, blank, read_text, record, text_residues
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.protocols.meeting import WORKERS, Meeting, meet_as_client, meet_as_server
from ppspeech.protocols.params import Params
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.search.range import warping_apart
from ppspeech.protocols.search.spotting import ASSUMPTIONS
from ppspeech.protocols.search.tournament import best_of, tell_name, tell_where
from ppspeech.protocols.trellis import KEEP, Arc, Rule, Schedule, Set, Start, Trellis, TrellisRun, plan_trellis

MOST = {"length": 200, "dimensions": 400, "templates": 10_000, "label_bytes": 252, "band": 200}
MOST_BITS = 30
MOST_CELLS = 1 << 22

templates = register_protocol(
    "templates",
    functionality="the label of the server's template that the client's utterance is nearest to, by dynamic time "
    "warping, to the client",
    leakage="sizes alone: the public length, dimensions, band, how many templates, bytes of a label",
    assumptions=ASSUMPTIONS.replace("name a segment", "name a template"),
)
alignment = register_protocol(
    "alignment",
    functionality="whether the client's utterance is alike to the server's, by dynamic time warping, and if so which "
    "of the client's frames some rows of the server's begin at, to the client",
    leakage="sizes alone: the public length, dimensions, band, which rows are told of",
    assumptions=ASSUMPTIONS.replace("name a segment", "tell these frames"),
)


@dataclass(frozen=True, slots=True)
class WarpShape(Params):
    """Sizes and ranges: nothing here depends on a voice.

    Attributes:
        length: n, frames that every utterance is resampled to.
        dimensions: d, numbers of a frame.
        templates: how many.
        band: how far two frames that belong together may be apart.
        radius: bound on a frame's length; frames beyond are shortened to it.
        fraction: bits of a share after the point.
        label_bytes: every label is padded to this.
        anchors: rows of a single template that are told of; none for a recognizer.

    Raises RangeError for sizes that this party does not agree to, or scores that no ring holds for certain.
    """

    WHAT: ClassVar[str] = "templates"

    length: int
    dimensions: int
    templates: int
    band: int = 5
    radius: float = 11.0
    fraction: int = 5
    label_bytes: int = 28
    anchors: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            given = getattr(self, name)
            least = 0 if name == "band" else 2 if name == "length" else 1
            if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= most:
                raise RangeError(f"{name} must lie in {least}..{most}, got {given!r}")
        if isinstance(self.radius, bool) or not isinstance(self.radius, int | float) or not 0 < self.radius <= 1_000:
            raise RangeError(f"the radius must lie in (0, 1000], got {self.radius!r}")
        if not isinstance(self.fraction, int) or isinstance(self.fraction, bool) or not 0 <= self.fraction <= 10:
            raise RangeError(f"0 to 10 bits are after the point, got {self.fraction!r}")
        rows = list(self.anchors)
        if any(not isinstance(row, int) or isinstance(row, bool) or not 0 < row < self.length for row in rows):
            raise RangeError(f"rows 1 to {self.length - 1} can be told of, got {self.anchors}")
        if sorted(set(rows)) != rows or (rows and self.templates != 1):
            raise RangeError(f"rows are told of one template, in ascending order, got {self.anchors}")
        cells = self.templates * self.length * self.length
        if cells > MOST_CELLS:
            raise RangeError(f"{cells:,} pairs of frames are compared, of at most {MOST_CELLS:,}: use fewer templates")
        if self.bits + self.load + 1 > 64:
            raise RangeError(f"scores of {self.bits} bits leave {63 - self.bits} to carry, got {self.load}")

    @property
    def bits(self) -> int:
        """k: the fewest that hold all scores for certain. Raises RangeError where none do."""
        for bits in range(self.fraction + 2, MOST_BITS + 1):
            heard = self.radius * self.dimensions**0.5
            precision = self._precision(bits)
            product = plan_product(self.length, self.dimensions, self.templates * self.length, precision)
            error = error_bound(precision, heard, heard, self.dimensions, product.block_columns).total
            if warping_apart(self.length, self.radius, error + 2.0**-self.fraction) < 2.0 ** (bits - 1 - self.fraction):
                return bits
        raise RangeError(
            f"{self.length} frames within {self.radius:g} need more than {MOST_BITS} bits: lower the radius"
        )

    @property
    def scale(self) -> Scale:
        """Of the shares."""
        return Scale(self.bits, self.fraction)

    @property
    def diagonals(self) -> int:
        """Frames of the trellis."""
        return 2 * self.length - 1

    @property
    def times(self) -> int:
        """Bits of a diagonal's number."""
        return self.diagonals.bit_length()

    @property
    def load(self) -> int:
        """Bits that a score carries: the place of its label, or when each row began."""
        return self.times * len(self.anchors) or self.templates.bit_length()

    @property
    def product(self) -> MatrixPlan:
        """The client's frames by those of all templates."""
        return plan_product(self.length, self.dimensions, self.templates * self.length, self._precision(self.bits))

    def trellis(self) -> Trellis:
        """A template: the other utterance's frames pass by."""
        fields = (self.times,) * len(self.anchors)
        arcs = []
        for row in range(self.length):
            entered = tuple(Rule(Set.FRAME) if row == anchor else KEEP for anchor in self.anchors)
            if row:
                arcs += [Arc(row - 1, row, 2, rules=entered), Arc(row - 1, row, 1, rules=entered)]
            arcs.append(Arc(row, row, 1))
        return Trellis(tuple(range(self.length)), tuple(arcs), (Start(0),), self.bits, fields)

    def clipped(self, frames: Reals) -> Reals:
        """Frames `(..., length, dimensions)` within the radius. Raises RangeError for others, or not finite."""
        given = np.asarray(frames, np.float64)
        if given.shape[-2:] != (self.length, self.dimensions) or not np.isfinite(given).all():
            raise RangeError(
                f"utterances are resampled to ({self.length}, {self.dimensions}) finite numbers, got {given.shape}"
            )
        norm = np.linalg.norm(given, axis=-1, keepdims=True)
        return np.asarray(given * (self.radius / np.maximum(norm, self.radius)))

    def squares(self, frames: Reals) -> Residues:
        """|x|²/2 of every frame, as shares hold it."""
        return self.scale.ring.from_signed(self.scale.encode((frames**2).sum(axis=-1) / 2))

    def _precision(self, bits: int) -> Precision:
        return Precision(limit=float(self.radius), weights=Scale(26, 13), result=Scale(bits, self.fraction))


@dataclass(frozen=True, eq=False)
class Templates:
    """The server's: utterances `(templates, length, dimensions)`, and what each is called; or `threshold`, the score
    from which the only one is alike. Raises PpspeechError for what is not of the shape.
    """

    shape: WarpShape
    frames: Reals
    labels: tuple[str, ...] = ()
    threshold: float = 0.0

    def __post_init__(self) -> None:
        shape = self.shape
        clipped = shape.clipped(self.frames)
        if clipped.shape[:-2] != (shape.templates,):
            raise PpspeechError(f"{shape.templates} templates were agreed on, got {clipped.shape[:-2]}")
        object.__setattr__(self, "frames", clipped)
        if not shape.anchors:
            if len(self.labels) != shape.templates:
                raise PpspeechError(f"{shape.templates} templates need as many labels, got {len(self.labels)}")
            text_residues(self.labels, shape.label_bytes)
        elif not -2 * shape.length * shape.radius**2 <= self.threshold <= 0:
            raise RangeError(f"a threshold is minus a distance that there can be, got {self.threshold}")

    @cached_property
    def weights(self) -> Reals:
        """Of the product, `(dimensions, templates * length)`."""
        return self.frames.reshape(-1, self.shape.dimensions).T

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every label once."""
        return tuple(dict.fromkeys(self.labels))

    @cached_property
    def places(self) -> Residues:
        """Which name each template has, from 1, `(templates,)`."""
        return np.array([1 + self.names.index(label) for label in self.labels], np.uint64)

    def encoded(self) -> EncodedWeights:
        """For the product: once for all utterances."""
        return encode_weights(self.shape.product, self.weights, WORKERS)


@lru_cache(maxsize=32)
def warping_plan(shape: WarpShape) -> Schedule:
    """When what is compared, in every template."""
    row, diagonal = np.arange(shape.length), np.arange(shape.diagonals)[:, None]
    other = diagonal - row
    inside = (other >= 0) & (other < shape.length) & (np.abs(row - other) <= shape.band)
    return plan_trellis(shape.trellis(), shape.diagonals, inside)


@lru_cache(maxsize=64)
def warping_cost(shape: WarpShape) -> Cost:
    """All that happens on shares; the product's bytes are `shape.product.total_bytes`."""
    scores = blank(shape.length, shape.templates * shape.length)
    return record(lambda engine: tell(engine, shape, scores, None))


def prepare_warping(met: Meeting, shape: WarpShape) -> ShareEngine:
    """Offline, both parties at the same time, for one utterance."""
    return met.prepare(shape.product, warping_cost(shape))


def nearest(met: Meeting, shape: WarpShape, utterance: Reals, engine: ShareEngine | None = None) -> Residues:
    """The client's side, in a session of the meeting: what it is told (`read_label`, `read_alignment`). `utterance`:
    `(length, dimensions)`. Raises RangeError before anything is sent, for another.
    """
    frames = shape.clipped(utterance)
    engine = engine or prepare_warping(met, shape)
    shares = met.multiply(shape.product, frames) - shape.squares(frames)[:, None]
    told = tell(engine, shape, shares, None)
    assert told is not None
    return told


def serve_templates(met: Meeting, own: Templates, encoded: EncodedWeights, engine: ShareEngine | None = None) -> None:
    """The server's side, in a session of the meeting; `encoded` by `Templates.encoded`."""
    shape = own.shape
    engine = engine or prepare_warping(met, shape)
    shares = met.multiply(shape.product, encoded) - shape.squares(own.frames).reshape(-1)
    tell(engine, shape, shares, own)


def tell(engine: ShareEngine, shape: WarpShape, scores: Residues, own: Templates | None) -> Residues | None:
    """Steps 3 and 4, from shares of s, `(length, templates * length)`: what the client is told, None for the server."""
    with engine.in_flights():
        ends, loads = warped(engine, shape, scores)
        if shape.anchors:
            level = np.zeros(1, np.uint64)
            if own is not None:
                level = shape.scale.ring.from_signed(shape.scale.encode(np.array([own.threshold])))
            alike = ~(ends - Shared(engine, level, shape.scale.ring)).is_negative()
            return tell_where(alike, loads, shape.load)
        places = np.zeros(shape.templates, np.uint64) if own is None else own.places
        _, place = best_of(ends.reshape(1, -1), places[None], shape.load)
        return tell_name(engine, place, shape.load, None if own is None else own.names, shape.label_bytes)


def warped(engine: ShareEngine, shape: WarpShape, scores: Residues) -> tuple[Shared, Residues]:
    """v of the last cell of every template, `(templates,)`, and what it carries: shares."""
    cells = scores.reshape(shape.length, shape.templates, shape.length)
    emissions = np.zeros((shape.diagonals, shape.length, shape.templates), np.uint64)
    for row in range(shape.length):
        emissions[row : row + shape.length, row] = cells[:, :, row]
    run = TrellisRun(engine, warping_plan(shape), None, shape.templates)
    run.advance(shape.scale.ring.reduce(emissions))
    last = shape.length - 1
    ends = Shared(engine, run.scores(shape.diagonals - 1, last), shape.scale.ring)
    return ends, run.fields([last])[-1, 0] if shape.anchors else np.zeros(shape.templates, np.uint64)


def read_label(told: Residues) -> str | None:
    """What `nearest` tells of templates; None if the server has not followed the protocol."""
    return read_text(told)


def read_alignment(shape: WarpShape, told: Residues) -> tuple[int, ...] | None:
    """What `nearest` tells of one template: the client's frames at which the rows begin; None where it is not alike."""
    number = int(told[0])
    if not number >> shape.load:
        return None
    diagonals = [(number >> (shape.times * place)) & ((1 << shape.times) - 1) for place in range(len(shape.anchors))]
    return tuple(diagonal - row for diagonal, row in zip(diagonals, shape.anchors, strict=True))


def _told(party: Party, shape: WarpShape, utterance: Any) -> Residues:
    given = shape.clipped(np.asarray(utterance, np.float64))
    met = meet_as_client(party.channel)
    with met.session():
        return nearest(met, shape, given)


def _serve_once(party: Party, own: Templates) -> None:
    met = meet_as_server(party.channel)
    with met.session():
        serve_templates(met, own, own.encoded())


@templates.party("client")
def client(party: Party, utterance: list[Any], *, shape: Mapping[str, Any]) -> str | None:
    """The client's whole program: the label of the nearest template; `shape` has a `WarpShape`'s attributes."""
    return read_label(_told(party, _anchored(shape, False), utterance))


@templates.party("server")
def server(party: Party, frames: list[Any], labels: list[str], *, shape: Mapping[str, Any]) -> None:
    """The server's whole program; `frames` `(templates, length, dimensions)`."""
    _serve_once(party, Templates(_anchored(shape, False), np.asarray(frames, np.float64), tuple(labels)))


@alignment.party("client")
def align_client(party: Party, utterance: list[Any], *, shape: Mapping[str, Any]) -> tuple[int, ...] | None:
    """The client's whole program: at which of its frames the server's rows begin; None where they are not alike."""
    chosen = _anchored(shape, True)
    return read_alignment(chosen, _told(party, chosen, utterance))


@alignment.party("server")
def align_server(party: Party, frames: list[Any], threshold: float, *, shape: Mapping[str, Any]) -> None:
    """The server's whole program; `frames` `(length, dimensions)`."""
    chosen = _anchored(shape, True)
    _serve_once(party, Templates(chosen, np.asarray(frames, np.float64)[None], threshold=float(threshold)))


def _anchored(shape: Mapping[str, Any], anchored: bool) -> WarpShape:
    chosen = WarpShape.from_params(shape)
    if bool(chosen.anchors) != anchored:
        raise RangeError(f"an alignment tells of rows, and templates of none; got {chosen.anchors}")
    return chosen
