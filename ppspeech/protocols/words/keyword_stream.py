"""Keyword recognition while the user speaks: the answer is there a few milliseconds after the last frame.

The roles of the encrypted product are turned round: the server's models, encrypted under the server's own key, are
with the client, which multiplies each frame into them and sends one short reply. Each frame advances the recursion;
the operations of a step need no emission, so they are done before the next frame is spoken.

    once       server → client   its public key and encrypted models
    a frame    client → server   the frame's scores, hidden and masked; both add their shares
               both              the next step's log-add or max
    the end    both              the best word's label, to the client

When frames come and how many there are is seen by the server; use the padded form (`keyword`) where that matters.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto.lattice import (
    Evaluator,
    FrameSender,
    KeyHolder,
    MatrixPlan,
    ciphertext_length,
    plan_stream,
    publish_model,
    receive_scores,
)
from ppspeech.crypto.shares import Cost, ShareEngine
from ppspeech.errors import BadLengthError, PpspeechError, RangeError
from ppspeech.protocols.meeting import MetClient, MetServer
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.party import register_protocol
from ppspeech.protocols.scores.states import WordModels, WordShape
from ppspeech.protocols.trellis.combine import Combine
from ppspeech.protocols.trellis.recursion import Paths, step_costs
from ppspeech.protocols.words.choice import choose_residues
from ppspeech.protocols.words.keyword import emission_scores, end_cost, end_scores

register_protocol(
    "keyword_stream",
    functionality="the word whose hidden Markov model scores the client's utterance best, to the client, as it speaks",
    leakage="sizes, and to the server when each frame comes and how many there are",
    assumptions="as those of keyword",
)

END = b"\0"
FRAME = b"\1"


@dataclass(frozen=True)
class StreamJob:
    """One utterance as it is spoken: its plan and the most it costs.

    Attributes:
        shape: of the models; `frames` is the longest utterance.
    """

    shape: WordShape

    @cached_property
    def plan(self) -> MatrixPlan:
        """The encrypted product of one frame."""
        return plan_stream(self.shape.monomials, self.shape.columns, precision=self.shape.streaming_precision)

    @cached_property
    def shares_cost(self) -> Cost:
        """All that happens on shares, for an utterance of the greatest length."""
        shape = self.shape
        mixtures = Combine(shape.operation, shape.scale).reduce_cost(shape.words * shape.states, shape.components)
        steps = step_costs(shape, 1, shape.frames + 1)  # the last step is prepared, and not needed
        return (mixtures * shape.frames + steps + end_cost(shape, 1)).in_flights()

    @property
    def model_bytes(self) -> int:
        """What the server sends once: its public key and encrypted models."""
        return ciphertext_length(self.plan.precision.parameters) + self.plan.job.query_bytes


@dataclass(frozen=True)
class StreamModels:
    """The server's models, encrypted once for all clients.

    Attributes:
        job: their plan.
        models: in the clear.
        key: the server's own.
        message: its public half and the encrypted models.
    """

    job: StreamJob
    models: WordModels
    key: KeyHolder
    message: bytes


def encrypt_models(models: WordModels) -> StreamModels:
    """Make a key and encrypt the models under it.

    Raises:
        RangeError: if a weight is beyond the public limit.
    """
    job, key = StreamJob(models.shape), KeyHolder()
    return StreamModels(job, models, key, key.public_key + publish_model(key, job.plan, models.score_weights))


class StreamClient:
    """The client's side: `begin`, `hear` each frame, `finish`. Use it inside `met.session()`.

    Args:
        met: with the server.
        job: agreed on with it.
        model: what `take_models` received; it serves any number of utterances.
    """

    def __init__(self, met: MetClient, job: StreamJob, model: FrameSender) -> None:
        self._met = met
        self._job = job
        self._model = model
        self._engine: ShareEngine | None = None

    def begin(self) -> None:
        """Offline: transfers with the server and encryptions of zero for the longest utterance."""
        self._engine = ShareEngine(self._met.channel, self._met.setup, self._job.shares_cost)
        self._model.prepare(self._job.shape.frames)
        self._recursion = _Recursion(self._engine, self._job.shape, None)

    def hear(self, frame: Reals) -> None:
        """Score one more frame, `(dimensions,)`.

        Raises:
            RangeError: if it cannot be scored, or the utterance is longer than agreed on; nothing is sent then.
        """
        engine = self._begun()
        monomials = self._job.shape.frame_monomials(frame[None])
        if self._recursion.frames == self._job.shape.frames:
            raise RangeError(f"an utterance has at most {self._job.shape.frames} frames here")
        reply, share = self._model.send(monomials)
        engine.channel.send(Kind.FRAME, FRAME + reply)
        self._recursion.add(share)

    def finish(self) -> str | None:
        """The word; None where the garbage model won.

        Raises:
            RangeError: if too few frames were heard for any word.
        """
        engine, shape = self._begun(), self._job.shape
        if self._recursion.frames < shape.shortest:
            raise RangeError(f"an utterance has at least {shape.shortest} frames here, got {self._recursion.frames}")
        engine.channel.send(Kind.FRAME, END)
        self._engine = None
        answer = self._recursion.end()
        assert answer is not None
        return answer[0]

    def _begun(self) -> ShareEngine:
        if self._engine is None:
            raise PpspeechError("call begin first: every utterance needs its own transfers")
        return self._engine


class StreamServer:
    """The server's side. Use it inside `met.session()`.

    Args:
        met: with the client.
        models: encrypted once, for all clients.
    """

    def __init__(self, met: MetServer, models: StreamModels) -> None:
        self._met = met
        self._models = models

    def answer(self) -> None:
        """Follow one utterance to its end.

        Raises:
            ProtocolError: for a client that does not keep to the protocol.
        """
        job, channel = self._models.job, self._met.channel
        engine = ShareEngine(channel, self._met.setup, job.shares_cost)
        recursion = _Recursion(engine, job.shape, self._models.models)
        size = job.plan.job.reply_bytes
        while True:
            message = engine.channel.receive(Kind.FRAME, at_most=1 + size)
            if message == END and recursion.frames >= job.shape.shortest:
                break
            if message[:1] != FRAME or len(message) != 1 + size or recursion.frames == job.shape.frames:
                raise BadLengthError("expected a frame, or the end of an utterance of the agreed length")
            recursion.add(receive_scores(self._models.key, job.plan, message[1:]))
        recursion.end()


class _Recursion:
    """What both sides do with their shares of each frame's scores."""

    def __init__(self, engine: ShareEngine, shape: WordShape, models: WordModels | None) -> None:
        self.frames = 0
        self._engine = engine
        self._shape = shape
        self._models = models
        self._paths = Paths(engine, shape, models)
        self._arrived: Residues | None = None
        self._garbage = np.zeros((1, int(shape.reject)), np.uint64)

    def add(self, scores: Residues) -> None:
        """Land on this frame, and advance towards the next."""
        shape = self._shape
        with self._engine.in_flights():
            emission = emission_scores(self._engine, shape, scores)
            self._garbage = self._garbage + scores[:, shape.columns - shape.reject :]
            self._state = self._paths.land(self._arrived, emission)
            self._arrived = self._paths.advance(self._state)
        self.frames += 1

    def end(self) -> list[str | None] | None:
        """The word, to the client."""
        shape = self._shape
        last = np.concatenate((self._state.reshape(1, -1), shape.scale.ring.reduce(self._garbage)), axis=1)
        with self._engine.in_flights():
            return choose_residues(self._engine, shape, self._models, end_scores(self._engine, shape, last))


def give_models(met: MetServer, models: StreamModels) -> None:
    """Once a meeting, server: send the encrypted models."""
    met.channel.send(Kind.MODEL, models.message)


def take_models(met: MetClient, job: StreamJob) -> FrameSender:
    """Once a meeting, client: receive them.

    Raises:
        BadCiphertextError: if they are malformed or of another plan.
    """
    message = met.channel.receive(Kind.MODEL, job.model_bytes)
    key = ciphertext_length(job.plan.precision.parameters)
    return FrameSender(Evaluator(message[:key], job.plan.precision.parameters), job.plan, message[key:])
