"""What a sentence will take, on shares or in a garbled circuit, from public sizes alone."""

from functools import lru_cache

from ppspeech.protocols.sentences import (
    Engine,
    SentenceShape,
    garbled_cost,
    product_plan,
    products_of,
    sentence_circuit,
    sentence_rounds,
    shares_cost,
)
from ppspeech.service.estimate import Estimate, estimate_garbled, estimate_layers
from ppspeech.service.tasks.sentences import Mode


@lru_cache(maxsize=128)
def estimate_sentence(shape: SentenceShape, mode: Mode) -> Estimate:
    """An utterance of the shape's length: bytes and rounds exactly, seconds on loopback as an estimate."""
    if mode == "frames":
        return estimate_layers(products_of(shape), shares_cost(shape), sentence_rounds(shape))
    return estimate_garbled(product_plan(shape), sentence_circuit(shape), garbled_cost(shape))


def choose_way(shape: SentenceShape, modes: tuple[Mode, ...], round_trip_seconds: float) -> Mode:
    """The way that has the words sooner at this round-trip time."""
    return min(modes, key=lambda mode: estimate_sentence(shape, mode).whole_over(round_trip_seconds))


def speaking_way(
    shape: SentenceShape, hop_seconds: float, round_trip_seconds: float, modes: tuple[Mode, ...]
) -> Engine:
    """While somebody speaks: on shares where a frame's round trips take less than half of it, else in a circuit, where
    there is one.
    """
    soon = 4 * shape.plan.interval * round_trip_seconds < hop_seconds
    return "shares" if soon or "garbled" not in modes else "garbled"
