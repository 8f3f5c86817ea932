"""What both parties know of a search for keywords, and the numbers that each keeps to itself.

A keyword is linear in the monomials of a frame (`scores.monomials`): Gaussian states in squares and numbers of
features, states of sub-word units in the units' scores (`terms="linear"`, rows of zeros and a one). What it is compared
with, the garbage model, belongs to whoever has the recordings, and is evaluated there in the clear.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto import Scale
from ppspeech.crypto.lattice import MatrixPlan, Precision, error_bound, plan_product
from ppspeech.crypto.transfer import Side
from ppspeech.errors import ModelError, PpspeechError, RangeError
from ppspeech.protocols.params import Params
from ppspeech.protocols.scores.monomials import Terms, count_monomials, gaussian_weights, monomials_of
from ppspeech.protocols.scores.range import frame_bounds, most_monomials, within_ball
from ppspeech.protocols.search.range import average_apart, needed_bits, spotting_apart
from ppspeech.protocols.trellis.graph import KEEP, Arc, Rule, Set, Start, Trellis

BEYOND = -20
"""Nats that a frame beyond the end of a recording scores."""
MOST_BITS = 30
MOST_CELLS = 1 << 22
"""Scores of frames in all, states by blocks: beyond, a peer's sizes are refused before anything is allocated."""
LONGEST_AVERAGE = 255
"""Frames of a block where averages are taken: a table holds so many lengths."""
MOST = {"frames": 1 << 20, "dimensions": 400, "block": 4_000, "longest": 4_000, "recordings": 10_000, "keywords": 1_000}


