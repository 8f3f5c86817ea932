"""A network of 440-256-256-120 on a second of frames, between two processes over TLS, beside the same in the clear.

Needs nothing.
"""

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.channel import Channel
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import best_seconds, machine
from ppspeech.evidence.bench.two_parties import Timed, certificates, measure
from ppspeech.figures import Figure
from ppspeech.network import run_together
from ppspeech.protocols import Meeting, meet_as_client, meet_as_server
from ppspeech.protocols.networks import (
    Layer,
    NetworkArrays,
    NetworkShape,
    answer_network,
    ask_network,
    fit_network,
    network_cost,
    network_rounds,
    prepare_network,
    product_bytes,
    share_scores,
)

FRAMES, SIZES = 98, (440, 256, 256, 120)


@BENCHES.register("network")
def run(quick: bool) -> list[Figure]:
    """Time a frame, offline and online apart, and how far logits are from those in doubles."""
    repeats = 4 if quick else 15
    own, frames = made_network(FRAMES, SIZES), made_frames(FRAMES, SIZES[0])
    shape = own.shape
    with certificates() as tls:
        measured = measure([job(own, frames)], repeats, tls=tls)["network"]
    plain = best_seconds(lambda: own.scores(frames), 5)
    error = logit_errors(own, frames)
    where = f"two processes, TLS on loopback, {machine()}; best of {repeats} after a warm-up"
    sizes = f"{'-'.join(map(str, SIZES))}, {FRAMES} frames, rectifiers, labels of all frames told"
    note = f"{sizes}; offline and online; {where}"
    a_frame = 1e3 / FRAMES
    return [
        Figure.less("network.ms_per_frame", measured.total * a_frame, "ms", "the clear, numpy", plain * a_frame, note),
        Figure("network.offline_ms_per_frame", measured.offline * a_frame, "ms", note="transfers, encryptions of zero"),
        Figure("network.online_ms_per_frame", measured.online * a_frame, "ms", note="from frames to labels"),
        Figure("network.median_ms_per_frame", measured.median * a_frame, "ms", note=where),
        Figure(
            "network.bytes", measured.bytes, "B", note="payload, offline and online, both ways, as the formula says"
        ),
        Figure("network.product_bytes", product_bytes(shape), "B", note="of these, ciphertexts"),
        Figure("network.rounds", measured.rounds, note="round trips online"),
        Figure("network.logit_error", float(np.abs(error).max()), note="the largest, against the clear in doubles"),
        Figure("network.logit_error_rms", float(np.sqrt((error**2).mean())), note=f"of {FRAMES * SIZES[-1]:,} logits"),
    ]


def made_network(frames: int, sizes: tuple[int, ...], seed: int = 0) -> NetworkArrays:
    """Random weights of the usual size: pre-activations of variance 2 for frames of variance 1."""
    rng = np.random.default_rng(seed)
    layers = tuple(Layer(size) for size in sizes[1:-1])
    shape = NetworkShape(
        frames, sizes[0], (*layers, Layer(sizes[-1], activation="none")), "labels", radius=2.5 * sizes[0] ** 0.5
    )
    matrices = tuple(rng.normal(size=(a, b)) * np.sqrt(2 / a) for a, b in itertools.pairwise(sizes))
    biases = tuple(0.1 * rng.normal(size=size) for size in sizes[1:])
    return fit_network(shape, matrices, biases, tuple(f"phone {number}" for number in range(sizes[-1])))


def made_frames(frames: int, dimensions: int, seed: int = 1) -> Reals:
    """Of variance 1."""
    return np.random.default_rng(seed).normal(size=(frames, dimensions))


def job(own: NetworkArrays, frames: Reals) -> Timed:
    """Labels of all frames; those that beat the next by more than logits err by must be told."""
    shape = own.shape
    _ = own.encoded  # once a model
    scores = np.sort(own.scores(shape.clipped(frames)), axis=1)
    sure = scores[:, -1] - scores[:, -2] > 0.3
    best = own.scores(shape.clipped(frames)).argmax(axis=1)

    def ask(met: Meeting, channel: Channel) -> Callable[[], list[str | None]]:
        watched = replace(met, channel=channel)
        engine = prepare_network(watched, shape)
        return lambda: ask_network(watched, shape, frames, engine)

    def answer(met: Meeting, channel: Channel) -> Callable[[], None]:
        watched = replace(met, channel=channel)
        engine = prepare_network(watched, shape)
        return lambda: answer_network(watched, own, engine)

    def right(told: list[str | None]) -> bool:
        changed = np.concatenate(([True], sure[:-1] & (best[1:] != best[:-1])))
        begins = np.flatnonzero(sure & changed)
        return all(told[at] == (own.labels[best[at]] if best[at] else None) for at in begins)

    total = product_bytes(shape) + network_cost(shape).total_bytes
    return Timed("network", ask, answer, right, total, network_rounds(shape))


def logit_errors(own: NetworkArrays, frames: Reals) -> Reals:
    """What both parties' shares add up to, less the logits in the clear: here alone are the shares put together."""
    shape, ring = own.shape, own.shape.signs(len(own.shape.layers) - 1)

    def client(channel: Channel) -> Residues:
        met = meet_as_client(channel)
        with met.session():
            return share_scores(met, prepare_network(met, shape), shape, shape.clipped(frames))

    def server(channel: Channel) -> Residues:
        met = meet_as_server(channel)
        with met.session():
            return share_scores(met, prepare_network(met, shape), shape, own)

    shares = run_together(client, server)
    found = np.ldexp(ring.to_signed(ring.join(*shares)).astype(np.float64), -shape.fraction)
    return np.asarray(found * shape.layers[-1].mean_factor - own.scores(shape.clipped(frames)))
