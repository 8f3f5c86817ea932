"""A word by its patches: the client has patches of a spectrogram, the server recordings; the client learns where it is.

    1. client → server   its patches, encrypted
    2. server → client   their products with every piece of the recordings, masked: shares of how well each fits where
    3. both              the largest of every window, by doubling: ⌈log2 w⌉ maxima a patch and piece
    4. both              [m_p(t) >= θ_p] by the client's thresholds, times its gains α_p: their sum at each place
    5. both              a tournament of the places; whether the best reaches -β
    6. both → client     if it does, where it is; if not, nothing but that

    f(t) = sum over p of α_p [m_p(t) >= θ_p] + β,    m_p(t) = max over 0 <= d < w of <patch_p, r(t + τ_p + d)>

In which bin, and so how late, a patch is looked for is public; bands, patches, thresholds and gains are the client's. A
piece has a length of at most one and so has a patch: fits lie within ±1, and the ring of 2^(f + 3) steps holds the
difference of any two. Gains are whole numbers that together stay below 2^(G - 2), as β does: so does any sum, and no
two are 2^(G - 1) apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from ppspeech.arrays import Reals, Residues, Whole
from ppspeech.crypto import Ring, Scale
from ppspeech.crypto.lattice import EncodedWeights, MatrixPlan, Precision, encode_weights, error_bound, plan_product
from ppspeech.crypto.shares import Cost, Shared, ShareEngine, blank, concatenate, maximum, record
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.protocols.meeting import WORKERS, Meeting, meet_as_client, meet_as_server
from ppspeech.protocols.params import Params
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.search.spotting import ASSUMPTIONS
from ppspeech.protocols.search.tournament import best_of, tell_where

MOST = {
    "pieces": 20_000, "numbers": 2_000, "bins": 100, "step": 1_000, "window": 1_000, "per_bin": 100, "recordings": 1_000
}  # fmt: skip
MOST_FITS = 1 << 24
GAINS = Ring(14)

protocol = register_protocol(
    "patches",
    functionality="whether the client's word, given by patches of its spectrogram, is said in the server's recordings, "
    "and at which place of each that it is said in, to the client",
    leakage="sizes alone: pieces of a recording, padded, and how many recordings; bands and frames of a patch, bins, "
    "their step and window, patches of each",
    assumptions=ASSUMPTIONS.replace("name a segment", "name a place"),
)


@dataclass(frozen=True, slots=True)
class PatchShape(Params):
    """Sizes: nothing here depends on a word or a recording.

    Attributes:
        pieces: of a recording, beginning at every frame.
        numbers: of a patch, bands times frames.
        bins: places of a word where patches are looked for, `step` pieces apart.
        window: pieces among which a patch fits best.
        per_bin: patches of each bin.
        fraction: bits of a fit after the point.

    Raises RangeError for sizes that this party does not agree to.
    """

    WHAT: ClassVar[str] = "patches"

    pieces: int
    numbers: int
    bins: int = 6
    step: int = 4
    window: int = 8
    per_bin: int = 12
    recordings: int = 1
    fraction: int = 10

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            given = getattr(self, name)
            if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= most:
                raise RangeError(f"{name} must lie in 1..{most}, got {given!r}")
        if not isinstance(self.fraction, int) or isinstance(self.fraction, bool) or not 2 <= self.fraction <= 12:
            raise RangeError(f"2 to 12 bits are after the point, got {self.fraction!r}")
        if self.places < 1:
            raise RangeError(f"a place looks at {self.pieces - self.places + 1} pieces, and there are {self.pieces}")
        if self.patches * self.pieces * self.recordings > MOST_FITS:
            raise RangeError(f"{self.patches} patches in {self.recordings} recordings are more than {MOST_FITS:,} fits")
        if 2 * (1 + self.error) >= 4:
            raise RangeError(f"fits of {self.numbers} numbers are too rough: use fewer, or more bits after the point")

    @property
    def patches(self) -> int:
        """In all."""
        return self.bins * self.per_bin

    @property
    def places(self) -> int:
        """Of a recording, where the word may begin."""
        return self.pieces - self.window + 1 - (self.bins - 1) * self.step

    @property
    def scale(self) -> Scale:
        """Of fits on shares."""
        return Scale(self.fraction + 3, self.fraction)

    @property
    def load(self) -> int:
        """Bits of a place's number."""
        return self.places.bit_length()

    @property
    def error(self) -> float:
        """How far a fit on shares may be from the product, at the most: pieces and patches of length one."""
        norm = self.numbers**0.5
        return error_bound(self._precision, norm, norm, self.numbers).total

    @property
    def product(self) -> MatrixPlan:
        """Patches by pieces."""
        return plan_product(self.patches, self.numbers, self.recordings * self.pieces, self._precision)

    @property
    def _precision(self) -> Precision:
        return Precision(limit=1.0, weights=Scale(18, 15), result=self.scale)


