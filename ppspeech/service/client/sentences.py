"""The client of a model of sentences: which words, and when. The voice stays here.

What the server sees of an utterance is its length in steps of 32 frames, a second or so; nothing of what was said.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ppspeech.arrays import Reals
from ppspeech.audio import Cepstra, LiveFrames, Samples, Sound, in_usual_range, one_channel, waits_for_the_end
from ppspeech.bundle import Spoken
from ppspeech.errors import AudioError, PpspeechError, RangeError, WrongSessionError
from ppspeech.network import Transcript
from ppspeech.protocols import meet_as_client
from ppspeech.protocols.sentences import (
    Heard,
    ListeningEar,
    TakenModels,
    check_heard,
    fits_garbled,
    prepare,
    prepare_question,
    products_of,
    streamed,
    total_bytes,
    transcribe,
    transcribe_garbled,
)
from ppspeech.service.client.connect import QUESTIONS, Client
from ppspeech.service.client.session import Answer, ClientSession, Clock
from ppspeech.service.estimate_sentences import choose_way, speaking_way
from ppspeech.service.offer import MOST_BYTES
from ppspeech.service.requests import Ask, Request
from ppspeech.service.tasks.sentences import Mode, Sentences

if TYPE_CHECKING:
    from torch import Tensor

Words = Answer[list[Spoken]]

LEAST = 50  # bytes of a maximum on shares, of any number of bits


@QUESTIONS.register("sentences")
class AskSentences:
    """What may be asked of a model of sentences. Raises WrongSessionError for an offer of more than `MOST_BYTES`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._terms: Sentences = client.offer.terms
        self._cepstra = Cepstra(self._terms.mfcc)
        self._taken: tuple[ClientSession, TakenModels] | None = None
        shape = self._terms.shape
        size = sum(plan.total_bytes for plan in products_of(shape)) + LEAST * shape.frames * shape.plan.operations
        if size <= MOST_BYTES:  # otherwise the shares would be too many to record what they cost
            size = total_bytes(shape)
        if size > MOST_BYTES:
            raise WrongSessionError(f"{client.offer.name} would exchange {size:,} bytes for the longest sentence")
        if "garbled" in self._terms.modes and not fits_garbled(shape, MOST_BYTES):
            raise WrongSessionError(
                f"{client.offer.name} would have tables of more than {MOST_BYTES:,} bytes held for the longest sentence"
            )

    def transcribe_all(self, sounds: Sequence[Sound], rate: int | None = None, mode: Mode | None = None) -> list[Words]:
        """The words of many recordings, one after the other; by default in the way that is sooner over this link."""
        if mode is not None and mode not in self._terms.modes:
            raise RangeError(f"{self._client.offer.name} can be asked by {', '.join(self._terms.modes)}, got {mode!r}")
        frames = [self.frames(sound, rate) for sound in sounds]
        steps = []
        for number, each in enumerate(frames):  # refuse all before any is sent
            with told_of(sounds, number):
                steps.append(self._terms.steps_of(len(each)))
        found = [self._transcribe(each, size, mode) for each, size in zip(frames, steps, strict=True)]
        for number, (size, (_, heard)) in enumerate(zip(steps, found, strict=True)):
            with told_of(sounds, number):
                check_heard(self._terms.shape_of(size), heard)
        return [answer for answer, _ in found]

    @contextmanager
    def listen(self, rate: int | None = None) -> Iterator["SentenceListening"]:
        """Hear a sentence while it is spoken; where features wait for its end, the sound is kept here until then."""
        hears_at = rate or self._terms.mfcc.sample_rate
        if not self._terms.streams or waits_for_the_end(self._terms.mfcc) is not None:
            yield KeptListening(self.transcribe_all, hears_at)
            return
        if hears_at != self._terms.mfcc.sample_rate:
            raise AudioError(f"this model listens at {self._terms.mfcc.sample_rate} Hz, got {hears_at}: record at that")
        session, steps = self._client.session(meet_as_client), self._terms.steps[-1]
        engine = speaking_way(self._terms.shape, self._terms.mfcc.hop_s, session.round_trip, self._terms.modes)
        if self._taken is None or self._taken[0] is not session:
            self._taken = session, TakenModels(streamed(self._terms.shape))
        with session.asking(Request(Ask.STREAM, "garbled" if engine == "garbled" else "frames", steps=steps)) as record:
            met = replace(session.met, channel=record)
            with met.session():
                clock = Clock()
                ear = ListeningEar(met, self._terms.shape_of(steps), self._taken[1], engine)
                clock.is_prepared()
                listening = LiveSentence(ear, record, self._terms, clock)
                yield listening
        if listening.heard is not None:
            check_heard(self._terms.shape_of(steps), listening.heard)

    def frames(self, sound: Sound, rate: int | None = None) -> Reals:
        """A recording as the model takes it, `(frames, features)`, but for a network in the usual range of speech; it
        stays here.
        """
        features = self._cepstra.of(sound, rate)
        return features if self._terms.shape.network is not None else in_usual_range(features, self._terms.mfcc)

    def _transcribe(self, frames: Reals, steps: int, mode: Mode | None) -> tuple[Words, list[Heard]]:
        """The answer, and what it was made from, not looked at: nothing that is said later may depend on it."""
        shape, session = self._terms.shape_of(steps), self._client.session(meet_as_client)
        way = mode or choose_way(shape, self._terms.modes, session.round_trip)  # what it looks at is kept
        with session.asking(Request(Ask.SENTENCE, way, steps=steps)) as record:
            met = replace(session.met, channel=record)
            with met.session():
                clock = Clock()
                if way == "garbled":
                    circuit = prepare_question(met, shape)
                    clock.is_prepared()
                    heard = transcribe_garbled(met, shape, frames, circuit)
                else:
                    engine = prepare(met, shape)
                    clock.is_prepared()
                    heard = transcribe(met, shape, frames, engine)
                (answer,) = clock.answers([spoken(heard, self._terms)], record, way)
        return answer, heard


