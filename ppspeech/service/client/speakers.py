"""The client of a speaker service: enroll, verify a claim, ask for a name. The voice never leaves; see `gallery`."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import numpy as np
import torch

from ppspeech.arrays import Reals
from ppspeech.audio import Sound
from ppspeech.bundle import Bundle
from ppspeech.crypto.shares import check_index
from ppspeech.errors import ModelError, PpspeechError, WrongSessionError
from ppspeech.network import Transcript
from ppspeech.protocols import MetClient
from ppspeech.protocols.speakers import EncryptedGallery, identify_as_client, prove_as_client, verify_as_client
from ppspeech.service.client.connect import MOST_BYTES, Door, choose_offer
from ppspeech.service.client.session import ClientSession
from ppspeech.service.description import read_description
from ppspeech.service.mixture_form import trial_frames
from ppspeech.service.names import DESCRIBE
from ppspeech.service.requests import Ask, Request, receive_ready, send_name, send_template
from ppspeech.service.speaker_offer import SpeakerOffer, job_bytes


@dataclass(frozen=True, slots=True)
class SpeakerAnswer:
    """What came of one question.

    Attributes:
        accepted: whether a claim holds; None for a name, or where the decision is not ours.
        name: of the speaker; None for a claim, where nobody was accepted, or where the name is not ours.
        seconds: from the features to the answer, offline work too.
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

    @staticmethod
    def of(accepted: bool | None, name: str | None, started: float, record: Transcript) -> "SpeakerAnswer":
        """The answer that has just come to a question that was `started` then."""
        took = time.perf_counter() - started
        return SpeakerAnswer(accepted, name, took, record.bytes_up, record.bytes_down, record.rounds, record)


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
    if offer.scoring != "hardened" and job_bytes(offer.verification) > MOST_BYTES:
        raise WrongSessionError(f"{offer.name} would exchange {job_bytes(offer.verification):,} bytes a claim")
    return SpeakerClient(door, offer, bundle, keep_payloads)


class SpeakerClient:
    """One speaker service. Use it as a context manager; it meets the server at the first question.

    Args:
        door: to the server.
        offer: as the server described it.
        bundle: the background model, the same as the server's.
        keep_payloads: keep the bytes of every message in the answers' transcripts.

    Attributes:
        offer: as the server described it.
        bundle: the background model.
    """

    def __init__(self, door: Door, offer: SpeakerOffer, bundle: Bundle, keep_payloads: bool = False) -> None:
        self.offer = offer
        self.bundle = bundle
        self._door = door
        self._keep = keep_payloads
        self._verifier = bundle.verifier
        self._session: ClientSession | None = None

    def embedding(self, sounds: Sequence[Sound], rate: int | None = None) -> Reals:
        """What one speaker said, as one direction.

        Raises:
            AudioError: for sound that cannot be used.
        """
        return self._verifier.direction(self._verifier.features(sounds, rate))

    def enroll(self, name: str, sounds: Sequence[Sound], rate: int | None = None) -> int:
        """Enroll a speaker; the place is what it claims later. The server gets the template, and no sound.

        Raises:
            PpspeechError: if the server does not enroll, has no room, or knows the name.
        """
        if not self.offer.enrolls:
            raise ModelError(f"{self.offer.name} enrolls nobody: its server was started without --enroll")
        clips = self._verifier.features(sounds, rate)
        template = (self._verifier.means if self.offer.scoring == "gmm" else self._verifier.direction)(clips)
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
        voice, started = self._voice(sounds, rate), time.perf_counter()
        with self._met().asking(Request(Ask.VERIFY), with_transfers=False) as (met, record):
            accepted = self._verify(met, voice, claimed)
        return SpeakerAnswer.of(accepted, None, started, record)

    def identify(self, sounds: Sequence[Sound], rate: int | None = None) -> SpeakerAnswer:
        """Who of the enrolled speakers is this, if any?

        Raises:
            ModelError: if the server answers no such question.
        """
        if not self.offer.identifies:
            raise ModelError(f"{self.offer.name} verifies claims only: hardened and normed mixtures give no names")
        job = self.offer.identification
        if job_bytes(job) > MOST_BYTES:
            raise WrongSessionError(f"{self.offer.name} would exchange {job_bytes(job):,} bytes for a name")
        voice, started = self._voice(sounds, rate), time.perf_counter()
        with self._met().asking(Request(Ask.IDENTIFY), with_transfers=False) as (met, record):
            found = identify_as_client(met, job, voice)
        return SpeakerAnswer.of(None, None if found is None else found.name, started, record)

    def publish(self, gallery: str, sealed: EncryptedGallery) -> None:
        """Have the server keep a gallery that it cannot read, in place of ours of the same name.

        Raises:
            PpspeechError: if the server keeps none, or not this one.
        """
        self._check_stores()
        with self._met().asking(Request(Ask.PUBLISH), with_transfers=False) as (met, _):
            send_name(met.channel, gallery)
            sealed.send(met.channel)
            kept, _ = receive_ready(met.channel)
        if not kept:
            raise PpspeechError(f"the server does not keep {gallery!r}: the name is another's, or there is no room")

    def fetch(self, gallery: str) -> EncryptedGallery:
        """A gallery that someone has published.

        Raises:
            PpspeechError: if the server keeps none, or not this one.
        """
        self._check_stores()
        with self._met().asking(Request(Ask.FETCH), with_transfers=False) as (met, _):
            send_name(met.channel, gallery)
            found, _ = receive_ready(met.channel)
            sealed = EncryptedGallery.receive(met.channel, self.offer.gallery) if found else None
        if sealed is None:
            raise PpspeechError(f"the server keeps no gallery {gallery!r}")
        return sealed

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

    def _voice(self, sounds: Sequence[Sound], rate: int | None) -> Reals:
        """What the scoring takes: frames, or a direction, clipped to the levels where it is hardened."""
        features = self._verifier.features(sounds, rate)
        if self.offer.mixture is not None:
            return trial_frames(self.offer.mixture, np.asarray(torch.cat(features).double().numpy()))
        direction = self._verifier.direction(features)
        if self.offer.scoring == "hardened":
            return direction.clip(-self.offer.hardened.limit, self.offer.hardened.limit)
        return direction

    def _verify(self, met: MetClient, voice: Reals, claimed: int) -> bool | None:
        if self.offer.scoring == "hardened":
            prove_as_client(met.channel, self.offer.hardened, voice, claimed)
            return None
        return verify_as_client(met, self.offer.verification, voice, claimed)

    def _check_stores(self) -> None:
        if not self.offer.stores:
            raise ModelError(f"{self.offer.name} keeps no encrypted galleries: its server runs without --store")

    def _met(self) -> ClientSession:
        """The session with the server; a new one where the last has ended."""
        if self._session is None or not self._session.is_alive:
            self._session = ClientSession(self._door.open(self.offer.name, self.offer.agreement), self._keep)
        return self._session
