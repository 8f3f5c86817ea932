"""Templates and alignments, encrypted: the same labels and frames as in the clear."""

from typing import Any

import numpy as np
import pytest
import torch

from ppspeech.models.decoding.alignment import align, similarities, warp
from ppspeech.network import run_together
from ppspeech.protocols import Party
from ppspeech.protocols.search import warping
from ppspeech.protocols.search.warping import Templates, WarpShape


def made_templates(shape: WarpShape, seed: int = 0) -> Templates:
    rng = np.random.default_rng(seed)
    frames = np.cumsum(rng.normal(size=(shape.templates, shape.length, shape.dimensions)), axis=1)
    return Templates(shape, frames, tuple(f"name {number // 2}" for number in range(shape.templates)))


def clear_scores(own: Templates, utterance: Any) -> torch.Tensor:
    heard = torch.tensor(own.shape.clipped(utterance))
    return warp(similarities(heard, torch.tensor(own.frames)), own.shape.band)


@pytest.mark.parametrize(
    "sizes", [{}, {"band": 11}, {"band": 0}, {"templates": 1}, {"templates": 9, "length": 7}, {"radius": 40.0}], ids=str
)
def test_the_client_learns_the_label_of_the_nearest_template(sizes: dict[str, Any]) -> None:
    shape = WarpShape(**{"length": 12, "dimensions": 5, "templates": 6, "band": 3, "radius": 9.0} | sizes)
    own = made_templates(shape)
    params = shape.to_params()
    for seed in range(2):
        rng = np.random.default_rng(seed)
        utterance = own.frames[-1 - seed % shape.templates] + rng.normal(size=own.frames.shape[1:])
        told = run_together(
            lambda c, u=utterance: warping.client(Party("client", {"server": c}), u.tolist(), shape=params),
            lambda c: warping.server(
                Party("server", {"client": c}), own.frames.tolist(), list(own.labels), shape=params
            ),
        )
        assert told == (own.labels[int(clear_scores(own, utterance).argmax())], None)


@pytest.mark.parametrize("alike", [True, False])
def test_the_client_learns_where_rows_of_an_utterance_begin(alike: bool) -> None:
    shape = WarpShape(12, 5, 1, band=4, radius=9.0, fraction=6, anchors=(3, 6, 11))
    rng = np.random.default_rng(5)
    there = np.cumsum(rng.normal(size=(12, 5)), axis=0)
    here = np.repeat(there, 2, axis=0)[3:15] + 0.3 * rng.normal(size=(12, 5))
    best = align(torch.tensor(shape.clipped(there)), torch.tensor(shape.clipped(here)), shape.band)
    begins = tuple(min(j for i, j in best.pairs if i == row) for row in shape.anchors)
    params, threshold = shape.to_params(), best.score + (-1.0 if alike else 1.0)
    told = run_together(
        lambda c: warping.align_client(Party("client", {"server": c}), here.tolist(), shape=params),
        lambda c: warping.align_server(Party("server", {"client": c}), there.tolist(), threshold, shape=params),
    )
    assert told == (begins if alike else None, None)
