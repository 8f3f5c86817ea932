"""The client of a network on frames: which word. The voice stays here."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ppspeech.arrays import Reals
from ppspeech.audio import Cepstra, Sound
from ppspeech.errors import RangeError, WrongSessionError
from ppspeech.protocols import meet_as_client
from ppspeech.protocols.networks import (
    NetworkShape,
    ask_network,
    check_told,
    network_cost,
    prepare_network,
    product_bytes,
)
from ppspeech.service.client.connect import QUESTIONS, Client
from ppspeech.service.client.session import Clock
from ppspeech.service.client.words import BufferedListening, Listening, Word
from ppspeech.service.offer import MOST_BYTES
from ppspeech.service.requests import Ask, Request, Way
from ppspeech.service.tasks.networks import Networks


@QUESTIONS.register("networks")
class AskNetworks:
    """What may be asked of a network. Raises WrongSessionError for an offer of more than `MOST_BYTES`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._terms: Networks = client.offer.terms
        self._cepstra = Cepstra(self._terms.mfcc)
        check_bytes(client.offer.name, self._terms.shape)

    def recognize_all(self, sounds: Sequence[Sound], rate: int | None = None, order: Way | None = None) -> list[Word]:
        """The words of many utterances, one after the other."""
        if order not in (None, "frames"):
            raise RangeError(f"a network is asked in the order of its layers, got {order!r}")
        frames = [self.frames(sound, rate) for sound in sounds]
        for each in frames:
            self._terms.shape.clipped(each)  # refuse all before any is sent
        answers = [self._recognize(each) for each in frames]
        check_told(self._terms.shape, [each.value for each in answers])
        return answers

    @contextmanager
    def stream(self, rate: int | None = None) -> Iterator[Listening]:
        """Hear an utterance; the sound is kept here until it ends."""
        listening = BufferedListening(
            lambda frames: [self._recognize(each) for each in frames],
            self.frames,
            rate or self._terms.mfcc.sample_rate,
        )
        yield listening
        check_told(self._terms.shape, [each.value for each in listening.answers])

    def frames(self, sound: Sound, rate: int | None = None) -> Reals:
        """A recording as the network takes it, `(frames, features)`; it stays here."""
        return self._cepstra.of(sound, rate)

    def _recognize(self, frames: Reals) -> Word:
        session, shape = self._client.session(meet_as_client), self._terms.shape
        with session.asking(Request(Ask.WORDS)) as record:
            met = replace(session.met, channel=record)
            with met.session():
                clock = Clock()
                engine = prepare_network(met, shape)
                clock.is_prepared()
                (answer,) = clock.answers(ask_network(met, shape, frames, engine), record, "layers")
        return answer


def check_bytes(name: str, shape: NetworkShape) -> None:
    """Refuse, with a WrongSessionError, an utterance of more than `MOST_BYTES`."""
    size = product_bytes(shape)
    if size <= MOST_BYTES:  # otherwise the shares would be too many to record what they cost
        size += network_cost(shape).total_bytes
    if size > MOST_BYTES:
        raise WrongSessionError(f"{name} would exchange {size:,} bytes an utterance")