class SentenceListening(Protocol):
    """One sentence as it is spoken; `is_live` says whether frames are scored as they come."""

    is_live: bool

    def feed(self, samples: "Tensor | ArrayLike") -> None:
        """The next samples, `(samples,)`, any number of them."""
        ...

    def finish(self) -> Words:
        """The sentence is over: its words."""
        ...


class LiveSentence:
    """Frames are scored as they come."""

    is_live = True

    def __init__(self, ear: ListeningEar, record: Transcript, terms: Sentences, clock: Clock) -> None:
        self._ear, self._record, self._terms, self._clock = ear, record, terms, clock
        self._frames = LiveFrames(terms.mfcc)
        self.heard: list[Heard] | None = None

    def feed(self, samples: "Tensor | ArrayLike") -> None:
        """The next samples, `(samples,)`, any number of them."""
        self._hear(self._frames.feed(one_channel(samples)))

    def finish(self) -> Words:
        """The sentence is over: its words."""
        self._clock.is_asked()
        self._hear(self._frames.finish())
        self.heard = self._ear.finish()
        (answer,) = self._clock.answers([spoken(self.heard, self._terms)], self._record, "stream")
        return answer

    def _hear(self, frames: Reals) -> None:
        if len(frames):
            self._ear.hear(in_usual_range(frames, self._terms.mfcc))


class KeptListening:
    """The sound is kept until it ends, and asked about then."""

    is_live = False

    def __init__(self, ask: Callable[[Sequence[Sound], int], list[Words]], rate: int) -> None:
        self._ask, self._rate = ask, rate
        self._heard: list[Samples] = []

    def feed(self, samples: "Tensor | ArrayLike") -> None:
        """The next samples, `(samples,)`, any number of them."""
        self._heard.append(one_channel(samples))

    def finish(self) -> Words:
        """The sentence is over: its words."""
        if not self._heard:
            raise PpspeechError("nothing was heard: feed the listening before it finishes")
        (answer,) = self._ask([np.concatenate(self._heard)], self._rate)
        return replace(answer, seconds=answer.offline_seconds + answer.seconds, offline_seconds=0.0)


def spoken(heard: Sequence[Heard], terms: Sentences) -> list[Spoken]:
    """Without silence, in seconds."""
    hop = terms.mfcc.hop_s
    return [Spoken(each.word, each.start * hop, each.end * hop) for each in heard if each.word]


@contextmanager
def told_of(sounds: Sequence[Sound], number: int) -> Iterator[None]:
    """Say of which sound a RangeError tells."""
    sound, name = sounds[number], "the recording"
    if isinstance(sound, str | Path):
        name = str(sound)
    elif len(sounds) > 1:
        name = f"recording {number + 1} of {len(sounds)}"
    try:
        yield
    except RangeError as refused:
        raise RangeError(f"{name}: {refused}") from None
