"""Keywords and recordings that are made up, and what is found in them in the clear."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ppspeech.arrays import Reals
from ppspeech.models.decoding.spotting import Segments, best_average, best_of_blocks, best_segments, in_blocks
from ppspeech.protocols.scores.monomials import monomials_of
from ppspeech.protocols.search import Found, Keywords, Recordings, SpotShape
from ppspeech.protocols.search.shape import BEYOND


def made_shape(**sizes: Any) -> SpotShape:
    given: dict[str, Any] = {
        "frames": 70, "dimensions": 4, "terms": "diagonal", "states": (3,), "block": 20, "longest": 16,
        "limit": 4.0, "radius": 5.0, "scores": (-300, 10), "garbage": (-60, 10), "constant": 100, "fraction": 5,
    }  # fmt: skip
    return SpotShape(**given | sizes)


def made_keywords(shape: SpotShape, seed: int = 0, threshold: float = 0.0) -> Keywords:
    rng = np.random.default_rng(seed)
    size = (shape.keywords, shape.columns)
    stays, rest = np.log(np.full(size, 0.6)), (np.full(shape.keywords, 0.5), np.full(shape.keywords, threshold))
    if shape.terms == "linear":
        rows = np.eye(shape.dimensions)[rng.integers(shape.dimensions, size=size)]
        return Keywords.of_units(shape, rows, stays, *rest)
    means, variances = rng.normal(size=(*size, shape.dimensions)), np.full((*size, shape.dimensions), 0.3)
    spread = variances if shape.terms == "diagonal" else variances[..., None] * np.eye(shape.dimensions)
    return Keywords.of_gaussians(shape, means, spread, stays, *rest)


def made_recordings(shape: SpotShape, keywords: Keywords, seed: int = 0, said: bool = True) -> Recordings:
    """Noise; where something is said, the means of each keyword's states in the middle of every other recording."""
    rng = np.random.default_rng(seed)
    frames, garbage = [], []
    for number in range(shape.recordings):
        heard = 1.5 * rng.normal(size=(shape.frames - 3 * number, shape.dimensions))
        if said and shape.terms == "diagonal" and number % 2 == 0:
            squares, linear = keywords.weights[..., : shape.dimensions], keywords.weights[..., shape.dimensions : -1]
            means = (-linear / (2 * squares))[0]
            at = 5 + 20 * number
            heard[at : at + 3 * shape.columns] = np.repeat(means, 3, axis=0)
        frames.append(heard)
        units = shape.terms == "linear"
        garbage.append(np.full(len(heard), 1.2) if units else -(heard**2).sum(axis=1) / 4 - 3.0)
    return Recordings(shape, frames, garbage)


def clear_ratios(keywords: Keywords, recordings: Recordings) -> Reals:
    """`(keywords, recordings, frames, states)`."""
    shape = keywords.shape
    found = np.full((shape.keywords, shape.recordings, shape.frames, shape.columns), float(BEYOND))
    for number, (heard, scored) in enumerate(zip(recordings.frames, recordings.garbage, strict=True)):
        monomials = monomials_of(shape.clipped(heard), shape.terms)
        ratio = np.einsum("ksm,tm->kts", keywords.weights, monomials) - np.clip(scored, *shape.garbage)[:, None]
        found[:, number, : len(heard)] = ratio
    return found


def clear_segments(keywords: Keywords, recordings: Recordings) -> Segments:
    shape, scores = keywords.shape, torch.tensor(clear_ratios(keywords, recordings))
    if shape.passes:
        constant = torch.tensor(keywords.constants)[:, None]
        return best_average(scores, shape.block, shape.longest, constant, shape.passes)
    found = best_of_blocks(best_segments(in_blocks(scores, shape.block, shape.longest), shape.states), shape.block)
    return replace(found, score=found.score + torch.tensor(keywords.constants)[:, None])


def clear_answers(keywords: Keywords, recordings: Recordings) -> list[list[Found | None]]:
    found = clear_segments(keywords, recordings)
    present = found.score >= torch.tensor(keywords.thresholds)[:, None]
    return [
        [
            Found(tuple(found.starts[k, r].tolist()), int(found.end[k, r])) if present[k, r] else None
            for r in range(keywords.shape.recordings)
        ]
        for k in range(keywords.shape.keywords)
    ]


def plain_keywords(keywords: Keywords) -> dict[str, Any]:
    return {name: getattr(keywords, name).tolist() for name in ("weights", "constants", "thresholds")}


def plain_recordings(recordings: Recordings) -> dict[str, Any]:
    return {name: [each.tolist() for each in getattr(recordings, name)] for name in ("frames", "garbage")}
