"""A word by its patches: the client has patches of a spectrogram, the server recordings; the client learns where it is.

    1. client → server   its patches, encrypted
    2. server → client   their products with every piece of the recordings, masked: shares of how well each fits where
    3. both              the largest of every window, by doubling: ⌈log2 w⌉ maxima a patch and piece
    4. both              one of two rules, of which the sum at each place is shared:
         stumps          [m_p(t) >= θ_p] by the client's thresholds, times its gains α_p
         linear          α_p m_p(t): the client's share by its gains at home, the server's by the client's encrypted
                         gains, one more product that ends in shares
    5. both              a tournament of the places; whether the best reaches -β
    6. both → client     if it does, where it is; if not, nothing but that

    f(t) = sum over p of α_p [m_p(t) >= θ_p] + β,    m_p(t) = max over 0 <= d < w of <patch_p, r(t + τ_p + d)>
    f(t) = sum over p of α_p m_p(t) + β              a support vector machine on the same fits

In which bin, and so how late, a patch is looked for is public, and so is the rule; bands, patches, thresholds and gains
are the client's. A piece has a length of at most one and so has a patch: fits lie within ±1, and the ring of 2^(f + 3)
steps holds the difference of any two. Gains of stumps are whole numbers that together stay below 2^(G - 2), as β does:
so does any sum, and no two are 2^(G - 1) apart. Gains of a linear rule are multiples of 2^-g that together are at most
1, as |β| is: sums lie where fits do, within ±1 and an error. A share of a fit is right up to multiples of its ring,
which times such a gain vanish in a ring of g bits less: fits are widened by so many, and the sums are exact but for the
errors of the product.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from ppspeech.arrays import Reals, Residues, Whole
from ppspeech.crypto import Ring, Scale
from ppspeech.crypto.lattice import EncodedWeights, MatrixPlan, Precision, encode_weights, error_bound, plan_product
from ppspeech.crypto.shares import Cost, Shared, ShareEngine, blank, concatenate, maximum, record, widen
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
MOST_PATCHES = 2_000  # their gains, rounded, still have room in their rings
GAINS = Ring(14)
"""Of sums of stumps."""
LINEAR_BITS = 12
"""g: after the point of the gains of a linear rule."""
Rule = Literal["stumps", "linear"]
RULES: tuple[Rule, ...] = get_args(Rule)

protocol = register_protocol(
    "patches",
    functionality="whether the client's word, given by patches of its spectrogram, is said in the server's recordings, "
    "and at which place of each that it is said in, to the client",
    leakage="sizes alone: pieces of a recording, padded, and how many recordings; bands and frames of a patch, bins, "
    "their step and window, patches of each; which of the two rules adds them up",
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
        rule: how fits become a sum, by thresholds or as they are.

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
    rule: Rule = "stumps"

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            given = getattr(self, name)
            if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= most:
                raise RangeError(f"{name} must lie in 1..{most}, got {given!r}")
        if not isinstance(self.fraction, int) or isinstance(self.fraction, bool) or not 2 <= self.fraction <= 12:
            raise RangeError(f"2 to 12 bits are after the point, got {self.fraction!r}")
        if self.rule not in RULES:
            raise RangeError(f"patches are added up by {' or '.join(RULES)}, got {self.rule!r}")
        if self.places < 1:
            raise RangeError(f"a place looks at {self.pieces - self.places + 1} pieces, and there are {self.pieces}")
        if self.patches > MOST_PATCHES or self.patches * self.pieces * self.recordings > MOST_FITS:
            raise RangeError(
                f"{self.patches} patches of at most {MOST_PATCHES:,} in {self.recordings} recordings, or more than "
                f"{MOST_FITS:,} fits"
            )
        if 2 * (1 + self.error) >= 4:
            raise RangeError(f"fits of {self.numbers} numbers are too rough: use fewer, or more bits after the point")
        if self.rule == "linear" and 1 + self.error + self.sum_error >= 2:
            raise RangeError(f"sums of {self.patches} patches are too rough: use fewer, or fewer bits after the point")

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
        return error_bound(self._precision, norm, norm, self.numbers, self.product.block_columns).total

    @property
    def product(self) -> MatrixPlan:
        """Patches by pieces."""
        return plan_product(self.patches, self.numbers, self.recordings * self.pieces, self._precision)

    @property
    def sums(self) -> Scale:
        """Of sums on shares."""
        if self.rule == "stumps":
            return Scale(GAINS.bits, 0)
        return Scale(self.scale.bits + LINEAR_BITS, self.scale.fraction + LINEAR_BITS)

    @property
    def weighing(self) -> MatrixPlan:
        """The client's gains by the server's shares of all fits, where the rule is linear."""
        whole = Precision(limit=1.0, weights=Scale(self.sums.bits + 1, self.fraction), result=self.sums)
        return plan_product(1, self.patches, self.recordings * self.places, whole)

    @property
    def sum_error(self) -> float:
        """How far a linear sum may be from that of the fits on shares, at the most: the server's are any residues."""
        plan, largest = self.weighing, 2.0 ** (self.sums.bits - 1 - self.fraction)
        return error_bound(plan.precision, 1.0, self.patches * largest, self.patches, plan.block_columns).total

    @property
    def products(self) -> list[MatrixPlan]:
        """All that is multiplied under encryption."""
        return [self.product, self.weighing] if self.rule == "linear" else [self.product]

    @property
    def product_bytes(self) -> int:
        """Of their ciphertexts, both ways."""
        return sum(plan.total_bytes for plan in self.products)

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
    """The client's: `patches` `(patches, numbers)`, bin by bin, with their `thresholds` and `gains`, and β. A linear
    rule looks at no threshold.

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
        return np.rint(self.gains * self._unit).astype(np.int64), round(self.bias * self._unit)

    @property
    def _unit(self) -> float:
        """Whole numbers for one of gains and bias, so that the larger of the two just fits."""
        room = (1 << (GAINS.bits - 2)) - 1 - len(self.gains)
        if self.shape.rule == "linear":
            room = (1 << LINEAR_BITS) - len(self.gains)
        return room / max(float(np.abs(self.gains).sum()), abs(self.bias))

    @property
    def bias_steps(self) -> int:
        """β as sums on shares have it."""
        return self.whole[1] << self._fit_bits

    @property
    def steps_a_unit(self) -> float:
        """What one of gains and bias is of sums on shares."""
        return self._unit * (1 << self._fit_bits)

    @property
    def _fit_bits(self) -> int:
        """Bits after the point that a fit brings into a sum."""
        return self.shape.fraction if self.shape.rule == "linear" else 0


@lru_cache(maxsize=64)
def patches_cost(shape: PatchShape) -> Cost:
    """All that happens on shares; the products' bytes are `shape.product_bytes`."""

    def program(engine: ShareEngine) -> None:
        found = compared(engine, shape, blank(shape.patches, shape.recordings * shape.pieces), None)
        if shape.rule == "linear":
            found = Shared(engine, blank(shape.recordings, shape.places), shape.sums.ring)
        tell(engine, shape, found, None)

    return record(program)


