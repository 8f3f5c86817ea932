"""From a graph of words and the Gaussians of its states to what an encrypted service of sentences computes with.

Nodes of a graph become junctions. What staying in a state costs goes with every frame's score there, so that what leads
to a state counts relative to it. The shares are the smallest that hold all differences for certain, for every voice
within the public radius (`ppspeech.protocols.trellis.range`), with a quarter of a nat or better as their step.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.errors import ModelError, RangeError
from ppspeech.models.decoding import LATER, NOTHING, Edge, WordGraph
from ppspeech.protocols.scores import Terms
from ppspeech.protocols.sentences import SentenceArrays, SentenceShape

RAREST = -100.0  # nats: what is rarer counts as this rare
BITS = (16, 19, 21, 25)
"""Sizes of shares worth having: between them, a smaller one costs as much as the next."""
COARSEST, FINEST = 2, 5  # bits after the point of a nat
WORD_FRAMES = 8  # of a word or silence, on average: more of them in an utterance are an error
STEP = 32
"""Utterances are padded to a multiple of so many frames, and that multiple is public."""


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Weights of the monomials of a frame, `(monomials, pdfs)`, for the columns that a graph speaks of."""

    weights: Reals
    terms: Terms
    dimensions: int
    limit: float
    radius: float


def usual_radius(dimensions: int) -> float:
    """The largest norm of a frame of features of unit deviation: 2.5 deviations in all directions at once."""
    return 2.5 * math.sqrt(dimensions)


def export_sentences(graph: WordGraph, scored: Scored, frames: int, bits: int | None = None) -> SentenceArrays:
    """A service for utterances of up to so many frames. Raises ModelError for a graph that backs off; RangeError where
    no shares, or not those of `bits`, hold the scores.
    """
    if graph.has_failures:
        raise ModelError("a back-off that excludes words cannot be served: take the graph's plain form")
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
    for size in BITS if bits is None else (bits,):
        try:
            found = SentenceArrays(replace(shape, bits=size), *drawn.arrays)
        except RangeError:
            continue
        finest = size - 1 - math.ceil(math.log2(found.most_apart))
        for fraction in range(min(FINEST, finest), COARSEST, -1):
            with suppress(RangeError):
                return SentenceArrays(replace(shape, bits=size, fraction=fraction), *drawn.arrays)
        return found
    raise RangeError(
        f"scores of these models can be further apart than shares of {bits or BITS[-1]} bits hold: normalize features "
        "(cmvn utterance or public), raise the models' variance floor, or serve with more --bits"
    )


def most_words(frames: int) -> int:
    """Words and silences of an utterance that a client may be told."""
    return 2 + -(-frames // WORD_FRAMES)


def at_length(arrays: SentenceArrays, frames: int) -> SentenceArrays:
    """The same for utterances of up to so many frames, not more than those it was made for."""
    shape = shape_at_length(arrays.shape, frames)
    return SentenceArrays(shape, arrays.weights, arrays.arcs, arrays.starts)


def shape_at_length(shape: SentenceShape, frames: int) -> SentenceShape:
    """What is public of that. Raises RangeError for more frames than are served, or another multiple."""
    if not 1 <= frames <= shape.frames or (frames % STEP and frames != shape.frames):
        raise RangeError(f"utterances are padded to a multiple of {STEP} frames up to {shape.frames}, got {frames}")
    return replace(shape, frames=frames, most_words=most_words(frames))


def padded_length(shape: SentenceShape, frames: int) -> int:
    """What an utterance of so many frames is padded to."""
    return min(shape.frames, max(1, -(-frames // STEP)) * STEP)


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
