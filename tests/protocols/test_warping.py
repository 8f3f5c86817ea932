"""Templates and alignments, encrypted: the same labels and frames as in the clear."""

from typing import Any

import numpy as np
import pytest
import torch

from ppspeech.crypto import Kind as CryptoKind
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.models.decoding.alignment import align, similarities, warp
from ppspeech.network import Transcript, memory_pair, run_together
from ppspeech.protocols import Kind, Party
from ppspeech.protocols.search import warping
from ppspeech.protocols.search.warping import Templates, WarpShape, warping_cost

MEETING = {Kind.LATTICE_KEY, CryptoKind.BASE_POINT, CryptoKind.BASE_REPLY, CryptoKind.BASE_COLUMNS, CryptoKind.RESUME}


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


@pytest.mark.parametrize(("length", "radius"), [(8, 22.0), (24, 9.0), (5, 28.0)])
def test_templates_at_the_ends_of_the_range_are_told_apart(length: int, radius: float) -> None:
    """Opposite frames of the largest length: scores differ by nearly all that the ring holds."""
    shape = WarpShape(length, 3, 4, band=length, radius=radius)
    here = np.tile([2 * radius, 0.0, 0.0], (length, 1))  # shortened to the radius
    frames = np.stack([-here, 0.999 * here / 2, -here, 0 * here])
    used = 2 * length * radius**2 / 2.0 ** (shape.bits - 1 - shape.fraction)
    assert 0.85 < used < 1  # the range is used
    params, names = shape.to_params(), ["far", "near", "as far", "between"]
    for order in ([0, 1, 2, 3], [1, 0, 3, 2], [3, 2, 1, 0]):
        told, _ = run_together(
            lambda c: warping.client(Party("client", {"server": c}), here.tolist(), shape=params),
            lambda c, o=order: warping.server(
                Party("server", {"client": c}), frames[o].tolist(), [names[at] for at in o], shape=params
            ),
        )
        assert told == "near"


def recorded(shape: WarpShape, seed: int) -> Transcript:
    """The client's transcript, of utterances and labels by the seed."""
    rng, params = np.random.default_rng(seed), shape.to_params()
    here = rng.normal(size=(shape.length, shape.dimensions)).tolist()
    there = (9 * seed * rng.normal(size=(shape.templates, shape.length, shape.dimensions))).tolist()
    labels = [f"{'long ' * seed}{number}" for number in range(shape.templates)]
    ends = memory_pair()
    record = Transcript(ends[0], keep_payloads=True)
    asks, answers = warping.client, lambda party: warping.server(party, there, labels, shape=params)
    if shape.anchors:
        asks, answers = warping.align_client, lambda party: warping.align_server(party, there[0], -9.0, shape=params)
    run_together(
        lambda _: asks(Party("client", {"server": record}), here, shape=params),
        lambda c: answers(Party("server", {"client": c})),
        ends,
    )
    return record


@pytest.mark.parametrize("anchors", [(), (2, 5)], ids=["templates", "alignment"])
def test_lengths_depend_on_public_sizes_alone_and_are_those_of_the_record(anchors: tuple[int, ...]) -> None:
    shape = WarpShape(7, 4, 1 if anchors else 5, band=3, anchors=anchors, label_bytes=9)
    shapes = [recorded(shape, seed).shape() for seed in (0, 1)]
    assert shapes[0] == shapes[1]
    total = sum(size for _, kind, size in shapes[0] if kind not in MEETING)
    assert total == shape.product.total_bytes + warping_cost(shape).total_bytes


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"length": 1}, "length must lie in"),
        ({"templates": True}, "templates must lie in"),
        ({"templates": 10_000, "length": 200}, "fewer templates"),
        ({"radius": 0.0}, "radius must lie in"),
        ({"radius": 1_000.0, "fraction": 10, "length": 200, "templates": 2}, "more than 30 bits"),
        ({"fraction": 11}, "after the point"),
        ({"anchors": (3,)}, "of one template"),
        ({"anchors": (0,), "templates": 1}, "rows 1 to"),
        ({"anchors": (4, 3), "templates": 1}, "ascending"),
        ({"anchors": tuple(range(1, 24)), "templates": 1}, "to carry"),
        ({"label_bytes": 0}, "label_bytes must lie in"),
    ],
    ids=str,
)
def test_shapes_that_hold_no_proof_are_refused(changed: dict[str, Any], said: str) -> None:
    sizes: dict[str, Any] = {"length": 24, "dimensions": 5, "templates": 6}
    assert WarpShape.from_params(WarpShape(**sizes).to_params()) == WarpShape(**sizes)
    with pytest.raises(RangeError, match=said):
        WarpShape.from_params(sizes | changed)
    with pytest.raises(RangeError, match="not the shape"):
        WarpShape.from_params(sizes | {"more": 1})


def test_what_is_not_of_the_shape_is_refused_before_anything_is_sent() -> None:
    shape, nobody = WarpShape(4, 2, 3), memory_pair()[0]
    params, frames = shape.to_params(), np.zeros((3, 4, 2)).tolist()
    asking, answering = Party("client", {"server": nobody}), Party("server", {"client": nobody})
    with pytest.raises(RangeError, match="resampled to"):
        warping.client(asking, frames[0][:3], shape=params)
    with pytest.raises(RangeError, match="finite"):
        warping.client(asking, np.full((4, 2), np.nan).tolist(), shape=params)
    with pytest.raises(RangeError, match="an alignment tells of rows"):
        warping.align_client(asking, frames[0], shape=params)
    with pytest.raises(PpspeechError, match="3 templates"):
        warping.server(answering, frames[:2], ["a", "b"], shape=params)
    with pytest.raises(PpspeechError, match="as many labels"):
        warping.server(answering, frames, ["a", "b"], shape=params)
    with pytest.raises(PpspeechError, match="1 to 28 bytes"):
        warping.server(answering, frames, ["a", "b", "c" * 29], shape=params)
    one = WarpShape(4, 2, 1, anchors=(2,)).to_params()
    with pytest.raises(RangeError, match="threshold"):
        warping.align_server(answering, frames[0], 1.0, shape=one)
