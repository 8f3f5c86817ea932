"""Keyword recognition while the user speaks: the answer is there a few milliseconds after the last frame.

The roles of the encrypted product are turned round: the server's models, encrypted under the server's own key, are
with the client, which multiplies each frame into them and sends one short reply. Each frame advances the recursion;
the operations of a step need no emission, so they are done before the next frame is spoken; what comes after the last
frame is its floor, and the choice of a word.

    meeting    server → client   its public key and encrypted models
    a frame    client → server   the frame's scores, hidden and masked; both add their shares
               both              the next step's log-add or max
    the end    both              the best word's label, to the client

When frames come and how many there are is seen by the server; use the padded form (`keyword`) where that matters.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto.lattice import (
    MatrixPlan,
    plan_stream,
    receive_scores,
)
from ppspeech.crypto.shares import Cost, ShareEngine, blank, record
from ppspeech.crypto.transfer import Side
from ppspeech.errors import BadLengthError, PpspeechError, RangeError
from ppspeech.protocols.meeting import Meeting, meet
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.scores.states import WordArrays, WordShape
from ppspeech.protocols.scores.streamed import GivenModels, Streamed
from ppspeech.protocols.scores.streamed import TakenModels as Taken
from ppspeech.protocols.words.keyword import (
    check_told,
    counted_scores,
    emission_scores,
    end_scores,
    name_best,
    read_models,
)
from ppspeech.protocols.words.recursion import WordRun

keyword_stream = register_protocol(
    "keyword_stream",
    functionality="the word whose hidden Markov model scores the client's utterance best, to the client, as it speaks",
    leakage="sizes, and to the server when each frame comes and how many there are",
    assumptions="as those of keyword; what answers tell of the server's key stays below what it can lose",
)

END = b"\0"
FRAME = b"\1"


@lru_cache(maxsize=256)
def stream_plan(shape: WordShape) -> MatrixPlan:
    """The encrypted product of one frame."""
    return plan_stream(shape.monomials, shape.columns, precision=shape.streaming_precision)


@lru_cache(maxsize=256)
def stream_cost(shape: WordShape) -> Cost:
    """All that happens on shares, for an utterance of the greatest length; `shape.frames` is that length."""

    def program(engine: ShareEngine) -> None:
        recursion = _Recursion(engine, shape, None)
        for _ in range(shape.frames):
            recursion.add(blank(1, shape.columns))
        recursion.end()

    return record(program)


def end_cost(shape: WordShape) -> Cost:
    """Of that, what comes after the last frame: its floor, and the choice of a word."""

    def program(engine: ShareEngine) -> None:
        with engine.in_flights():
            shape.floored(engine, blank(1, shape.columns))
        _end(engine, shape, None, blank(1, shape.words * shape.states + shape.reject))

    return record(program)


def streamed(shape: WordShape) -> Streamed:
    """The product of a frame, and what an answer tells."""
    return Streamed(stream_plan(shape), shape.answer_bits)


def model_bytes(shape: WordShape) -> int:
    """What the server sends for one key: its public half and encrypted models."""
    return streamed(shape).model_bytes


def streams_a_key(shape: WordShape) -> int:
    """Utterances that one key of the server answers: a label each."""
    return streamed(shape).answers_a_key


class StreamModels(GivenModels):
    """The server's models in one meeting, encrypted under a key of its own."""

    def __init__(self, models: WordArrays) -> None:
        self.models = models
        super().__init__(streamed(models.shape), models.score_weights)


class TakenModels(Taken):
    """The client's, as the server gives them."""

    def __init__(self, shape: WordShape) -> None:
        self.shape = shape
        super().__init__(streamed(shape))


