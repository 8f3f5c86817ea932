"""The client of a model of words: one utterance, many in lock step, or while the user speaks. The voice stays here.

Where a model's features are known as soon as they are spoken, each frame of a stream is scored at once, and the answer
is there a few milliseconds after the last one; the server then sees when frames come and how many there are. Where
features need the whole utterance (its mean, its loudest sample), the sound is kept here until it ends, and nothing is
sent before: whoever asked when listening starts would show how long it took. To the server it is a recorded clip.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ppspeech.arrays import Reals
from ppspeech.audio import Cepstra, LiveFrames, Samples, Sound, in_usual_range, one_channel, waits_for_the_end
from ppspeech.errors import AudioError, PpspeechError, RangeError, WrongSessionError
from ppspeech.network import Transcript
from ppspeech.protocols import Meeting, meet_as_client
from ppspeech.protocols.words import (
    Hearing,
    KeywordJob,
    TakenModels,
    check_told,
    prepare_naming,
    recognize,
    recognize_garbled,
)
from ppspeech.service.client.connect import QUESTIONS, Client
from ppspeech.service.client.session import Answer, ClientSession, Clock
from ppspeech.service.estimate import choose_order, estimate, planned_job
from ppspeech.service.offer import MOST_BYTES
from ppspeech.service.requests import ORDERS, Ask, Request, Way
from ppspeech.service.tasks.words import StatisticsScale, Words

if TYPE_CHECKING:
    from torch import Tensor

Word = Answer[str | None]
Frames = Callable[[Sound, int | None], Reals]
"""Sound at a rate as the frames that a model takes."""


class Listening(Protocol):
    """One utterance as it is spoken; `is_live` says whether frames are scored as they come."""

    is_live: bool

    def feed(self, samples: "Tensor | ArrayLike") -> None:
        """The next samples, `(samples,)`, any number of them."""
        ...

    def finish(self) -> Word:
        """The utterance is over: the word."""
        ...


@QUESTIONS.register("words")
class AskWords:
    """What may be asked of a model of words. Raises WrongSessionError for an offer of more than `MOST_BYTES`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._terms: Words = client.offer.terms
        self._taken: tuple[ClientSession, TakenModels] | None = None
        self.front_end = FrontEnd(self._terms)
        job = planned_job(self._terms.shape)
        size = job.plan.total_bytes
        if size <= MOST_BYTES:  # otherwise the shares would be too many to record what they cost
            cost = estimate(job)
            size = cost.bytes_up + cost.bytes_down
        if size > MOST_BYTES:
            raise WrongSessionError(f"{client.offer.name} would exchange {size:,} bytes an utterance")

    def recognize_all(self, sounds: Sequence[Sound], rate: int | None = None, order: Way | None = None) -> list[Word]:
        """The words of many utterances, in batches that share their round trips; by default in the order that is sooner
        over this link.
        """
        if order is not None and order not in self._orders:
            raise RangeError(f"{self._client.offer.name} can be asked by {', '.join(self._orders)}, got {order!r}")
        frames = [self.front_end.frames(sound, rate) for sound in sounds]
        for each in frames:
            self._terms.shape.padded_monomials(each)  # refuse all before any is sent
        answers: list[Word] = []
        while len(answers) < len(frames):
            rest = frames[len(answers) :]
            size = max(batch for batch in self._terms.batches if batch <= len(rest))
            answers += self._recognize(rest[:size], order)
        check_told(self._terms.shape, [each.value for each in answers])
        return answers

    @contextmanager
    def stream(self, rate: int | None = None) -> Iterator[Listening]:
        """Recognize while the user speaks."""
        hears_at, shape = rate or self._terms.mfcc.sample_rate, self._terms.shape
        listening: LiveListening | BufferedListening
        if "stream" in self._terms.modes and waits_for_the_end(self._terms.mfcc) is None:
            session = self._client.session(meet_as_client)
            with session.asking(Request(Ask.STREAM)) as record:
                met = replace(session.met, channel=record)
                with met.session():
                    listening = self._listen_live(session, met, record, hears_at)
                    yield listening
        else:
            listening = BufferedListening(partial(self._recognize, order=None), self.front_end.frames, hears_at)
            yield listening
        check_told(shape, [each.value for each in listening.answers])

    @property
    def _orders(self) -> tuple[Way, ...]:
        return tuple(order for order in ORDERS if order in self._terms.modes)

    def _recognize(self, frames: list[Reals], order: Way | None) -> list[Word]:
        session, job = self._client.session(meet_as_client), planned_job(self._terms.shape, len(frames))
        chosen = order or choose_order(job, self._orders, session.round_trip, MOST_BYTES)
        job = planned_job(self._terms.shape, len(frames), chosen)
        return named_words(session, job, frames, chosen)

    def _listen_live(self, session: ClientSession, met: Meeting, record: Transcript, rate: int) -> "LiveListening":
        if rate != self._terms.mfcc.sample_rate:
            raise AudioError(f"this model listens at {self._terms.mfcc.sample_rate} Hz, got {rate}: record at its rate")
        clock = Clock()
        if self._taken is None or self._taken[0] is not session:
            self._taken = session, TakenModels(self._terms.shape)
        return LiveListening(Hearing(met, self._taken[1]), record, self._terms, clock)


