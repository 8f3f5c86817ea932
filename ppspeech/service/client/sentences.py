"""The client of a model of sentences: which words, and when. The voice stays here.

What the server sees of an utterance is its length in steps of 32 frames, a second or so; nothing of what was said.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from ppspeech.arrays import Reals
from ppspeech.audio import Mfcc, Sound, features_of, in_usual_range
from ppspeech.bundle import Spoken
from ppspeech.errors import RangeError, WrongSessionError
from ppspeech.protocols import meet_as_client
from ppspeech.protocols.sentences import (
    Heard,
    check_heard,
    prepare,
    prepare_question,
    product_plan,
    total_bytes,
    transcribe,
    transcribe_garbled,
)
from ppspeech.service.client.connect import MOST_BYTES, QUESTIONS, Client
from ppspeech.service.client.session import Answer, Clock
from ppspeech.service.estimate_sentences import choose_way
from ppspeech.service.requests import Ask, Request
from ppspeech.service.tasks.sentences import Mode, Sentences

Words = Answer[list[Spoken]]

LEAST = 50  # bytes of a maximum on shares, of any number of bits


@QUESTIONS.register("sentences")
class AskSentences:
    """What may be asked of a model of sentences. Raises WrongSessionError for an offer of more than `MOST_BYTES`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._terms: Sentences = client.offer.terms
        self._mfcc = Mfcc(self._terms.mfcc)
        shape = self._terms.shape
        size = product_plan(shape).total_bytes + LEAST * shape.frames * shape.plan.operations
        if size <= MOST_BYTES:  # otherwise the shares would be too many to record what they cost
            size = total_bytes(shape)
        if size > MOST_BYTES:
            raise WrongSessionError(f"{client.offer.name} would exchange {size:,} bytes for the longest sentence")

    def transcribe_all(self, sounds: Sequence[Sound], rate: int | None = None, mode: Mode | None = None) -> list[Words]:
        """The words of many recordings, one after the other; by default in the way that is sooner over this link."""
        if mode is not None and mode not in self._terms.modes:
            raise RangeError(f"{self._client.offer.name} can be asked by {', '.join(self._terms.modes)}, got {mode!r}")
        frames = [self.frames(sound, rate) for sound in sounds]
        steps = []
        for number, each in enumerate(frames):  # refuse all before any is sent
            with _told_of(sounds, number):
                steps.append(self._terms.steps_of(len(each)))
        found = [self._transcribe(each, size, mode) for each, size in zip(frames, steps, strict=True)]
        for number, (size, (_, heard)) in enumerate(zip(steps, found, strict=True)):
            with _told_of(sounds, number):
                check_heard(self._terms.shape_of(size), heard)
        return [answer for answer, _ in found]

    @torch.no_grad()
    def frames(self, sound: Sound, rate: int | None = None) -> Reals:
        """A recording as the model takes it, in the usual range of speech, `(frames, features)`; it stays here."""
        (features,) = features_of([sound], self._mfcc, rate)
        return in_usual_range(features, self._terms.mfcc)

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
                (answer,) = clock.answers([self._spoken(heard)], record, way)
        return answer, heard

    def _spoken(self, heard: Sequence[Heard]) -> list[Spoken]:
        """Without silence, in seconds."""
        hop = self._terms.mfcc.hop_s
        return [Spoken(each.word, each.start * hop, each.end * hop) for each in heard if each.word]


@contextmanager
def _told_of(sounds: Sequence[Sound], number: int) -> Iterator[None]:
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
