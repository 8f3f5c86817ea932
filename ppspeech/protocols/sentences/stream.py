"""Sentences while they are spoken: the words are there some milliseconds after the last frame.

    meeting    server → client   its public key and models encrypted under it
    a chunk    client → server   the scores of two frames, hidden and masked; both add their shares
               both              all that the recursion can do with them, on shares; or, in a garbled circuit whose
                                 tables came before, labels of the server's share alone
    the end    both              back from word to word, as in `transcribe` or `garbled`

When frames come and how many there are is seen by the server; use the padded form where that matters. On shares every
frame takes four round trips, which is nothing on a local network; over a slow link the circuit takes one, at the end.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto.lattice import MatrixPlan, ReplyMask, plan_stream, receive_scores, share_before
from ppspeech.crypto.shares import Cost, ShareEngine, blank, record
from ppspeech.crypto.transfer import Side
from ppspeech.errors import BadLengthError, PpspeechError, RangeError
from ppspeech.protocols.meeting import Meeting, meet
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.scores.streamed import GivenModels, Streamed, TakenModels
from ppspeech.protocols.sentences.garbled import sentence_circuit, words_read
from ppspeech.protocols.sentences.shape import CHUNK, SentenceArrays, SentenceShape
from ppspeech.protocols.sentences.transcribe import Heard, check_heard, read_sentences, walk_back
from ppspeech.protocols.trellis import StreamEvaluation, StreamGarbling, TrellisRun

sentence_stream = register_protocol(
    "sentence_stream",
    functionality="as sentence, while the client speaks",
    leakage="sizes, the graph without its weights, names of words; to the server when chunks come and how many",
    assumptions="as those of sentence; what answers tell of the server's key stays below what it can lose",
)

END = b"\0"
BEHIND = 2
"""Chunks of which a client does not wait for the labels: what was said last and its end then leave together."""

Engine = Literal["shares", "garbled"]


@lru_cache(maxsize=64)
def stream_plan(shape: SentenceShape) -> MatrixPlan:
    """The encrypted product of a chunk."""
    return plan_stream(shape.monomials, shape.scores, CHUNK, shape.streaming_precision)


def streamed(shape: SentenceShape, engine: Engine = "shares") -> Streamed:
    """The product of a chunk, and what an answer tells. Raises RangeError for answers that tell too much, or scores of
    a network, which are no product.
    """
    if shape.network is not None:
        raise RangeError("a network is not asked while somebody speaks: ask about the whole sentence")
    bits = sentence_circuit(shape).answer_bits if engine == "garbled" else shape.answer_bits
    return Streamed(stream_plan(shape), bits)


@lru_cache(maxsize=64)
def stream_cost(shape: SentenceShape) -> Cost:
    """All that happens on shares, for an utterance of the greatest length."""

    def program(engine: ShareEngine) -> None:
        following = _OnShares(engine, shape, None)
        for at in range(0, shape.frames, CHUNK):
            following.add(blank(min(CHUNK, shape.frames - at), shape.scores))
        following.end()

    return record(program)


class ListeningEar:
    """The client's side of one utterance: `hear` frames, then `finish`. In a session of the meeting.

    To begin is the offline part: transfers with the server, tables of a circuit, and encryptions of zero, for the
    longest utterance.
    """

    def __init__(self, met: Meeting, shape: SentenceShape, models: TakenModels, engine: Engine = "shares") -> None:
        self._shape, self._channel = shape, met.channel
        self._model = models.take(met)
        self._model.prepare(-(-shape.frames // CHUNK))
        self._following: _OnShares | _Evaluated = (
            _Evaluated(met, shape) if engine == "garbled" else _OnShares.of(met, shape, None)
        )
        self._waiting: list[Reals] = []
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

    def finish(self) -> list[Heard]:
        """All that was heard, silence included, as `transcribe` gives it. Raises RangeError if too little was said."""
        self._check_not_over()
        if self._heard < self._shape.shortest:
            raise RangeError(f"an utterance has at least {self._shape.shortest} frames here, got {self._heard}")
        if self._waiting:
            self._send(len(self._waiting))
        self._channel.send(Kind.FRAME, END)
        self._is_over = True
        return self._following.end()

    def _send(self, count: int) -> None:
        chunk = np.zeros((CHUNK, self._shape.monomials))
        chunk[:count] = self._waiting[:count]
        del self._waiting[:count]
        reply, share = self._model.send(chunk, self._following.mask())
        self._channel.send(Kind.FRAME, bytes([count]) + reply)
        self._following.add(share[:count])

    def _check_not_over(self) -> None:
        if self._is_over:
            raise PpspeechError("this utterance is over: every utterance needs its own ear, with its own transfers")


def follow_speech(met: Meeting, arrays: SentenceArrays, models: GivenModels, engine: Engine = "shares") -> None:
    """The server's side of one utterance, in a session. Raises ProtocolError for a client that breaks the protocol."""
    shape = arrays.shape
    plan = stream_plan(shape)
    models.give(met)
    following: _OnShares | _Garbled = _Garbled(met, arrays) if engine == "garbled" else _OnShares.of(met, shape, arrays)
    size, frames, may_come = 1 + plan.job.reply_bytes, 0, CHUNK
    while True:
        message = met.channel.receive(Kind.FRAME, at_most=size)
        if message == END and frames >= shape.shortest:
            break
        count = message[0] if len(message) == size else 0
        if may_come < CHUNK or not 1 <= count <= min(CHUNK, shape.frames - frames):
            raise BadLengthError("expected frames, or the end of an utterance of the agreed length")
        frames, may_come = frames + count, count
        following.add(receive_scores(models.key, plan, message[1:])[:count])
    following.end()