class Hearing:
    """The client's side of one utterance: `hear` each frame, then `finish`. In a session of the meeting.

    To begin is the offline part: transfers with the server, and encryptions of zero, for the longest utterance.
    `models`: of the meeting; the server sends them before the first utterance.
    """

    def __init__(self, met: Meeting, models: TakenModels) -> None:
        self._shape = shape = models.shape
        self._model = model = models.take(met)
        self._channel = met.channel
        engine = ShareEngine(met.channel, met.setup, stream_cost(shape))
        model.prepare(shape.frames)
        self._recursion = _Recursion(engine, shape, None)
        self._is_over = False

    def hear(self, frame: Reals) -> None:
        """Score a frame, `(dimensions,)`. Raises RangeError, and sends nothing, if it is one too many or unscorable."""
        self._check_not_over()
        monomials = self._shape.frame_monomials(frame[None])
        if self._recursion.frames == self._shape.frames:
            raise RangeError(f"an utterance has at most {self._shape.frames} frames here")
        reply, share = self._model.send(monomials)
        self._channel.send(Kind.FRAME, FRAME + reply)
        self._recursion.add(share)

    def finish(self) -> str | None:
        """The word; None where the garbage model won. Raises RangeError if too few frames were heard for any word."""
        self._check_not_over()
        heard, shortest = self._recursion.frames, self._shape.shortest
        if heard < shortest:
            raise RangeError(f"an utterance has at least {shortest} frames here, got {heard}")
        self._channel.send(Kind.FRAME, END)
        self._is_over = True
        words = self._recursion.end()
        assert words is not None
        return words[0]

    def _check_not_over(self) -> None:
        if self._is_over:
            raise PpspeechError("this utterance is over: every utterance needs its own hearing, with its own transfers")


def follow(met: Meeting, models: StreamModels) -> None:
    """The server's side of one utterance, in a session. Raises ProtocolError for a client that breaks the protocol."""
    shape = models.models.shape
    plan = stream_plan(shape)
    models.give(met)
    recursion = _Recursion(ShareEngine(met.channel, met.setup, stream_cost(shape)), shape, models.models)
    size = plan.job.reply_bytes
    while True:
        message = met.channel.receive(Kind.FRAME, at_most=1 + size)
        if message == END and recursion.frames >= shape.shortest:
            break
        if message[:1] != FRAME or len(message) != 1 + size or recursion.frames == shape.frames:
            raise BadLengthError("expected a frame, or the end of an utterance of the agreed length")
        recursion.add(receive_scores(models.key, plan, message[1:]))
    recursion.end()


class _Recursion:
    """What both sides do with their shares of each frame's scores."""

    def __init__(self, engine: ShareEngine, shape: WordShape, models: WordArrays | None) -> None:
        self._engine = engine
        self._shape = shape
        self._models = models
        self._run = WordRun(engine, shape, models)
        self._garbage = np.zeros((1, int(shape.reject)), np.uint64)

    @property
    def frames(self) -> int:
        """How many came."""
        return self._run.frames

    def add(self, scores: Residues) -> None:
        """Land on this frame, and advance towards the next."""
        shape = self._shape
        with self._engine.in_flights():
            scores = counted_scores(self._engine, shape, self._models, scores)
            emission = emission_scores(self._engine, shape, scores)
            self._garbage = self._garbage + scores[:, shape.columns - shape.reject :]
            self._run.advance(emission.reshape(1, 1, -1))

    def end(self) -> list[str | None] | None:
        """The word, to the client."""
        shape = self._shape
        state = self._run.scores(slice(self.frames - 1, self.frames))[:, 0]
        last = np.concatenate((state, shape.scale.ring.reduce(self._garbage)), axis=1)
        return _end(self._engine, shape, self._models, last)


def _end(engine: ShareEngine, shape: WordShape, models: WordArrays | None, last: Residues) -> list[str | None] | None:
    with engine.in_flights():
        return name_best(engine, shape, models, end_scores(engine, shape, last))


@keyword_stream.party("client")
def client(party: Party, utterance: Reals, *, shape: Mapping[str, Any]) -> str | None:
    """The client's whole program for one utterance, `(frames, dimensions)`; `shape` as that of `keyword`."""
    frames, agreed = np.asarray(utterance, np.float64), WordShape.from_params(shape)
    met = meet(party.channel, Side.SECOND)
    with met.session():
        hearing = Hearing(met, TakenModels(agreed))
        for frame in frames:
            hearing.hear(frame)
        word = hearing.finish()
    check_told(agreed, [word])
    return word


@keyword_stream.party("server")
def server(party: Party, models: Mapping[str, Any], *, shape: Mapping[str, Any]) -> None:
    """The server's whole program for one utterance; `models` and `shape` as those of `keyword`."""
    hidden = StreamModels(read_models(WordShape.from_params(shape), models))
    met = meet(party.channel, Side.FIRST)
    with met.session():
        follow(met, hidden)
