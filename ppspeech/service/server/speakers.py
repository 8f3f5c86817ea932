"""A background model whose enrolled speakers are told apart, encrypted: one client's session with it."""

import json
import logging
import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

from ppspeech.arrays import Reals
from ppspeech.bundle import Bundle, in_words
from ppspeech.channel import Channel
from ppspeech.errors import PpspeechError
from ppspeech.protocols import Meeting, meet_as_server
from ppspeech.protocols.speakers import EncryptedGallery
from ppspeech.service.offer import Offer
from ppspeech.service.requests import Ask, Request, receive_name, receive_template, send_ready
from ppspeech.service.server.book import FIELDS, Visitor
from ppspeech.service.server.cohort import Cohort
from ppspeech.service.server.linear_scoring import HardenedScoring, LinearScoring
from ppspeech.service.server.mixture_scoring import MixtureScoring, background_mixture, plan_mixtures
from ppspeech.service.server.session import Handler
from ppspeech.service.server.stores import Gallery, SealedGalleries
from ppspeech.service.tasks.speakers import Scoring, Side, Speakers

logger = logging.getLogger(__name__)

USUAL_COSINE = 0.5
USUAL_CLAIMS = 1000


@dataclass(frozen=True, slots=True)
class SpeakerDeployment:
    """What whoever serves speakers chooses; all of it is public but the threshold and who is in the cohort.

    Attributes:
        places: speakers there is room for; clients see this number and not how many are enrolled.
        scoring: `linear` compares supervectors by their cosine, in milliseconds; `gmm` compares likelihoods under
            mixtures, in a second or so; `hardened` is `linear` against clients that do anything, for few places.
        threshold: a voice is accepted at or above it; None for the usual: 0.5 for cosines (how alike two clips of one
            speaker are depends on how much is said, so it is to be tried on speech of one's own), and the bundle's own
            for likelihood ratios. Normed scores have no usual one.
        cohort: a folder with one folder of clips a person, or `synthetic`: voices to norm scores by; None without.
        norm: with a cohort, `z` for what impostors score under each model, which costs clients nothing, `t` for what
            others' models score on each trial, `zt` for both.
        frames: of a trial for `gmm`, padding included.
        decision: who learns whether a claim is accepted.
        names: who learns whose voice it is.
        enrolls: whether clients may enroll speakers; whoever is let in may then do so.
        stores: whether to keep galleries that are encrypted under other people's keys.
    """

    places: int = 64
    scoring: Scoring = "linear"
    threshold: float | None = None
    cohort: str | None = None
    norm: Literal["z", "t", "zt"] = "zt"
    frames: int = 100
    decision: Side = "client"
    names: Side = "client"
    enrolls: bool = False
    stores: bool = False

    def terms(self, bundle: Bundle, members: int) -> Speakers:
        """What clients are told, with so many members in the cohort. Raises BundleError for choices that do not fit."""
        compared = members if "t" in self.norm else 0
        is_mixture = self.scoring == "gmm"
        return Speakers(
            features=bundle.verifier.size,
            places=self.places,
            scoring=self.scoring,
            normed=members > 0,
            cohort=compared,
            mixture=plan_mixtures(bundle, self.frames, self.places, compared) if is_mixture else None,
            decision=self.decision,
            names=self.names,
            enrolls=self.enrolls,
            stores=self.stores,
        )


class SpeakerScoring(Protocol):
    """How enrolled templates are scored: `LinearScoring`, `HardenedScoring` or `MixtureScoring`."""

    def check(self, template: Reals) -> None:
        """Refuse a template that cannot be scored."""

    def verify(self, met: Meeting, templates: Reals) -> bool | None:
        """One claim: the decision where it is ours."""


@dataclass(frozen=True, slots=True)
class SpeakerFiles:
    """Where templates are that the server sees, galleries that it does not, and names it learns, as lines of JSON."""

    gallery: Path
    sealed: Path
    identified: Path


