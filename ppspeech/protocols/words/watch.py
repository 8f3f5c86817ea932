"""Words of vectors, question after question: prepared together, asked one by one, told to either party.

    offline   both              transfers, and encryptions of zero, for a number of questions at once
    a step    client → server   that another comes, and its vector, encrypted under the client's key
              server → client   all scores, masked
              both              the best candidate, on shares, as in `keyword`
              one of them       its label, to the client; or the client's part of its place, to the server
    the end   client → server   that no other comes

A device that listens asks about every window it hears, whatever is said: the server sees a question each time. Who is
told is agreed on beforehand. Where it is the server, all that the client sends and that depends on its voice is
`answer_bits` bits a question (Theorem 2.32 in docs/theory/asking.md); the client learns nothing. What these bits are of
is what the client has decrypted: a server that sends something else than scores reads the client's key, bit by bit, and
with it all that was asked. So a key is for as many questions as it can lose bits (`questions_a_key`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto.lattice import EncodedWeights, LatticeParameters, MatrixPlan
from ppspeech.crypto.shares import Cost, Shared, ShareEngine, argmax, blank, open_bits_to, record
from ppspeech.crypto.transfer import Side
from ppspeech.errors import BadTypeError, PpspeechError, RangeError
from ppspeech.protocols.meeting import Meeting, meet
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.scores.states import WordArrays, WordShape
from ppspeech.protocols.words.keyword import (
    KeywordJob,
    check_told,
    encode_models,
    name_best,
    read_models,
    share_scores,
)

Told = Literal["client", "server"]
"""Who learns the word."""

MOST_STEPS = 256
"""Questions that are prepared at once, where the client is told."""
END, ANOTHER = b"\0", b"\1"

SIZES = "sizes alone: dimensions, words, how many questions are prepared; to the server when each is asked"

keyword_watch = register_protocol(
    "keyword_watch",
    functionality="the word that scores each of the client's vectors best, or that it is none, to the client",
    leakage=SIZES,
    assumptions="as those of keyword",
)

keyword_outcome = register_protocol(
    "keyword_outcome",
    functionality="the word that scores each of the client's vectors best, or that it is none, to the server alone",
    leakage=SIZES,
    assumptions=(
        "a client may do anything, learns nothing of the models, and makes the server believe any word; a server that "
        "cheats learns as many bits of each vector as name a word, but of its choice; otherwise as those of keyword"
    ),
)


def questions_a_key(shape: WordShape) -> int:
    """Questions of which a server is told the words under one key of the client's: no more than it can lose bits."""
    return LatticeParameters().leakable_bits // shape.answer_bits


def most_steps(shape: WordShape, told: Told) -> int:
    """Questions that are prepared at once."""
    return MOST_STEPS if told == "client" else min(MOST_STEPS, questions_a_key(shape))


@dataclass(frozen=True)
class Questions:
    """Questions about vectors of one shape, of one frame each, prepared together, and under one key of the client's.
    Raises RangeError for others.
    """

    shape: WordShape
    told: Told = "client"
    steps: int = 1

    def __post_init__(self) -> None:
        most = most_steps(self.shape, self.told)
        if self.shape.frames != 1 or self.told not in ("client", "server") or not 1 <= self.steps <= most:
            raise RangeError(
                f"1 to {most} questions about vectors are prepared at once, told to client or server, got "
                f"{self.steps} of {self.shape.frames} frames, told to {self.told!r:.40}"
            )

    @cached_property
    def question(self) -> KeywordJob:
        """One of them."""
        return KeywordJob(self.shape)

    @property
    def plan(self) -> MatrixPlan:
        """The encrypted product of one of them."""
        return self.question.plan

    @property
    def step_cost(self) -> Cost:
        """What happens on shares, of one of them."""
        return _step_cost(self.shape, self.told)

    @property
    def step_bytes(self) -> int:
        """Payload of one of them, online, both ways."""
        return len(ANOTHER) + self.plan.total_bytes + self.step_cost.online_bytes

    @property
    def total_bytes(self) -> int:
        """Payload of all of them, offline and online, both ways."""
        return (self.step_cost * self.steps).total_bytes + self.steps * (len(ANOTHER) + self.plan.total_bytes)

    @property
    def rounds(self) -> int:
        """Round trips of one of them, online."""
        return ("sr" + self.step_cost.directions).count("sr")

    def prepare(self, met: Meeting) -> ShareEngine:
        """Offline, both parties at the same time: for all of them."""
        return met.prepare([self.plan] * self.steps, self.step_cost * self.steps)


@lru_cache(maxsize=64)
def _step_cost(shape: WordShape, told: Told) -> Cost:
    job = KeywordJob(shape)
    return record(lambda engine: _decide(engine, job, told, None, blank(1, shape.columns)))


