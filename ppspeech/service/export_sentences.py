"""From a graph of words, and the Gaussians of its states or a network, to what an encrypted service of sentences
computes with.

Nodes of a graph become junctions. What staying in a state costs goes with every frame's score there, so that what leads
to a state counts relative to it. The shares are the smallest that hold all differences for certain, for every voice
within the public radius (`ppspeech.protocols.trellis.range`), with a quarter of a nat or better as their step.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from ppspeech.arrays import Reals
from ppspeech.audio import usual_range
from ppspeech.bundle import (
    Bundle,
    BundleConfig,
    SentenceHmmSettings,
    SentenceNetworkSettings,
    feature_limit,
    feature_radius,
)
from ppspeech.errors import ModelError, RangeError
from ppspeech.models.decoding import LATER, NOTHING, Edge, WordGraph
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel
from ppspeech.protocols.networks import NetworkArrays
from ppspeech.protocols.scores import MOST_LIMIT, Terms, scaled_weights
from ppspeech.protocols.sentences import SentenceArrays, SentenceShape
from ppspeech.service.export import score_columns
from ppspeech.service.export_networks import export_states
from ppspeech.service.tasks.sentences import SentenceDeployment, most_words, shape_at_length

RAREST = -2_000.0  # nats: what is rarer counts as this rare; moves of a bundle, with what words cost, are not
BITS = (16, 19, 21, 25)
"""Sizes of shares worth having: between them, a smaller one costs as much as the next."""
COARSEST, FINEST = 2, 5  # bits after the point of a nat


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Weights of the monomials of a frame, `(monomials, pdfs)`, for the columns that a graph speaks of."""

    weights: Reals
    terms: Terms
    dimensions: int
    limit: float
    radius: float


@dataclass(frozen=True, slots=True, eq=False)
class NetworkScored:
    """A network whose outputs are the columns that a graph speaks of; its ranges are the narrowest."""

    network: NetworkArrays


def export_bundle(bundle: Bundle, deployment: SentenceDeployment | None = None) -> SentenceArrays:
    """The encrypted layer's form of a bundle that writes down sentences, of features in their usual range, clipped as
    in the clear (`ppspeech.bundle.feature_radius`, `feature_limit`). Raises ModelError for another kind of bundle, or
    features that lie too far out; RangeError for choices that its scores do not fit.
    """
    return export_bank(bundle.model, bundle.config, deployment)


def export_bank(bank: nn.Module, config: BundleConfig, deployment: SentenceDeployment | None = None) -> SentenceArrays:
    """The same of a module in hand, with what a bundle would say about it."""
    settings, mfcc = config.settings, config.front_end
    if isinstance(settings, SentenceNetworkSettings):
        chosen, graph = deployment or SentenceDeployment(), settings.graph(bank, config.labels).drawn
        frames = chosen.frames_of(mfcc)
        return export_graph(graph, NetworkScored(export_states(bank, frames)), frames, chosen.bits)
    if not isinstance(settings, SentenceHmmSettings) or not isinstance(bank, HiddenMarkovModel):
        raise ModelError(f"a {config.type} writes down no sentences: train one with `ppspeech train sentences`")
    assert isinstance(bank.emission, GaussianEmission)
    chosen = deployment or SentenceDeployment()
    limit = feature_limit(bank, mfcc)
    if limit is None or limit > MOST_LIMIT:
        raise ModelError(
            f"features may lie {limit:g} spreads from where those of speech usually lie, and {MOST_LIMIT:g} can be "
            "served: train on normalized features, with cmvn utterance or public"
        )
    terms: Literal["full", "diagonal"] = "full" if bank.emission.whole else "diagonal"
    with torch.no_grad():
        weights = score_columns(bank.emission.gaussians.phi().double(), terms)
        graph = settings.graph(bank, config.labels).drawn
    center, spread = usual_range(mfcc)
    scored = Scored(
        scaled_weights(weights, terms, center, spread), terms, mfcc.features, limit, feature_radius(bank, mfcc)
    )
    return export_graph(graph, scored, chosen.frames_of(mfcc), chosen.bits)


def export_graph(
    graph: WordGraph, scored: Scored | NetworkScored, frames: int, bits: int | None = None
) -> SentenceArrays:
    """A service for utterances of up to so many frames. Raises ModelError for back-offs that would take too many arcs;
    RangeError where no shares, or not those of `bits`, hold the scores.
    """
    graph = graph.without_failures().shortened()
    make = _by_products(graph, scored, frames) if isinstance(scored, Scored) else _by_network(graph, scored, frames)
    why: RangeError | None = None
    for size in BITS if bits is None else (bits,):
        try:
            found = make(size, COARSEST)
        except RangeError as refused:
            why = refused
            continue
        finest = size - 1 - math.ceil(math.log2(found.most_apart))
        for fraction in range(min(FINEST, finest), COARSEST, -1):
            with suppress(RangeError):
                return make(size, fraction)
        return found
    raise RangeError(
        f"{why}; here: normalize features (cmvn utterance or public), raise the models' variance floor, or serve with "
        "more bits (--sentences bits=…)"
    )


