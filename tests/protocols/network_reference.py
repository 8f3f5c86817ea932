"""Small networks, what they give in the clear, and what both parties' shares of it add up to."""

from typing import Any

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.channel import Channel
from ppspeech.crypto.shares import read_text
from ppspeech.network import run_together
from ppspeech.protocols import meet_as_client, meet_as_server
from ppspeech.protocols.networks import (
    Layer,
    NetworkArrays,
    NetworkShape,
    fit_network,
    prepare_network,
    share_scores,
    tell,
)

MLP = (Layer(8), Layer(6), Layer(3, activation="none", pool="mean", pool_width=12))
TDNN = (
    Layer(8, width=3, activation="sigmoid"),
    Layer(6, width=3, stride=2, dilation=2, activation="gelu", pool="max", pool_width=3),
    Layer(4, activation="none"),
)
DEEP = (
    Layer(7, width=3, activation="gelu", pool="mean", pool_width=3),
    Layer(6),
    Layer(5, activation="sigmoid"),
    Layer(5),
    Layer(4, activation="none", pool="mean", pool_width=7),
)


def made_network(shape: NetworkShape, seed: int = 0, scale: float = 1.0) -> NetworkArrays:
    rng = np.random.default_rng(seed)
    matrices, biases = [], []
    for number, layer in enumerate(shape.layers):
        inner = shape.inner(number)
        matrices.append(scale * rng.normal(size=(inner, layer.outputs)) * np.sqrt(2 / inner))
        biases.append(0.2 * rng.normal(size=layer.outputs))
    labels = tuple(f"label {number}" for number in range(shape.labels))
    return fit_network(shape, tuple(matrices), tuple(biases), labels)


def plain_network(own: NetworkArrays) -> dict[str, Any]:
    """As `read_network` takes it."""
    return {
        "matrices": [each.tolist() for each in own.matrices],
        "biases": [each.tolist() for each in own.biases],
        "labels": list(own.labels),
    }


def evaluate(own: NetworkArrays, frames: Reals) -> tuple[Reals, list[str | None]]:
    """The outputs that both shares add up to, and what the client is told."""
    shape = own.shape

    def client(channel: Channel) -> Any:
        met = meet_as_client(channel)
        with met.session():
            engine = prepare_network(met, shape)
            share = share_scores(met, engine, shape, shape.clipped(frames))
            return share, tell(engine, shape, share, None)

    def server(channel: Channel) -> Any:
        met = meet_as_server(channel)
        with met.session():
            engine = prepare_network(met, shape)
            share = share_scores(met, engine, shape, own)
            assert tell(engine, shape, share, own) is None
            return share

    (share, told), other = run_together(client, server)
    ring = shape.signs(len(shape.layers) - 1)
    found = np.ldexp(ring.to_signed(ring.join(share, other)).astype(np.float64), -shape.fraction)
    return found * shape.layers[-1].mean_factor, [read_text(each) for each in told]


def collapsed(own: NetworkArrays, best: list[int]) -> list[str | None]:
    """Greedy CTC by a loop: a label where it begins, nothing for blanks and repetitions."""
    told: list[str | None] = []
    for at, label in enumerate(best):
        begins = at == 0 or label != best[at - 1]
        told.append(own.labels[label] if begins and label else None)
    return told
