"""The keeper of an encrypted gallery: it enrolls voices, holds the only key, and settles probes, bit by bit.

    keeper   knows the templates it has enrolled, and the threshold; learns the bit where it is the recipient
    store    another's server: keeps the ciphertexts; learns when they change and are fetched
    prober   learns how many places there are, and the bit where it is the recipient

The key lives as long as the keeper's process and is never written; a keeper that starts again publishes anew.
"""

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from ppspeech.bundle import from_plain, read_json, to_plain, write_json
from ppspeech.channel import Channel
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import BadTypeError, BundleError, PpspeechError, WrongSessionError
from ppspeech.network import Service, Transcript
from ppspeech.protocols import Kind
from ppspeech.protocols.speakers import GalleryPlan, Keeper
from ppspeech.service.client.speakers import SpeakerClient
from ppspeech.service.names import DESCRIBE
from ppspeech.service.requests import Ask, receive_request, send_ready
from ppspeech.service.server.json_log import FIELDS
from ppspeech.service.server.peer import peer_name, session_name
from ppspeech.service.server.sessions import Program, SessionBook, Tally
from ppspeech.service.server.stores import Gallery, QueryBudget, check_speaker
from ppspeech.service.server.warm_up import warm_up

logger = logging.getLogger(__name__)

KEEPER = "keeper"
"""The name of the service."""
FORMAT = 1


@dataclass(frozen=True, slots=True)
class KeeperOffer:
    """What a keeper tells probers; all of it is public.

    Attributes:
        gallery: its name at the store.
        fingerprint: of the bundle that templates are computed with.
        features: numbers of a template.
        places: of the gallery, empty ones too.
        decision: who learns whether a probe matches.
    """

    gallery: str
    fingerprint: str
    features: int
    places: int
    decision: Literal["keeper", "prober"]

    def __post_init__(self) -> None:
        check_speaker(self.gallery)
        self.plan  # noqa: B018 - refuses sizes that cannot be

    @property
    def plan(self) -> GalleryPlan:
        """Sizes and recipient."""
        return GalleryPlan(self.features, self.places, self.decision)

    @property
    def agreement(self) -> dict[str, Any]:
        """Public parameters of a session."""
        return to_plain(self)

    def describe(self) -> bytes:
        """As JSON."""
        return write_json({"format": FORMAT, **to_plain(self)})

    @staticmethod
    def read(data: bytes) -> "KeeperOffer":
        """What a keeper sent, checked to the last field.

        Raises:
            WrongSessionError: for anything that `describe` does not write.
        """
        try:
            plain = read_json(data, "the description")
            if plain.pop("format", None) is not FORMAT:
                raise BundleError(f"its format is not {FORMAT}")
            return from_plain(KeeperOffer, plain, "the description")
        except BundleError as refused:
            raise WrongSessionError(f"the keeper's description cannot be used: {refused}") from None


@dataclass(frozen=True, eq=False)
class PublishedGallery:
    """A gallery at a store, and the keeper of its key.

    Attributes:
        offer: what probers are told.
        keeper: with the key.
    """

    offer: KeeperOffer
    keeper: Keeper

    @staticmethod
    def of(
        store: SpeakerClient,
        name: str,
        enrolled: Gallery,
        threshold: float,
        decision: Literal["keeper", "prober"] = "prober",
    ) -> "PublishedGallery":
        """Encrypt all enrolled templates under a new key, and have the store keep them.

        Args:
            store: the server that keeps ciphertexts.
            name: of the gallery there.
            enrolled: the keeper's own speakers.
            threshold: a probe matches at or above this cosine.
            decision: who learns it.

        Raises:
            PpspeechError: if nobody is enrolled, or the store does not keep it.
        """
        offer = KeeperOffer(name, store.offer.fingerprint, store.offer.features, store.offer.places, decision)
        _, templates = enrolled.load()
        if not len(templates):
            raise PpspeechError("nobody is enrolled here: give clips and --name first")
        keeper = Keeper(offer.plan, templates, threshold)
        store.publish(name, replace(keeper.publish(), plan=store.offer.gallery))
        return PublishedGallery(offer, keeper)

    def services(self, budget: QueryBudget, book: SessionBook) -> dict[str, Service]:
        """What `network.Server` is given: a description, and probes."""
        warm_up()

        def describe(channel: Channel, _: Tally) -> None:
            channel.send(Kind.READY, self.offer.describe())

        programs: dict[str, tuple[Program, dict[str, Any]]] = {
            DESCRIBE: (describe, {}),
            KEEPER: (self._session(budget), self.offer.agreement),
        }
        return {name: Service(book.observed(name, program), params) for name, (program, params) in programs.items()}

    def _session(self, budget: QueryBudget) -> Program:
        def session(channel: Channel, tally: Tally) -> None:
            client = peer_name(channel)
            record = Transcript(channel)
            setup = PairSetup.agree(record, Side.FIRST)
            tally.add(record)
            while (request := receive_request(channel)).what != Ask.BYE:
                if request.what != Ask.VERIFY or request.utterances != 1:
                    raise BadTypeError(f"a keeper answers one probe at a time, got {request}")
                will_answer, left = budget.spend(self.offer.fingerprint, client, 1)
                send_ready(channel, will_answer, left)
                if not will_answer:
                    tally.refused += 1
                    continue
                record = Transcript(channel)
                accepted = self.keeper.answer(record, setup)
                if accepted is not None:
                    facts = {"session": session_name(channel), "accepted": accepted}
                    logger.info("claim decided", extra={FIELDS: facts})
                tally.add(record)
                tally.queries += 1

        return session


def own_gallery(store: SpeakerClient, folder: Path) -> Gallery:
    """The keeper's own speakers, as many as the store has places for, in a folder to be kept like a password file."""
    return Gallery(folder / "keeper.sqlite", store.offer.fingerprint, store.offer.places, store.offer.features)
