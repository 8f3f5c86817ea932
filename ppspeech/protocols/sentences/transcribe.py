"""Sentences without the voice: the client speaks, the server has word models and a graph; the client learns the words
and when they were said, and that is all.

    1. client → server   monomials of the padded frames, encrypted under the client's key
    2. server → client   all state scores, masked: each party now has a share of every one of them; or both go through
                         the layers of a network on shares (`protocols.networks`), from padded frames to state scores
    3. both              the best path to every vertex at every frame, on shares; tokens carry where their word began
    4. both              from the true last frame, which the client alone knows, back from word to word: each record by
                         an index of the client's, as many as there may be words

No score leaves the range of its shares, whatever was said (`trellis.range`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto import Ring
from ppspeech.crypto.lattice import EncodedWeights, encode_weights
from ppspeech.crypto.shares import Cost, Shared, ShareEngine, blank, choose, open_to, record, round_local
from ppspeech.crypto.transfer import Side
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.protocols.meeting import WORKERS, Meeting, meet
from ppspeech.protocols.networks import NetworkArrays, follow_layers, read_network, share_scores
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.sentences.shape import SentenceArrays, SentenceShape, product_plan, products_of
from ppspeech.protocols.trellis import TrellisRun

sentence = register_protocol(
    "sentence",
    functionality="the words, and their frames, of the best way through the server's graph for the client's utterance",
    leakage="sizes, the graph without its weights, and the names of words; of a network its layers, with powers of two "
    "that hold their values; to the server nothing else",
    assumptions=(
        "a client may do anything, and learns as many bits of the models as its answer has, but of its choice; a "
        "server that cheats learns nothing, and makes the words wrong; checked transfers, ring-LWE at 128 bits, "
        "Diffie-Hellman on ed25519, AES a random permutation, SHA-256 and Blake2xb oracles"
    ),
)


@dataclass(frozen=True, slots=True)
class Heard:
    """A word in frames `start` to `end - 1`; an empty one is silence."""

    word: str
    start: int
    end: int


@lru_cache(maxsize=128)
def shares_cost(shape: SentenceShape) -> Cost:
    """All that happens on shares."""

    def program(engine: ShareEngine) -> None:
        scores = blank(shape.frames, shape.scores)
        if shape.network is not None:
            scores = _at_scale(engine, shape, follow_layers(engine, shape.network))
        follow_words(engine, shape, None, scores, shape.frames)

    return record(program)


def total_bytes(shape: SentenceShape) -> int:
    """Payload of everything, offline and online, both ways."""
    return sum(plan.total_bytes for plan in products_of(shape)) + shares_cost(shape).total_bytes


def sentence_rounds(shape: SentenceShape) -> int:
    """Round trips online: a product, or one a layer, and those on shares."""
    return len(products_of(shape)) + shares_cost(shape).rounds


def prepare(met: Meeting, shape: SentenceShape) -> ShareEngine:
    """Offline, both parties at the same time: transfers, and encryptions of zero, for one utterance."""
    return met.prepare(products_of(shape), shares_cost(shape))


def encode_sentences(arrays: SentenceArrays) -> EncodedWeights:
    """The weights of monomials, once for all utterances. Raises RangeError if one does not fit."""
    return encode_weights(product_plan(arrays.shape), arrays.weights, WORKERS)


def transcribe(met: Meeting, shape: SentenceShape, utterance: Reals, engine: ShareEngine | None = None) -> list[Heard]:
    """The client's side, in a session of the meeting: all that was heard, silence included. `engine`: from `prepare`.
    Its beginning lacks where there are more words than the shape allows (`check_heard`, for when all has been said).
    Raises RangeError before anything is sent, if the utterance cannot be scored.
    """
    factor = shape.factor(utterance)
    engine = engine or prepare(met, shape)
    heard = follow_words(engine, shape, None, _scores(met, engine, shape, factor), len(utterance))
    assert heard is not None
    return heard


def answer_sentence(
    met: Meeting, arrays: SentenceArrays, weights: EncodedWeights | None = None, engine: ShareEngine | None = None
) -> None:
    """The server's side, in a session of the meeting. `weights`: from `encode_sentences`; a network keeps its own.
    Raises ProtocolError for a client that breaks the protocol.
    """
    shape = arrays.shape
    engine = engine or prepare(met, shape)
    own = arrays.network or weights or encode_sentences(arrays)
    follow_words(engine, shape, arrays, _scores(met, engine, shape, own), None)


def _scores(
    met: Meeting, engine: ShareEngine, shape: SentenceShape, own: Reals | EncodedWeights | NetworkArrays
) -> Residues:
    """Steps 1 and 2: our share of what every frame scores, `(frames, scores)`."""
    if shape.network is None:
        assert not isinstance(own, NetworkArrays)
        return met.multiply(product_plan(shape), own)
    assert not isinstance(own, EncodedWeights)
    return _at_scale(engine, shape, share_scores(met, engine, shape.network, own))


def _at_scale(engine: ShareEngine, shape: SentenceShape, outputs: Residues) -> Residues:
    """Outputs of a network, which has more bits after the point, as scores of the trellis."""
    assert shape.network is not None
    ring = shape.network.signs(len(shape.network.layers) - 1)
    return round_local(Shared(engine, outputs, ring), shape.network.fraction - shape.fraction).own


def follow_words(
    engine: ShareEngine, shape: SentenceShape, arrays: SentenceArrays | None, scores: Residues, frames: int | None
) -> list[Heard] | None:
    """Steps 3 and 4, from shares of all scores `(frames, scores)`. `frames`: the client's true length."""
    run = TrellisRun(engine, shape.plan, None if arrays is None else arrays.move_residues)
    with engine.in_flights():
        run.advance(scores[..., None])
        return walk_back(engine, shape, run.fields(list(shape.records))[..., 0], frames)


