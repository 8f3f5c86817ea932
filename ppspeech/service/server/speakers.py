"""A model whose enrolled speakers are told apart, encrypted: one client's session with it."""

import logging
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

from ppspeech.arrays import Reals
from ppspeech.bundle import FALSE_ACCEPT, Bundle, in_words
from ppspeech.channel import Channel
from ppspeech.errors import BundleError
from ppspeech.models import Impostors
from ppspeech.protocols import Meeting, meet_as_server
from ppspeech.protocols.speakers import EncryptedGallery
from ppspeech.service.offer import Offer
from ppspeech.service.requests import Ask, Request, receive_name, receive_template, send_ready
from ppspeech.service.server.book import FIELDS, Visitor
from ppspeech.service.server.cohort import Cohort
from ppspeech.service.server.linear_scoring import (
    CrowdScoring,
    HardenedScoring,
    LinearScoring,
    crowd_on_ray,
    rule_for_codes,
    rule_for_cosines,
)
from ppspeech.service.server.mixture_scoring import (
    MixtureScoring,
    background_mixture,
    plan_mixtures,
    rule_for_mixtures,
)
from ppspeech.service.server.session import Handler
from ppspeech.service.server.stores import Enrolled, Gallery, SealedGalleries, note
from ppspeech.service.store import Place, PostgresStore
from ppspeech.service.tasks.speakers import MOST_SPEAKERS, Scoring, Side, Speakers

logger = logging.getLogger(__name__)

NOBODY = 1.0  # the threshold where nobody is enrolled, nor can be: it decides nothing
USUAL_CLAIMS = 1000
USUAL_FRAMES = {"mfcc": 100, "embedding": 300}
"""Of a trial: a second for a background model, three for a public network, which hears more than a second at a time."""