def within_one(rows: Any, shape: tuple[int, ...]) -> Reals:
    """Rows no longer than one, shortened where they are. Raises RangeError for another shape, or not finite."""
    given = np.asarray(rows, np.float64)
    if given.shape != shape or not np.isfinite(given).all():
        raise RangeError(f"finite numbers of shape {shape} are needed, got {given.shape}")
    return np.asarray(given / np.maximum(np.linalg.norm(given, axis=-1, keepdims=True), 1.0))


@dataclass(frozen=True, eq=False)
class Patches:
    """The client's: `patches` `(patches, numbers)`, bin by bin, with their `thresholds` and `gains`, and β.

    Raises PpspeechError for what is not of the shape.
    """

    shape: PatchShape
    patches: Reals
    thresholds: Reals
    gains: Reals
    bias: float

    def __post_init__(self) -> None:
        shape = self.shape
        object.__setattr__(self, "patches", within_one(self.patches, (shape.patches, shape.numbers)))
        for name in ("thresholds", "gains"):
            given = np.asarray(getattr(self, name), np.float64)
            if given.shape != (shape.patches,) or not np.isfinite(given).all():
                raise PpspeechError(f"{shape.patches} patches have as many {name}, got {given.shape}")
            object.__setattr__(self, name, given)
        if not np.isfinite(self.bias) or not np.abs(self.gains).sum() > 0:
            raise PpspeechError("a word has a finite bias, and gains that are not all zero")

    @cached_property
    def levels(self) -> Residues:
        """Thresholds as shares hold them, within ±1."""
        return self.shape.scale.ring.from_signed(self.shape.scale.encode(np.clip(self.thresholds, -1.0, 1.0)))

    @cached_property
    def whole(self) -> tuple[Whole, int]:
        """Gains and bias as whole numbers."""
        room = (1 << (GAINS.bits - 2)) - 1 - len(self.gains)
        unit = room / max(float(np.abs(self.gains).sum()), abs(self.bias))
        return np.rint(self.gains * unit).astype(np.int64), round(self.bias * unit)


@lru_cache(maxsize=64)
def patches_cost(shape: PatchShape) -> Cost:
    """All that happens on shares; the product's bytes are `shape.product.total_bytes`."""
    fits = blank(shape.patches, shape.recordings * shape.pieces)
    return record(lambda engine: tell(engine, shape, fits, None))


def prepare_patches(met: Meeting, shape: PatchShape) -> ShareEngine:
    """Offline, both parties at the same time, for one search."""
    return met.prepare(shape.product, patches_cost(shape))


def encode_pieces(shape: PatchShape, pieces: Any) -> EncodedWeights:
    """The server's pieces `(recordings, pieces, numbers)` for the product: once for all words."""
    given = within_one(pieces, (shape.recordings, shape.pieces, shape.numbers))
    return encode_weights(shape.product, given.reshape(-1, shape.numbers).T, WORKERS)


def ask_patches(met: Meeting, own: Patches, engine: ShareEngine | None = None) -> list[int | None]:
    """The client's side, in a session of the meeting: of each recording where the word is, or None."""
    shape = own.shape
    engine = engine or prepare_patches(met, shape)
    told = tell(engine, shape, met.multiply(shape.product, own.patches), own)
    assert told is not None
    found = 1 << shape.load
    return [int(number) & (found - 1) if number & np.uint64(found) else None for number in told]


