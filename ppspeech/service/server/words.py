"""A bundle whose words are served: encoded once before the first client, and one client's session with it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ppspeech.bundle import Bundle, in_words
from ppspeech.channel import Channel
from ppspeech.crypto.lattice import EncodedWeights
from ppspeech.errors import BadTypeError, RangeError
from ppspeech.models import UtteranceClassifier
from ppspeech.network import Transcript
from ppspeech.protocols import MetServer, meet_as_server
from ppspeech.protocols.scores import WordModels
from ppspeech.protocols.trellis import can_scan
from ppspeech.protocols.words import (
    StreamModels,
    answer,
    encode_models,
    encrypt_models,
    follow,
    give_models,
)
from ppspeech.service.description import Mode, StatisticsScale, WordOffer
from ppspeech.service.estimate import planned_job
from ppspeech.service.export import Deployment, export_words
from ppspeech.service.requests import Ask, Request, receive_request, send_ready
from ppspeech.service.server.peer import peer_name
from ppspeech.service.server.sessions import Tally
from ppspeech.service.server.stores import QueryBudget

BATCHES = (1, 4, 16)
"""Utterances in lock step. Each needs its own form of the weights; beyond 16 there is little to gain."""


@dataclass(frozen=True, eq=False)
class ServedWords:
    """Everything a session needs; made before the server forks, and shared by all sessions.

    Attributes:
        offer: what clients are told.
        models: in the clear.
        weights: encoded for the product under a client's key, by the number of utterances.
        stream: encrypted under the server's own key, for streaming; None where that is not offered.
    """

    offer: WordOffer
    models: WordModels
    weights: Mapping[int, EncodedWeights]
    stream: StreamModels | None

    @classmethod
    def of(cls, name: str, bundle: Bundle, deployment: Deployment) -> "ServedWords":
        """Export and encode a released model.

        Raises:
            ModelError: if there is no exporter for it.
            RangeError: if a weight does not fit its fixed-point form.
        """
        models = export_words(bundle.config.type, bundle.model, bundle.labels, deployment)
        stream = _encrypted(models) if models.shape.frames > 1 else None
        modes: list[Mode] = ["frames"]
        if can_scan(models.shape) and models.shape.frames > 1:
            modes.append("scan")
        if stream is not None:
            modes.append("stream")
        offer = WordOffer(
            name=name,
            task=bundle.config.task,
            type=bundle.config.type,
            shape=models.shape,
            mfcc=bundle.mfcc,
            statistics=_statistics(bundle),
            fingerprint=bundle.fingerprint,
            privacy=f"{bundle.statement.guarantee}. {in_words(bundle.statement.guarantee)}",
            modes=tuple(modes),
            batches=BATCHES,
            queries_left=None,
        )
        return cls(offer, models, _encoded(models), stream)

    def session(self, channel: Channel, tally: Tally, budget: QueryBudget) -> None:
        """Meet one client and answer its requests until it leaves.

        Raises:
            ProtocolError: for a client that does not keep to the protocol; this session ends, and no other.
        """
        client = peer_name(channel)
        record = Transcript(channel)
        met = meet_as_server(record)
        tally.add(record)
        knows_models = False
        while (request := receive_request(channel)).what != Ask.BYE:
            if request.what == Ask.PING:
                send_ready(channel, True, budget.left(self.offer.fingerprint, client))
                continue
            self._check(request)
            will_answer, left = budget.spend(self.offer.fingerprint, client, request.utterances)
            send_ready(channel, will_answer, left)
            if not will_answer:
                tally.refused += request.utterances
                continue
            record = Transcript(channel)
            self._answer(replace(met, channel=record), request, knows_models)
            knows_models |= request.what == Ask.STREAM
            tally.add(record)
            tally.queries += request.utterances

    def _check(self, request: Request) -> None:
        mode = "stream" if request.what == Ask.STREAM else request.order
        if request.what not in (Ask.WORDS, Ask.STREAM) or mode not in self.offer.modes:
            raise BadTypeError(f"a request for {request.what.name} in mode {mode} is not served here")
        batches = (1,) if request.what == Ask.STREAM else self.offer.batches
        if request.utterances not in batches:
            raise RangeError(f"{batches} utterances are answered at once, got {request.utterances}")

    def _answer(self, met: MetServer, request: Request, knows_models: bool) -> None:
        with met.session():
            if request.what == Ask.STREAM:
                assert self.stream is not None
                if not knows_models:
                    give_models(met, self.stream)
                follow(met, self.stream)
                return
            job = planned_job(self.models.shape, request.utterances, request.order)
            answer(met, job, self.models, self.weights[request.utterances])


def _encoded(models: WordModels) -> dict[int, EncodedWeights]:
    """The weights for each size of batch; sizes whose products are cut alike share one form."""
    by_cut: dict[tuple[int, int], EncodedWeights] = {}
    found = {}
    for utterances in BATCHES:
        plan = planned_job(models.shape, utterances).plan
        cut = plan.block_inner, plan.block_columns
        if cut not in by_cut:
            by_cut[cut] = encode_models(models, utterances)
        found[utterances] = by_cut[cut]
    return found


def _encrypted(models: WordModels) -> StreamModels | None:
    """The models for streaming; None where a weight is beyond its limit, which says nothing about other modes."""
    try:
        return encrypt_models(models)
    except RangeError:
        return None


def _statistics(bundle: Bundle) -> StatisticsScale | None:
    model = bundle.model
    if not isinstance(model, UtteranceClassifier):
        return None
    return StatisticsScale(tuple(model.mean.tolist()), tuple(model.std.tolist()), model.model.radius)
