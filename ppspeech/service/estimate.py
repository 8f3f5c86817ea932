"""What a recognition will take, from public sizes alone: bytes and rounds exactly, seconds as an estimate.

The constants are those of one machine with two cores of 2020s server hardware shared by both parties; another machine
differs by a factor of a few. They serve to compare ways of running, and to know beforehand whether it is 0.3 s or 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from ppspeech.crypto.lattice import MatrixPlan
from ppspeech.crypto.shares import Cost
from ppspeech.protocols.networks import NetworkShape, network_cost, network_rounds
from ppspeech.protocols.scores import WordShape
from ppspeech.protocols.trellis import GarbledCost, TrellisCircuit
from ppspeech.protocols.words import (
    FAR,
    KeywordJob,
    end_cost,
    garbled_cost,
    stream_cost,
    stream_plan,
    usual_ahead,
    word_circuit,
)
from ppspeech.service.requests import Way

PRODUCT_SECONDS = 9e-6  # of one polynomial multiplied into an accumulator, by the server
POLYNOMIAL_SECONDS = 4e-4  # of one polynomial sent, received and transformed, both parties together
ZERO_SECONDS = 4e-4  # of one encryption of zero, offline
TABLE_OFFLINE_SECONDS, TABLE_ONLINE_SECONDS = 3.5e-6, 1.5e-6  # of one table that is looked up in, both parties together
MESSAGE_SECONDS = 1.5e-4  # of one message on loopback with TLS, and of the numpy calls around it
GARBLE_SECONDS, EVALUATE_SECONDS = 5e-8, 4e-8  # of one gate, with all that is around it
BYTES_PER_SECOND = 100e6 / 8  # of a link of 100 Mbit/s, where there is one


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of one recognition.

    Attributes:
        bytes_up: payload from client to server, offline and online.
        online_bytes: of both ways, what goes after the voice is there.
        rounds: round trips online.
        offline_seconds: of work before the voice is there, on loopback.
        online_seconds: from the voice to the word, on loopback.
    """

    bytes_up: int
    bytes_down: int
    online_bytes: int
    rounds: int
    offline_seconds: float
    online_seconds: float

    def online_over(self, round_trip_seconds: float) -> float:
        """From the voice to the word over a link with this round-trip time and 100 Mbit/s."""
        return self.online_seconds + self.rounds * round_trip_seconds + self.online_bytes / BYTES_PER_SECOND

    def whole_over(self, round_trip_seconds: float) -> float:
        """From the question to the answer over such a link, nothing prepared before."""
        before = (self.bytes_up + self.bytes_down - self.online_bytes) / BYTES_PER_SECOND
        return self.offline_seconds + before + self.online_over(round_trip_seconds)


