"""Networks between two processes over TLS, beside the same in the clear: 440-256-256-120 on a second of frames; a
sentence of 6.7 s by one that is read greedily, and by one that scores the states of a graph.

Needs nothing.
"""

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from ppspeech.arrays import Reals, Residues
from ppspeech.channel import Channel
from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import best_seconds, machine
from ppspeech.evidence.bench.sentences import digits
from ppspeech.evidence.bench.two_parties import Measured, Timed, certificates, measure
from ppspeech.figures import Figure
from ppspeech.models import decode
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
from ppspeech.protocols.sentences import (
    Heard,
    answer_sentence,
    prepare,
    sentence_rounds,
    total_bytes,
    transcribe,
)
from ppspeech.service import NetworkScored, export_graph

FRAMES, SIZES = 98, (440, 256, 256, 120)
SENTENCE, HOP, FEATURES, UNITS = 224, 0.03, 39, 64
"""Frames of a sentence, seconds of one, its numbers, and units of a layer."""
GREEDY = (Layer(UNITS, width=5, stride=2), Layer(UNITS, width=3, dilation=2), Layer(UNITS, width=3, dilation=3))
EVERY_FRAME = (Layer(UNITS, width=5), Layer(UNITS, width=3, dilation=3))
"""The layers of the recipes `sentences_ctc` and `sentences_network`."""


@BENCHES.register("network")
def run(quick: bool) -> list[Figure]:
    """Time a frame, offline and online apart, and how far logits are from those in doubles."""
    repeats = 4 if quick else 15
    own, frames = made_network(FRAMES, SIZES), made_frames(FRAMES, SIZES[0])
    shape = own.shape
    with certificates() as tls:
        measured = measure([job(own, frames)], repeats, tls=tls)["network"]
        whole = [greedy_job(), graph_job()]
        sentences = {each.name: measure([each], max(2, repeats // 3), tls=tls)[each.name] for each in whole}
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
        *(figure for name, each in sentences.items() for figure in _sentence(name, each)),
    ]


def _sentence(name: str, measured: Measured) -> list[Figure]:
    note = f"a sentence of {SENTENCE * HOP:.1f} s, {SENTENCE} frames, ten words; median {measured.median:.2f} s"
    return [
        Figure(f"network.{name}.s", measured.total, "s", note=f"{note}; offline and online"),
        Figure(f"network.{name}.offline_s", measured.offline, "s", note="transfers, encryptions of zero"),
        Figure(f"network.{name}.online_s", measured.online, "s", note="from frames to words"),
        Figure(f"network.{name}.bytes", measured.bytes, "B", note="payload, both ways, as the formula says"),
        Figure(f"network.{name}.rounds", measured.rounds, note="round trips online"),
    ]


def greedy_job() -> Timed:
    """A sentence by greedy CTC: labels that are clear must be told."""
    rng = np.random.default_rng(0)
    layers = (*GREEDY, Layer(11, activation="none"))
    span, stride = NetworkShape(SENTENCE, FEATURES, layers, "labels").span
    shape = NetworkShape(SENTENCE + span - stride, FEATURES, layers, "labels", radius=12.0)
    labels = tuple(f"word {number}" for number in range(11))
    return job(fit_network(shape, *_weights(shape, rng), labels), made_frames(shape.frames, FEATURES), "ctc")


def graph_job() -> Timed:
    """A sentence by the best path through a graph of ten words and silence: what is heard must be, for nearly all of
    its time, what the clear decoder hears; random scores have ties.
    """
    graph = digits()[1]
    states = sum(pdf is not None for pdf in graph.pdfs)
    layers = (*EVERY_FRAME, Layer(states, activation="none"))
    span = NetworkShape(SENTENCE, FEATURES, layers, "scores").span[0]
    shape = NetworkShape(SENTENCE + span - 1, FEATURES, layers, "scores", radius=12.0)
    network = fit_network(shape, *_weights(shape, np.random.default_rng(0)), ())
    arrays = export_graph(graph, NetworkScored(network), SENTENCE)
    said = made_frames(SENTENCE, FEATURES)
    scores = network.scores(network.shape.clipped(np.concatenate((np.zeros(((span - 1) // 2, FEATURES)), said))))
    clear = decode(graph.compile(), torch.from_numpy(scores))
    wanted = _at_frames([Heard(word.word, word.start, word.end) for word in clear.words])
    assert arrays.network is not None
    _ = arrays.network.encoded  # once a model

    def right(heard: list[Heard]) -> bool:
        return float((_at_frames([each for each in heard if each.word]) == wanted).mean()) > 0.9

    def client(met: Meeting, channel: Channel) -> Callable[[], list[Heard]]:
        here = replace(met, channel=channel)
        engine = prepare(here, arrays.shape)
        return lambda: transcribe(here, arrays.shape, said, engine)

    def server(met: Meeting, channel: Channel) -> Callable[[], None]:
        here = replace(met, channel=channel)
        engine = prepare(here, arrays.shape)
        return lambda: answer_sentence(here, arrays, None, engine)

    return Timed("hybrid", client, server, right, total_bytes(arrays.shape), sentence_rounds(arrays.shape))


def _at_frames(heard: list[Heard]) -> NDArray[np.str_]:
    """The word of every frame."""
    words = np.full(SENTENCE, "", "<U64")
    for each in heard:
        words[each.start : each.end] = each.word
    return words


def _weights(shape: NetworkShape, rng: np.random.Generator) -> tuple[tuple[Reals, ...], tuple[Reals, ...]]:
    """Of the usual size."""
    sizes = [(shape.inner(number), layer.outputs) for number, layer in enumerate(shape.layers)]
    matrices = tuple(rng.normal(size=size) * np.sqrt(2 / size[0]) for size in sizes)
    return matrices, tuple(0.1 * rng.normal(size=outputs) for _, outputs in sizes)


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


def job(own: NetworkArrays, frames: Reals, name: str = "network") -> Timed:
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
    return Timed(name, ask, answer, right, total, network_rounds(shape))


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
