"""From a graph of words and the Gaussians of its states to what an encrypted service of sentences computes with.

Nodes of a graph become junctions. What staying in a state costs goes with every frame's score there, so that what leads
to a state counts relative to it. The shares are the smallest that hold all differences for certain, for every voice
within the public radius (`ppspeech.protocols.trellis.range`), with a quarter of a nat or better as their step.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from ppspeech.arrays import Reals
from ppspeech.audio import MfccConfig, usual_range
from ppspeech.bundle import Bundle, BundleConfig, SentenceHmmSettings, feature_limit, feature_radius
from ppspeech.errors import ModelError, RangeError
from ppspeech.models.decoding import LATER, NOTHING, Edge, WordGraph
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel
from ppspeech.protocols.scores import MOST_LIMIT, Terms, scaled_weights
from ppspeech.protocols.sentences import SentenceArrays, SentenceShape
from ppspeech.service.export import score_columns
from ppspeech.service.tasks.sentences import STEP, most_words, shape_at_length

LONGEST_SECONDS = 10.0  # of a sentence, unless whoever serves says otherwise
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


@dataclass(frozen=True, slots=True)
class SentenceDeployment:
    """What whoever serves a model of sentences chooses; all of it is public.

    Attributes:
        frames: of the longest utterance, rounded up to steps of 32; by default those of ten seconds.
        bits: of the shares; by default as many as its scores need for certain. Fewer are refused.
    """

    frames: int | None = None
    bits: int | None = None

    def frames_of(self, mfcc: MfccConfig) -> int:
        """Of the longest utterance, in whole steps."""
        wanted = LONGEST_SECONDS / mfcc.hop_s if self.frames is None else self.frames
        return math.ceil(wanted / STEP) * STEP


def export_bundle(bundle: Bundle, deployment: SentenceDeployment | None = None) -> SentenceArrays:
    """The encrypted layer's form of a bundle that writes down sentences, of features in their usual range, clipped as
    in the clear (`ppspeech.bundle.feature_radius`, `feature_limit`). Raises ModelError for another kind of bundle, or
    features that lie too far out; RangeError for choices that its scores do not fit.
    """
    return export_bank(bundle.model, bundle.config, deployment)


def export_bank(bank: nn.Module, config: BundleConfig, deployment: SentenceDeployment | None = None) -> SentenceArrays:
    """The same of a module in hand, with what a bundle would say about it."""
    settings, mfcc = config.settings, config.front_end
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
    center, spread = (part.numpy() for part in usual_range(mfcc))
    scored = Scored(
        scaled_weights(weights, terms, center, spread), terms, mfcc.features, limit, feature_radius(bank, mfcc)
    )
    return export_graph(graph, scored, chosen.frames_of(mfcc), chosen.bits)


def export_graph(graph: WordGraph, scored: Scored, frames: int, bits: int | None = None) -> SentenceArrays:
    """A service for utterances of up to so many frames. Raises ModelError for back-offs that would take too many arcs;
    RangeError where no shares, or not those of `bits`, hold the scores.
    """
    graph = graph.without_failures().shortened()
    drawn = _Drawing(graph, scored.weights)
    common: dict[str, Any] = {
        "dimensions": scored.dimensions,
        "terms": scored.terms,
        "limit": scored.limit,
        "radius": scored.radius,
    }
    words = tuple(word or "" for word in graph.words)
    shape = SentenceShape(
        frames=frames,
        words=words,
        most_words=most_words(frames),
        bits=BITS[-1],
        fraction=COARSEST,
        **drawn.shape,
        **common,
    )
    why: RangeError | None = None
    for size in BITS if bits is None else (bits,):
        try:
            found = SentenceArrays(replace(shape, bits=size), *drawn.arrays)
        except RangeError as refused:
            why = refused
            continue
        finest = size - 1 - math.ceil(math.log2(found.most_apart))
        for fraction in range(min(FINEST, finest), COARSEST, -1):
            with suppress(RangeError):
                return SentenceArrays(replace(shape, bits=size, fraction=fraction), *drawn.arrays)
        return found
    raise RangeError(
        f"{why}; here: normalize features (cmvn utterance or public), raise the models' variance floor, or serve with "
        "more bits (--sentences bits=…)"
    )


def at_length(arrays: SentenceArrays, frames: int) -> SentenceArrays:
    """The same for utterances of up to so many frames, not more than those it was made for."""
    shape = shape_at_length(arrays.shape, frames)
    return SentenceArrays(shape, arrays.weights, arrays.arcs, arrays.starts)


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
            "columns": tuple(columns),
            "arcs": tuple(arc for arc, _ in arcs),
            "starts": tuple((vertex, word) for vertex, (_, word) in begun.items()),
            "end": graph.end,
        }
        starts = [max(nats, RAREST) - staying[vertex] for vertex, (nats, _) in begun.items()]
        self.arrays = scores, np.array([nats for _, nats in arcs]), np.array(starts)


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