def patches_rounds(shape: PatchShape) -> int:
    """Round trips online."""
    return len(shape.products) + patches_cost(shape).rounds


def prepare_patches(met: Meeting, shape: PatchShape) -> ShareEngine:
    """Offline, both parties at the same time, for one search."""
    return met.prepare(shape.products, patches_cost(shape))


def encode_pieces(shape: PatchShape, pieces: Any) -> EncodedWeights:
    """The server's pieces `(recordings, pieces, numbers)` for the product: once for all words."""
    given = within_one(pieces, (shape.recordings, shape.pieces, shape.numbers))
    return encode_weights(shape.product, given.reshape(-1, shape.numbers).T, WORKERS)


def ask_patches(met: Meeting, own: Patches, engine: ShareEngine | None = None) -> list[int | None]:
    """The client's side, in a session of the meeting: of each recording where the word is, or None."""
    shape = own.shape
    engine = engine or prepare_patches(met, shape)
    told = tell(engine, shape, share_sums(met, engine, shape, own), own)
    assert told is not None
    found = 1 << shape.load
    return [int(number) & (found - 1) if number & np.uint64(found) else None for number in told]


def answer_patches(met: Meeting, shape: PatchShape, encoded: EncodedWeights, engine: ShareEngine | None = None) -> None:
    """The server's side, in a session of the meeting; `encoded` by `encode_pieces`."""
    engine = engine or prepare_patches(met, shape)
    tell(engine, shape, share_sums(met, engine, shape, encoded), None)


def share_sums(met: Meeting, engine: ShareEngine, shape: PatchShape, own: Patches | EncodedWeights) -> Shared:
    """Steps 1 to 4: our share of the sum at each place, `(recordings, places)`. `own`: the client's word, or the
    server's pieces.
    """
    word = own if isinstance(own, Patches) else None
    product = met.multiply(shape.product, own.patches if isinstance(own, Patches) else own)
    found = compared(engine, shape, product, word)
    return found if shape.rule == "stumps" else weighed_sums(met, found, shape, word)