class _OnShares:
    """What both sides do with their shares of each chunk's scores."""

    def __init__(self, engine: ShareEngine, shape: SentenceShape, arrays: SentenceArrays | None) -> None:
        self._engine, self._shape = engine, shape
        self._run = TrellisRun(engine, shape.plan, None if arrays is None else arrays.move_residues)

    @classmethod
    def of(cls, met: Meeting, shape: SentenceShape, arrays: SentenceArrays | None) -> "_OnShares":
        """With transfers for the longest utterance."""
        return cls(ShareEngine(met.channel, met.setup, stream_cost(shape)), shape, arrays)

    def mask(self) -> None:
        """Shares are whatever they become."""

    def add(self, scores: Residues) -> None:
        """Shares of the next frames' scores."""
        with self._engine.in_flights():
            self._run.advance(scores[..., None])

    def end(self) -> list[Heard]:
        """The words, to the client; nothing, to the server."""
        frames = self._run.frames
        records = np.zeros((self._shape.frames, len(self._shape.records)), np.uint64)
        with self._engine.in_flights():
            self._run.finish()
            records[:frames] = self._run.fields(list(self._shape.records))[..., 0]
            heard = walk_back(self._engine, self._shape, records, None if self._engine.is_first else frames)
        return heard or []


class _Evaluated:
    """The client's side of a circuit: its shares are fixed before anything is said."""

    def __init__(self, met: Meeting, shape: SentenceShape) -> None:
        plan = stream_plan(shape)
        self._shape = shape
        self._masks = [ReplyMask(plan.job) for _ in range(0, shape.frames, CHUNK)]
        share = np.concatenate([share_before(plan, mask).T for mask in self._masks])[: shape.frames]
        self._evaluation = StreamEvaluation(met.channel, met.setup, sentence_circuit(shape), share)
        self._sent = 0

    def mask(self) -> ReplyMask:
        """Of the next chunk."""
        return self._masks[self._sent // CHUNK]

    def add(self, share: Residues) -> None:
        """Labels of the server's share of these frames are on their way: walk those of some chunks before."""
        self._sent += len(share)
        ready = self._sent - CHUNK * BEHIND
        if ready > self._evaluation.frames:
            self._evaluation.advance(ready - self._evaluation.frames)

    def end(self) -> list[Heard]:
        """The words."""
        self._evaluation.advance(self._sent - self._evaluation.frames)
        return words_read(self._shape, self._evaluation.finish(), self._sent)


class _Garbled:
    """The server's side of a circuit."""

    def __init__(self, met: Meeting, arrays: SentenceArrays) -> None:
        circuit = sentence_circuit(arrays.shape)
        self._garbling = StreamGarbling(met.channel, met.setup, circuit, arrays.move_residues)

    def add(self, share: Residues) -> None:
        """Labels of this share of the next frames."""
        self._garbling.send(share)

    def end(self) -> None:
        """The way back, and what it means."""
        self._garbling.finish()


@sentence_stream.party("client")
def client(
    party: Party, utterance: Reals, *, shape: Mapping[str, Any], engine: Engine = "shares"
) -> list[tuple[str, int, int]]:
    """The client's whole program for one utterance, `(frames, dimensions)`: words with their first and last frames."""
    agreed = SentenceShape.from_params(shape)
    met = meet(party.channel, Side.SECOND)
    with met.session():
        ear = ListeningEar(met, agreed, TakenModels(streamed(agreed, engine)), engine)
        for frame in np.asarray(utterance, np.float64):
            ear.hear(frame[None])
        heard = ear.finish()
    return [(each.word, each.start, each.end) for each in check_heard(agreed, heard)]


@sentence_stream.party("server")
def server(party: Party, models: Mapping[str, Any], *, shape: Mapping[str, Any], engine: Engine = "shares") -> None:
    """The server's whole program for one utterance; `models` as `read_sentences` takes them."""
    own = read_sentences(SentenceShape.from_params(shape), models)
    met = meet(party.channel, Side.FIRST)
    with met.session():
        follow_speech(met, own, GivenModels(streamed(own.shape, engine), own.weights), engine)
