"""A background model whose enrolled speakers are told apart, encrypted: one client's session with it."""

import json
import logging
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from ppspeech.arrays import Reals
from ppspeech.bundle import Bundle, in_words
from ppspeech.channel import Channel
from ppspeech.errors import BadTypeError, PpspeechError
from ppspeech.network import Transcript
from ppspeech.protocols import MetServer, meet_as_server
from ppspeech.protocols.speakers import EncryptedGallery, Identity
from ppspeech.service.mixture_form import background_mixture, plan_mixtures
from ppspeech.service.requests import Ask, receive_name, receive_request, receive_template, send_ready
from ppspeech.service.server.cohort import Cohort
from ppspeech.service.server.json_log import FIELDS
from ppspeech.service.server.linear_scoring import HardenedScoring, LinearScoring
from ppspeech.service.server.mixture_scoring import MixtureScoring
from ppspeech.service.server.peer import peer_name, session_name
from ppspeech.service.server.sessions import Tally
from ppspeech.service.server.stores import Gallery, QueryBudget, SealedGalleries
from ppspeech.service.speaker_offer import Scoring, Side, SpeakerOffer

logger = logging.getLogger(__name__)

USUAL_COSINE = 0.5


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

    def offer(self, name: str, bundle: Bundle, members: int) -> SpeakerOffer:
        """What clients are told, with so many members in the cohort.

        Raises:
            ModelError: if the bundle holds no background model.
            BundleError: for choices that do not fit each other.
        """
        compared = members if "t" in self.norm else 0
        is_mixture = self.scoring == "gmm"
        return SpeakerOffer(
            name=name,
            task="Tells who of its enrolled speakers is speaking, or whether it is the one who is claimed.",
            fingerprint=bundle.fingerprint,
            privacy=f"{bundle.statement.guarantee}. {in_words(bundle.statement.guarantee)}",
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
            queries_left=None,
        )


class SpeakerScoring(Protocol):
    """How enrolled templates are scored: `LinearScoring`, `HardenedScoring` or `MixtureScoring`."""

    def check(self, template: Reals) -> None:
        """Refuse a template that cannot be scored."""

    def verify(self, met: MetServer, templates: Reals) -> bool | None:
        """One claim: the decision where it is ours."""


@dataclass(frozen=True, slots=True)
class SpeakerFiles:
    """Where a speaker service keeps things.

    Attributes:
        gallery: templates that the server sees.
        sealed: galleries that it does not.
        identified: what it learns where names are its own, a line of JSON each.
    """

    gallery: Path
    sealed: Path
    identified: Path


