"""Sentences over links: as `transcribe` and `stream`, by garbled circuits, which have no round trip a frame.

    whole     offline            transfers, then tables, made with a share that the server fixed before
              client → server    monomials of the padded frames, encrypted; back come all scores, masked
              client → server    its share of them, blinded; back come labels, and what the outputs mean
    spoken    offline            transfers, whose rows are the labels of the client's masks, then tables
              client → server    a chunk's scores under these masks; back come labels of the server's share of them
              the end            tables of the way back, and what the outputs mean

The client reads the last `most_words` words and their frames, and sends nothing after that. What it reads, and whether
it means anything, is looked at when all has been said: `Spoken.words`.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.crypto.lattice import EncodedWeights, ReplyMask, receive_scores, share_before
from ppspeech.errors import BadLengthError, CheatError, PpspeechError, RangeError
from ppspeech.protocols.meeting import Meeting
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.scores.streamed import GivenModels, Streamed, TakenModels
from ppspeech.protocols.sentences.shape import SentenceArrays, SentenceShape
from ppspeech.protocols.sentences.stream import CHUNK, stream_plan
from ppspeech.protocols.sentences.transcribe import Heard, check_heard, product_plan
from ppspeech.protocols.trellis import (
    PathRead,
    StreamEvaluation,
    StreamGarbling,
    TrellisCircuit,
    WholeEvaluation,
    WholeGarbling,
    plan_circuit,
    whole_cost,
)

START, WORD = 0, 1  # fields of a token
LATE = 8
"""Chunks whose labels may still be under way while someone speaks: half a second, more than a round trip."""


@lru_cache(maxsize=64)
def sentence_circuit(shape: SentenceShape) -> TrellisCircuit:
    """Of the shape's graph. Where words are known as they begin, that is all that is read; else both are."""
    at_once = all(bool(begins) == (word >= 0) for _, _, begins, word in shape.arcs)
    known = at_once and all(word >= 0 for _, word in shape.starts)
    return plan_circuit(shape.plan, shape.end, (WORD,) if known else (START, WORD), shape.most_words)


def garbled_bytes(shape: SentenceShape) -> int:
    """Payload of a whole utterance, offline and online, both ways."""
    return product_plan(shape).total_bytes + whole_cost(sentence_circuit(shape)).total


def garbled_streamed(shape: SentenceShape) -> Streamed:
    """The product of a chunk, and what an answer tells. Raises RangeError for answers that tell too much."""
    return Streamed(stream_plan(shape), sentence_circuit(shape).answer_bits)


@dataclass(frozen=True, eq=False)
class Spoken:
    """What the client read of an utterance of so many frames."""

    shape: SentenceShape
    read: PathRead
    frames: int

    def words(self) -> list[Heard]:
        """All that was heard, silence included. To be called when the session is over. Raises CheatError where it
        means nothing, RangeError where there are more words than the shape allows.
        """
        records = self.read.records()
        begun = [frame for frame, _ in records[0]]
        found = []
        for start, end in zip(begun, [*begun[1:], self.frames], strict=True):
            known = [word for frame, word in records[-1] if start <= frame < end]
            if not known or known[-1] >= len(self.shape.words):
                raise CheatError("the server told of a word that is none: it does not follow the protocol")
            found.append(Heard(self.shape.words[known[-1]], start, end))
        return check_heard(self.shape, found)


@dataclass(frozen=True, eq=False)
class GarbledSentence:
    """What a server made for one whole utterance."""

    garbling: WholeGarbling
    mask: ReplyMask


def prepare_evaluation(met: Meeting, shape: SentenceShape) -> WholeEvaluation:
    """Offline, the client, while the server garbles: transfers, tables, and encryptions of zero for one utterance."""
    with ThreadPoolExecutor(max_workers=1) as aside:
        zeros = aside.submit(met.lattice.prepare, product_plan(shape).job)
        evaluation = WholeEvaluation(met.channel, met.setup, sentence_circuit(shape))
        zeros.result()
    return evaluation


def prepare_garbling(met: Meeting, arrays: SentenceArrays) -> GarbledSentence:
    """Offline, the server. Raises CheatError for a client whose transfers do not agree."""
    plan = product_plan(arrays.shape)
    mask = ReplyMask(plan.job)
    circuit, share = sentence_circuit(arrays.shape), share_before(plan, mask)
    with ThreadPoolExecutor(max_workers=1) as aside:
        zeros = aside.submit(met.lattice.prepare, plan.job)
        garbling = WholeGarbling(met.channel, met.setup, circuit, arrays.move_residues, share)
        zeros.result()
    return GarbledSentence(garbling, mask)


