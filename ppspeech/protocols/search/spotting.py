"""Keywords in recordings: one party has what is looked for, the other what is searched; the client learns where it is.

    1. client → server   what the client has, encrypted: the states of its keywords, or the monomials of its frames
    2. server → client   their products with what the server has, masked: each has a share of every ln b_j(x_t)
    3. the holder        takes the garbage model's score off its share: a ratio
    4. both              all blocks of all recordings in lock step (`trellis`): the best segment of each, on shares
    5. both              a tournament of the blocks; whether the best reaches the threshold
    6. both → client     if it does, where each word begins and the last one ends; if not, nothing but that

A keyword is a chain; all its paths make the same moves, which therefore add one constant at the end, and the search has
no weights. Of a key phrase one begin a word is told. With `passes` it is the segment with the best average (iterative
Viterbi): θ, taken off every frame, grows by s / n from pass to pass, on shares, as often as is public.

No score leaves the range of its shares, whatever is said or looked for: the proof is in `search.range`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto import Ring
from ppspeech.crypto.lattice import EncodedWeights, encode_weights
from ppspeech.crypto.shares import Cost, Shared, ShareEngine, blank, look_up, multiply, record, truncate_local
from ppspeech.crypto.transfer import Side
from ppspeech.errors import PpspeechError, ProtocolError, RangeError
from ppspeech.protocols.meeting import WORKERS, Meeting, meet_as_client, meet_as_server
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.search.shape import BEYOND, Keywords, Recordings, SpotShape
from ppspeech.protocols.search.tournament import added_bits, best_of, bits_of, tell_where
from ppspeech.protocols.trellis import Schedule, TrellisRun, plan_trellis

LENGTHS = Ring(8)
FINE = 16
"""Bits after the point of one over a length."""

LEAKAGE = "sizes alone: padded length and number of recordings, blocks, dimensions, keywords, words, states, passes"
ASSUMPTIONS = (
    "a server that cheats learns nothing, and makes the answer wrong; a client that cheats learns as many bits of the "
    "other's as name a segment, but of its choice; checked transfers, ring-LWE at 128 bits, Diffie-Hellman on ed25519, "
    "AES a random permutation, SHA-256 and Blake2xb oracles"
)

spotting = register_protocol(
    "spotting",
    functionality="whether the client's keywords are said in the server's recordings, and the frames of the best "
    "segment of each that is, to the client",
    leakage=LEAKAGE,
    assumptions=ASSUMPTIONS,
)
spotting_own = register_protocol(
    "spotting_own",
    functionality="whether the server's keywords are said in the client's recordings, and the frames of the best "
    "segment of each that is, to the client",
    leakage=LEAKAGE,
    assumptions=ASSUMPTIONS,
)


@dataclass(frozen=True, slots=True)
class Found:
    """Where a keyword is: the first frame of each of its words, and the frame after its last."""

    starts: tuple[int, ...]
    end: int


Answers = list[list[Found | None]]
"""By keyword and recording; None where it is not said."""


@lru_cache(maxsize=32)
def spotting_plan(shape: SpotShape) -> Schedule:
    """When what is compared, in every lane."""
    return plan_trellis(shape.trellis(), shape.window)


@lru_cache(maxsize=64)
def spotting_cost(shape: SpotShape) -> Cost:
    """All that happens on shares; the product's bytes are `shape.product.total_bytes`."""
    blank(shape.lanes, shape.columns, shape.window)
    scores = blank(shape.keywords, shape.columns, shape.recordings, shape.frames)
    return record(lambda engine: find(engine, shape, scores, None))


def prepare(met: Meeting, shape: SpotShape) -> ShareEngine:
    """Offline, both parties at the same time: transfers, and encryptions of zero, for one search."""
    return met.prepare(shape.product, spotting_cost(shape))


def encode(own: Keywords | Recordings) -> EncodedWeights:
    """What the server has, as factors of the product: once for all searches of a shape."""
    return encode_weights(own.shape.product, own.rows.T, WORKERS)


def ask(met: Meeting, own: Keywords | Recordings, engine: ShareEngine | None = None) -> Answers:
    """The client's side, in a session of the meeting. `engine`: from `prepare`; without one it is prepared here.

    Raises PpspeechError before anything is sent, if the shape says that this is the server's.
    """
    _check_place(own, Side.SECOND)
    shape, rows = own.shape, own.rows
    engine = engine or prepare(met, shape)
    told = find(engine, shape, *ratios(met.multiply(shape.product, rows), own))
    assert told is not None
    return _read(shape, told)


def answer(
    met: Meeting, own: Keywords | Recordings, encoded: EncodedWeights, engine: ShareEngine | None = None
) -> None:
    """The server's side, in a session of the meeting. `encoded`: from `encode`."""
    _check_place(own, Side.FIRST)
    engine = engine or prepare(met, own.shape)
    find(engine, own.shape, *ratios(met.multiply(own.shape.product, encoded), own))


