"""Sentences over slow links: the recursion in a garbled circuit, so that no frame waits for a round trip.

    offline   both              transfers for the client's shares; tables, from the server
    1, 2      client ⇄ server   encrypted frames, masked scores: the server's share was fixed before
    3, 4      client ⇄ server   the client's choices, masked; labels, and what the outputs mean

Two round trips for a whole utterance. While someone speaks, only the end takes one: the client's share is the mask of
what it sends, and the tables are with it already.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.crypto.garbled import TABLE_BYTES
from ppspeech.crypto.lattice import EncodedWeights, ReplyMask, share_before
from ppspeech.crypto.transfer import Side
from ppspeech.errors import CheatError
from ppspeech.protocols.meeting import Meeting, meet
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.sentences.shape import SentenceArrays, SentenceShape, product_plan
from ppspeech.protocols.sentences.transcribe import (
    Heard,
    check_heard,
    encode_sentences,
    read_sentences,
)
from ppspeech.protocols.trellis import (
    GarbledCost,
    PathRead,
    TrellisCircuit,
    WholeEvaluation,
    WholeGarbling,
    plan_circuit,
    whole_cost,
)

sentence_garbled = register_protocol(
    "sentence_garbled",
    functionality="as sentence, in two round trips",
    leakage="sizes, the graph without its weights, and the names of words; to the server nothing else",
    assumptions=(
        "a client may do anything, and learns the words of one utterance; a server that cheats learns nothing, and "
        "makes the words wrong; as those of sentence, and the hash of half gates circular correlation robust"
    ),
)

START, WORD = 0, 1  # fields of a token that are read


@lru_cache(maxsize=16)
def sentence_circuit(shape: SentenceShape) -> TrellisCircuit:
    """The circuit of the longest utterance. Where words begin and which they are is read, of the last `most_words`;
    one is enough where words are known as they begin.
    """
    at_once = all(bool(begins) == (word >= 0) for _, _, begins, word in shape.arcs)
    known = at_once and all(word >= 0 for _, word in shape.starts)
    return plan_circuit(shape.plan, shape.end, (WORD,) if known else (START, WORD), shape.most_words)


def garbled_cost(shape: SentenceShape) -> GarbledCost:
    """Payload of the circuit, without the encrypted product."""
    return whole_cost(sentence_circuit(shape))


def garbled_bytes(shape: SentenceShape) -> int:
    """Payload of everything, offline and online, both ways."""
    return product_plan(shape).total_bytes + garbled_cost(shape).total


def held_bytes(shape: SentenceShape) -> int:
    """Of tables that a client holds while it waits for the voice."""
    return garbled_cost(shape).offline_down


def fits_garbled(shape: SentenceShape, most: int) -> bool:
    """Whether everything of an utterance in a circuit takes no more bytes than that. No circuit is drawn where its
    comparisons alone would: a gate a bit; nor for a network, whose layers take their round trips anyway.
    """
    if shape.network is not None:
        return False
    return TABLE_BYTES * shape.bits * shape.plan.operations * shape.frames <= most and garbled_bytes(shape) <= most


@dataclass(frozen=True, eq=False)
class PreparedGarbling:
    """The server's side of one utterance, prepared."""

    arrays: SentenceArrays
    mask: ReplyMask
    garbling: WholeGarbling


def prepare_answer(met: Meeting, arrays: SentenceArrays) -> PreparedGarbling:
    """Offline, the server: what is to be sent for one utterance, as the client does `prepare_question`."""
    shape = arrays.shape
    plan = product_plan(shape)
    met.lattice.prepare(plan.job)
    mask = ReplyMask(plan.job)
    share = share_before(plan, mask)
    return PreparedGarbling(
        arrays, mask, WholeGarbling(met.channel, met.setup, sentence_circuit(shape), arrays.move_residues, share)
    )


def prepare_question(met: Meeting, shape: SentenceShape) -> WholeEvaluation:
    """Offline, the client: transfers, and tables that are kept until they are used."""
    met.lattice.prepare(product_plan(shape).job)
    return WholeEvaluation(met.channel, met.setup, sentence_circuit(shape))


def transcribe_garbled(
    met: Meeting, shape: SentenceShape, utterance: Reals, prepared: WholeEvaluation | None = None
) -> list[Heard]:
    """The client's side, in a session of the meeting: all that was heard, silence included. Raises RangeError before
    anything is sent, if the utterance cannot be scored.
    """
    monomials = shape.padded_monomials(utterance)
    prepared = prepared or prepare_question(met, shape)
    share = met.multiply(product_plan(shape), monomials)
    return words_read(shape, prepared.finish(share, len(utterance)), len(utterance))


def answer_garbled(
    met: Meeting, arrays: SentenceArrays, weights: EncodedWeights, prepared: PreparedGarbling | None = None
) -> None:
    """The server's side, in a session of the meeting. Raises ProtocolError for a client that breaks the protocol."""
    prepared = prepared or prepare_answer(met, arrays)
    met.multiply(product_plan(arrays.shape), weights, prepared.mask)
    prepared.garbling.answer()


def words_read(shape: SentenceShape, read: PathRead, frames: int) -> list[Heard]:
    """What the path met, as words; none where it makes no sense, which `check_heard` says when all has been said."""
    try:
        records = read.records()
    except CheatError:
        return []
    starts = [frame for frame, _ in records[0]]
    words = [word for _, word in records[-1]]
    if not starts or len(words) != len(starts) or max(words) >= len(shape.words):
        return []
    ends = [*starts[1:], frames]
    return [Heard(shape.words[word], start, end) for word, start, end in zip(words, starts, ends, strict=True)]


@sentence_garbled.party("client")
def client(party: Party, utterance: Reals, *, shape: Mapping[str, Any]) -> list[tuple[str, int, int]]:
    """The client's whole program for one utterance, `(frames, dimensions)`: words with their first and last frames."""
    agreed = SentenceShape.from_params(shape)
    met = meet(party.channel, Side.SECOND)
    with met.session():
        heard = transcribe_garbled(met, agreed, np.asarray(utterance, np.float64))
    return [(each.word, each.start, each.end) for each in check_heard(agreed, heard)]


@sentence_garbled.party("server")
def server(party: Party, models: Mapping[str, Any], *, shape: Mapping[str, Any]) -> None:
    """The server's whole program for one utterance; `models` as `read_sentences` takes them."""
    own = read_sentences(SentenceShape.from_params(shape), models)
    met = meet(party.channel, Side.FIRST)
    with met.session():
        answer_garbled(met, own, encode_sentences(own))
