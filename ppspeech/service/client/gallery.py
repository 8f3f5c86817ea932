"""The client of an encrypted gallery: ciphertexts came from the store, the decision is with the keeper."""

from collections.abc import Sequence
from functools import partial

import torch

from ppspeech.audio import Sound
from ppspeech.crypto.shares import check_index
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.protocols.speakers import Prober
from ppspeech.service.client.connect import QUESTIONS, Client
from ppspeech.service.client.session import Answer, Clock
from ppspeech.service.requests import Ask, Request
from ppspeech.service.tasks.speakers import Galleries


@QUESTIONS.register("gallery")
class AskGallery:
    """One gallery, ready to be probed by a client with the keeper's offer, the bundle and the ciphertexts."""

    def __init__(self, client: Client) -> None:
        assert client.bundle is not None
        self._client = client
        self._terms: Galleries = client.offer.terms
        self._verifier = client.bundle.verifier
        self.prober: Prober = client.prober

    def verify(self, claimed: int, sounds: Sequence[Sound], rate: int | None = None) -> Answer[bool | None]:
        """Is this the voice of a place? Neither store nor keeper learns which was claimed, nor hears the voice."""
        check_index(claimed, self._terms.places)
        heard = torch.cat(self._verifier.features(sounds, rate))[: self._terms.frames or None]
        probe = self._verifier.direction([heard])
        session = self._client.session(partial(PairSetup.agree, party=Side.SECOND), pings=0)
        clock = Clock()
        with session.asking(Request(Ask.VERIFY)) as record:
            accepted = self.prober.ask(record, session.met, probe, claimed)
        return clock.answers([accepted], record)[0]