Make = Callable[[int, int], SentenceArrays]
"""From the bits of shares, and those after the point, to what is served. Raises RangeError where scores do not fit."""


def _by_products(graph: WordGraph, scored: Scored, frames: int) -> Make:
    drawn = _Drawing(graph, scored.weights)

    def make(bits: int, fraction: int) -> SentenceArrays:
        shape = SentenceShape(
            frames=frames,
            dimensions=scored.dimensions,
            terms=scored.terms,
            most_words=most_words(frames),
            bits=bits,
            fraction=fraction,
            limit=scored.limit,
            radius=scored.radius,
            **drawn.shape,
        )
        return SentenceArrays(shape, drawn.scores, drawn.arcs, drawn.starts)

    return make


def _by_network(graph: WordGraph, scored: NetworkScored, frames: int) -> Make:
    """The last layer has an output a column of the graph, with ln of staying there in its biases, and shares of just
    the bits that the trellis takes.
    """
    given = scored.network
    drawn = _Drawing(graph, np.concatenate((given.matrices[-1], given.biases[-1][None])))
    matrices, biases = (*given.matrices[:-1], drawn.scores[:-1]), (*given.biases[:-1], drawn.scores[-1])
    *before, last = given.shape.layers

    def make(bits: int, fraction: int) -> SentenceArrays:
        layers = (*before, replace(last, outputs=drawn.scores.shape[1], range_bits=bits - fraction))
        network = NetworkArrays(replace(given.shape, layers=layers), matrices, biases, ())
        shape = SentenceShape(
            frames=frames,
            dimensions=given.shape.dimensions,
            terms="linear",
            most_words=most_words(frames),
            bits=bits,
            fraction=fraction,
            radius=given.shape.radius,
            network=network.shape,
            **drawn.shape,
        )
        return SentenceArrays(shape, np.zeros((0, shape.scores)), drawn.arcs, drawn.starts, network)

    return make


def at_length(arrays: SentenceArrays, frames: int) -> SentenceArrays:
    """The same for utterances of up to so many frames, not more than those it was made for."""
    shape = shape_at_length(arrays.shape, frames)
    network = None
    if arrays.network is not None and shape.network is not None:
        network = NetworkArrays(shape.network, arrays.network.matrices, arrays.network.biases, ())
    return SentenceArrays(shape, arrays.weights, arrays.arcs, arrays.starts, network)


class _Drawing:
    """The parts of a shape, and the server's numbers, from a graph."""

    def __init__(self, graph: WordGraph, weights: Reals) -> None:
        stays = {edge.source: edge.log_weight for edge in graph.edges if edge.source == edge.target}
        kinds: dict[tuple[int, float], int] = {}
        columns = [
            -1 if pdf is None else kinds.setdefault((pdf, stays.get(vertex, 0.0)), len(kinds))
            for vertex, pdf in enumerate(graph.pdfs)
        ]
        staying = [stays.get(vertex, 0.0) if pdf is not None else 0.0 for vertex, pdf in enumerate(graph.pdfs)]
        scores = weights[:, [pdf for pdf, _ in kinds]].astype(np.float64)
        scores[-1] += [stay for _, stay in kinds]
        moved = [
            (_arc(edge), max(edge.log_weight, RAREST) - staying[edge.target])
            for edge in graph.edges
            if edge.source != edge.target
        ]
        itself = [((vertex, vertex, 0, -1), 0.0) for vertex in stays]
        begun = _begun(graph)
        arcs = [*itself, *moved]
        self.shape: Mapping[str, Any] = {
            "words": tuple(word or "" for word in graph.words),
            "columns": tuple(columns),
            "arcs": tuple(arc for arc, _ in arcs),
            "starts": tuple((vertex, word) for vertex, (_, word) in begun.items()),
            "end": graph.end,
        }
        starts = [max(nats, RAREST) - staying[vertex] for vertex, (nats, _) in begun.items()]
        self.scores: Reals = scores
        self.arcs, self.starts = np.array([nats for _, nats in arcs]), np.array(starts)


def _arc(edge: Edge) -> tuple[int, int, int, int]:
    known = edge.said if edge.entry in (NOTHING, LATER) else edge.entry
    return edge.source, edge.target, int(edge.entry != NOTHING), max(known, -1)


def _begun(graph: WordGraph) -> dict[int, tuple[float, int]]:
    """States that the start leads to without a frame: the best weight, and the word that begins there (-1: later)."""
    best = {graph.start: 0.0}
    leaving: dict[int, list[Edge]] = {}
    for edge in graph.edges:
        leaving.setdefault(edge.source, []).append(edge)
    found: dict[int, tuple[float, int]] = {}
    for node in graph.node_order():
        if node not in best:
            continue
        for edge in leaving.get(node, []):
            total = best[node] + edge.log_weight
            if graph.pdfs[edge.target] is None:
                best[edge.target] = max(best.get(edge.target, -math.inf), total)
            elif total > found.get(edge.target, (-math.inf, -1))[0]:
                found[edge.target] = total, max(edge.entry, -1)
    return found