WEIGHT_BITS = 8  # what a weight is worth: rounded to so many bits, models decide as before
KNOWN_PART = 100  # a budget is this part of what would tell a model
LEAST_BUDGET = 100  # of a model so small that fewer queries would tell it


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What answers tell of a model, whatever a client does (Corollary 2.4 in docs/theory/asking.md).

    `bits`: of one answer, at the most. `queries`: until the model could be known, at the earliest. `budget`: what one
    client should be answered, each a query, however long.
    """

    bits: int
    queries: int
    budget: int

    @classmethod
    def of(cls, shape: WordShape) -> Self:
        """Of a model of words.

        >>> Knowledge.of(WordShape(98, 39, "full", words=10, states=5, ends=(4,)))
        Knowledge(bits=4, queries=82000, budget=820)
        """
        return cls.about(shape.monomials * shape.columns, shape.answer_bits)

    @classmethod
    def about(cls, weights: int, bits: int) -> Self:
        """Of a model of so many weights, whose answers have so many bits.

        >>> Knowledge.about(45_000, 644)
        Knowledge(bits=644, queries=559, budget=100)
        """
        queries = max(1, weights * WEIGHT_BITS // bits)
        return cls(bits, queries, max(LEAST_BUDGET, queries // KNOWN_PART))


@lru_cache(maxsize=256)
def planned_job(shape: WordShape, utterances: int = 1, order: Way = "frames") -> KeywordJob:
    """A job, planned once: cutting a product into polynomials looks at many ways."""
    return KeywordJob(shape, utterances, FAR if order == "ahead" else usual_ahead(shape, utterances))


def estimate(job: KeywordJob, order: Way = "frames") -> Estimate:
    """What one recognition of this job takes."""
    if order == "ahead":
        return estimate(planned_job(job.shape, job.utterances, order))
    if order == "garbled":
        return estimate_garbled(job.plan, word_circuit(job.shape), garbled_cost(job.shape), job.utterances)
    return estimate_shared(job.plan, job.shares_cost, job.rounds)


def estimate_garbled(plan: MatrixPlan, circuit: TrellisCircuit, cost: GarbledCost, utterances: int = 1) -> Estimate:
    """What an encrypted product and a circuit an utterance take."""
    product, gates = estimate_product(plan), utterances * (circuit.forward_gates + circuit.back_gates())
    return Estimate(
        bytes_up=product.bytes_up + utterances * (cost.offline_up + cost.online_up),
        bytes_down=product.bytes_down + utterances * (cost.offline_down + cost.online_down),
        online_bytes=product.online_bytes + utterances * (cost.online_up + cost.online_down),
        rounds=2,
        offline_seconds=product.offline_seconds + GARBLE_SECONDS * gates,
        online_seconds=product.online_seconds + EVALUATE_SECONDS * gates,
    )


def estimate_product(plan: MatrixPlan) -> Estimate:
    """What an encrypted product takes."""
    job = plan.job
    offline = ZERO_SECONDS * job.groups * (job.terms + job.outputs)
    return Estimate(job.query_bytes, job.reply_bytes, plan.total_bytes, 1, offline, _product_seconds(plan))


def estimate_shared(plan: MatrixPlan, shares: Cost, rounds: int) -> Estimate:
    """What an encrypted product and the work on its shares take, in so many round trips."""
    product = estimate_product(plan)
    return Estimate(
        bytes_up=product.bytes_up + shares.bytes_second + shares.offline_bytes_second,
        bytes_down=product.bytes_down + shares.bytes_first + shares.offline_bytes_first,
        online_bytes=product.online_bytes + shares.online_bytes,
        rounds=rounds,
        offline_seconds=_share_seconds(shares, TABLE_OFFLINE_SECONDS) + product.offline_seconds,
        online_seconds=_share_seconds(shares, TABLE_ONLINE_SECONDS)
        + shares.messages * MESSAGE_SECONDS
        + product.online_seconds,
    )


def estimate_network(shape: NetworkShape) -> Estimate:
    """What an utterance takes through all layers of a network."""
    plans = [shape.product(number) for number in range(len(shape.layers))]
    return estimate_layers(plans, network_cost(shape), network_rounds(shape))


def estimate_layers(plans: Sequence[MatrixPlan], shares: Cost, rounds: int) -> Estimate:
    """What encrypted products one after another, and the work on shares between and after them, take."""
    products = [estimate_product(plan) for plan in plans]
    last = estimate_shared(plans[-1], shares, rounds)
    return Estimate(
        bytes_up=sum(each.bytes_up for each in products[:-1]) + last.bytes_up,
        bytes_down=sum(each.bytes_down for each in products[:-1]) + last.bytes_down,
        online_bytes=sum(each.online_bytes for each in products[:-1]) + last.online_bytes,
        rounds=last.rounds,
        offline_seconds=sum(each.offline_seconds for each in products[:-1]) + last.offline_seconds,
        online_seconds=sum(each.online_seconds for each in products[:-1]) + last.online_seconds,
    )


def estimate_stream(shape: WordShape) -> Estimate:
    """What the longest utterance takes as it is spoken, beside the models; online comes after its last frame."""
    plan, shares, frames = stream_plan(shape), stream_cost(shape), shape.frames
    product, end = plan.job, end_cost(shape)
    step = _product_seconds(plan) + _share_seconds(shares, TABLE_ONLINE_SECONDS) / frames
    return Estimate(
        bytes_up=frames * (1 + product.reply_bytes) + 1 + shares.bytes_second + shares.offline_bytes_second,
        bytes_down=shares.bytes_first + shares.offline_bytes_first,
        online_bytes=1 + product.reply_bytes + end.online_bytes,
        rounds=end.rounds,
        offline_seconds=_share_seconds(shares, TABLE_OFFLINE_SECONDS) + frames * ZERO_SECONDS * product.outputs,
        online_seconds=step + end.messages * MESSAGE_SECONDS,
    )


def choose_order(job: KeywordJob, orders: Sequence[Way], round_trip_seconds: float, most_bytes: int) -> Way:
    """The order that answers sooner at this round-trip time; none, but by frames, with more bytes than so many."""
    costs = {order: estimate(job, order) for order in orders}
    sizes = {order: cost.bytes_up + cost.bytes_down for order, cost in costs.items()}
    ready = [order for order in orders if order == "frames" or sizes[order] <= most_bytes]
    return min(ready, key=lambda order: costs[order].whole_over(round_trip_seconds))


def _share_seconds(cost: Cost, table_seconds: float) -> float:
    return table_seconds * (sum(cost.tables.values()) + cost.products)


def _product_seconds(plan: MatrixPlan) -> float:
    job = plan.job
    sent = job.groups * (job.terms + job.outputs)
    return PRODUCT_SECONDS * job.groups * job.terms * job.outputs + POLYNOMIAL_SECONDS * sent