@dataclass(frozen=True, slots=True)
class SpotShape(Params):
    """Sizes and ranges: nothing here depends on a voice or a keyword.

    Attributes:
        frames: T, of every recording; shorter ones are padded.
        dimensions: d, numbers of a frame.
        terms: which monomials a frame becomes.
        states: of each word of a key phrase; one word for a keyword.
        block: frames from one block of a recording to the next: all blocks are searched in lock step.
        longest: frames by which blocks overlap: what is no longer is found for certain.
        recordings: searched at once.
        keywords: looked for at once, of the same states.
        holder: who has the recordings; the other one has the keywords. The client learns what is found in any case.
        passes: of iterative Viterbi, for the best average; 0: the best sum.
        limit: bound on the magnitude of every number of a frame; frames are clipped to it.
        radius: bound on a frame's length; frames beyond are shortened to it.
        scores: nats within which a keyword's states score all such frames, ln of staying included.
        garbage: nats that the garbage model's scores are clipped to.
        constant: most nats of a keyword's constant and threshold together, either way.
        fraction: bits of a share after the point of a nat.

    Raises RangeError for sizes that this party does not agree to, or scores that no ring holds for certain.
    """

    WHAT: ClassVar[str] = "a search for keywords"

    frames: int
    dimensions: int
    terms: Terms
    states: tuple[int, ...]
    block: int
    longest: int
    recordings: int = 1
    keywords: int = 1
    holder: Literal["server", "client"] = "server"
    passes: int = 0
    limit: float = 12.0
    radius: float = 12.0
    scores: tuple[int, int] = (-1_500, 0)
    garbage: tuple[int, int] = (-100, 20)
    constant: int = 500
    fraction: int = 3

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            _check_whole(name, getattr(self, name), 1, most)
        if self.terms not in {"full", "diagonal", "linear"} or self.holder not in {"server", "client"}:
            raise RangeError(f"terms or holder are not known: {self.terms!r}, {self.holder!r}")
        if not isinstance(self.states, tuple) or not 1 <= len(self.states) <= 16:
            raise RangeError(f"a phrase has 1 to 16 words, got {self.states!r}")
        for states in self.states:
            _check_whole("states", states, 1, 1_000)
        _check_whole("passes", self.passes, 0, 20)
        _check_whole("fraction", self.fraction, 0, 10)
        _check_whole("constant", self.constant, 0, 1 << 20)
        for name in ("scores", "garbage"):
            pair = getattr(self, name)
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise RangeError(f"{name} are the least and the most nats, got {pair!r}")
            for each in pair:
                _check_whole(name, each, -(1 << 20), 1 << 20)
            if pair[0] > pair[1]:
                raise RangeError(f"{name} are the least and the most nats, got {pair}")
        for name in ("limit", "radius"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1_000:
                raise RangeError(f"{name} must lie in (0, 1000], got {value!r}")
        self._check_sizes()

    def _check_sizes(self) -> None:
        cells = self.lanes * self.window * self.columns
        if cells > MOST_CELLS or self.frames * self.recordings * self.monomials > 1 << 27:
            raise RangeError(
                f"{self.recordings} recordings of {self.frames} frames and {self.keywords} keywords are {cells:,} "
                f"scores at once, of at most {MOST_CELLS:,}: search fewer at a time"
            )
        if self.columns > self.window:
            raise RangeError(f"a path through {self.columns} states does not fit a block of {self.window} frames")
        if self.ratios[0] > BEYOND or self.ratios[1] < BEYOND:
            raise RangeError(
                f"ratios of frames must reach {BEYOND} nats, what is beyond a recording; got {self.ratios}"
            )
        if self.passes and (len(self.states) > 1 or self.window > LONGEST_AVERAGE):
            raise RangeError(
                f"averages are of one word, in blocks of at most {LONGEST_AVERAGE} frames, "
                f"got {len(self.states)} words and {self.window} frames"
            )
        if self.bits > MOST_BITS or self.bits + self.load + 1 > 64:
            raise RangeError(
                f"scores need {self.bits} bits of at most {MOST_BITS}, and {self.load} for what is told: shorten "
                "blocks, narrow the ranges, or use fewer bits after the point"
            )

    @property
    def monomials(self) -> int:
        """Numbers of a frame in the product."""
        return count_monomials(self.dimensions, self.terms)

    @property
    def columns(self) -> int:
        """States of a phrase in all."""
        return sum(self.states)

    @property
    def window(self) -> int:
        """B: frames of a block, overlap included."""
        return self.block + self.longest

    @property
    def blocks(self) -> int:
        """Of a recording."""
        return -(-self.frames // self.block)

    @property
    def lanes(self) -> int:
        """What is searched in lock step: keywords, recordings, blocks."""
        return self.keywords * self.recordings * self.blocks

    @property
    def ratios(self) -> tuple[float, float]:
        """-L and H: nats within which every ratio of a frame lies."""
        return self.scores[0] - self.garbage[1], self.scores[1] - self.garbage[0]

    @property
    def apart(self) -> float:
        """The nats by which two scores that are compared can differ, the threshold's included."""
        if not self.passes:
            return spotting_apart(self.columns, self.window, *self.ratios, self.fraction) + self.constant
        apart = average_apart(self.columns, self.window, *self.ratios, self.constant, self.fraction)
        return apart + self.constant

    @property
    def bits(self) -> int:
        """k: the fewest that hold all scores for certain."""
        return needed_bits(self.apart, self.fraction)

    @property
    def scale(self) -> Scale:
        """Of the shares, in nats."""
        return Scale(self.bits, self.fraction)

    @property
    def times(self) -> int:
        """Bits of a time within a block."""
        return self.window.bit_length()

    @property
    def block_bits(self) -> int:
        """Bits of a block's number."""
        return (self.blocks - 1).bit_length()

    @property
    def load(self) -> int:
        """Bits that a score carries: where each word begins, where the last ends, and in which block."""
        return self.times * (len(self.states) + 1) + self.block_bits

    @property
    def owner(self) -> Side:
        """Who has the keywords."""
        return Side.SECOND if self.holder == "server" else Side.FIRST

    @property
    def product(self) -> MatrixPlan:
        """All keywords by all frames: the client's are the rows, encrypted, the server's the columns."""
        scored, heard = self.keywords * self.columns, self.recordings * self.frames
        rows, columns = (scored, heard) if self.holder == "server" else (heard, scored)
        return plan_product(rows, self.monomials, columns, self.precision)

    @property
    def precision(self) -> Precision:
        """Of the product: the plain factor is the frames where the server has them, else the keywords."""
        if self.holder == "server":
            return Precision(limit=2.0**13, weights=Scale(26, 13), result=self.scale)
        return Precision(limit=max(1.0, self.limit**2), weights=Scale(28, 13), result=self.scale)

    def error(self, spoken: float) -> float:
        """Nats that a frame's score may be off by, for keywords of this 1-norm. Certain."""
        heard = most_monomials(self.dimensions, self.terms, self.limit, self.radius)
        norms = (spoken, heard) if self.holder == "server" else (heard, spoken)
        return error_bound(self.precision, *norms, self.monomials, self.product.block_columns).total

    def trellis(self) -> Trellis:
        """A lane: the chains, what comes before them (always 0), and after each word its best end so far."""
        starts = [sum(self.states[:word]) for word in range(len(self.states))]
        words, zero = len(self.states), self.columns
        columns = (*range(self.columns), *(None,) * (words + 1))
        kept = (KEEP,) * (words + 1)
        arcs = [Arc(zero, zero)]
        for word, first in enumerate(starts):
            now = (*kept[:word], Rule(Set.FRAME), *kept[word + 1 :])
            before, best = (zero if word == 0 else zero + word), zero + 1 + word
            last = first + self.states[word] - 1
            arcs += [Arc(before, first, rules=now), Arc(first, first)]
            for state in range(first + 1, last + 1):
                arcs += [Arc(state - 1, state), Arc(state, state)]
            ends = (*kept[:-1], Rule(Set.FRAME, 1)) if word == words - 1 else kept
            arcs += [Arc(last, best, delay=0, rules=ends), Arc(best, best)]
        return Trellis(columns, tuple(arcs), (Start(zero), Start(0)), self.bits, (self.times,) * (words + 1))

    def clipped(self, frames: Reals) -> Reals:
        """Frames `(count, dimensions)` within limit and radius. Raises RangeError for others, or not finite."""
        given = np.asarray(frames, np.float64)
        if given.ndim != 2 or given.shape[1] != self.dimensions:
            raise RangeError(f"frames must be (frames, {self.dimensions}), got {given.shape}")
        if not np.isfinite(given).all():
            raise RangeError("frames hold values that are not finite")
        within = np.clip(given, -self.limit, self.limit)
        return within_ball(within, self.radius)


@dataclass(frozen=True, eq=False)
class Keywords:
    """What is looked for: the owner's alone.

    Attributes:
        weights: of the monomials, ln of staying in the constant's, `(keywords, states, monomials)`.
        constants: what all moves of a keyword add, `(keywords,)`.
        thresholds: the sum, or the average, from which a keyword counts as present, `(keywords,)`.

    Raises PpspeechError for arrays that are not of the shape, RangeError if a state could score a frame beyond what the
    shape says, or constant and threshold are.
    """

    shape: SpotShape
    weights: Reals
    constants: Reals
    thresholds: Reals

    def __post_init__(self) -> None:
        shape = self.shape
        expected = {
            "weights": (shape.keywords, shape.columns, shape.monomials),
            "constants": (shape.keywords,),
            "thresholds": (shape.keywords,),
        }
        for name, size in expected.items():
            given = np.asarray(getattr(self, name), np.float64)
            if given.shape != size or not np.isfinite(given).all():
                raise PpspeechError(f"{name} must be finite, of shape {size}, got {given.shape}")
            object.__setattr__(self, name, given)
        if (np.abs(self.constants) + np.abs(self.thresholds)).max() > shape.constant:
            raise RangeError(
                f"constants and thresholds must be within {shape.constant} nats together: raise `constant`"
            )
        lowest, highest = self.bounds
        if not shape.scores[0] <= lowest <= highest <= shape.scores[1]:
            raise RangeError(
                f"frames within {shape.radius:g} can score {lowest:.0f} to {highest:.0f} nats in a state of this "
                f"keyword, and the shape has room for {shape.scores[0]} to {shape.scores[1]}: use wider variances, or "
                "a wider shape"
            )

    @classmethod
    def of_gaussians(
        cls, shape: SpotShape, means: Reals, covariances: Reals, stays: Reals, constants: Reals, thresholds: Reals
    ) -> Self:
        """From Gaussian states: means `(keywords, states, d)`, variances of that shape or covariance matrices for full
        monomials, and ln of staying, `(keywords, states)`.
        """
        weights = np.moveaxis(gaussian_weights(stays, means, covariances), 0, -1)
        return cls(shape, weights, constants, thresholds)

    @classmethod
    def of_units(cls, shape: SpotShape, rows: Reals, stays: Reals, constants: Reals, thresholds: Reals) -> Self:
        """From states of sub-word units: rows of zeros and a one, `(keywords, states, units)`, for linear monomials of
        the units' scores, and ln of staying, `(keywords, states)`.
        """
        return cls(shape, np.concatenate((rows, stays[..., None]), axis=-1), constants, thresholds)

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the most nats that a frame can score in a state, errors of the product included. Certain."""
        shape, flat = self.shape, self.weights.reshape(-1, self.shape.monomials)
        lowest, highest = frame_bounds(flat.T, shape.terms, shape.limit, shape.radius)
        error = shape.error(float(np.abs(flat).sum(axis=1).max()))
        return float(lowest.min()) - error, float(highest.max()) + error

    @cached_property
    def rows(self) -> Reals:
        """All states of all keywords, `(keywords * states, monomials)`."""
        return self.weights.reshape(-1, self.shape.monomials)

    @cached_property
    def constant_residues(self) -> Residues:
        """`constants`, as shares hold them."""
        return self._residues(self.constants)

    @cached_property
    def threshold_residues(self) -> Residues:
        """`thresholds`, as shares hold them."""
        return self._residues(self.thresholds)

    def _residues(self, values: Reals) -> Residues:
        scale = self.shape.scale
        return scale.ring.from_signed(scale.encode(values))


@dataclass(frozen=True, eq=False)
class Recordings:
    """What is searched: the holder's alone. `frames`: of each recording, `(frames, dimensions)`, up to the shape's;
    `garbage`: what the garbage model scores each, `(frames,)`. Both are clipped to what the shape says.

    Raises RangeError for recordings that are not of the shape.
    """

    shape: SpotShape
    frames: Sequence[Reals]
    garbage: Sequence[Reals]

    def __post_init__(self) -> None:
        shape = self.shape
        if not len(self.frames) == len(self.garbage) == shape.recordings:
            raise RangeError(f"{shape.recordings} recordings and garbage scores are searched, got {len(self.frames)}")
        for heard, scored in zip(self.frames, self.garbage, strict=True):
            if not 1 <= len(heard) <= shape.frames or np.shape(scored) != (len(heard),):
                raise RangeError(
                    f"a recording has 1 to {shape.frames} frames and as many garbage scores, got {len(heard)} and "
                    f"{np.shape(scored)}"
                )
            if not np.isfinite(scored).all():
                raise RangeError("garbage scores hold values that are not finite")

    @cached_property
    def rows(self) -> Reals:
        """Monomials of all frames, `(recordings * frames, monomials)`; beyond the end of a recording all are zero, and
        so are its scores.
        """
        shape = self.shape
        rows = np.zeros((shape.recordings, shape.frames, shape.monomials))
        for row, heard in zip(rows, self.frames, strict=True):
            row[: len(heard)] = monomials_of(shape.clipped(heard), shape.terms)
        return rows.reshape(-1, shape.monomials)

    @cached_property
    def taken_off(self) -> Residues:
        """What the holder takes off its share of every score of a frame, `(recordings, frames)`."""
        shape, scale = self.shape, self.shape.scale
        values = np.full((shape.recordings, shape.frames), float(-BEYOND))
        for row, scored in zip(values, self.garbage, strict=True):
            row[: len(scored)] = np.clip(scored, *shape.garbage)
        return scale.ring.from_signed(scale.encode(values))


def composed_rows(units: Sequence[str], spelled: Sequence[str], states: int = 1) -> Reals:
    """A keyword of sub-word units: which unit's state each of its states is, as rows of zeros and a one, `(spelled *
    states, units * states)`: times the scores of all units, they are those of the keyword. Raises ModelError for a unit
    that is not there.

    >>> composed_rows(("a", "b", "c"), ("b", "a")).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    unknown = sorted(set(spelled) - set(units))
    if unknown or not spelled or states < 1:
        raise ModelError(f"no unit for {', '.join(unknown) or 'nothing'}; there are {', '.join(units)}")
    rows = np.zeros((len(spelled) * states, len(units) * states))
    for place, name in enumerate(spelled):
        for state in range(states):
            rows[place * states + state, units.index(name) * states + state] = 1.0
    return rows


def _check_whole(name: str, value: Any, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise RangeError(f"{name} must lie in {least}..{most}, got {value!r}")
