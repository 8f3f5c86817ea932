"""A background model whose enrolled speakers are told apart, encrypted: one client's session with it."""

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from ppspeech.bundle import Bundle, in_words
from ppspeech.channel import Channel
from ppspeech.encrypted.budget import QueryBudget
from ppspeech.encrypted.embedding import embedding_size
from ppspeech.encrypted.gallery import Gallery
from ppspeech.encrypted.json_log import FIELDS
from ppspeech.encrypted.peer import peer_name, session_name
from ppspeech.encrypted.requests import Ask, receive_request, receive_template, send_ready
from ppspeech.encrypted.sessions import Tally
from ppspeech.encrypted.speaker_offer import REACH, SpeakerOffer
from ppspeech.errors import BadTypeError, PpspeechError
from ppspeech.network import Transcript
from ppspeech.protocols.meeting import WORKERS, MetServer, meet_as_server
from ppspeech.protocols.speaker_identification import Enrolled, identify_as_server
from ppspeech.protocols.speaker_linear import LinearColumns, LinearScorer
from ppspeech.protocols.speaker_verification import verify_as_server

logger = logging.getLogger(__name__)

EMPTY = -(2.0 ** (REACH - 1))
"""What an empty place scores: below every cosine less every threshold."""


@dataclass(frozen=True, slots=True)
class SpeakerDeployment:
    """What whoever serves speakers chooses.

    Attributes:
        places: speakers there is room for; clients see this number and not how many are enrolled.
        threshold: a voice is accepted where its cosine with a template is at least this; it stays with the server.
            The bundle's own threshold is a likelihood ratio and says nothing about cosines; how alike two clips of one
            speaker are depends on how much is said, so it is to be tried on speech of one's own.
        decision: who learns whether a claim is accepted; a name always goes to the client.
        enrols: whether clients may enrol speakers; whoever is let in may then do so.
    """

    places: int = 64
    threshold: float = 0.5
    decision: Literal["client", "server"] = "client"
    enrols: bool = False

    def __post_init__(self) -> None:
        if not -1 <= self.threshold <= 1:
            raise PpspeechError(f"a threshold is a cosine, -1 to 1, got {self.threshold}")


@dataclass(frozen=True, eq=False)
class ServedSpeakers:
    """Everything a session needs.

    Attributes:
        offer: what clients are told.
        gallery: the enrolled speakers; read again for each query, since enrolment goes on.
        threshold: in cosines.
    """

    offer: SpeakerOffer
    gallery: Gallery
    threshold: float

    @classmethod
    def of(cls, name: str, bundle: Bundle, deployment: SpeakerDeployment, gallery: Path) -> "ServedSpeakers":
        """Serve a background model with the speakers in a gallery.

        Raises:
            ModelError: if the bundle holds no background model.
        """
        offer = SpeakerOffer(
            name=name,
            task="Tells who of its enrolled speakers is speaking, or whether it is the one who is claimed.",
            fingerprint=bundle.fingerprint,
            privacy=f"{bundle.statement.guarantee}. {in_words(bundle.statement.guarantee)}",
            features=embedding_size(bundle),
            places=deployment.places,
            decision=deployment.decision,
            enrols=deployment.enrols,
            queries_left=None,
        )
        kept = Gallery(gallery, bundle.fingerprint, deployment.places, offer.features)
        return cls(offer, kept, deployment.threshold)

    def session(self, channel: Channel, tally: Tally, budget: QueryBudget) -> None:
        """Meet one client and answer its requests until it leaves.

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
            self._answer(replace(met, channel=record), request.what, session_name(channel))
            tally.add(record)
            tally.queries += 1

    def _check(self, what: Ask, count: int) -> None:
        served = {Ask.VERIFY, Ask.IDENTIFY} | ({Ask.ENROL} if self.offer.enrols else set())
        if what not in served or count != 1:
            raise BadTypeError(f"a request to {what.name} {count} at once is not served here")

    def _answer(self, met: MetServer, what: Ask, session: str) -> None:
        if what == Ask.ENROL:
            name, template = receive_template(met.channel, self.offer.features)
            place = self.gallery.enrol(name, template)
            send_ready(met.channel, place is not None, place)
        elif what == Ask.VERIFY:
            accepted = verify_as_server(met, self.offer.verification, self._scorer())
            if accepted is not None:
                logger.info("claim decided", extra={FIELDS: {"session": session, "accepted": accepted}})
        else:
            identify_as_server(met, self.offer.identification, self._enrolled())

    def _scorer(self) -> LinearScorer:
        """All places; empty ones score below every threshold."""
        plan = self.offer.plan
        _, templates = self.gallery.load()
        weights = np.zeros((plan.features, plan.models))
        weights[:, : len(templates)] = templates.T
        bias = np.full(plan.models, EMPTY)
        bias[: len(templates)] = 0.0
        columns = LinearColumns(weights, bias, np.zeros((plan.features, 0)), np.zeros(0))
        return LinearScorer.of(plan, columns, self.threshold, WORKERS)

    def _enrolled(self) -> Enrolled:
        """The speakers, in a new order; where there are none, one that nobody is like."""
        job = self.offer.identification
        names, templates = self.gallery.load()
        bias = np.zeros(len(names))
        if not names:
            names, templates, bias = ["nobody"], np.zeros((1, self.offer.features)), np.full(1, EMPTY)
        none = np.zeros((self.offer.features, 0))
        return Enrolled.of(job, LinearColumns(templates.T, bias, none, np.zeros(0)), names, self.threshold)