def answer_patches(met: Meeting, shape: PatchShape, encoded: EncodedWeights, engine: ShareEngine | None = None) -> None:
    """The server's side, in a session of the meeting; `encoded` by `encode_pieces`."""
    engine = engine or prepare_patches(met, shape)
    tell(engine, shape, met.multiply(shape.product, encoded), None)


def tell(engine: ShareEngine, shape: PatchShape, fits: Residues, own: Patches | None) -> Residues | None:
    """Steps 3 to 6, from shares of all fits `(patches, recordings * pieces)`. `own`: None for the server."""
    with engine.in_flights():
        best, place = best_of(*_sums(engine, shape, fits, own), shape.load)
        bias = np.zeros(shape.recordings, np.uint64)
        if own is not None:
            bias = GAINS.from_signed(np.full(shape.recordings, own.whole[1]))
        found = ~(best + Shared(engine, bias, GAINS)).is_negative()
        told: Residues | None = tell_where(found, place, shape.load)
    return told


def share_best(engine: ShareEngine, shape: PatchShape, fits: Residues, own: Patches | None) -> Residues:
    """Steps 3 to 5 alone, for experiments: our share of the best sum of each recording, which nobody opens."""
    with engine.in_flights():
        best, _ = best_of(*_sums(engine, shape, fits, own), shape.load)
    return best.residues


def _sums(engine: ShareEngine, shape: PatchShape, fits: Residues, own: Patches | None) -> tuple[Shared, Residues]:
    """Steps 3 and 4: shares of the sum at each place, `(recordings, places)`, and of the places' numbers."""
    ring = shape.scale.ring
    rows = fits.reshape(shape.patches, shape.recordings, shape.pieces).transpose(2, 0, 1)
    best, width = Shared(engine, np.ascontiguousarray(ring.reduce(rows)), ring), 1
    while width < shape.window:
        step = min(width, shape.window - width)
        best = maximum(best[:-step], best[step:])
        width += step
    cut = [
        best[k * shape.step : k * shape.step + shape.places, k * shape.per_bin : (k + 1) * shape.per_bin]
        for k in range(shape.bins)
    ]
    levels = gains = np.zeros((1, shape.patches, 1), np.uint64)
    if own is not None:
        levels, gains = own.levels[None, :, None], GAINS.from_signed(own.whole[0])[None, :, None]
    fit = concatenate(cut, axis=1)
    reached = ~(fit - Shared(engine, levels, ring)).is_negative()
    sums = (reached * Shared(engine, gains, GAINS)).sum(axis=1)
    numbers = engine.public(np.arange(shape.places, dtype=np.uint64))
    loads = np.ascontiguousarray(np.broadcast_to(numbers, (shape.recordings, shape.places)))
    return Shared(engine, np.ascontiguousarray(GAINS.reduce(sums.own.T)), GAINS), loads


@protocol.party("client")
def client(
    party: Party,
    patches: list[Any],
    thresholds: Sequence[float],
    gains: Sequence[float],
    bias: float,
    *,
    shape: Mapping[str, Any],
) -> list[int | None]:
    """The client's whole program: of each recording the place of its word, or None; `shape` has a `PatchShape`'s
    attributes.
    """
    arrays = [np.asarray(each, np.float64) for each in (patches, thresholds, gains)]
    own = Patches(PatchShape.from_params(shape), arrays[0], arrays[1], arrays[2], float(bias))
    met = meet_as_client(party.channel)
    with met.session():
        return ask_patches(met, own)


@protocol.party("server")
def server(party: Party, pieces: list[Any], *, shape: Mapping[str, Any]) -> None:
    """The server's whole program; `pieces` are `(recordings, pieces, numbers)`."""
    chosen = PatchShape.from_params(shape)
    encoded, met = encode_pieces(chosen, pieces), meet_as_server(party.channel)
    with met.session():
        answer_patches(met, chosen, encoded)
