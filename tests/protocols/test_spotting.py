"""Keywords in recordings, encrypted: the same segments as in the clear, and nothing else leaves."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ppspeech.arrays import Reals
from ppspeech.channel import Channel
from ppspeech.crypto import Kind as CryptoKind
from ppspeech.crypto.transfer import Side
from ppspeech.errors import PpspeechError, ProtocolError, RangeError
from ppspeech.models.decoding.spotting import Segments, best_average, best_of_blocks, best_segments, in_blocks
from ppspeech.network import Transcript, memory_pair, run_together
from ppspeech.protocols import Kind, Party
from ppspeech.protocols.meeting import meet_as_client, meet_as_server
from ppspeech.protocols.scores.monomials import gaussian_weights, monomials_of
from ppspeech.protocols.search import Found, Keywords, Recordings, SpotShape, answer, ask, encode, spotting_cost
from ppspeech.protocols.search import spotting as programs
from ppspeech.protocols.search.shape import BEYOND
from ppspeech.protocols.trellis import plan_trellis, walk

MEETING = {Kind.LATTICE_KEY, CryptoKind.BASE_POINT, CryptoKind.BASE_REPLY, CryptoKind.BASE_COLUMNS, CryptoKind.RESUME}


def made_shape(**sizes: Any) -> SpotShape:
    given: dict[str, Any] = {
        "frames": 70, "dimensions": 4, "terms": "diagonal", "states": (3,), "block": 20, "longest": 16,
        "limit": 4.0, "radius": 5.0, "scores": (-300, 10), "garbage": (-60, 10), "constant": 100, "fraction": 5,
    }  # fmt: skip
    return SpotShape(**given | sizes)


def made_keywords(shape: SpotShape, seed: int = 0, threshold: float = 0.0) -> Keywords:
    rng = np.random.default_rng(seed)
    size = (shape.keywords, shape.columns)
    if shape.terms == "linear":
        weights = np.zeros((*size, shape.monomials))
        weights[..., : shape.dimensions] = np.eye(shape.dimensions)[rng.integers(shape.dimensions, size=size)]
        weights[..., -1] = np.log(0.6)
    else:
        means, variances = rng.normal(size=(*size, shape.dimensions)), np.full((*size, shape.dimensions), 0.3)
        spread = variances if shape.terms == "diagonal" else variances[..., None] * np.eye(shape.dimensions)
        weights = np.moveaxis(gaussian_weights(np.log(np.full(size, 0.6)), means, spread), 0, -1)
    return Keywords(shape, weights, rng.normal(size=shape.keywords), np.full(shape.keywords, threshold))


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


def encrypted_answers(keywords: Keywords, recordings: Recordings) -> list[list[Found | None]]:
    shape = keywords.shape
    mine, theirs = (keywords, recordings) if shape.holder == "server" else (recordings, keywords)

    def asking(channel: Channel) -> Any:
        met = meet_as_client(channel)
        with met.session():
            return ask(met, mine)

    def answering(channel: Channel) -> None:
        met = meet_as_server(channel)
        with met.session():
            answer(met, theirs, encode(theirs))

    return run_together(asking, answering)[0]


SHAPES: list[dict[str, Any]] = [
    {},
    {"holder": "client"},
    {"recordings": 3, "keywords": 2},
    {"recordings": 2, "keywords": 2, "holder": "client", "terms": "full", "scores": (-600, 10)},
    {"states": (2, 3), "recordings": 2},
    {"states": (2, 1, 2), "holder": "client"},
    {"frames": 20, "block": 30},
    {"passes": 4, "fraction": 8, "recordings": 2, "scores": (-300, 10)},
    {"passes": 3, "fraction": 8, "holder": "client"},
    {"terms": "linear", "dimensions": 6, "scores": (-30, 20), "recordings": 2},
    {"terms": "linear", "dimensions": 6, "scores": (-30, 20), "states": (2, 2), "holder": "client"},
]


@pytest.mark.parametrize("sizes", SHAPES, ids=str)
def test_the_client_learns_where_its_keywords_are(sizes: dict[str, Any]) -> None:
    shape = made_shape(**sizes)
    keywords = made_keywords(shape, seed=3)
    recordings = made_recordings(shape, keywords, seed=4)
    scores = np.sort(clear_segments(keywords, recordings).score.numpy().reshape(-1))
    widest = int(np.diff(scores).argmax()) if scores.size > 1 and np.diff(scores).max() > 1.0 else -1
    middle = scores[0] - 1.0 if widest < 0 else (scores[widest] + scores[widest + 1]) / 2
    decided = Keywords(shape, keywords.weights, keywords.constants, np.full(shape.keywords, middle))
    expected = clear_answers(decided, recordings)
    assert encrypted_answers(decided, recordings) == expected
    assert any(each is not None for row in expected for each in row)