@dataclass(frozen=True, slots=True)
class SpeakerDeployment:
    """What whoever serves speakers chooses; all of it is public but the threshold and who is in the cohort.

    Attributes:
        places: speakers there is room for; clients see this number and not how many are enrolled.
        scoring: `linear` compares supervectors by their cosine, in milliseconds; `gmm` compares likelihoods under
            mixtures, in a second or so; both for clients that follow the protocol. `hardened` compares codes of
            supervectors, and no client can bend its decision. `crowd` compares cosines among up to a million people,
            for clients that follow the protocol. None is `hardened` where the decision is the server's, else `linear`,
            and `crowd` beyond 10,000 places.
        false_accept: strangers are accepted, or get a name, at this rate: every speaker's threshold is where the people
            of a cohort come so far with as much speech as a trial has.
        cohort: those people, recorded like those who will try: a folder with one folder of clips a person, or a corpus;
            None for those in the bundle.
        threshold: one for everybody instead of a rate: a cosine, or nats a frame for `gmm`; with a cohort of one's own
            it counts spreads of impostors, as `norm` says.
        norm: with cohort and threshold, `z` for what impostors score under each model, which costs clients nothing, `t`
            for what others' models score on each trial, `zt` for both.
        frames: of a trial: longer ones are cut or thinned, so that thresholds are for no more speech than this; None is
            what is usual for the model. `hardened` takes all of it, since a client that does not follow the protocol
            would.
        decision: who learns whether a claim is accepted.
        names: who learns whose voice it is.
        enrolls: whether clients may enroll speakers; whoever is let in may then do so.
        stores: whether to keep galleries that are encrypted under other people's keys.
        ray: a crowd is held by actors of a Ray cluster: `local`, on this machine, or HOST:PORT; by this process
            without.
        shards: how many of them.
    """

    places: int = 64
    scoring: Scoring | None = None
    false_accept: float = FALSE_ACCEPT
    threshold: float | None = None
    cohort: str | None = None
    norm: Literal["z", "t", "zt"] = "zt"
    frames: int | None = None
    decision: Side = "client"
    names: Side = "client"
    enrolls: bool = False
    stores: bool = False
    ray: str | None = None
    shards: int = 2

    @property
    def how(self) -> Scoring:
        """The scoring, where none is chosen too."""
        if self.scoring is not None:
            return self.scoring
        if self.decision == "server":
            return "hardened"
        return "crowd" if self.places > MOST_SPEAKERS else "linear"

    def used(self, bundle: Bundle, impostors: Impostors | None = None) -> int:
        """Frames of a trial, where none are chosen too: of cosines no more than everybody of the cohort has said."""
        chosen = USUAL_FRAMES[bundle.config.kind.takes] if self.frames is None else self.frames
        return chosen if impostors is None or self.how == "gmm" else min(chosen, impostors.frames[-1])

    def terms(self, bundle: Bundle, members: int, impostors: Impostors | None = None) -> Speakers:
        """What clients are told, with so many members in the cohort that norms scores, and a cohort for thresholds.
        Raises BundleError for choices that do not fit.
        """
        compared = members if "t" in self.norm else 0
        if not 0 < self.false_accept < 1:
            raise BundleError(f"a false-accept rate is within 0 and 1, got {self.false_accept}")
        scoring = self.how
        if self.ray is not None and scoring != "crowd":
            raise BundleError(f"a crowd is held by shards on a Ray cluster: scoring is {scoring}, leave out ray")
        is_mixture = scoring == "gmm"
        return Speakers(
            features=bundle.verifier.size,
            places=self.places,
            scoring=scoring,
            normed=members > 0,
            cohort=compared,
            mixture=plan_mixtures(bundle, self.used(bundle), self.places, compared) if is_mixture else None,
            frames=self.used(bundle, impostors) if self.threshold is None and scoring != "hardened" else 0,
            decision=self.decision,
            names=self.names,
            enrolls=self.enrolls,
            stores=self.stores,
        )

    def stated(self, bundle: Bundle, impostors: Impostors | None) -> str:
        """How it decides, for clients."""
        if self.threshold is not None:
            return "Its threshold is one for everybody, at no stated rate."
        amount = (
            "any amount of speech"
            if self.how == "hardened"
            else f"trials of up to {self.used(bundle, impostors)} frames"
        )
        return f"Strangers like its cohort are accepted at a rate of {self.false_accept:g}, with {amount}."


class SpeakerScoring(Protocol):
    """How enrolled templates are scored: `LinearScoring`, `HardenedScoring`, `CrowdScoring` or `MixtureScoring`."""

    def check(self, template: Reals) -> None:
        """Refuse a template that cannot be scored."""

    def warm(self, enrolled: Enrolled) -> None:
        """Make what sessions need of who is enrolled, before they begin."""

    def verify(self, met: Meeting, enrolled: Enrolled) -> bool | None:
        """One claim: the decision where it is ours."""


def _to_be_scored(scoring: SpeakerScoring, gallery: Gallery) -> Enrolled:
    """Everybody; a crowd is told of those who are new, some at a time, and keeps them: here are the last of them."""
    if not isinstance(scoring, CrowdScoring):
        return gallery.load()
    some = Enrolled.nobody()
    for some in gallery.newcomers(scoring.known):
        scoring.warm(some)
    return some