class Watch:
    """The client's side, in a session of the meeting: `ask` about one vector after another, then `finish`.

    To begin is the offline part. `left`: how many may still be asked.
    """

    def __init__(self, met: Meeting, job: Questions) -> None:
        self._met, self._job = met, job
        self._engine = job.prepare(met)
        self.left = job.steps

    def ask(self, vector: Reals) -> str | None:
        """The word of a vector, `(dimensions,)`; None where it is none of them, and where the server is told. Raises
        RangeError, and sends nothing, for a vector that cannot be scored, or one more than were prepared.
        """
        monomials = self._job.question.monomials([np.asarray(vector, np.float64)[None]])
        if not self.left:
            raise RangeError(f"{self._job.steps} questions were prepared, and all are asked")
        self.left -= 1
        self._met.channel.send(Kind.STEP, ANOTHER)
        shares = self._met.multiply(self._job.plan, monomials)
        words = _decide(self._engine, self._job.question, self._job.told, None, shares)
        return None if words is None else words[0]

    def finish(self) -> None:
        """No other comes."""
        if self.left:
            self._met.channel.send(Kind.STEP, END)
        self.left = 0


def attend(
    met: Meeting,
    job: Questions,
    models: WordArrays,
    weights: EncodedWeights,
    hear: Callable[[str | None], object] | None = None,
    engine: ShareEngine | None = None,
) -> None:
    """The server's side, in a session: help until all questions are asked, or the client says that no other comes.

    `weights`: of the models, by `encode_models`. `hear`: takes each word, None where it is none of ours, where the
    server is told. `engine`: from `job.prepare`; without one it is prepared here. Raises ProtocolError for a client
    that does not keep to the protocol.
    """
    if models.shape != job.shape:
        raise PpspeechError("the job is of another shape than the models")
    engine = engine or job.prepare(met)
    for _ in range(job.steps):
        said = met.channel.receive(Kind.STEP, 1)
        if said == END:
            return
        if said != ANOTHER:
            raise BadTypeError(f"another question comes (1) or none (0), got {said.hex()}")
        shares = met.multiply(job.plan, weights)
        words = _decide(engine, job.question, job.told, models, shares)
        if words is not None and hear is not None:
            hear(words[0])


def _decide(
    engine: ShareEngine, job: KeywordJob, told: Told, models: WordArrays | None, shares: Residues
) -> list[str | None] | None:
    """From shares of the scores, `(1, columns)`: the word, for whoever is told; None for the other."""
    own = None if engine.is_first else np.zeros(1, np.int64)
    with engine.in_flights():
        scores = share_scores(engine, job, models, job.by_utterance(shares), own)
        if told == "client":
            return name_best(engine, job.shape, models, scores)
        return tell_server(engine, job.shape, models, scores)


def tell_server(
    engine: ShareEngine, shape: WordShape, models: WordArrays | None, scores: Residues
) -> list[str | None] | None:
    """The label of each row's best candidate, to the server; None where the garbage model won, and for the client.

    Places count from 1. The client sends its part of the place and no more bits than a place has, whatever the server
    made of the tables before.
    """
    won = argmax(Shared(engine, scores, shape.scale.ring)).own.astype(np.int64)
    place = np.bitwise_xor.reduce(won * np.arange(1, shape.candidates + 1), axis=1)
    bits = (place[:, None] >> np.arange(shape.answer_bits)) & 1
    opened = open_bits_to(engine, Side.FIRST, bits.astype(np.uint8))
    if opened is None or models is None:
        return None
    names: tuple[str | None, ...] = (None, *models.labels)
    places = (opened.astype(np.int64) << np.arange(shape.answer_bits)).sum(axis=1)
    return [names[each] if each < len(names) else None for each in places.tolist()]


def _asked(party: Party, vectors: Sequence[Reals], job: Questions) -> list[str | None]:
    met = meet(party.channel, Side.SECOND)
    with met.session():
        watch = Watch(met, job)
        words = [watch.ask(np.asarray(vector, np.float64)) for vector in vectors]
        watch.finish()
    return words


def _attended(party: Party, models: Mapping[str, Any], job: Questions) -> list[str | None]:
    own, heard = read_models(job.shape, models), list[str | None]()
    met = meet(party.channel, Side.FIRST)
    with met.session():
        attend(met, job, own, encode_models(own), heard.append)
    return heard


@keyword_watch.party("client")
def client(party: Party, vectors: Sequence[Reals], *, shape: Mapping[str, Any], steps: int) -> list[str | None]:
    """The client's whole program for up to `steps` vectors, `(dimensions,)` each; `shape` is a `WordShape`'s."""
    job = Questions(WordShape.from_params(shape), "client", steps)
    words = _asked(party, vectors, job)
    check_told(job.shape, words)
    return words


@keyword_watch.party("server")
def server(party: Party, models: Mapping[str, Any], *, shape: Mapping[str, Any], steps: int) -> None:
    """The server's whole program; `models` as `read_models` takes them."""
    _attended(party, models, Questions(WordShape.from_params(shape), "client", steps))


@keyword_outcome.party("client")
def outcome_client(party: Party, vectors: Sequence[Reals], *, shape: Mapping[str, Any], steps: int) -> None:
    """The client's whole program, where the server is told."""
    _asked(party, vectors, Questions(WordShape.from_params(shape), "server", steps))


@keyword_outcome.party("server")
def outcome_server(
    party: Party, models: Mapping[str, Any], *, shape: Mapping[str, Any], steps: int
) -> list[str | None]:
    """The server's whole program, where it is told: the word of each vector."""
    return _attended(party, models, Questions(WordShape.from_params(shape), "server", steps))
