"""The keeper of an encrypted gallery: it enrolls voices, holds the only key, and settles probes, bit by bit.

    keeper   knows the templates it has enrolled, and the threshold; learns the bit where it is the recipient
    store    another's server: keeps the ciphertexts; learns when they change and are fetched
    prober   learns how many places there are, and the bit where it is the recipient

The key is never written. It answers `PROBES_A_KEY` probes of all clients together; then, as whenever it is started, the
keeper makes a new one and publishes the gallery anew.
"""

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ppspeech.channel import Channel
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import PpspeechError
from ppspeech.protocols.speakers import PROBES_A_KEY, Keeper
from ppspeech.service.client.connect import Client
from ppspeech.service.offer import Offer
from ppspeech.service.requests import Ask, Request
from ppspeech.service.server.book import FIELDS, Visitor
from ppspeech.service.server.cohort import Rule
from ppspeech.service.server.session import Handler
from ppspeech.service.server.stores import Gallery
from ppspeech.service.tasks.speakers import Galleries, Speakers

logger = logging.getLogger(__name__)

KEEPER = "keeper"  # the name of the service


@dataclass(frozen=True, eq=False)
class PublishedGallery:
    """A gallery at a store, and the keeper of its key."""

    offer: Offer[Galleries]
    keeper: Keeper

    @staticmethod
    def of(
        store: Client,
        name: str,
        enrolled: Gallery,
        rule: Rule,
        decision: Literal["keeper", "prober"] = "prober",
        frames: int = 0,
    ) -> "PublishedGallery":
        """Encrypt all enrolled templates under a new key, and have the store keep them; probes match by a rule.

        Probers use so many frames of a trial, 0 for all.

        Raises PpspeechError if nobody is enrolled, or the store does not keep it.
        """
        said = store.offer
        known = enrolled.load()
        if not known:
            raise PpspeechError("nobody is enrolled here: give clips and --name first")
        plan = replace(said.terms.gallery, recipient=decision)
        keeper = Keeper(plan, known.templates, rule.threshold + rule.own(known.templates), places=known.places)
        published = replace(keeper.publish(), plan=said.terms.gallery)
        terms = Galleries(name, said.terms.features, said.terms.places, decision, published.digest.hex(), frames)
        offer = Offer(KEEPER, "Tells whether a voice is one it has enrolled.", said.fingerprint, said.privacy, terms)
        store.publish(name, published)
        return PublishedGallery(offer, keeper)

    @property
    def usual_budget(self) -> int:
        """Probes of one client: fewer than one key answers."""
        return PROBES_A_KEY // 2

    def is_spent(self) -> bool:
        """Whether the key has answered enough: publish anew."""
        return self.keeper.is_spent

    def meet(self, channel: Channel, visitor: Visitor) -> dict[Ask, Handler]:
        """Agree on transfers with one prober; it may claim a place."""
        setup = PairSetup.agree(channel, Side.FIRST)

        def verify(record: Channel, _: Request) -> None:
            accepted = self.keeper.answer(record, setup)
            if accepted is not None:
                logger.info("claim decided", extra={FIELDS: {"session": visitor.session, "accepted": accepted}})

        return {Ask.VERIFY: Handler(verify)}


def own_gallery(store: Client, folder: Path) -> Gallery:
    """The keeper's own speakers, as many as the store has places for, in a folder to be kept like a password file."""
    terms: Speakers = store.offer.terms
    return Gallery(folder / "keeper.sqlite", store.offer.fingerprint, terms.places, terms.features)
