"""A bundle that writes down sentences: prepared for every length before the first client, and a session with it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from ppspeech.bundle import Bundle, in_words
from ppspeech.channel import Channel
from ppspeech.crypto.lattice import EncodedWeights
from ppspeech.errors import RangeError
from ppspeech.network import run_together
from ppspeech.protocols import meet_as_client, meet_as_server
from ppspeech.protocols.sentences import (
    Engine,
    GivenModels,
    SentenceArrays,
    SentenceShape,
    answer_garbled,
    answer_sentence,
    encode_sentences,
    follow_speech,
    garbled_cost,
    product_plan,
    shares_cost,
    streamed,
    transcribe,
    transcribe_garbled,
)
from ppspeech.service.estimate import Knowledge
from ppspeech.service.export_sentences import at_length, export_bundle
from ppspeech.service.offer import Offer
from ppspeech.service.requests import Ask, Request
from ppspeech.service.server.book import Visitor
from ppspeech.service.server.session import Handler
from ppspeech.service.tasks.sentences import STEP, SentenceDeployment, Sentences, modes_of


@dataclass(frozen=True, eq=False)
class ServedSentences:
    """Everything a session needs; made before the server forks, and shared by all sessions.

    `models` and their `weights`, encoded for the product under a client's key, are by length in steps; networks keep
    their own.
    """

    offer: Offer[Sentences]
    models: Mapping[int, SentenceArrays]
    weights: Mapping[int, EncodedWeights]

    @classmethod
    def of(cls, name: str, bundle: Bundle, deployment: SentenceDeployment | None = None) -> "ServedSentences":
        """Export and encode a model.

        Raises ModelError if it writes down no sentences; RangeError for choices or weights that its scores do not fit.
        """
        longest = export_bundle(bundle, deployment)
        offer = Offer(
            name,
            bundle.config.task,
            bundle.fingerprint,
            f"{bundle.statement.guarantee}. {in_words(bundle.statement.guarantee)}",
            terms=Sentences(
                bundle.config.type, longest.shape, bundle.mfcc, STEP, modes_of(longest.shape), can_stream(longest)
            ),
        )
        models = {steps: at_length(longest, steps * STEP) for steps in offer.terms.steps}
        warm_up()
        for each in models.values():
            shares_cost(each.shape)  # is kept, as is the plan that it is counted by
            if "garbled" in offer.terms.modes:
                garbled_cost(each.shape)
        return cls(offer, models, _encoded(models))

    @property
    def usual_budget(self) -> int:
        """What follows from the bits that the longest answer tells."""
        return sentence_knowledge(self.offer.terms.shape).budget

    def meet(self, channel: Channel, visitor: Visitor) -> dict[Ask, Handler]:  # noqa: ARG002
        """Meet one client; it may ask for sentences of the lengths that there are."""
        met = meet_as_server(channel)

        def sentence(record: Channel, request: Request) -> None:
            meeting = replace(met, channel=record)
            with meeting.session():
                own, weights = self.models[request.steps], self.weights.get(request.steps)
                if request.order == "garbled" and weights is not None:
                    answer_garbled(meeting, own, weights)
                else:
                    answer_sentence(meeting, own, weights)

        terms = self.offer.terms
        handlers = {Ask.SENTENCE: Handler(sentence, orders=terms.modes, steps=terms.steps)}
        if not terms.streams:
            return handlers
        hidden = GivenModels(streamed(terms.shape), self.models[terms.steps[-1]].weights)

        def stream(record: Channel, request: Request) -> None:
            meeting = replace(met, channel=record)
            with meeting.session():
                engine: Engine = "garbled" if request.order == "garbled" else "shares"
                follow_speech(meeting, self.models[request.steps], hidden, engine)

        return {**handlers, Ask.STREAM: Handler(stream, orders=terms.modes, steps=terms.steps)}


def sentence_knowledge(shape: SentenceShape) -> Knowledge:
    """What answers of the longest sentences tell, of weights and of moves through the graph."""
    moves = sum(source != target for source, target, *_ in shape.arcs) + len(shape.starts)
    return Knowledge.about(shape.weights + moves, shape.answer_bits)


def can_stream(longest: SentenceArrays) -> bool:
    """Whether the weights are within their limit for streaming, and the longest answer tells no more of the server's
    key than it can lose; this says nothing about other ways.
    """
    try:
        streamed(longest.shape)
        longest.shape.streaming_precision.encode(longest.weights)
    except RangeError:
        return False
    return True


def _encoded(models: Mapping[int, SentenceArrays]) -> dict[int, EncodedWeights]:
    """The weights for each length; lengths whose products are cut alike share one form. Networks encode their own."""
    by_cut: dict[tuple[int, int], EncodedWeights] = {}
    found = {}
    for steps, each in models.items():
        if each.network is not None:
            _ = each.network.encoded  # is kept
            continue
        plan = product_plan(each.shape)
        cut = plan.block_inner, plan.block_columns
        if cut not in by_cut:
            by_cut[cut] = encode_sentences(each)
        found[steps] = by_cut[cut]
    return found


@cache
def warm_up() -> None:
    """Compile before the first client comes, by a tiny sentence: every session's process inherits it."""
    arcs = ((0, 0, 0, -1), (1, 1, 0, -1), (0, 2, 0, -1), (1, 2, 0, -1), (2, 0, 1, 0), (2, 1, 1, 1))
    shape = SentenceShape(STEP, 1, "diagonal", (0, 1, -1), arcs, ((0, 0), (1, 1)), 2, ("a", ""), 4, radius=2.0)
    models = SentenceArrays(shape, np.zeros((shape.monomials, shape.scores)), np.zeros(len(arcs)), np.zeros(2))

    def ask(channel: Channel) -> None:
        met = meet_as_client(channel)
        with met.session():
            transcribe(met, shape, np.zeros((5, 1)))
            transcribe_garbled(met, shape, np.zeros((5, 1)))

    def help_client(channel: Channel) -> None:
        met = meet_as_server(channel)
        with met.session():
            answer_sentence(met, models, encode_sentences(models))
            answer_garbled(met, models, encode_sentences(models))

    run_together(ask, help_client)
