"""The client of a speaker service: enrol, verify a claim, ask for a name. The voice never leaves; see `gallery`."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import torch

from ppspeech.audio.mfcc import Mfcc
from ppspeech.bundle import Bundle
from ppspeech.encrypted.client import Door, choose_offer
from ppspeech.encrypted.client_session import ClientSession
from ppspeech.encrypted.description import read_description
from ppspeech.encrypted.embedding import embed
from ppspeech.encrypted.front_end import Reals, Sound, waveform_at
from ppspeech.encrypted.requests import Ask, Request, receive_ready, send_template
from ppspeech.encrypted.service_names import DESCRIBE
from ppspeech.encrypted.speaker_offer import SpeakerOffer
from ppspeech.errors import ModelError, PpspeechError, WrongSessionError
from ppspeech.network import Transcript
from ppspeech.protocols.choose import check_index
from ppspeech.protocols.speaker_identification import identify_as_client
from ppspeech.protocols.speaker_verification import verify_as_client


@dataclass(frozen=True, slots=True)
class SpeakerAnswer:
    """What came of one question.

    Attributes:
        accepted: whether a claim holds; None for a name, or where the decision is the server's.
        name: of the speaker; None for a claim, and where nobody was accepted.
        seconds: from the embedding to the answer, offline work too.
        bytes_up: payload to the server.
        bytes_down: payload from it.
        rounds: round trips.
        transcript: every message, as the client saw it.
    """

    accepted: bool | None
    name: str | None
    seconds: float
    bytes_up: int
    bytes_down: int
    rounds: int
    transcript: Transcript = field(repr=False, compare=False)


def connect_speakers(
    door: Door, bundle: Bundle, *, model: str | None = None, keep_payloads: bool = False
) -> "SpeakerClient":
    """Be ready to ask a server about speakers, with the background model it has too.

    Raises:
        ProtocolError: if the server is not there, not trusted, or its description cannot be used.
        PpspeechError: if it offers no speakers under this very bundle.
    """
    speakers = read_description(door.hear(DESCRIBE)).speakers
    if not speakers:
        raise PpspeechError("the server knows no speakers: it serves words only")
    offer = choose_offer(speakers, model)
    if offer.fingerprint != bundle.fingerprint:
        raise WrongSessionError(f"{offer.name} is the bundle {offer.fingerprint}, ours is {bundle.fingerprint}")
    return SpeakerClient(door, offer, bundle, keep_payloads)


class SpeakerClient:
    """One speaker service. Use it as a context manager; it meets the server at the first question.

    Args:
        door: to the server.
        offer: as the server described it.
        bundle: the background model, the same as the server's.
        keep_payloads: keep the bytes of every message in the answers' transcripts.
    """

    def __init__(self, door: Door, offer: SpeakerOffer, bundle: Bundle, keep_payloads: bool = False) -> None:
        self.offer = offer
        self._door = door
        self._bundle = bundle
        self._keep = keep_payloads
        self._mfcc = Mfcc(bundle.mfcc)
        self._session: ClientSession | None = None

    @torch.no_grad()
    def embedding(self, sounds: Sequence[Sound], rate: int | None = None) -> Reals:
        """What one speaker said, as one vector.

        Raises:
            AudioError: for sound that cannot be used.
        """
        clips = [self._mfcc(waveform_at(sound, rate, self._bundle.mfcc.sample_rate)).features[0] for sound in sounds]
        return embed(self._bundle, clips)

    def enrol(self, name: str, sounds: Sequence[Sound], rate: int | None = None) -> int:
        """Enrol a speaker; the place is what it claims later. The server gets the template, and no sound.

        Raises:
            PpspeechError: if the server does not enrol, has no room, or knows the name.
        """
        if not self.offer.enrols:
            raise ModelError(f"{self.offer.name} enrols nobody: its server was started without --enrol")
        template = self.embedding(sounds, rate)
        with self._met().asking(Request(Ask.ENROL), with_transfers=False) as (met, _):
            send_template(met.channel, name, template)
            done, place = receive_ready(met.channel)
        if not done or place is None:
            raise PpspeechError(f"{name!r} was not enrolled: the name is taken, or there is no room")
        return place

    def verify(self, claimed: int, sounds: Sequence[Sound], rate: int | None = None) -> SpeakerAnswer:
        """Is this the speaker of a place? The server does not learn which was claimed.

        Raises:
            RangeError: for a place that is not there; nothing is sent then.
        """
        check_index(claimed, self.offer.places)
        vector, started = self.embedding(sounds, rate), time.perf_counter()
        with self._met().asking(Request(Ask.VERIFY), with_transfers=False) as (met, record):
            accepted = verify_as_client(met, self.offer.verification, vector, claimed)
        return _answer(accepted, None, started, record)

    def identify(self, sounds: Sequence[Sound], rate: int | None = None) -> SpeakerAnswer:
        """Who of the enrolled speakers is this, if any?"""
        vector, started = self.embedding(sounds, rate), time.perf_counter()
        with self._met().asking(Request(Ask.IDENTIFY), with_transfers=False) as (met, record):
            found = identify_as_client(met, self.offer.identification, vector)
        return _answer(None, None if found is None else found.name, started, record)

    def close(self) -> None:
        """Leave the server."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _met(self) -> ClientSession:
        """The session with the server; a new one where the last has ended."""
        if self._session is None or not self._session.is_alive:
            self._session = ClientSession(self._door.open(self.offer.name, self.offer.agreement), self._keep)
        return self._session


def _answer(accepted: bool | None, name: str | None, started: float, record: Transcript) -> SpeakerAnswer:
    took = time.perf_counter() - started
    return SpeakerAnswer(accepted, name, took, record.bytes_up, record.bytes_down, record.rounds, record)