def named_words(session: ClientSession, job: KeywordJob, inputs: list[Reals], order: Way) -> list[Word]:
    """Ask once, for as many utterances as there are inputs, of a job that is planned for them in this order."""
    with session.asking(Request(Ask.WORDS, order, len(inputs))) as record:
        met = replace(session.met, channel=record)
        with met.session():
            clock = Clock()
            if order == "garbled":
                circuits = prepare_naming(met, job)
                clock.is_prepared()
                return clock.answers(recognize_garbled(met, job, inputs, circuits), record, order)
            engine = job.prepare(met)
            clock.is_prepared()
            return clock.answers(recognize(met, job, inputs, engine), record, order)


class LiveListening:
    """Frames are scored as they come."""

    is_live = True

    def __init__(self, hearing: Hearing, record: Transcript, terms: Words, clock: Clock) -> None:
        self._hearing = hearing
        self._record = record
        self._mfcc = terms.mfcc
        self._frames = LiveFrames(terms.mfcc)
        self._clock = clock
        self.answers: list[Word] = []
        clock.is_prepared()

    def feed(self, samples: "Tensor | ArrayLike") -> None:
        """The next samples, `(samples,)`, any number of them."""
        self._hear(self._frames.feed(one_channel(samples)))

    def finish(self) -> Word:
        """The utterance is over: the word."""
        self._clock.is_asked()
        self._hear(self._frames.finish())
        self.answers = self._clock.answers([self._hearing.finish()], self._record, "stream")
        return self.answers[0]

    def _hear(self, frames: Reals) -> None:
        for frame in in_usual_range(frames, self._mfcc):
            self._hearing.hear(frame)


class BufferedListening:
    """The sound is kept until it ends; then `ask` is asked for the word of its frames."""

    is_live = False

    def __init__(self, ask: Callable[[list[Reals]], list[Word]], frames: Frames, rate: int) -> None:
        self._ask = ask
        self._frames = frames
        self._rate = rate
        self._heard: list[Samples] = []
        self.answers: list[Word] = []

    def feed(self, samples: "Tensor | ArrayLike") -> None:
        """The next samples, `(samples,)`, any number of them."""
        self._heard.append(one_channel(samples))

    def finish(self) -> Word:
        """The utterance is over: the word."""
        if not self._heard:
            raise PpspeechError("nothing was heard: feed the listening before it finishes")
        (word,) = self._ask([self._frames(np.concatenate(self._heard), self._rate)])
        self.answers = [replace(word, seconds=word.offline_seconds + word.seconds, offline_seconds=0.0)]
        return self.answers[0]


class FrontEnd:
    """Speech to the input of one offered model. Nothing here leaves the client."""

    def __init__(self, terms: Words) -> None:
        self._statistics = terms.statistics
        self._cepstra = Cepstra(terms.mfcc)

    def frames(self, sound: Sound, rate: int | None = None) -> Reals:
        """The model's input: frames in their usual range `(frames, features)`, or statistics `(1, 4 * features)`.

        Raises AudioError for sound that cannot be used.
        """
        frames = self._cepstra.of(sound, rate)
        if self._statistics is not None:
            return _scaled(_statistics(frames), self._statistics)
        return in_usual_range(frames, self._cepstra.config)


def _statistics(frames: Reals) -> Reals:
    """As `utterance_statistics`, of one utterance: `(1, 4 * features)`."""
    return np.concatenate([frames.mean(0), frames.max(0), frames.min(0), frames.std(0)])[None]


def _scaled(statistics: Reals, scale: StatisticsScale) -> Reals:
    """As `UtteranceClassifier` and its model do: centered, scaled, and clipped to the public radius."""
    mean, std = np.array(scale.mean), np.array(scale.std)
    vector: Reals = (statistics - mean) / (std * math.sqrt(len(mean)))
    if scale.radius is None:
        return vector
    clipped: Reals = vector * (scale.radius / max(scale.radius, float(np.linalg.norm(vector))))
    return clipped
