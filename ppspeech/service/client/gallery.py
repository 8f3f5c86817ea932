"""The client of an encrypted gallery: ciphertexts from the store, the decision with the keeper. The voice stays."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from ppspeech.audio import Sound
from ppspeech.crypto.shares import check_index
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import WrongSessionError
from ppspeech.network import Transcript
from ppspeech.protocols import Kind
from ppspeech.protocols.speakers import EncryptedGallery, Prober
from ppspeech.service.client.connect import Door
from ppspeech.service.client.speakers import SpeakerAnswer, SpeakerClient
from ppspeech.service.names import DESCRIBE
from ppspeech.service.requests import Ask, Request, send_request
from ppspeech.service.server.keeper import KEEPER, KeeperOffer


def connect_keeper(store: SpeakerClient, keeper: Door, *, keep_payloads: bool = False) -> "ProbeClient":
    """Be ready to probe a gallery whose key someone else keeps.

    Args:
        store: the server that has the ciphertexts.
        keeper: the way to the holder of the key.
        keep_payloads: keep the bytes of every message in the answers' transcripts.

    Raises:
        ProtocolError: if either is not there or not trusted, or what they say does not fit together.
        PpspeechError: if the store has no such gallery.
    """
    offer = KeeperOffer.read(keeper.hear(DESCRIBE))
    ours = (store.offer.fingerprint, store.offer.features, store.offer.places)
    if (offer.fingerprint, offer.features, offer.places) != ours:
        raise WrongSessionError(f"keeper and store do not mean the same gallery: {offer} is not one of {ours}")
    taken = store.fetch(offer.gallery)
    prober = Prober(EncryptedGallery(offer.plan, taken.public_key, taken.templates))
    return ProbeClient(store, keeper, offer, prober, keep_payloads)


class ProbeClient:
    """One gallery, ready to be probed. Use it as a context manager.

    Args:
        store: computes embeddings with the bundle; nothing more is asked of the server.
        keeper: the way to the holder of the key.
        offer: what the keeper said.
        prober: with the ciphertexts.
        keep_payloads: keep the bytes of every message in the answers' transcripts.

    Attributes:
        offer: what the keeper said.
    """

    def __init__(
        self, store: SpeakerClient, keeper: Door, offer: KeeperOffer, prober: Prober, keep_payloads: bool = False
    ) -> None:
        self.offer = offer
        self._store = store
        self._prober = prober
        self._keep = keep_payloads
        self._channel = keeper.open(KEEPER, offer.agreement)
        try:
            self._setup = PairSetup.agree(self._channel, Side.SECOND)
        except BaseException as error:
            self._channel.fail(error)
            raise

    def verify(self, claimed: int, sounds: Sequence[Sound], rate: int | None = None) -> SpeakerAnswer:
        """Is this the voice of a place? Neither store nor keeper learns which was claimed, nor hears the voice.

        Raises:
            RangeError: for a place that is not there; nothing is sent then.
            BudgetSpentError: if the keeper answers no more.
            ProtocolError: if the keeper is gone, or has another key than the gallery's.
        """
        check_index(claimed, self.offer.places)
        probe, started = self._store.embedding(sounds, rate), time.perf_counter()
        send_request(self._channel, Request(Ask.VERIFY))
        record = Transcript(self._channel, keep_payloads=self._keep)
        accepted = self._prober.ask(record, self._setup, probe, claimed)
        return SpeakerAnswer.of(accepted, None, started, record)

    def close(self) -> None:
        """Leave the keeper."""
        self._channel.send(Kind.REQUEST, Request(Ask.BYE).encode())
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._channel.fail(error)
