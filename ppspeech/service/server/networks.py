"""A bundle whose network is served: encoded once before the first client, and one client's session with it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ppspeech.bundle import Bundle, in_words
from ppspeech.channel import Channel
from ppspeech.protocols import meet_as_server
from ppspeech.protocols.networks import NetworkArrays, answer_network, network_cost
from ppspeech.service.estimate import Knowledge
from ppspeech.service.export_networks import at_frames, export_ctc, export_network
from ppspeech.service.offer import Offer
from ppspeech.service.requests import Ask, Request
from ppspeech.service.server.book import Visitor
from ppspeech.service.server.session import Handler
from ppspeech.service.tasks.network_sentences import NetworkSentences
from ppspeech.service.tasks.networks import Networks
from ppspeech.service.tasks.sentences import STEP, SentenceDeployment


@dataclass(frozen=True, eq=False)
class ServedNetwork:
    """Everything a session needs; made before the server forks, and shared by all sessions."""

    offer: Offer[Networks]
    network: NetworkArrays

    @classmethod
    def of(cls, name: str, bundle: Bundle) -> "ServedNetwork":
        """Export and encode a network. Raises ModelError if it is none; RangeError for weights that do not fit."""
        network = export_network(bundle.model, bundle.labels)
        offer = Offer(
            name,
            bundle.config.task,
            bundle.fingerprint,
            f"{bundle.statement.guarantee}. {in_words(bundle.statement.guarantee)}",
            terms=Networks(bundle.config.type, network.shape, bundle.mfcc),
        )
        _ = network.encoded, network.texts, network_cost(network.shape)  # are kept
        return cls(offer, network)

    @property
    def usual_budget(self) -> int:
        """What follows from the bits that an answer tells."""
        return Knowledge.about(self.network.shape.weights, self.network.shape.answer_bits).budget

    def meet(self, channel: Channel, visitor: Visitor) -> dict[Ask, Handler]:  # noqa: ARG002
        """Meet one client; it may ask for words."""
        met = meet_as_server(channel)

        def words(record: Channel, _: Request) -> None:
            meeting = replace(met, channel=record)
            with meeting.session():
                answer_network(meeting, self.network)

        return {Ask.WORDS: Handler(words, orders=("frames",))}


@dataclass(frozen=True, eq=False)
class ServedNetworkSentences:
    """The same of a network that is read greedily; `networks` are by length in steps."""

    offer: Offer[NetworkSentences]
    networks: Mapping[int, NetworkArrays]

    @classmethod
    def of(cls, name: str, bundle: Bundle, deployment: SentenceDeployment | None = None) -> "ServedNetworkSentences":
        """Export and encode a network. Raises ModelError if it is none; RangeError for choices or weights that do not
        fit.
        """
        longest = export_ctc(bundle, deployment)
        offer = Offer(
            name,
            bundle.config.task,
            bundle.fingerprint,
            f"{bundle.statement.guarantee}. {in_words(bundle.statement.guarantee)}",
            terms=NetworkSentences(bundle.config.type, longest.shape, bundle.mfcc, STEP),
        )
        networks = {steps: at_frames(longest, steps * STEP) for steps in offer.terms.steps}
        for each in networks.values():
            _ = each.encoded, each.texts, network_cost(each.shape)  # are kept
        return cls(offer, networks)

    @property
    def usual_budget(self) -> int:
        """What follows from the bits that the longest answer tells."""
        shape = self.offer.terms.shape
        return Knowledge.about(shape.weights, shape.answer_bits).budget

    def meet(self, channel: Channel, visitor: Visitor) -> dict[Ask, Handler]:  # noqa: ARG002
        """Meet one client; it may ask for sentences of the lengths that there are."""
        met = meet_as_server(channel)

        def sentence(record: Channel, request: Request) -> None:
            meeting = replace(met, channel=record)
            with meeting.session():
                answer_network(meeting, self.networks[request.steps])

        return {Ask.SENTENCE: Handler(sentence, orders=("frames",), steps=self.offer.terms.steps)}
