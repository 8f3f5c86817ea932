"""The client of a head on a public embedding: one utterance, many in lock step, or every window while it listens.

The public network runs here, on our own voice; what goes out is a vector under our key. While listening there is a
question every 80 ms, whatever is said: the server sees that we listen, and nothing else.
"""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.audio import Samples, Sound, one_channel
from ppspeech.audio.embeddings import LiveVectors, WordVectors
from ppspeech.errors import AudioError, ModelError, RangeError, WrongSessionError
from ppspeech.protocols import meet_as_client
from ppspeech.protocols.words import Questions, Watch, check_told
from ppspeech.service.client.connect import QUESTIONS, Client
from ppspeech.service.client.session import Clock
from ppspeech.service.client.words import BufferedListening, Listening, Word, named_words
from ppspeech.service.estimate import choose_order, planned_job
from ppspeech.service.offer import MOST_BYTES
from ppspeech.service.requests import Ask, Request, Way
from ppspeech.service.tasks.heads import Heads, HeadScale

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from torch import Tensor

HOP_S = 0.08
"""From one window to the next."""
LONGEST_SESSION_S = 1_800.0
"""Servers end sessions after an hour: whoever listens on and on begins another before."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a window was.

    Attributes:
        word: None where it was none of the server's, and where the server alone is told.
        at: its end, in seconds since listening began.
        seconds: from the vector to the word.
    """

    word: str | None
    at: float
    seconds: float


@QUESTIONS.register("heads")
class AskHeads:
    """What may be asked of a head. Raises WrongSessionError for an offer of more than `MOST_BYTES`, or by which the
    server would learn the word and this client has not agreed; MissingPackageError without the front end's weights.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._terms: Heads = client.offer.terms
        if self._terms.outcome != client.outcome:
            told = "the server alone, and not you" if self._terms.outcome == "server" else "you alone, not the server"
            raise WrongSessionError(
                f"{client.offer.name} tells the word to {told}: agree with --outcome {self._terms.outcome}, or "
                f"`connect(…, outcome={self._terms.outcome!r})`"
            )
        size = Questions(self._terms.shape, self._terms.outcome, max(1, self._terms.ahead)).total_bytes
        if size > MOST_BYTES:
            raise WrongSessionError(f"{client.offer.name} would exchange {size:,} bytes a question")
        self._vectors = WordVectors(self._terms.embedding)

    def recognize_all(self, sounds: Sequence[Sound], rate: int | None = None, order: Way | None = None) -> list[Word]:
        """The words of many utterances, in batches that share their round trips; by default in the order that is sooner
        over this link.
        """
        if order is not None and order not in self._orders:
            raise RangeError(f"{self._client.offer.name} can be asked by {', '.join(self._orders)}, got {order!r}")
        vectors = [self.vector(sound, rate) for sound in sounds]  # refuse all before any is sent
        answers: list[Word] = []
        while len(answers) < len(vectors):
            rest = vectors[len(answers) :]
            size = max(batch for batch in self._terms.batches if batch <= len(rest))
            answers += self._recognize(rest[:size], order)
        self._check([each.value for each in answers])
        return answers

    @contextmanager
    def stream(self, rate: int | None = None) -> Iterator[Listening]:
        """Hear an utterance; the sound is kept here until it ends."""
        listening = BufferedListening(self._recognize, self.vector, rate or self._terms.embedding.sample_rate)
        yield listening
        self._check([each.value for each in listening.answers])

    @contextmanager
    def watch(self, rate: int | None = None) -> Iterator["Watching"]:
        """Listen, and tell every window. Raises ModelError for a head on whole utterances; AudioError for a rate that
        is not the front end's.
        """
        hears_at = self._terms.embedding.sample_rate
        if not self._terms.listens:
            raise ModelError(
                f"{self._client.offer.name} hears whole utterances: listening needs a head on windows (over: window)"
            )
        if rate not in (None, hears_at):
            raise AudioError(f"this model listens at {hears_at} Hz, got {rate}: record at its rate")
        with ExitStack() as batch:
            watching = Watching(self._client, self._vectors, batch)
            yield watching
            watching.finish()
        self._check(watching.words)

    def vector(self, sound: Sound, rate: int | None = None) -> Reals:
        """The head's input, `(1, features)`; it stays here. Raises AudioError for sound that cannot be used."""
        return head_input(self._vectors.of(sound, rate), self._terms.scale)[None]

    @property
    def _orders(self) -> tuple[Way, ...]:
        return ("frames", "garbled") if self._terms.garbles else ("frames",)

    def _recognize(self, vectors: list[Reals], order: Way | None = None) -> list[Word]:
        if self._terms.outcome == "server":
            return [self._tell_server(each) for each in vectors]
        session, job = self._client.session(meet_as_client), planned_job(self._terms.shape, len(vectors))
        chosen = order or choose_order(job, self._orders, session.round_trip, MOST_BYTES)
        return named_words(session, job, vectors, chosen)

    def _tell_server(self, vector: Reals) -> Word:
        session = self._client.session(meet_as_client, told=self._terms.shape.answer_bits)
        with session.asking(Request(Ask.WATCH)) as record:
            met = replace(session.met, channel=record)
            with met.session():
                clock = Clock()
                watch = Watch(met, Questions(self._terms.shape, "server"))
                clock.is_prepared()
                (answer,) = clock.answers([watch.ask(vector[0])], record, "frames")
                return answer

    def _check(self, words: Sequence[str | None]) -> None:
        if self._terms.outcome == "client":
            check_told(self._terms.shape, words)


