"""The client of a network that is read greedily: which words, and where each begins. The voice stays here.

What the server sees of an utterance is its length in steps of 32 frames, a second or so; nothing of what was said.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ppspeech.arrays import Reals
from ppspeech.audio import Cepstra, Sound
from ppspeech.bundle import Spoken
from ppspeech.errors import RangeError
from ppspeech.protocols import meet_as_client
from ppspeech.protocols.networks import ask_network, prepare_network
from ppspeech.service.client.connect import QUESTIONS, Client
from ppspeech.service.client.networks import check_bytes
from ppspeech.service.client.sentences import KeptListening, SentenceListening, Words, told_of
from ppspeech.service.client.session import Clock
from ppspeech.service.requests import Ask, Request
from ppspeech.service.tasks.network_sentences import NetworkSentences
from ppspeech.service.tasks.sentences import Mode


@QUESTIONS.register("network_sentences")
class AskNetworkSentences:
    """What may be asked of a network that is read greedily. Raises WrongSessionError for an offer of more than
    `MOST_BYTES`.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._terms: NetworkSentences = client.offer.terms
        self._cepstra = Cepstra(self._terms.mfcc)
        check_bytes(client.offer.name, self._terms.shape)

    def transcribe_all(self, sounds: Sequence[Sound], rate: int | None = None, mode: Mode | None = None) -> list[Words]:
        """The words of many recordings, one after the other."""
        if mode not in (None, "frames"):
            raise RangeError(f"a network is asked in the order of its layers, got {mode!r}")
        frames = [self._cepstra.of(sound, rate) for sound in sounds]
        steps = []
        for number, each in enumerate(frames):  # refuse all before any is sent
            with told_of(sounds, number):
                steps.append(self._terms.steps_of(len(each)))
                self._terms.shape_of(steps[-1]).clipped(self._terms.with_zeros(each))
        return [self._transcribe(each, size) for each, size in zip(frames, steps, strict=True)]

    @contextmanager
    def listen(self, rate: int | None = None) -> Iterator[SentenceListening]:
        """Hear a sentence; the sound is kept here until it ends."""
        yield KeptListening(self.transcribe_all, rate or self._terms.mfcc.sample_rate)

    def _transcribe(self, frames: Reals, steps: int) -> Words:
        session, shape = self._client.session(meet_as_client), self._terms.shape_of(steps)
        with session.asking(Request(Ask.SENTENCE, steps=steps)) as record:
            met = replace(session.met, channel=record)
            with met.session():
                clock = Clock()
                engine = prepare_network(met, shape)
                clock.is_prepared()
                labels = ask_network(met, shape, self._terms.with_zeros(frames), engine)
                (answer,) = clock.answers([self._spoken(labels, len(frames))], record, "layers")
        return answer

    def _spoken(self, labels: Sequence[str | None], frames: int) -> list[Spoken]:
        """What begins before the utterance ends, in seconds; only we know where that is."""
        stride, hop = self._terms.shape.span[1], self._terms.mfcc.hop_s
        begun = enumerate(labels[: -(-frames // stride)])
        return [Spoken(word, stride * at * hop, stride * (at + 1) * hop) for at, word in begun if word is not None]
