"""Where is it said? The terms on which keywords are looked for in recordings.

Either the server has the recordings, an archive, and clients ask with a keyword, by example or spelled with the
archive's units, or as patches of its spectrogram; or the server has models of keywords, and clients ask with
recordings. What follows from these terms and the size of a question is public; nothing else is told.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Literal

from ppspeech.audio import LIMIT, MfccConfig, usual_radius
from ppspeech.bundle import check_text, to_plain
from ppspeech.errors import BundleError, RangeError
from ppspeech.models import PatchGrid
from ppspeech.network.channel import canonical
from ppspeech.protocols.search import PatchShape, Rule, SpotShape
from ppspeech.service.offer import TASKS, check_front_end
from ppspeech.service.requests import Way

FLOOR = -20.0
"""Nats: what a frame scores at the least in a state of a unit, beside all units together."""
EXAMPLE_STATES = 12
EXAMPLE_LOWEST, EXAMPLE_GARBAGE = -2_500, (-90, 20)
EXAMPLE_FLOOR = (
    0.2  # of variances, in squares of the usual spread: so states of examples score no higher than is public
)
CONSTANT = 500  # nats of thresholds, and of moves
PASSES = 6
MOST_WORDS, MOST_UNITS = 4, 15  # of a phrase, and of a word: together they fit a request
MOST_TOGETHER = 64
MOST_NAMES = 400

COARSEST: dict[Way, int] = {"frames": 4, "average": 7}
"""Bits after the point of a nat, at the least: averages are divided, pass after pass."""
FINEST = 8
RINGS = (16, 19, 21, 25)
"""Bits of shares: between them, a smaller one costs as much as the next."""

WAYS: tuple[Way, ...] = ("frames", "average")
"""The best sum, or the best average."""
UNIT_NORM = 128.0
"""Of a state of a spelled keyword, at the most: a one, and ln of staying."""

BAND_FRONT_END = replace(MfccConfig.wideband(), cmvn="none")
BANDS, EVERY = BAND_FRONT_END.mel_filters, 3
"""What patches are cut from: all bands, and the mean of three frames."""
STEP_S = EVERY * BAND_FRONT_END.hop_s
SPAN, BIN_STEP, WINDOW, FIT_BITS = 8, 4, 8, 8
"""Of a patch in steps; from bin to bin; how late one may be; bits of a fit after the point."""
MOST_BINS, MOST_PER_BIN, MOST_PAGES = 15, 31, 64
PAGE_FITS = 100_000
"""A question by patches is about a page of an archive, at most so many fits: what a session has memory for."""


@dataclass(frozen=True, slots=True)
class PatchSize:
    """What a server sees of a word by patches: the rule, how many bins and patches of each, and which page it is asked
    about. As a number of a request: rule, bins, patches and page have 1, 4, 5 and 6 bits.

    >>> PatchSize.of(PatchSize("linear", 6, 12, 3).code)
    PatchSize(rule='linear', bins=6, per_bin=12, page=3)

    Raises RangeError for sizes that nobody can ask for.
    """

    rule: Rule
    bins: int
    per_bin: int
    page: int

    def __post_init__(self) -> None:
        if not 1 <= self.bins <= MOST_BINS or not 1 <= self.per_bin <= MOST_PER_BIN or not 0 <= self.page < MOST_PAGES:
            raise RangeError(
                f"a word has 1 to {MOST_BINS} bins of 1 to {MOST_PER_BIN} patches, and an archive up to {MOST_PAGES} "
                f"pages, got {self.bins}, {self.per_bin} and page {self.page}"
            )

    @property
    def code(self) -> int:
        """As a request has it."""
        return (self.rule == "linear") << 15 | self.bins << 11 | self.per_bin << 6 | self.page

    @classmethod
    def of(cls, code: int) -> "PatchSize":
        """Back from a request. Raises RangeError for what `code` is not."""
        if not 0 <= code < 1 << 16:
            raise RangeError(f"{code} is no size of a word by patches")
        return cls("linear" if code >> 15 else "stumps", code >> 11 & 15, code >> 6 & 31, code & 63)

    @property
    def grid(self) -> PatchGrid:
        """Where its patches stand."""
        return PatchGrid(BANDS, SPAN, self.bins, BIN_STEP, WINDOW, self.per_bin)


@TASKS.register("spotting")
@dataclass(frozen=True, slots=True)
class Spotting:
    """One archive of recordings, or one bundle of keywords.

    Attributes:
        holder: who has the recordings.
        names: units that keywords are spelled with, none where only examples are taken; or the server's keywords.
        states: of a unit, or of a keyword.
        longest: frames of a word, at the most; what lies between two words of a phrase may be as long.
        frames: of a piece that a recording is cut into.
        pieces: of each recording of the server; they overlap by `longest`.
        recordings: what these are called; none where they are numbered.
        bands: that a word by patches is cut from; 0 where none can be looked for.
        monomials, limit, radius, scores: of the server's keywords, as `SpotShape` has them.

    Raises BundleError for parts that do not fit each other, or more than a client is ready to compute.
    """

    TASK: ClassVar[str] = "spotting"

    type: str
    holder: Literal["server", "client"]
    mfcc: MfccConfig
    names: tuple[str, ...]
    states: int
    longest: int
    frames: int
    pieces: tuple[int, ...] = ()
    recordings: tuple[str, ...] = ()
    monomials: Literal["full", "diagonal"] = "diagonal"
    limit: float = LIMIT
    radius: float = 1.0
    scores: tuple[int, ...] = ()
    bands: int = 0

    def __post_init__(self) -> None:
        check_front_end(self.mfcc)
        names = len(set(self.names))
        if names < len(self.names) or names > MOST_NAMES or (self.holder == "client" and not names):
            raise BundleError(f"up to {MOST_NAMES} units, or 1 to so many keywords, differ, got {len(self.names)}")
        for name in (*self.names, *self.recordings):
            check_text("a name", name, longest=256)
        if (self.holder == "server") == (not self.pieces) or min(self.pieces, default=1) < 1:
            raise BundleError("recordings of the server, and no others, have pieces")
        if self.recordings and len(self.recordings) != len(self.pieces):
            raise BundleError(f"{len(self.pieces)} recordings have as many names or none, got {len(self.recordings)}")
        if self.bands not in ({0, BANDS} if self.holder == "server" else {0}):
            raise BundleError(f"patches are cut from {BANDS} bands of a server's recordings, got {self.bands}")
        if not self.longest < self.frames:
            raise BundleError(f"pieces of {self.frames} frames are longer than a word of {self.longest}")
        if self.holder == "server":
            self.example_shape(1, "frames")
            self.spelled_shape((1,), "frames") if self.names else None
        elif len(self.scores) != 2:
            raise BundleError(f"scores have a least and a most, got {self.scores}")
        else:
            self.own_shape(1, self.steps[-1], "frames")

    @property
    def block(self) -> int:
        """Frames from one block of a recording to the next."""
        return 2 * self.longest

    @property
    def steps(self) -> range:
        """Lengths of a client's recordings, in blocks."""
        return range(1, 1 + self.frames // self.block)

    @property
    def together(self) -> tuple[int, ...]:
        """How many of a client's recordings are searched at once."""
        return tuple(2**power for power in range(MOST_TOGETHER.bit_length()))

    @property
    def reach(self) -> tuple[float, float]:
        """The middle of what a unit's state can score, and how far it reaches either way."""
        highest = math.log(max(1, len(self.names) * self.states))
        return (highest + FLOOR) / 2, (highest - FLOOR) / 2

    def spelled_shape(self, sizes: Sequence[int], way: Way) -> SpotShape:
        """Of a search for a phrase whose words have so many units. Raises RangeError for one that cannot be."""
        return _spelled_shape(self, tuple(sizes), way)

    def example_shape(self, words: int, way: Way) -> SpotShape:
        """Of a search by an example of each of so many words. Raises RangeError for one that cannot be."""
        return _example_shape(self, words, way)

    def patch_shape(self, size: PatchSize) -> PatchShape:
        """Of a search for a word by patches in a page. Raises RangeError for one that cannot be."""
        return _patch_shape(self, size)

    def patch_pages(self, size: PatchSize) -> range:
        """Pages of a word of this size. Raises RangeError for more than there can be."""
        at_once = self._pieces_of_page(size)
        pages = -(-sum(self.pieces) // at_once)
        if pages > MOST_PAGES:
            raise RangeError(
                f"{sum(self.pieces)} pieces are more than {MOST_PAGES} pages of {at_once}: ask with fewer patches, or "
                "have the recordings served in several archives"
            )
        return range(pages)

    def pieces_of(self, size: PatchSize) -> range:
        """Which pieces are on the page, in the order in which all are searched."""
        at_once = self._pieces_of_page(size)
        return range(sum(self.pieces))[size.page * at_once : (size.page + 1) * at_once]

    def _pieces_of_page(self, size: PatchSize) -> int:
        return max(1, PAGE_FITS // (size.grid.patches * self.band_steps))

    @property
    def band_steps(self) -> int:
        """Of a piece of a recording."""
        return math.ceil(self.frames * self.mfcc.hop_s / STEP_S)

    def band_start(self, frame: int) -> int:
        """The step in which a frame of a recording is."""
        return math.floor(frame * self.mfcc.hop_s / STEP_S + 1e-6)

    def own_shape(self, count: int, steps: int, way: Way) -> SpotShape:
        """Of a search for all keywords in so many recordings of a client. Raises RangeError for one that cannot be."""
        return _own_shape(self, count, steps, way)

    @property
    def asked(self) -> str:
        """How it is asked from the command line."""
        return f"spot {'keyword.wav' if self.holder == 'server' else '--in recording.wav'} --server {{}}"

    @property
    def takes(self) -> str:
        """What is searched."""
        if self.holder == "client":
            return f"recordings of up to {self.frames * self.mfcc.hop_s:.0f} s"
        return f"keywords for {len(self.pieces)} recordings"

    def agreement(self, fingerprint: str) -> dict[str, Any]:
        """Public parameters of a session: both parties mean this archive or bundle, on these terms."""
        return {"model": fingerprint, "terms": hashlib.sha256(canonical(to_plain(self))).hexdigest()}


@lru_cache(maxsize=64)
def _spelled_shape(terms: Spotting, sizes: tuple[int, ...], way: Way) -> SpotShape:
    numbers, (middle, reach) = len(terms.names) * terms.states, terms.reach
    if not numbers:
        raise RangeError("this archive has no units that a keyword could be spelled with: ask by an example")
    shape = SpotShape(
        frames=terms.frames,
        dimensions=numbers,
        terms="linear",
        states=tuple(terms.states * size for size in sizes),
        recordings=sum(terms.pieces),
        limit=reach,
        radius=reach * math.sqrt(numbers) + 1e-6,
        scores=(math.floor(middle - reach) - 1, math.ceil(middle + reach) + 1),
        garbage=(0, 0),
        constant=CONSTANT,
        fraction=COARSEST[way],
        **_blocks(terms, len(sizes), way),
    )
    return _with_room(shape)


@lru_cache(maxsize=64)
def _example_shape(terms: Spotting, words: int, way: Way) -> SpotShape:
    return _finest(
        SpotShape(
            frames=terms.frames,
            dimensions=terms.mfcc.features,
            terms="diagonal",
            states=(EXAMPLE_STATES,) * words,
            recordings=sum(terms.pieces),
            limit=LIMIT,
            radius=usual_radius(terms.mfcc.features),
            scores=(EXAMPLE_LOWEST, 1 - math.floor(terms.mfcc.features * math.log(2 * math.pi * EXAMPLE_FLOOR) / 2)),
            garbage=EXAMPLE_GARBAGE,
            constant=CONSTANT,
            fraction=COARSEST[way],
            **_blocks(terms, words, way),
        )
    )


@lru_cache(maxsize=64)
def _patch_shape(terms: Spotting, size: PatchSize) -> PatchShape:
    grid, longest = size.grid, terms.longest * terms.mfcc.hop_s
    if not terms.bands:
        raise RangeError("this archive was indexed without what patches are looked for in: index it again")
    if grid.frames * STEP_S > longest + STEP_S:
        raise RangeError(
            f"a word of {size.bins} bins lasts {grid.frames * STEP_S:.2f} s, and pieces of this archive overlap by "
            f"{longest:.2f} s: learn it with fewer bins, or index with a greater --longest"
        )
    if size.page not in terms.patch_pages(size):
        raise RangeError(f"there are {len(terms.patch_pages(size))} pages, and no page {size.page}")
    pieces, recordings = terms.band_steps - SPAN + 1, len(terms.pieces_of(size))
    if grid.patches * pieces * recordings > PAGE_FITS:
        raise RangeError(
            f"{grid.patches} patches in pieces of {terms.band_steps * STEP_S:.0f} s are too many for a session: "
            "ask with fewer, or have the archive indexed with a smaller --piece"
        )
    return PatchShape(
        pieces=pieces,
        numbers=BANDS * SPAN,
        bins=size.bins,
        step=BIN_STEP,
        window=WINDOW,
        per_bin=size.per_bin,
        recordings=recordings,
        fraction=FIT_BITS,
        rule=size.rule,
    )


@lru_cache(maxsize=64)
def _own_shape(terms: Spotting, count: int, steps: int, way: Way) -> SpotShape:
    if steps not in terms.steps:
        raise RangeError(f"recordings have up to {terms.steps[-1]} blocks here, got {steps}")
    return _finest(
        SpotShape(
            frames=steps * terms.block,
            dimensions=terms.mfcc.features,
            terms=terms.monomials,
            states=(terms.states,),
            recordings=count,
            keywords=len(terms.names),
            holder="client",
            limit=terms.limit,
            radius=terms.radius,
            scores=(terms.scores[0], terms.scores[1]),
            garbage=(0, 0),
            constant=CONSTANT,
            fraction=COARSEST[way],
            **_blocks(terms, 1, way),
        )
    )


def _with_room(shape: SpotShape) -> SpotShape:
    """The finest with room for the errors of its product, which depend on how it is cut."""
    low, high = shape.scores
    found, room = _finest(shape), 0
    while (needed := math.ceil(found.error(UNIT_NORM))) > room:
        room = needed
        found = _finest(replace(shape, scores=(low - room, high + room)))
    return found


def _finest(shape: SpotShape) -> SpotShape:
    """The same with as many bits after the point as cost nothing. Raises RangeError for scores that no ring holds."""
    size = next((each for each in RINGS if each >= shape.bits), shape.bits)
    for fraction in range(FINEST, shape.fraction, -1):
        try:
            finer = replace(shape, fraction=fraction)
        except RangeError:
            continue
        if finer.bits <= size:
            return finer
    return shape


def _blocks(terms: Spotting, words: int, way: Way) -> dict[str, Any]:
    """Blocks hold a phrase whole: its words, and what lies between them."""
    longest = terms.longest * (2 * words - 1)
    return {"block": terms.block, "longest": longest, "passes": PASSES if way == "average" else 0}


def packed(sizes: Sequence[int]) -> int:
    """Units of each word of a phrase as one number of a request. Raises RangeError for too many.

    >>> hex(packed((3, 1))), unpacked(0x31)
    ('0x31', (3, 1))
    """
    if not 1 <= len(sizes) <= MOST_WORDS or not all(1 <= size <= MOST_UNITS for size in sizes):
        raise RangeError(f"a phrase has 1 to {MOST_WORDS} words of 1 to {MOST_UNITS} units, got {list(sizes)}")
    code = 0
    for size in sizes:
        code = 16 * code + size
    return code


def unpacked(code: int) -> tuple[int, ...]:
    """Back from a request. Raises RangeError for what `packed` does not make."""
    digits = tuple(int(digit, 16) for digit in f"{code:x}")
    if packed(digits) != code:
        raise RangeError(f"{code} is no size of a phrase")
    return digits


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of phrases that may be asked for: by example, or spelled; in any of the ways, as the search itself says."""

    terms: Spotting
    spelled: bool

    def __contains__(self, code: object) -> bool:
        try:
            sizes = unpacked(int(str(code)))
            if self.spelled:
                self.terms.spelled_shape(sizes, "frames")
            else:
                self.terms.example_shape(len(sizes), "frames")
        except RangeError:
            return False
        return self.spelled or set(sizes) == {1}

    def __str__(self) -> str:
        return f"1 to {MOST_WORDS} words of " + (f"1 to {MOST_UNITS} units" if self.spelled else "one example each")


@dataclass(frozen=True, slots=True)
class PatchSizes:
    """Sizes of words by patches that may be asked for."""

    terms: Spotting

    def __contains__(self, code: object) -> bool:
        try:
            self.terms.patch_shape(PatchSize.of(int(str(code))))
        except RangeError:
            return False
        return True

    def __str__(self) -> str:
        return f"1 to {MOST_BINS} bins of 1 to {MOST_PER_BIN} patches, a page at a time"