def share_best(met: Meeting, engine: ShareEngine, shape: PatchShape, own: Patches | EncodedWeights) -> Residues:
    """Steps 1 to 5 alone, for experiments: our share of the best sum of each recording, which nobody opens."""
    sums = share_sums(met, engine, shape, own)
    with engine.in_flights():
        best, _ = best_of(sums, _numbers(engine, shape), shape.load)
    return best.residues


def compared(engine: ShareEngine, shape: PatchShape, product: Residues, own: Patches | None) -> Shared:
    """What needs comparing, of steps 3 and 4: the sums by thresholds, `(recordings, places)`, or fits that can be
    weighed, `(places, patches, recordings)`. `own`: None for the server.
    """
    with engine.in_flights():
        fits = best_fits(engine, shape, product)
        return widen(fits, shape.sums.ring) if shape.rule == "linear" else stump_sums(fits, shape, own)


def best_fits(engine: ShareEngine, shape: PatchShape, product: Residues) -> Shared:
    """Step 3: from shares `(patches, recordings * pieces)` to m of each place, `(places, patches, recordings)`."""
    ring = shape.scale.ring
    rows = product.reshape(shape.patches, shape.recordings, shape.pieces).transpose(2, 0, 1)
    best, width = Shared(engine, np.ascontiguousarray(ring.reduce(rows)), ring), 1
    while width < shape.window:
        step = min(width, shape.window - width)
        best = maximum(best[:-step], best[step:])
        width += step
    cut = [
        best[k * shape.step : k * shape.step + shape.places, k * shape.per_bin : (k + 1) * shape.per_bin]
        for k in range(shape.bins)
    ]
    return concatenate(cut, axis=1)


def stump_sums(fits: Shared, shape: PatchShape, own: Patches | None) -> Shared:
    """Step 4 by thresholds, `(recordings, places)`. `own`: None for the server."""
    engine, levels = fits.engine, np.zeros((1, shape.patches, 1), np.uint64)
    gains = levels
    if own is not None:
        levels, gains = own.levels[None, :, None], GAINS.from_signed(own.whole[0])[None, :, None]
    reached = ~(fits - Shared(engine, levels, fits.ring)).is_negative()
    sums = (reached * Shared(engine, gains, GAINS)).sum(axis=1)
    return Shared(engine, np.ascontiguousarray(GAINS.reduce(sums.own.T)), GAINS)


def weighed_sums(met: Meeting, fits: Shared, shape: PatchShape, own: Patches | None) -> Shared:
    """Step 4 as they are, `(recordings, places)`, from widened fits. `own`: None for the server."""
    plan, ring = shape.weighing, shape.sums.ring
    if own is None:
        columns = fits.residues.transpose(1, 2, 0).reshape(shape.patches, -1)
        signed = np.ldexp(ring.to_signed(columns).astype(np.float64), -shape.fraction)
        product = met.multiply(plan, encode_weights(plan, signed, WORKERS))
    else:
        gains = own.whole[0]
        product = met.multiply(plan, np.ldexp(gains.astype(np.float64), -LINEAR_BITS)[None])
        product = product + np.einsum("tpr,p->rt", fits.residues, gains.view(np.uint64)).reshape(1, -1)
    return Shared(fits.engine, ring.reduce(product.reshape(shape.recordings, shape.places)), ring)


def tell(engine: ShareEngine, shape: PatchShape, sums: Shared, own: Patches | None) -> Residues | None:
    """Steps 5 and 6, from shares of all sums `(recordings, places)`. `own`: None for the server."""
    ring = sums.ring
    with engine.in_flights():
        best, place = best_of(sums, _numbers(engine, shape), shape.load)
        bias = np.zeros(shape.recordings, np.uint64)
        if own is not None:
            bias = ring.from_signed(np.full(shape.recordings, own.bias_steps))
        found = ~(best + Shared(engine, bias, ring)).is_negative()
        told: Residues | None = tell_where(found, place, shape.load)
    return told


def _numbers(engine: ShareEngine, shape: PatchShape) -> Residues:
    """Of the places, shared, `(recordings, places)`."""
    numbers = engine.public(np.arange(shape.places, dtype=np.uint64))
    return np.ascontiguousarray(np.broadcast_to(numbers, (shape.recordings, shape.places)))


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
