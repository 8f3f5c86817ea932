"""A bundle whose words are served: encoded once before the first client, and one client's session with it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from ppspeech.bundle import Bundle, in_words
from ppspeech.channel import Channel
from ppspeech.crypto.lattice import EncodedWeights
from ppspeech.errors import ModelError, RangeError
from ppspeech.models import UtteranceClassifier
from ppspeech.network import run_together
from ppspeech.protocols import meet_as_client, meet_as_server
from ppspeech.protocols.scores import WordArrays, WordShape
from ppspeech.protocols.trellis import can_scan
from ppspeech.protocols.words import (
    KeywordJob,
    StreamModels,
    answer,
    encode_models,
    encrypt_models,
    follow,
    give_models,
    recognize,
)
from ppspeech.service.estimate import planned_job
from ppspeech.service.exactness import error_budget
from ppspeech.service.export import Deployment, export_words
from ppspeech.service.offer import Offer
from ppspeech.service.requests import ORDERS, Ask, Request
from ppspeech.service.server.book import Visitor
from ppspeech.service.server.session import Handler
from ppspeech.service.tasks.words import Mode, StatisticsScale, Words

BATCHES = (1, 4, 16)
"""Utterances in lock step. Each needs its own form of the weights; beyond 16 there is little to gain."""


@dataclass(frozen=True, eq=False)
class ServedWords:
    """Everything a session needs; made before the server forks, and shared by all sessions.

    `weights` are encoded for the product under a client's key, by the number of utterances; `stream` is encrypted under
    the server's own key, None where streaming is not offered.
    """

    offer: Offer[Words]
    models: WordArrays
    weights: Mapping[int, EncodedWeights]
    stream: StreamModels | None

    @classmethod
    def of(cls, name: str, bundle: Bundle, deployment: Deployment) -> "ServedWords":
        """Export and encode a model.

        Raises ModelError without an exporter, or where words would be wrong; RangeError for weights that do not fit.
        """
        models = export_words(bundle.config.type, bundle.model, bundle.labels, deployment, bundle.config.mfcc)
        if wrong := error_budget(models).too_small:
            raise ModelError(f"{name} cannot be served so: {wrong}")
        stream = _encrypted(models) if models.shape.frames > 1 else None
        scans = can_scan(models.shape) and models.shape.frames > 1
        offered: dict[Mode, bool] = {"frames": True, "scan": scans, "stream": stream is not None}
        modes = tuple(mode for mode, has in offered.items() if has)
        offer = Offer(
            name,
            bundle.config.task,
            bundle.fingerprint,
            f"{bundle.statement.guarantee}. {in_words(bundle.statement.guarantee)}",
            terms=Words(bundle.config.type, models.shape, bundle.mfcc, _statistics(bundle), modes, BATCHES),
        )
        return cls(offer, models, _encoded(models), stream)

    def meet(self, channel: Channel, visitor: Visitor) -> dict[Ask, Handler]:  # noqa: ARG002
        """Meet one client; it may ask for words, and to be heard as it speaks."""
        met = meet_as_server(channel)
        has_models = False

        def words(record: Channel, request: Request) -> None:
            meeting = replace(met, channel=record)
            with meeting.session():
                job = planned_job(self.models.shape, request.utterances, request.order)
                answer(meeting, job, self.models, self.weights[request.utterances])

        def stream(record: Channel, _: Request) -> None:
            nonlocal has_models
            assert self.stream is not None
            meeting = replace(met, channel=record)
            with meeting.session():
                if not has_models:
                    give_models(meeting, self.stream)
                    has_models = True
                follow(meeting, self.stream)

        terms = self.offer.terms
        orders = tuple(order for order in ORDERS if order in terms.modes)
        handlers = {Ask.WORDS: Handler(words, terms.batches, orders)}
        return handlers if self.stream is None else {**handlers, Ask.STREAM: Handler(stream)}


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


def _encrypted(models: WordArrays) -> StreamModels | None:
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


@cache
def warm_up() -> None:
    """Compile before the first client comes, by tiny recognitions: every session's process inherits it."""
    for operation in ("forward", "viterbi"):
        shape = WordShape(3, 1, "diagonal", words=2, states=2, ends=(1,), operation=operation)
        weights = np.zeros((shape.monomials, shape.columns))
        models = WordArrays(shape, weights, np.zeros((2, 2, 2)), np.zeros((2, 1)), ("a", "b"))
        job = KeywordJob(shape)

        def ask(channel: Channel, job: KeywordJob = job) -> None:
            met = meet_as_client(channel)
            with met.session():
                recognize(met, job, [np.zeros((3, 1))])

        def help_client(channel: Channel, job: KeywordJob = job, models: WordArrays = models) -> None:
            met = meet_as_server(channel)
            with met.session():
                answer(met, job, models, encode_models(models))

        run_together(ask, help_client)