def transcribe_garbled(
    met: Meeting, shape: SentenceShape, utterance: Reals, evaluation: WholeEvaluation | None = None
) -> Spoken:
    """The client's side, in a session of the meeting. `evaluation`: from `prepare_evaluation`. Raises RangeError before
    anything is sent, if the utterance cannot be scored.
    """
    monomials = shape.padded_monomials(utterance)
    evaluation = evaluation or prepare_evaluation(met, shape)
    share = met.multiply(product_plan(shape), monomials)
    return Spoken(shape, evaluation.finish(share, len(utterance)), len(utterance))


def answer_garbled(
    met: Meeting, arrays: SentenceArrays, weights: EncodedWeights, prepared: GarbledSentence | None = None
) -> None:
    """The server's side, in a session of the meeting. Raises ProtocolError for a client that breaks the protocol."""
    prepared = prepared or prepare_garbling(met, arrays)
    met.multiply(product_plan(arrays.shape), weights, prepared.mask)
    prepared.garbling.answer()


class GarbledEar:
    """The client's side of one utterance: `hear` frames, then `finish`. In a session of the meeting. To begin is the
    offline part: all masks, transfers, and tables for the longest utterance. The server sees how many frames there are.
    """

    def __init__(self, met: Meeting, shape: SentenceShape, models: TakenModels) -> None:
        self._shape, self._channel = shape, met.channel
        self._model = models.take(met)
        plan, chunks = stream_plan(shape), -(-shape.frames // CHUNK)
        self._masks = [ReplyMask(plan.job) for _ in range(chunks)]
        share = np.concatenate([share_before(plan, mask).T for mask in self._masks])[: shape.frames]
        self._evaluation = StreamEvaluation(met.channel, met.setup, sentence_circuit(shape), share)
        self._model.prepare(chunks)
        self._waiting: list[Reals] = []
        self._sent: list[int] = []
        self._heard = 0
        self._is_over = False

    def hear(self, frames: Reals) -> None:
        """The next frames, `(frames, dimensions)`. Raises RangeError, nothing sent, for too many or unscorable ones."""
        self._check_not_over()
        monomials = self._shape.frame_monomials(frames)
        if self._heard + len(monomials) > self._shape.frames:
            raise RangeError(f"an utterance has at most {self._shape.frames} frames here")
        self._heard += len(monomials)
        self._waiting += list(monomials)
        while len(self._waiting) >= CHUNK:
            self._send(CHUNK)
        while len(self._sent) > LATE:
            self._evaluation.advance(self._sent.pop(0))

    def finish(self) -> Spoken:
        """What was heard. Raises RangeError, nothing sent, if too little was said for anything."""
        self._check_not_over()
        if self._heard < self._shape.shortest:
            raise RangeError(f"an utterance has at least {self._shape.shortest} frames here, got {self._heard}")
        if self._waiting:
            self._send(len(self._waiting))
        self._channel.send(Kind.FRAME, bytes(1))
        self._is_over = True
        self._evaluation.advance(sum(self._sent))
        return Spoken(self._shape, self._evaluation.finish(), self._heard)

    def _send(self, count: int) -> None:
        chunk = np.zeros((CHUNK, self._shape.monomials))
        chunk[:count] = self._waiting[:count]
        del self._waiting[:count]
        reply, _ = self._model.send(chunk, self._masks.pop(0))
        self._channel.send(Kind.FRAME, bytes([count]) + reply)
        self._sent.append(count)

    def _check_not_over(self) -> None:
        if self._is_over:
            raise PpspeechError("this utterance is over: every utterance needs its own ear, with its own transfers")


def follow_garbled(met: Meeting, arrays: SentenceArrays, models: GivenModels) -> None:
    """The server's side of one utterance, in a session. Raises ProtocolError for a client that breaks the protocol."""
    shape, plan = arrays.shape, stream_plan(arrays.shape)
    models.give(met)
    garbling = StreamGarbling(met.channel, met.setup, sentence_circuit(shape), arrays.move_residues)
    frames, size, last = 0, 1 + plan.job.reply_bytes, False
    while True:
        message = met.channel.receive(Kind.FRAME, at_most=size)
        if message == bytes(1) and frames >= shape.shortest:
            break
        count = message[0] if message else 0
        if len(message) != size or not 1 <= count <= min(CHUNK, shape.frames - frames) or last:
            raise BadLengthError("expected frames, or the end of an utterance of the agreed length")
        garbling.send(receive_scores(models.key, plan, message[1:])[:count])
        frames, last = frames + count, count < CHUNK
    garbling.finish()