@dataclass(frozen=True, eq=False)
class ServedSpeakers:
    """Everything a session needs.

    Attributes:
        offer: what clients are told.
        scoring: of templates.
        gallery: the enrolled speakers; read again for each query, since enrollment goes on.
        sealed: galleries that only others can read.
        identified: the file of names that are ours to learn.
    """

    offer: SpeakerOffer
    scoring: SpeakerScoring
    gallery: Gallery
    sealed: SealedGalleries | None
    identified: Path

    @classmethod
    def of(
        cls, name: str, bundle: Bundle, deployment: SpeakerDeployment, files: SpeakerFiles, cohort: Cohort | None = None
    ) -> "ServedSpeakers":
        """Serve a background model with the speakers in a gallery.

        Raises:
            ModelError: if the bundle holds no background model.
            BundleError: for choices that do not fit each other.
            PpspeechError: for a threshold that is missing or cannot be.
        """
        offer = deployment.offer(name, bundle, 0 if cohort is None else cohort.members)
        threshold = threshold_for(offer, bundle, deployment.threshold)
        z_normed = "z" in deployment.norm
        scoring: SpeakerScoring
        if offer.scoring == "gmm":
            scoring = MixtureScoring(offer, background_mixture(bundle), threshold, cohort, z_normed)
        elif offer.scoring == "hardened":
            scoring = HardenedScoring(offer, threshold)
        else:
            scoring = LinearScoring(offer, threshold, cohort, z_normed)
        kind: Literal["means", "direction"] = "means" if offer.scoring == "gmm" else "direction"
        kept = Gallery(files.gallery, bundle.fingerprint, offer.places, offer.features, kind)
        sealed = SealedGalleries(files.sealed, bundle.fingerprint, offer.gallery) if offer.stores else None
        return cls(offer, scoring, kept, sealed, files.identified)

    def session(self, channel: Channel, tally: Tally, budget: QueryBudget) -> None:
        """Meet one client and answer its requests until it leaves; each but a ping is paid for.

        Raises:
            ProtocolError: for a client that does not keep to the protocol; this session ends, and no other.
        """
        client = peer_name(channel)
        record = Transcript(channel)
        met = meet_as_server(record)
        tally.add(record)
        while (request := receive_request(channel)).what != Ask.BYE:
            if request.what == Ask.PING:
                send_ready(channel, True, budget.left(self.offer.fingerprint, client))
                continue
            self._check(request.what, request.utterances)
            will_answer, left = budget.spend(self.offer.fingerprint, client, 1)
            send_ready(channel, will_answer, left)
            if not will_answer:
                tally.refused += 1
                continue
            record = Transcript(channel)
            self._answer(replace(met, channel=record), request.what, client, session_name(channel))
            tally.add(record)
            tally.queries += 1

    def _check(self, what: Ask, count: int) -> None:
        offered = {
            Ask.VERIFY: True,
            Ask.IDENTIFY: self.offer.identifies,
            Ask.ENROL: self.offer.enrolls,
            Ask.PUBLISH: self.offer.stores,
            Ask.FETCH: self.offer.stores,
        }
        if not offered.get(what, False) or count != 1:
            raise BadTypeError(f"a request to {what.name} {count} at once is not served here")

    def _answer(self, met: MetServer, what: Ask, client: str, session: str) -> None:
        if what == Ask.ENROL:
            self._enroll(met.channel)
        elif what == Ask.VERIFY:
            accepted = self.scoring.verify(met, self.gallery.load()[1])
            if accepted is not None:
                logger.info("claim decided", extra={FIELDS: {"session": session, "accepted": accepted}})
        elif what == Ask.IDENTIFY:
            assert isinstance(self.scoring, LinearScoring | MixtureScoring)
            found = self.scoring.identify(met, *self.gallery.load())
            if found is not None:
                self._note(found, session)
        else:
            assert self.sealed is not None
            self._seal(met.channel, self.sealed, client, stores=what == Ask.PUBLISH)

    def _enroll(self, channel: Channel) -> None:
        name, template = receive_template(channel, self.offer.features)
        vector = self.gallery.check(name, template)
        self.scoring.check(vector)
        place = self.gallery.enroll(name, vector)
        send_ready(channel, place is not None, place)

    def _seal(self, channel: Channel, sealed: SealedGalleries, client: str, *, stores: bool) -> None:
        """Take an encrypted gallery, or give one."""
        name = receive_name(channel)
        if stores:
            gallery = EncryptedGallery.receive(channel, self.offer.gallery)
            send_ready(channel, sealed.put(name, client, gallery), None)
            return
        found = sealed.get(name)
        send_ready(channel, found is not None, None)
        if found is not None:
            found.send(channel)

    def _note(self, answer: Identity, session: str) -> None:
        """Write a name down for whoever serves: a file that only they can read, not the log."""
        line = json.dumps({"session": session, "speaker": answer.name}, ensure_ascii=False) + "\n"
        opened = os.open(self.identified, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            if os.write(opened, line.encode()) != len(line.encode()):
                raise PpspeechError(f"{self.identified} cannot hold more")
        finally:
            os.close(opened)


def threshold_for(offer: SpeakerOffer, bundle: Bundle, chosen: float | None) -> float:
    """The threshold that was chosen, else the usual one of this scoring.

    Raises:
        PpspeechError: where there is no usual one.
    """
    if chosen is not None:
        return chosen
    if offer.normed:
        raise PpspeechError("normed scores count spreads of impostors: choose a threshold for them, such as 3")
    if offer.scoring != "gmm":
        return USUAL_COSINE
    released = bundle.verifier.threshold
    if released is None:
        raise PpspeechError("the bundle was released without a threshold: choose one, in nats a frame, such as 0.2")
    return released