def ratios(product: Residues, own: Keywords | Recordings) -> tuple[Residues, Keywords | None]:
    """Step 3: a share of every ratio, `(keywords, states, recordings, frames)`, and the keywords if they are ours."""
    shape = own.shape
    scored, heard = (shape.keywords, shape.columns), (shape.recordings, shape.frames)
    if shape.holder == "server":
        scores = product.reshape(*scored, *heard)
    else:
        scores = product.reshape(*heard, *scored).transpose(2, 3, 0, 1)
    if isinstance(own, Keywords):
        return scores, own
    return shape.scale.ring.reduce(scores - own.taken_off), None


def share_segments(engine: ShareEngine, product: Residues, own: Keywords | Recordings) -> tuple[Residues, Residues]:
    """Steps 3 to 5 alone, for experiments: our shares of the best scores and of their loads, which nobody opens."""
    shape, (scores, _) = own.shape, ratios(product, own)
    with engine.in_flights():
        best, load = best_segments(engine, shape, lanes_of(engine, shape, scores))
    return best.residues, load


def find(engine: ShareEngine, shape: SpotShape, scores: Residues, keywords: Keywords | None) -> Residues | None:
    """Steps 4 to 6, from shares of every frame's ratios, `(keywords, states, recordings, frames)`. `keywords`: their
    owner's; None for the other party. Returns for the client what `tell_where` says.
    """
    groups, ring = shape.keywords * shape.recordings, shape.scale.ring
    constants = thresholds = Shared(engine, np.zeros(groups, np.uint64), ring)
    if keywords is not None:
        constants, thresholds = (
            Shared(engine, np.repeat(each, shape.recordings), ring)
            for each in (keywords.constant_residues, keywords.threshold_residues)
        )
    emissions = lanes_of(engine, shape, scores)
    with engine.in_flights():
        if not shape.passes:
            best, load = best_segments(engine, shape, emissions)
            reached = best + constants - thresholds
        else:
            average = Shared(engine, np.zeros(groups, np.uint64), ring)
            for _ in range(shape.passes):
                best, load = best_segments(engine, shape, emissions - np.repeat(average.own, shape.blocks))
                average = average + _quotient(best + constants, _lengths(engine, shape, load))
            reached = average - thresholds
        return tell_where(~reached.is_negative(), load, shape.load)


def best_segments(engine: ShareEngine, shape: SpotShape, emissions: Residues) -> tuple[Shared, Residues]:
    """The best segment of each keyword and recording: shares of its score and of its load, `(groups,)` each.
    `emissions`: shares, `(window, states, lanes)`.
    """
    run = TrellisRun(engine, spotting_plan(shape), None, shape.lanes)
    run.advance(emissions)
    best, by_block = shape.columns + len(shape.states), (-1, shape.blocks)
    scores, loads = run.scores(shape.window - 1, best), run.fields([best])[-1, 0]
    number = engine.public(np.arange(shape.blocks, dtype=np.uint64) << np.uint64(shape.load - shape.block_bits))
    score = Shared(engine, scores.reshape(by_block), shape.scale.ring)
    return best_of(score, loads.reshape(by_block) ^ number, shape.load)


def lanes_of(engine: ShareEngine, shape: SpotShape, scores: Residues) -> Residues:
    """Recordings as blocks that overlap, `(window, states, lanes)`; beyond the last frame both know the score."""
    at = shape.block * np.arange(shape.blocks)[:, None] + np.arange(shape.window)
    cut = scores[..., np.minimum(at, shape.frames - 1)]
    beyond = shape.scale.ring.from_signed(np.array(BEYOND << shape.fraction))
    cut[..., at >= shape.frames] = engine.public(beyond)
    return np.ascontiguousarray(cut.transpose(4, 1, 0, 2, 3)).reshape(shape.window, shape.columns, shape.lanes)


def _lengths(engine: ShareEngine, shape: SpotShape, loads: Residues) -> Shared:
    """Frames of segments, `(groups,)`, as sums mod 2^8."""
    bits = bits_of(loads, 2 * shape.times)
    numbers = added_bits(engine, np.concatenate((bits[:, : shape.times], bits[:, shape.times :])), LENGTHS)
    return numbers[len(loads) :] - numbers[: len(loads)]


def _quotient(scores: Shared, lengths: Shared) -> Shared:
    """Scores over lengths, rounded down or a step less: one over a length is looked up."""
    engine, ring, every = scores.engine, scores.ring, np.arange(1 << LENGTHS.bits)
    inverse = np.where(every > 0, np.rint((1 << FINE) / np.maximum(every, 1)), 0).astype(np.uint64)
    small = Ring(FINE + 2)
    found = Shared(engine, look_up(engine, lengths.residues, inverse, small), small)
    product = multiply(scores, found, Ring(ring.bits + FINE + 1))
    return truncate_local(product, FINE).in_ring(ring)


