"""What is public of a search for music, and what the server searches in."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from ppspeech.arrays import Reals, Residues, Whole
from ppspeech.crypto import Scale
from ppspeech.crypto.lattice import (
    CorrelationCut,
    EncodedWeights,
    Precision,
    encode_signal,
    error_bound,
    plan_correlation,
)
from ppspeech.crypto.shares import text_residues
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.protocols.meeting import WORKERS
from ppspeech.protocols.params import Params

Method = Literal["shapes", "fingerprints"]
METHODS: tuple[Method, ...] = get_args(Method)
MOST = {"pattern": 400, "frames": 1_000_000, "songs": 100_000, "name_bytes": 252}
MOST_BITS = 24


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Of frames: how many numbers, their largest, bits after the point with the client and the server, and of shares.

    Two frames' product lies within ±1: shapes have a length of at most 1, fingerprints count as 1/32 with the server.
    """

    channels: int
    largest: int
    client: int
    server: int
    shares: int

    @property
    def norm(self) -> float:
        """Of a client's frame: the sum of magnitudes, at the most."""
        most: float = self.largest * self.channels / 2.0**self.client
        return min(most, self.channels**0.5) if self.client else most


NUMBERS: dict[Method, _Numbers] = {
    "shapes": _Numbers(12, 127, 7, 7, 6),
    "fingerprints": _Numbers(32, 1, 0, 5, 2),
}


@dataclass(frozen=True, slots=True)
class MusicShape(Params):
    """Sizes: nothing here depends on a clip, and of the music no more than how much of it there is.

    Attributes:
        method: what frames are, `shapes` or `fingerprints`.
        frames: of all songs, one after the other; padded, so that songs' lengths are not told.
        songs: as many places for names.
        pattern: m, frames of a clip.
        name_bytes: every name is padded to this.

    Raises RangeError for sizes that this party does not agree to.
    """

    WHAT: ClassVar[str] = "music"

    method: Method
    frames: int
    songs: int
    pattern: int = 100
    name_bytes: int = 63

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise RangeError(f"frames of music are {' or '.join(METHODS)}, got {self.method!r}")
        for name, most in MOST.items():
            given = getattr(self, name)
            if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= most:
                raise RangeError(f"{name} must lie in 1..{most}, got {given!r}")
        if self.pattern > self.frames:
            raise RangeError(f"a clip of {self.pattern} frames is looked for in {self.frames}: there are too few")

    @property
    def numbers(self) -> _Numbers:
        """What a frame is made of."""
        return NUMBERS[self.method]

    @property
    def offsets(self) -> int:
        """Where a clip may lie."""
        return self.frames - self.pattern + 1

    @property
    def bits(self) -> int:
        """k: the fewest that hold all scores for certain. A score lies within ±m and its error; two are compared."""
        for bits in range(self.numbers.shares + 2, MOST_BITS + 1):
            if 2 * (self.pattern + self._error(bits)) < 2.0 ** (bits - 1 - self.numbers.shares):
                return bits
        raise RangeError(f"clips of {self.pattern} frames need more than {MOST_BITS} bits: take shorter ones")

    @property
    def scale(self) -> Scale:
        """Of the shares."""
        return Scale(self.bits, self.numbers.shares)

    @property
    def error(self) -> float:
        """How far a score on shares can be from the sum of products, at the most."""
        return self._error(self.bits)

    @property
    def width(self) -> int:
        """Bits of a song's place."""
        return self.songs.bit_length()

    @property
    def plan(self) -> CorrelationCut:
        """The clip at every offset."""
        return plan_correlation(self.numbers.channels, self.pattern, self.frames, self._precision(self.bits))

    def clip(self, given: Any) -> Reals:
        """A client's frames as numbers of the product, `(channels, pattern)`. Raises RangeError for others."""
        return self.checked(given, self.pattern).T / 2.0**self.numbers.client

    def checked(self, given: Any, rows: int | None = None) -> Whole:
        """Whole frames `(rows, channels)` whose products lie within ±1. Raises RangeError for others."""
        numbers, frames = self.numbers, np.asarray(given)
        if frames.ndim != 2 or frames.shape[1] != numbers.channels or rows not in (None, len(frames)):
            raise RangeError(f"{rows or 'some'} frames of {numbers.channels} numbers are needed, got {frames.shape}")
        if frames.dtype.kind not in "iu":
            raise RangeError(f"{self.method} are whole numbers, got {frames.dtype}")
        whole = frames.astype(np.int64)
        if whole.size and np.abs(whole).max() > numbers.largest:
            raise RangeError(f"{self.method} lie within ±{numbers.largest}, got {int(np.abs(whole).max())}")
        if numbers.client and whole.size and int((whole**2).sum(axis=1).max()) > 1 << 2 * numbers.client:
            raise RangeError(f"a frame of {self.method} has a length of 1 at the most")
        return whole

    def _precision(self, bits: int) -> Precision:
        numbers = self.numbers
        weights = Scale(numbers.server + numbers.largest.bit_length() + 2, numbers.server)
        return Precision(limit=1.0, weights=weights, result=Scale(bits, numbers.shares))

    def _error(self, bits: int) -> float:
        """Every coefficient of a stretch of the signal meets an error of the encryption, not those alone that meet the
        clip; the signal is whole in its scale, so that rounding adds nothing.
        """
        precision, numbers = self._precision(bits), self.numbers
        degree = precision.parameters.degree
        column = degree * numbers.channels * numbers.largest / 2.0**numbers.server
        bound = error_bound(precision, self.pattern * numbers.norm, column, degree * numbers.channels, packed=1)
        return bound.total - bound.weights


