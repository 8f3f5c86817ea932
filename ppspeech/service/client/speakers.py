"""The client of speakers: enroll, verify a claim, ask for a name, keep galleries at a server. The voice stays here."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from ppspeech.arrays import Reals
from ppspeech.audio import Sound, in_usual_range
from ppspeech.crypto.shares import check_index
from ppspeech.errors import ModelError, PpspeechError, WrongSessionError
from ppspeech.protocols import Meeting, meet_as_client
from ppspeech.protocols.speakers import (
    EncryptedGallery,
    Identity,
    Prober,
    identify_as_client,
    name_of_best,
    prepare_as_client,
    prove_as_client,
    shift_as_client,
    verify_as_client,
    verify_in_crowd_as_client,
)
from ppspeech.service.client.connect import QUESTIONS, Client, Door
from ppspeech.service.client.session import Answer, Clock
from ppspeech.service.offer import DESCRIBE, MOST_BYTES, choose_offer, read_offers
from ppspeech.service.requests import Ask, Request, receive_ready, send_name, send_template
from ppspeech.service.tasks.speakers import Galleries, Speakers, claim_bytes, name_bytes, trial_frames


@QUESTIONS.register("speakers")
class AskSpeakers:
    """What may be asked of enrolled speakers. Raises WrongSessionError for an offer of more than `MOST_BYTES`."""

    def __init__(self, client: Client) -> None:
        assert client.bundle is not None
        self._client = client
        self._name = client.offer.name
        self._terms: Speakers = client.offer.terms
        self._verifier = client.bundle.verifier
        if claim_bytes(self._terms) > MOST_BYTES:
            raise WrongSessionError(f"{self._name} would exchange {claim_bytes(self._terms):,} bytes a claim")

    def enroll(self, name: str, sounds: Sequence[Sound], rate: int | None = None) -> int:
        """Enroll a speaker; the server gets the template, and no sound."""
        if not self._terms.enrolls:
            raise ModelError(f"{self._name} enrolls nobody: its server was started without --enroll")
        clips = self._verifier.features(sounds, rate)
        template = (self._verifier.means if self._terms.scoring == "gmm" else self._verifier.direction)(clips)
        with self._client.session(meet_as_client).asking(Request(Ask.ENROLL)) as record:
            send_template(record, name, template)
            done, place = receive_ready(record)
        if not done or place is None:
            raise PpspeechError(f"{name!r} was not enrolled: the name is taken, or there is no room")
        return place

    def verify(self, claimed: int, sounds: Sequence[Sound], rate: int | None = None) -> Answer[bool | None]:
        """Is this the speaker of a place?"""
        check_index(claimed, self._terms.places)
        told = int(self._terms.decision == "server")
        voice, clock, session = self._voice(sounds, rate), Clock(), self._client.session(meet_as_client, told=told)
        with session.asking(Request(Ask.VERIFY)) as record:
            accepted: bool | None = None  # where it is hardened the server alone learns it
            if self._terms.scoring == "hardened":
                prove_as_client(record, session.met.setup, self._terms.hardened, voice, claimed)
            elif self._terms.scoring == "crowd":
                met, plan = replace(session.met, channel=record), self._terms.crowd
                accepted = verify_in_crowd_as_client(met, plan, voice, claimed, self._terms.decision)
            else:
                met = replace(session.met, channel=record)
                accepted = verify_as_client(met, self._terms.verification, voice, claimed)
        return clock.answers([accepted], record)[0]

    def identify(self, sounds: Sequence[Sound], rate: int | None = None) -> Answer[str | None]:
        """Who of the enrolled speakers is this, if any?"""
        if not self._terms.identifies:
            raise ModelError(f"{self._name} verifies claims only: hardened and normed mixtures give no names")
        if name_bytes(self._terms) > MOST_BYTES:
            raise WrongSessionError(f"{self._name} would exchange {name_bytes(self._terms):,} bytes for a name")
        told = self._terms.places.bit_length() if self._terms.names == "server" else 0
        voice, clock, session = self._voice(sounds, rate), Clock(), self._client.session(meet_as_client, told=told)
        with session.asking(Request(Ask.IDENTIFY)) as record:
            met = replace(session.met, channel=record)
            if self._terms.scoring == "crowd":
                found = self._in_crowd(met, voice, clock)
            else:
                found = identify_as_client(met, self._terms.identification, voice)
        return clock.answers([None if found is None else found.name], record)[0]

    def publish(self, gallery: str, sealed: EncryptedGallery) -> None:
        """Have the server keep a gallery that it cannot read."""
        self._check_stores()
        with self._client.session(meet_as_client).asking(Request(Ask.PUBLISH)) as record:
            send_name(record, gallery)
            sealed.send(record)
            kept, _ = receive_ready(record)
        if not kept:
            raise PpspeechError(f"the server does not keep {gallery!r}: the name is another's, or there is no room")

    def fetch(self, gallery: str) -> EncryptedGallery:
        """A gallery that someone has published."""
        self._check_stores()
        with self._client.session(meet_as_client).asking(Request(Ask.FETCH)) as record:
            send_name(record, gallery)
            found, _ = receive_ready(record)
            sealed = EncryptedGallery.receive(record, self._terms.gallery) if found else None
        if sealed is None:
            raise PpspeechError(f"the server keeps no gallery {gallery!r}")
        return sealed

    def probing(self, keeper: Door, keep_payloads: bool) -> Client:
        """The client of a gallery whose ciphertexts this server has, and whose key the keeper."""
        offer = choose_offer(read_offers(keeper.hear(DESCRIBE), "gallery"), None)
        said: Galleries = offer.terms
        ours = (self._client.offer.fingerprint, self._terms.features, self._terms.places)
        if (offer.fingerprint, said.features, said.places) != ours:
            raise WrongSessionError(f"keeper and store do not mean the same gallery: {said} is not one of {ours}")
        taken = self.fetch(said.gallery)
        if taken.digest.hex() != said.digest:
            raise WrongSessionError(f"the store's {said.gallery!r} is not what the keeper has published: connect again")
        prober = Prober(replace(taken, plan=said.plan))
        return Client(keeper, offer, bundle=self._client.bundle, prober=prober, keep_payloads=keep_payloads)

    def _in_crowd(self, met: Meeting, voice: Reals, clock: Clock) -> Identity | None:
        """What needs no voice is done, and timed, before the voice is used."""
        plan = self._terms.crowd
        numbers = plan.numbers(voice)
        with met.session():
            prepared = prepare_as_client(met, plan)
            clock.is_prepared()
            return name_of_best(prepared.engine, plan, shift_as_client(prepared, numbers))

    def _voice(self, sounds: Sequence[Sound], rate: int | None) -> Reals:
        """What the scoring takes: frames, or a direction."""
        features = self._verifier.features(sounds, rate)
        if self._terms.mixture is not None:
            frames = in_usual_range(torch.cat(features), self._verifier.background.mfcc)
            return trial_frames(self._terms.mixture, frames)
        return self._verifier.direction([torch.cat(features)[: self._terms.frames or None]])

    def _check_stores(self) -> None:
        if not self._terms.stores:
            raise ModelError(f"{self._name} keeps no encrypted galleries: its server runs without --galleries")
