"""Sentences whose states a network scores: as in the clear, to the client; sizes alone, to the server."""

import importlib
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ppspeech.crypto import Kind, Ring
from ppspeech.crypto.shares import ShareEngine
from ppspeech.crypto.shares.engine import HEADER
from ppspeech.crypto.transfer import Side
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.network import memory_pair, run_together
from ppspeech.protocols import Party
from ppspeech.protocols.networks import NetworkArrays, tell
from ppspeech.protocols.sentences import (
    SentenceArrays,
    SentenceShape,
    fits_garbled,
    products_of,
    sentence_rounds,
    shares_cost,
    streamed,
    total_bytes,
    transcribe,
)
from tests.protocols.network_reference import plain_network
from tests.protocols.sentence_reference import hear, network_arrays, sure
from tests.protocols.test_networks import looks_uniform
from tests.protocols.test_sentence import converse

protocol = importlib.import_module("ppspeech.protocols.sentences.transcribe")  # its door offers the function


@pytest.mark.parametrize("seed", range(2))
def test_words_and_times_are_those_in_the_clear(seed: int) -> None:
    arrays = network_arrays(seed)
    said = [sure(arrays, frames, seed) for frames in (17, 9, 2)]
    found, _ = converse(arrays, *said)
    assert found == [hear(arrays, frames) for frames in said]


def test_scores_on_shares_are_those_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loud frames too: both shares add up to the network's outputs in the ring of the trellis, and each is uniform."""
    arrays = network_arrays(scale=6.0)
    shape, kept = arrays.shape, {}
    shares_cost(shape)  # is recorded before anyone watches
    follow = protocol.follow_words

    def watched(engine: ShareEngine, shape: SentenceShape, own: Any, scores: np.ndarray, frames: Any) -> Any:
        kept[engine.party] = np.concatenate((kept.get(engine.party, scores[:0]), scores))
        return follow(engine, shape, own, scores, frames)

    monkeypatch.setattr(protocol, "follow_words", watched)
    said = [40 * sure(arrays, 24, seed) for seed in range(6)]
    converse(arrays, *said)
    ring = Ring(shape.bits)
    found = np.ldexp(ring.to_signed(ring.join(kept[Side.FIRST], kept[Side.SECOND])).astype(float), -shape.fraction)
    assert arrays.network is not None
    wanted = np.concatenate([arrays.network.scores(shape.factor(each)) for each in said])
    assert np.abs(found - wanted).max() < 0.5
    assert np.abs(wanted).max() > 20
    low, high = arrays.network.bounds
    assert (low < wanted).all()
    assert (wanted < high).all()
    for share in kept.values():
        assert looks_uniform(share, shape.bits)


def test_the_server_sees_the_same_sizes_whatever_is_said_and_the_plan_says_them() -> None:
    arrays = network_arrays()
    _, records = converse(arrays, sure(arrays, 24), sure(arrays, 3), np.zeros((9, 2)))
    shapes = [[(e.direction, e.kind, e.size) for e in record.entries] for record in records]
    assert shapes[0] == shapes[1] == shapes[2]
    plans, shares = products_of(arrays.shape), shares_cost(arrays.shape)
    assert len(plans) == 3
    for record in records:
        assert record.bytes_up == sum(plan.job.query_bytes for plan in plans) + shares.bytes_second
        assert record.bytes_down == sum(plan.job.reply_bytes for plan in plans) + shares.bytes_first
        assert record.rounds == sentence_rounds(arrays.shape)
    assert total_bytes(arrays.shape) == sum(plan.total_bytes for plan in plans) + shares.total_bytes