class Watching:
    """Feed it sound at the front end's rate as it comes; every window, 80 ms after the one before, is asked about.

    Questions are prepared, and paid for, `ahead` at a time: the first before listening, others when those are used up.
    `record` has the messages since they were last prepared; `words`, all that were told.
    """

    def __init__(self, client: Client, vectors: WordVectors, batch: ExitStack) -> None:
        self._client, self._batch = client, batch
        self._terms: Heads = client.offer.terms
        self._live = LiveVectors(vectors)
        self._at = vectors.seconds
        self.words: list[str | None] = []
        self._since = time.monotonic()
        self._watch = self._prepared()

    def feed(self, samples: "Tensor | ArrayLike") -> list[Heard]:
        """What is known now: the windows that have ended, none or more. Raises BudgetSpentError where no more are
        answered, and ProtocolError if the server is gone or does not keep to the protocol.
        """
        return list(self._hear(one_channel(samples)))

    def over(self, sound: Iterable["Tensor | ArrayLike"]) -> Iterator[Heard]:
        """The windows of sound that comes in pieces, each as soon as it is known."""
        for piece in sound:
            yield from self._hear(one_channel(piece))

    def finish(self) -> None:
        """Listen no more; `watch` does it."""
        self._watch.finish()

    def _hear(self, samples: Samples) -> Iterator[Heard]:
        for vector in self._live.feed(samples):
            if not self._watch.left:
                self._watch = self._prepared()
            began = time.perf_counter()
            word = self._watch.ask(head_input(vector, self._terms.scale))
            self.words.append(word)
            yield Heard(word, round(self._at, 3), time.perf_counter() - began)
            self._at += HOP_S

    def _prepared(self) -> Watch:
        self._batch.close()
        if time.monotonic() - self._since > LONGEST_SESSION_S:
            self._client.close()
            self._since = time.monotonic()
        bits = self._terms.ahead * self._terms.shape.answer_bits if self._terms.outcome == "server" else 0
        session = self._client.session(meet_as_client, told=bits)
        self.record = self._batch.enter_context(session.asking(Request(Ask.WATCH, utterances=self._terms.ahead)))
        met = replace(session.met, channel=self.record)
        self._batch.enter_context(met.session())
        return Watch(met, Questions(self._terms.shape, self._terms.outcome, self._terms.ahead))


def spoken_in(windows: Iterable[Heard]) -> Iterator[Heard]:
    """The words among windows: the first window of each run that tells the same one."""
    before: str | None = None
    for each in windows:
        if each.word is not None and each.word != before:
            yield each
        before = each.word


def head_input(vector: Reals, scale: HeadScale) -> Reals:
    """An embedding as a head takes it, as `ppspeech.models.EmbeddingHead` does; the shape clips it to the radius."""
    mean, std = np.array(scale.mean), np.array(scale.std)
    scaled: Reals = (vector - mean) / (std * math.sqrt(len(mean)))
    if not scale.projection:
        return scaled
    projected: Reals = np.reshape(scale.projection, (-1, len(mean))) @ scaled
    return projected