@dataclass(frozen=True, eq=False)
class ServedSpeakers:
    """Everything a session needs; the gallery is read again for each query, since enrollment goes on."""

    offer: Offer[Speakers]
    scoring: SpeakerScoring
    gallery: Gallery
    sealed: SealedGalleries | None
    identified: Path

    @classmethod
    def of(
        cls, name: str, bundle: Bundle, deployment: SpeakerDeployment, files: SpeakerFiles, cohort: Cohort | None = None
    ) -> "ServedSpeakers":
        """Serve a background model with the speakers in a gallery.

        Raises ModelError if the bundle holds no background model; BundleError for choices that do not fit each other;
        PpspeechError for a threshold that is missing or cannot be.
        """
        terms = deployment.terms(bundle, 0 if cohort is None else cohort.members)
        offer = Offer(
            name,
            "Tells who of its enrolled speakers is speaking, or whether it is the one who is claimed.",
            bundle.fingerprint,
            f"{bundle.statement.guarantee}. {in_words(bundle.statement.guarantee)}",
            terms=terms,
        )
        threshold = threshold_for(terms, bundle, deployment.threshold)
        z_normed = "z" in deployment.norm
        scoring: SpeakerScoring
        if terms.scoring == "gmm":
            scoring = MixtureScoring(terms, background_mixture(bundle), threshold, cohort, z_normed)
        elif terms.scoring == "hardened":
            scoring = HardenedScoring(terms, threshold)
        else:
            scoring = LinearScoring(terms, threshold, cohort, z_normed)
        kind: Literal["means", "direction"] = "means" if terms.scoring == "gmm" else "direction"
        kept = Gallery(files.gallery, bundle.fingerprint, terms.places, terms.features, kind)
        sealed = SealedGalleries(files.sealed, bundle.fingerprint, terms.gallery) if terms.stores else None
        return cls(offer, scoring, kept, sealed, files.identified)

    @property
    def usual_budget(self) -> int:
        """Claims and questions of one client."""
        return USUAL_CLAIMS

    def meet(self, channel: Channel, visitor: Visitor) -> dict[Ask, Handler]:
        """Meet one client; it may claim a place, and what else is offered."""
        met = meet_as_server(channel)

        def verify(record: Channel, _: Request) -> None:
            accepted = self.scoring.verify(replace(met, channel=record), self.gallery.load()[1])
            if accepted is not None:
                logger.info("claim decided", extra={FIELDS: {"session": visitor.session, "accepted": accepted}})

        def identify(record: Channel, _: Request) -> None:
            assert isinstance(self.scoring, LinearScoring | MixtureScoring)
            found = self.scoring.identify(replace(met, channel=record), *self.gallery.load())
            if found is not None:
                self._note(found.name, visitor.session)

        handlers = {Ask.VERIFY: Handler(verify)}
        if self.offer.terms.identifies:
            handlers[Ask.IDENTIFY] = Handler(identify)
        if self.offer.terms.enrolls:
            handlers[Ask.ENROLL] = Handler(self._enroll)
        if self.sealed is not None:
            handlers[Ask.PUBLISH] = Handler(partial(self._keep, self.sealed, visitor.client))
            handlers[Ask.FETCH] = Handler(partial(self._give, self.sealed))
        return handlers

    def _enroll(self, channel: Channel, _: Request) -> None:
        name, template = receive_template(channel, self.offer.terms.features)
        vector = self.gallery.check(name, template)
        self.scoring.check(vector)
        place = self.gallery.enroll(name, vector)
        send_ready(channel, place is not None, place)

    def _keep(self, sealed: SealedGalleries, client: str, channel: Channel, _: Request) -> None:
        name = receive_name(channel)
        gallery = EncryptedGallery.receive(channel, self.offer.terms.gallery)
        send_ready(channel, sealed.put(name, client, gallery), None)

    def _give(self, sealed: SealedGalleries, channel: Channel, _: Request) -> None:
        found = sealed.get(receive_name(channel))
        send_ready(channel, found is not None, None)
        if found is not None:
            found.send(channel)

    def _note(self, name: str | None, session: str) -> None:
        """Write a name down for whoever serves: a file that only they can read, not the log."""
        line = json.dumps({"session": session, "speaker": name}, ensure_ascii=False) + "\n"
        opened = os.open(self.identified, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            if os.write(opened, line.encode()) != len(line.encode()):
                raise PpspeechError(f"{self.identified} cannot hold more")
        finally:
            os.close(opened)


def threshold_for(terms: Speakers, bundle: Bundle, chosen: float | None) -> float:
    """The threshold that was chosen, else the usual one. Raises PpspeechError where this scoring has none."""
    if chosen is not None:
        return chosen
    if terms.normed:
        raise PpspeechError("normed scores count spreads of impostors: choose a threshold for them, such as 3")
    if terms.scoring != "gmm":
        return USUAL_COSINE
    released = bundle.verifier.threshold
    if released is None:
        raise PpspeechError("the bundle was released without a threshold: choose one, in nats a frame, such as 0.2")
    return released