def walk_back(engine: ShareEngine, shape: SentenceShape, records: Residues, frames: int | None) -> list[Heard] | None:
    """From word to word, back from the end of the utterance: what was heard, or None for the server. `records`: shares
    of what the tokens of the shape's junctions know, `(frames, junctions)`. `frames`: the client's true length. The
    list lacks its beginning where there are more words than the shape allows.
    """
    ring, (frame_bits, word_bits, _) = Ring(sum(shape.fields)), shape.fields
    junctions, known = len(shape.records), records.reshape(1, -1)
    offered = Shared(engine, known if engine.is_first else np.zeros_like(known), ring)
    at = 0 if frames is None else (frames - 1) * junctions + shape.records.index(shape.end)
    found: list[Heard] = []
    over = frames is None
    for _ in range(shape.most_words):
        told = open_to(engine, Side.SECOND, choose(offered, None if engine.is_first else at).residues, ring)
        if told is None or over:
            continue
        token = int(told[0] ^ known[0, at])
        start, word = token & ((1 << frame_bits) - 1), (token >> frame_bits) & ((1 << word_bits) - 1)
        origin, end = token >> (frame_bits + word_bits), at // junctions + 1
        if start >= end or word >= len(shape.words) or origin >= junctions:
            over = True  # the server does not follow the protocol, and must not see that this was noticed
            continue
        found.append(Heard(shape.words[word], start, end))
        over = start == 0
        at = 0 if over else (start - 1) * junctions + origin
    return None if frames is None else found[::-1]


def check_heard(shape: SentenceShape, heard: list[Heard]) -> list[Heard]:
    """What was heard from the first frame on. Raises RangeError where its beginning is missing. To be called when all
    has been said that would be said in any case.
    """
    if not heard or heard[0].start:
        raise RangeError(
            f"more than {shape.most_words} words and pauses were heard in {shape.frames} frames, or the server does "
            "not follow the protocol: speak more slowly, and check that the sound is speech"
        )
    return heard


def read_sentences(shape: SentenceShape, plain: Mapping[str, Any]) -> SentenceArrays:
    """The server's numbers from what JSON can hold: `weights`, or a `network` as `read_network` takes it, `arcs` and
    `starts`. Raises PpspeechError if one is missing, is no array of numbers, or does not fit the shape.
    """
    try:
        arcs, starts = (np.array(plain[name], np.float64) for name in ("arcs", "starts"))
        weights = np.array(plain["weights"] if shape.network is None else np.zeros((0, shape.scores)), np.float64)
        network = None if shape.network is None else read_network(shape.network, plain["network"])
    except KeyError as missing:
        raise PpspeechError(f"models of sentences have weights, arcs, starts: {missing} is missing") from None
    except (TypeError, ValueError) as error:
        raise PpspeechError(f"these are no models of sentences: {error}") from None
    return SentenceArrays(shape, weights, arcs, starts, network)


@sentence.party("client")
def client(party: Party, utterance: Reals, *, shape: Mapping[str, Any]) -> list[tuple[str, int, int]]:
    """The client's whole program for one utterance, `(frames, dimensions)`: words with their first and last frames."""
    agreed = SentenceShape.from_params(shape)
    met = meet(party.channel, Side.SECOND)
    with met.session():
        heard = transcribe(met, agreed, np.asarray(utterance, np.float64))
    return [(each.word, each.start, each.end) for each in check_heard(agreed, heard)]


@sentence.party("server")
def server(party: Party, models: Mapping[str, Any], *, shape: Mapping[str, Any]) -> None:
    """The server's whole program for one utterance; `models` as `read_sentences` takes them."""
    own = read_sentences(SentenceShape.from_params(shape), models)
    met = meet(party.channel, Side.FIRST)
    with met.session():
        answer_sentence(met, own)