def test_a_client_is_opened_one_record_a_word_and_nothing_else() -> None:
    arrays = network_arrays()
    _, (record,) = converse(arrays, sure(arrays, 9))
    opened = []
    for entry in record.entries:
        data, at = entry.payload or b"", 0
        while entry.kind == Kind.FLIGHT and at < len(data):
            kind, size = HEADER.unpack_from(data, at)
            if kind == Kind.OPEN:
                opened.append((entry.direction, size))
            at += HEADER.size + size
    assert opened == [("received", -(-sum(arrays.shape.fields) // 8))] * arrays.shape.most_words


def test_a_shape_survives_the_wire_and_runs_as_a_party() -> None:
    arrays = network_arrays()
    plain = json.loads(json.dumps(arrays.shape.to_params()))
    assert SentenceShape.from_params(plain) == arrays.shape
    said, ends = sure(arrays, 8), memory_pair()
    assert arrays.network is not None
    models = {"arcs": arrays.arcs.tolist(), "starts": arrays.starts.tolist(), "network": plain_network(arrays.network)}
    heard, _ = run_together(
        lambda c: protocol.client(Party("client", {"server": c}), said.tolist(), shape=plain),
        lambda c: protocol.server(Party("server", {"client": c}), models, shape=plain),
        ends,
    )
    assert heard == [(each.word, each.start, each.end) for each in hear(arrays, said)]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"network": {"output": "labels"}}, "gives scores"),
        ({"network": {"frames": 27}}, "needs frames 28"),
        ({"network": {"dimensions": 3}}, "needs dimensions 2"),
        ({"network": {"radius": 11.0}}, "needs radius 12"),
        ({"network": {"fraction": 99}}, "fraction must lie"),
        ({"network": {"nonsense": 1}}, "not the shape of networks"),
        ({"frames": 23}, "needs frames 27"),
        ({"bits": 19}, "16 bits before the point"),
        ({"fraction": 9, "bits": 27}, "9 or more after it"),
        ({"network": 3}, "gives scores"),
    ],
    ids=str,
)
def test_shapes_that_are_none_are_refused(change: dict[str, Any], why: str) -> None:
    plain = network_arrays().shape.to_params()
    if isinstance(change.get("network"), dict):
        change = {"network": plain["network"] | change["network"]}
    with pytest.raises(RangeError, match=why):
        SentenceShape.from_params(plain | change)


@pytest.mark.parametrize(
    ("frames", "why"),
    [
        (np.zeros((1, 2)), "2 to 24 frames here, got 1"),
        (np.zeros((25, 2)), "2 to 24 frames here, got 25"),
        (np.zeros((5, 3)), "frames must be"),
        (np.full((5, 2), np.nan), "finite"),
    ],
)
def test_what_cannot_be_scored_is_refused_before_anything_is_sent(frames: np.ndarray, why: str) -> None:
    with pytest.raises(RangeError, match=why):
        transcribe(None, network_arrays().shape, frames)  # type: ignore[arg-type]


def test_models_are_refused_whose_scores_the_shares_cannot_hold() -> None:
    arrays = network_arrays()
    shape, own = arrays.shape, arrays.network
    assert own is not None
    with pytest.raises(RangeError, match="nats apart, and 21 bits"):
        network_arrays(scale=400.0)
    with pytest.raises(PpspeechError, match="told to have"):
        SentenceArrays(shape, arrays.weights, arrays.arcs, arrays.starts)
    other = NetworkArrays(replace(own.shape, fraction=8), own.matrices, own.biases, ())
    with pytest.raises(PpspeechError, match="told to have"):
        SentenceArrays(shape, arrays.weights, arrays.arcs, arrays.starts, other)


def test_no_path_is_further_apart_than_is_proved() -> None:
    """Of many utterances, as loud as can be: tokens of any two states."""
    arrays = network_arrays(scale=6.0)
    assert arrays.network is not None
    rng, most = np.random.default_rng(0), 0.0
    for _ in range(50):
        said = rng.normal(size=(24, 2)) * 10 ** rng.uniform(-1, 2)
        scores = arrays.network.scores(arrays.shape.factor(said))
        most = max(most, float((scores.max(axis=1) - scores.min(axis=1)).max()))
    low, high = arrays.network.bounds
    assert most < high.max() - low.min() < arrays.most_apart < arrays.shape.scale.bound
    assert most > 0.05 * (high.max() - low.min())


def test_other_ways_are_refused() -> None:
    shape = network_arrays().shape
    assert not fits_garbled(shape, 1 << 40)
    with pytest.raises(RangeError, match="whole sentence"):
        streamed(shape)
    assert shape.network is not None
    with pytest.raises(RangeError, match="stay on shares"):
        tell(None, shape.network, np.zeros((1, 1), np.uint64), None)  # type: ignore[arg-type]