@dataclass(frozen=True, slots=True)
class SpeakerFiles:
    """Where templates are that the server sees, galleries that it does not, and names it learns, as lines of JSON."""

    gallery: Place
    sealed: Place
    identified: Path

    @classmethod
    def at(cls, folder: Path, store: PostgresStore | None = None) -> "SpeakerFiles":
        """All of them in one folder, or galleries in a database that servers share."""
        return cls(store or folder / "gallery.sqlite", store or folder / "sealed.sqlite", folder / "identified.jsonl")


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
        norming = None if deployment.threshold is None else cohort
        impostors = bundle.verifier.impostors if cohort is None else cohort.by_amount
        terms = deployment.terms(bundle, 0 if norming is None else norming.members, impostors)
        offer = Offer(
            name,
            "Tells who of its enrolled speakers is speaking, or whether it is the one who is claimed. "
            + deployment.stated(bundle, impostors),
            bundle.fingerprint,
            f"{bundle.statement.guarantee}. {in_words(bundle.statement.guarantee)}",
            terms=terms,
        )
        kind: Literal["means", "direction"] = "means" if terms.scoring == "gmm" else "direction"
        kept = Gallery(files.gallery, bundle.fingerprint, terms.places, terms.features, kind)
        known = deployment.enrolls or kept.count() > 0
        fixed = deployment.threshold if known or deployment.threshold is not None else NOBODY
        z_normed = "z" in deployment.norm
        scoring: SpeakerScoring
        if terms.mixture is not None:
            background = background_mixture(bundle)
            rule = rule_for_mixtures(fixed, deployment.false_accept, terms.mixture, background, cohort)
            scoring = MixtureScoring(terms, background, rule, norming, z_normed)
        else:
            if terms.scoring == "hardened":
                rule = rule_for_codes(fixed, deployment.false_accept, impostors, terms.hardened.bits)
                scoring = HardenedScoring(terms, rule)
            else:
                rule = rule_for_cosines(fixed, deployment.false_accept, deployment.used(bundle, impostors), impostors)
                if terms.scoring == "crowd":
                    held = None if deployment.ray is None else crowd_on_ray(terms, deployment.ray, deployment.shards)
                    scoring = CrowdScoring(terms, rule, held)
                else:
                    scoring = LinearScoring(terms, rule, norming, z_normed)
        if enrolled := _to_be_scored(scoring, kept):
            scoring.warm(enrolled)
        sealed = SealedGalleries(files.sealed, bundle.fingerprint, terms.gallery) if terms.stores else None
        return cls(offer, scoring, kept, sealed, files.identified)

    @property
    def usual_budget(self) -> int:
        """Claims and questions of one client."""
        return USUAL_CLAIMS

    def refresh(self) -> None:
        """Take in who has come since, before a session is forked: or else every session would, for itself alone.

        Of a crowd in this process: others read their gallery whole, and actors are told once. A store that is not there
        is not waited for; sessions will say so.
        """
        if isinstance(self.scoring, CrowdScoring) and self.scoring.is_ours and self.gallery.is_up():
            for some in self.gallery.newcomers(self.scoring.known):
                self.scoring.warm(some)

    def meet(self, channel: Channel, visitor: Visitor) -> dict[Ask, Handler]:
        """Meet one client; it may claim a place, and what else is offered."""
        if isinstance(self.scoring, CrowdScoring):
            self.scoring.begin_session()
        met = meet_as_server(channel)

        def verify(record: Channel, _: Request) -> None:
            accepted = self.scoring.verify(replace(met, channel=record), _to_be_scored(self.scoring, self.gallery))
            if accepted is not None:
                logger.info("claim decided", extra={FIELDS: {"session": visitor.session, "accepted": accepted}})

        def identify(record: Channel, _: Request) -> None:
            assert isinstance(self.scoring, LinearScoring | MixtureScoring | CrowdScoring)
            found = self.scoring.identify(replace(met, channel=record), _to_be_scored(self.scoring, self.gallery))
            if found is not None:
                self._note(found.name, visitor.session)

        handlers = {Ask.VERIFY: Handler(verify)}
        if self.offer.terms.identifies:
            handlers[Ask.IDENTIFY] = Handler(identify)
        if self.offer.terms.enrolls:
            handlers[Ask.ENROLL] = Handler(self._enroll, is_query=False)
        if self.sealed is not None:
            handlers[Ask.PUBLISH] = Handler(partial(self._keep, self.sealed, visitor.client), is_query=False)
            handlers[Ask.FETCH] = Handler(partial(self._give, self.sealed), is_query=False)
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
        """Write a name down for whoever serves."""
        note(self.identified, {"session": session, "speaker": name})
