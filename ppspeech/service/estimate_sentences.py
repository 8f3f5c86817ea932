"""What a sentence will take, on shares or in a garbled circuit, from public sizes alone."""

from functools import lru_cache

from ppspeech.protocols.sentences import (
    Engine,
    SentenceShape,
    garbled_cost,
    product_plan,
    sentence_circuit,
    shares_cost,
)
from ppspeech.service.estimate import BYTES_PER_SECOND, Estimate, estimate_product, estimate_shared
from ppspeech.service.tasks.sentences import Mode

GARBLE_SECONDS, EVALUATE_SECONDS = 5e-8, 4e-8  # of one gate, with all that is around it


@lru_cache(maxsize=128)
def estimate_sentence(shape: SentenceShape, mode: Mode) -> Estimate:
    """An utterance of the shape's length: bytes and rounds exactly, seconds on loopback as an estimate."""
    plan = product_plan(shape)
    if mode == "frames":
        shares = shares_cost(shape)
        return estimate_shared(plan, shares, 1 + shares.rounds)
    cost, product = garbled_cost(shape), estimate_product(plan)
    circuit = sentence_circuit(shape)
    gates = circuit.forward_gates + circuit.back_gates()
    return Estimate(
        bytes_up=product.bytes_up + cost.offline_up + cost.online_up,
        bytes_down=product.bytes_down + cost.offline_down + cost.online_down,
        online_bytes=product.online_bytes + cost.online_up + cost.online_down,
        rounds=2,
        offline_seconds=product.offline_seconds + GARBLE_SECONDS * gates,
        online_seconds=product.online_seconds + EVALUATE_SECONDS * gates,
    )


def whole_seconds(cost: Estimate, round_trip_seconds: float) -> float:
    """From the question to the words, nothing prepared before, over a link with this round trip and 100 Mbit/s."""
    before = (cost.bytes_up + cost.bytes_down - cost.online_bytes) / BYTES_PER_SECOND
    return cost.offline_seconds + before + cost.online_over(round_trip_seconds)


def choose_way(shape: SentenceShape, modes: tuple[Mode, ...], round_trip_seconds: float) -> Mode:
    """The way that has the words sooner at this round-trip time."""
    return min(modes, key=lambda mode: whole_seconds(estimate_sentence(shape, mode), round_trip_seconds))


def speaking_way(
    shape: SentenceShape, hop_seconds: float, round_trip_seconds: float, modes: tuple[Mode, ...]
) -> Engine:
    """While somebody speaks: on shares where a frame's round trips take less than half of it, else in a circuit, where
    there is one.
    """
    soon = 4 * shape.plan.interval * round_trip_seconds < hop_seconds
    return "shares" if soon or "garbled" not in modes else "garbled"
