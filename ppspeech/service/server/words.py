"""A bundle whose words are served: encoded once before the first client, and one client's session with it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from ppspeech.bundle import Bundle, in_words
from ppspeech.channel import Channel
from ppspeech.crypto.lattice import EncodedWeights
from ppspeech.errors import RangeError
from ppspeech.models import EmbeddingHead, UtteranceClassifier
from ppspeech.network import run_together
from ppspeech.protocols import meet_as_client, meet_as_server
from ppspeech.protocols.scores import WordArrays, WordShape
from ppspeech.protocols.words import (
    KeywordJob,
    Questions,
    StreamModels,
    answer,
    answer_garbled,
    attend,
    encode_models,
    follow,
    garbled_cost,
    looks_ahead,
    most_steps,
    recognize,
    recognize_garbled,
    why_not_garbled,
)
from ppspeech.service.estimate import Knowledge, planned_job
from ppspeech.service.export import Deployment, export_words
from ppspeech.service.offer import Offer
from ppspeech.service.requests import ORDERS, Ask, Request, Way
from ppspeech.service.server.book import Visitor
from ppspeech.service.server.session import Handler
from ppspeech.service.server.stores import LARGEST_BUDGET, note
from ppspeech.service.tasks.heads import Heads, HeadScale
from ppspeech.service.tasks.words import Mode, StatisticsScale, Words

BATCHES = (1, 4, 16)
"""Utterances in lock step. Each needs its own form of the weights; beyond 16 there is little to gain."""


@dataclass(frozen=True, eq=False)
class ServedWords:
    """Everything a session needs; made before the server forks, and shared by all sessions.

    `weights` are encoded for the product under a client's key, by the number of utterances. For streaming every meeting
    makes a key of the server's own and encrypts the models under it; `streams` says whether that is offered.
    """

    offer: Offer[Words]
    models: WordArrays
    weights: Mapping[int, EncodedWeights]
    streams: bool

    @classmethod
    def of(cls, name: str, bundle: Bundle, deployment: Deployment) -> "ServedWords":
        """Export and encode a model.

        Raises ModelError without an exporter; RangeError for choices or weights that its scores do not fit.
        """
        models = export_words(bundle.config.type, bundle.model, bundle.labels, deployment, bundle.config.mfcc)
        streams = models.shape.frames > 1 and _can_stream(models)
        garbles = why_not_garbled(models.shape) is None
        if garbles:
            garbled_cost(models.shape)  # is kept, as are the circuits that it is counted by
        ahead = looks_ahead(models.shape)
        offered: dict[Mode, bool] = {"frames": True, "ahead": ahead, "garbled": garbles, "stream": streams}
        modes = tuple(mode for mode, has in offered.items() if has)
        offer = Offer(
            name,
            bundle.config.task,
            bundle.fingerprint,
            f"{bundle.statement.guarantee}. {in_words(bundle.statement.guarantee)}",
            terms=Words(bundle.config.type, models.shape, bundle.mfcc, _statistics(bundle), modes, BATCHES),
        )
        return cls(offer, models, _encoded(models), streams)

    @property
    def usual_budget(self) -> int:
        """What follows from the bits that an answer tells."""
        return Knowledge.of(self.models.shape).budget

    def meet(self, channel: Channel, visitor: Visitor) -> dict[Ask, Handler]:  # noqa: ARG002
        """Meet one client; it may ask for words, and to be heard as it speaks."""
        met = meet_as_server(channel)
        hidden = StreamModels(self.models)

        def words(record: Channel, request: Request) -> None:
            meeting = replace(met, channel=record)
            with meeting.session():
                job = planned_job(self.models.shape, request.utterances, request.order)
                help_client = answer_garbled if request.order == "garbled" else answer
                help_client(meeting, job, self.models, self.weights[request.utterances])

        def stream(record: Channel, _: Request) -> None:
            meeting = replace(met, channel=record)
            with meeting.session():
                follow(meeting, hidden)

        terms = self.offer.terms
        orders = tuple(order for order in ORDERS if order in terms.modes)
        handlers = {Ask.WORDS: Handler(words, terms.batches, orders)}
        return {**handlers, Ask.STREAM: Handler(stream)} if self.streams else handlers


def _encoded(models: WordArrays) -> dict[int, EncodedWeights]:
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


def _can_stream(models: WordArrays) -> bool:
    """Whether all weights are within their limit for streaming, which says nothing about other modes."""
    try:
        models.shape.streaming_precision.encode(models.score_weights)
    except RangeError:
        return False
    return True


def _statistics(bundle: Bundle) -> StatisticsScale | None:
    model = bundle.model
    if not isinstance(model, UtteranceClassifier):
        return None
    return StatisticsScale(tuple(model.mean.tolist()), tuple(model.std.tolist()), model.model.radius)


AHEAD = 25
"""Windows that a client which listens prepares at once: two seconds."""


@dataclass(frozen=True, eq=False)
class ServedHead:
    """A head on an embedding, as `ServedWords`; `outcomes` is where words are written that are ours to learn."""

    offer: Offer[Heads]
    models: WordArrays
    weights: Mapping[int, EncodedWeights]
    outcomes: Path

    @classmethod
    def of(cls, name: str, bundle: Bundle, deployment: Deployment, outcomes: Path) -> "ServedHead":
        """Export and encode a head. Raises ModelError or RangeError for one that cannot be served."""
        embedding, head = bundle.config.embedding, bundle.model
        assert embedding is not None
        assert isinstance(head, EmbeddingHead)
        models = export_words(bundle.config.type, head, bundle.labels, deployment)
        projection = head.projection.flatten().tolist() if head.kind == "margin" else ()
        terms = Heads(
            bundle.config.type,
            models.shape,
            embedding,
            HeadScale(tuple(head.mean.tolist()), tuple(head.std.tolist()), tuple(projection)),
            deployment.outcome,
            BATCHES if deployment.outcome == "client" else (1,),
            min(AHEAD, most_steps(models.shape, deployment.outcome)) if embedding.pooling.over == "window" else 0,
        )
        task = bundle.config.task
        if terms.outcome == "server":
            task += " The server alone learns which it was, and not the client."
        if terms.garbles:
            garbled_cost(models.shape)  # is kept
        guarantee = bundle.statement.guarantee
        offer = Offer(name, task, bundle.fingerprint, f"{guarantee}. {in_words(guarantee)}", terms=terms)
        return cls(offer, models, _encoded(models), outcomes)

    @property
    def usual_budget(self) -> int:
        """What follows from the bits that an answer tells; a client that is told nothing may ask as it likes."""
        told = self.offer.terms.outcome == "client"
        return Knowledge.of(self.models.shape).budget if told else LARGEST_BUDGET

    def meet(self, channel: Channel, visitor: Visitor) -> dict[Ask, Handler]:
        """Meet one client; it may ask for words, and about one window after another."""
        met, terms = meet_as_server(channel), self.offer.terms

        def words(record: Channel, request: Request) -> None:
            meeting = replace(met, channel=record)
            with meeting.session():
                job = planned_job(self.models.shape, request.utterances)
                help_client = answer_garbled if request.order == "garbled" else answer
                help_client(meeting, job, self.models, self.weights[request.utterances])

        def hear(word: str | None) -> None:
            note(self.outcomes, {"session": visitor.session, "model": self.offer.name, "word": word})

        def watch(record: Channel, request: Request) -> None:
            meeting = replace(met, channel=record)
            with meeting.session():
                job = Questions(self.models.shape, terms.outcome, request.utterances)
                attend(meeting, job, self.models, self.weights[1], hear)

        at_once = tuple(sorted({1, terms.ahead or 1}))
        handlers = {Ask.WATCH: Handler(watch, at_once, ("frames",))}
        if terms.outcome == "client":
            orders: tuple[Way, ...] = ("frames", "garbled") if terms.garbles else ("frames",)
            handlers[Ask.WORDS] = Handler(words, terms.batches, orders)
        return handlers


@cache
def warm_up() -> None:
    """Compile before the first client comes, by tiny recognitions: every session's process inherits it."""
    floored = WordShape(3, 1, "diagonal", 2, 2, ends=(1,), floor=100, reach=18)
    for shape in (floored, replace(floored, operation="viterbi", reach=None)):
        weights = np.zeros((shape.monomials, shape.columns))
        models = WordArrays(shape, weights, np.zeros((2, 2, 2)), np.zeros((2, 1)), ("a", "b"))
        job = KeywordJob(shape)

        def ask(channel: Channel, job: KeywordJob = job) -> None:
            met = meet_as_client(channel)
            with met.session():
                recognize(met, job, [np.zeros((3, 1))])
                if why_not_garbled(job.shape) is None:
                    recognize_garbled(met, job, [np.zeros((3, 1))])

        def help_client(channel: Channel, job: KeywordJob = job, models: WordArrays = models) -> None:
            met = meet_as_server(channel)
            with met.session():
                answer(met, job, models, encode_models(models))
                if why_not_garbled(job.shape) is None:
                    answer_garbled(met, job, models, encode_models(models))

        run_together(ask, help_client)