@dataclass(frozen=True, eq=False)
class Songs:
    """The server's: frames of every song, `(frames, channels)` each, their names, and the score from which a song is
    named, 0 to m. Raises PpspeechError for what is not of the shape.
    """

    shape: MusicShape
    frames: Sequence[Any]
    names: tuple[str, ...]
    threshold: float

    def __post_init__(self) -> None:
        shape = self.shape
        if not 1 <= len(self.frames) == len(self.names) <= shape.songs:
            raise PpspeechError(
                f"up to {shape.songs} songs have a name each, got {len(self.frames)} songs and {len(self.names)} names"
            )
        if sum(len(song) for song in self.frames) > shape.frames:
            raise PpspeechError(f"all songs together have up to {shape.frames:,} frames: agree on more")
        if not 0 <= self.threshold <= shape.pattern:
            raise RangeError(f"a threshold lies in 0..{shape.pattern}, got {self.threshold}")
        text_residues(self.names, shape.name_bytes)

    @cached_property
    def signal(self) -> Reals:
        """All songs one after the other, and nothing behind them, `(channels, frames)`."""
        shape = self.shape
        found = np.zeros((shape.numbers.channels, shape.frames))
        at = 0
        for song in self.frames:
            found[:, at : at + len(song)] = shape.checked(song).T / 2.0**shape.numbers.server
            at += len(song)
        return found

    @cached_property
    def places(self) -> Residues:
        """Whose song the middle of a clip at each offset lies in, from 1; 0 for nobody's, `(offsets,)`."""
        found = np.zeros(self.shape.frames + self.shape.pattern, np.uint64)
        lengths = [len(song) for song in self.frames]
        found[: sum(lengths)] = np.repeat(np.arange(1, len(lengths) + 1, dtype=np.uint64), lengths)
        middle = self.shape.pattern // 2
        return found[middle : middle + self.shape.offsets]

    @cached_property
    def level(self) -> Residues:
        """The threshold as shares hold it, `(1,)`."""
        scale = self.shape.scale
        return scale.ring.from_signed(scale.encode(np.array([self.threshold])))

    def encoded(self) -> EncodedWeights:
        """For the product: once for all clips."""
        return encode_signal(self.shape.plan, self.signal, WORKERS)

    def scores(self, clip: Any) -> Reals:
        """In the clear: how well a clip fits at every offset, `(offsets,)`."""
        pattern, signal = self.shape.clip(clip), self.signal
        # A product of transforms; what is compared are whole multiples of a power of two.
        size = 1 << (signal.shape[1] + pattern.shape[1] - 1).bit_length()
        fitted = np.fft.irfft((np.fft.rfft(signal, size) * np.fft.rfft(pattern[:, ::-1], size)).sum(axis=0), size)[
            pattern.shape[1] - 1 : signal.shape[1]
        ]
        step = 2.0 ** (self.shape.numbers.client + self.shape.numbers.server)
        return np.asarray(np.rint(fitted * step) / step)

    def find(self, clip: Any) -> str | None:
        """In the clear: the song that a clip is of, or None."""
        scores = self.scores(clip)
        best = int(scores.argmax())
        place = int(self.places[best])
        return self.names[place - 1] if place and scores[best] >= self.threshold else None