def _check_place(own: Keywords | Recordings, side: Side) -> None:
    if isinstance(own, Keywords) != (own.shape.owner is side):
        raise PpspeechError(
            f"the shape says that the {own.shape.holder} has the recordings, and the other the keywords"
        )


def _read(shape: SpotShape, told: Residues) -> Answers:
    """What `tell_where` says, as frames of the recordings."""
    found: list[Found | None] = []
    for number in told.tolist():
        times = [(number >> (shape.times * place)) & ((1 << shape.times) - 1) for place in range(len(shape.states) + 1)]
        moved = shape.block * ((number >> (shape.times * len(times))) & ((1 << shape.block_bits) - 1))
        starts, end = tuple(moved + time for time in times[:-1]), moved + times[-1]
        found.append(Found(starts, end) if number >> shape.load else None)
    return [found[at : at + shape.recordings] for at in range(0, len(found), shape.recordings)]


def check_found(shape: SpotShape, answers: Answers) -> None:
    """Refuse segments that cannot be, when all has been said: the server must not see it. Raises ProtocolError."""
    for each in (one for row in answers for one in row if one is not None):
        times = (*each.starts, each.end)
        if list(times) != sorted(times) or not shape.columns <= each.end - each.starts[0] <= shape.window:
            raise ProtocolError(f"{times} is no segment of a recording: the server does not follow the protocol")


def read_keywords(shape: SpotShape, plain: Mapping[str, Any]) -> Keywords:
    """Keywords from what JSON can hold. Raises PpspeechError if something is missing or does not fit the shape."""
    try:
        given: list[Reals] = [np.asarray(plain[name], np.float64) for name in ("weights", "constants", "thresholds")]
    except (KeyError, TypeError, ValueError) as error:
        raise PpspeechError(f"keywords have weights, constants and thresholds, numbers each: {error}") from None
    return Keywords(shape, *given)


def read_recordings(shape: SpotShape, plain: Mapping[str, Any]) -> Recordings:
    """Recordings from what JSON can hold. Raises PpspeechError if something is missing or does not fit the shape."""
    try:
        frames, garbage = ([np.asarray(each, np.float64) for each in plain[name]] for name in ("frames", "garbage"))
    except (KeyError, TypeError, ValueError) as error:
        raise PpspeechError(f"recordings have frames and garbage, numbers each: {error}") from None
    return Recordings(shape, frames, garbage)


def _placed(shape: Mapping[str, Any], holder: str) -> SpotShape:
    chosen = SpotShape.from_params({"holder": holder, **shape})
    if chosen.holder != holder:
        raise RangeError(f"in this protocol the {holder} has the recordings, got {chosen.holder!r}")
    return chosen


def _ask_once(party: Party, own: Keywords | Recordings) -> list[list[list[int] | None]]:
    met = meet_as_client(party.channel)
    with met.session():
        answers = ask(met, own)
    check_found(own.shape, answers)
    return [[None if each is None else [*each.starts, each.end] for each in row] for row in answers]


def _answer_once(party: Party, own: Keywords | Recordings) -> None:
    met = meet_as_server(party.channel)
    with met.session():
        answer(met, own, encode(own))


@spotting.party("client")
def client(party: Party, keywords: Mapping[str, Any], *, shape: Mapping[str, Any]) -> list[list[list[int] | None]]:
    """The client's whole program: begins and end of each keyword in each recording, or None. `shape` has a
    `SpotShape`'s attributes; `keywords` have `weights`, `constants` and `thresholds`.
    """
    return _ask_once(party, read_keywords(_placed(shape, "server"), keywords))


@spotting.party("server")
def server(party: Party, recordings: Mapping[str, Any], *, shape: Mapping[str, Any]) -> None:
    """The server's whole program; `recordings` have `frames` and `garbage`."""
    _answer_once(party, read_recordings(_placed(shape, "server"), recordings))


@spotting_own.party("client")
def own_client(
    party: Party, recordings: Mapping[str, Any], *, shape: Mapping[str, Any]
) -> list[list[list[int] | None]]:
    """The client's whole program, with recordings of its own."""
    return _ask_once(party, read_recordings(_placed(shape, "client"), recordings))


@spotting_own.party("server")
def own_server(party: Party, keywords: Mapping[str, Any], *, shape: Mapping[str, Any]) -> None:
    """The server's whole program, with keywords of its own."""
    _answer_once(party, read_keywords(_placed(shape, "client"), keywords))
