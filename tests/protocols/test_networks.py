"""Networks on shares: the values of the clear, the labels of the clear, and nothing else to anybody."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from ppspeech.crypto import Kind as CryptoKind
from ppspeech.crypto import Ring
from ppspeech.crypto.shares import Shared, ShareEngine, read_text
from ppspeech.crypto.transfer import Side
from ppspeech.errors import ModelError, PpspeechError, ProtocolError, RangeError
from ppspeech.network import Transcript, memory_pair, run_together
from ppspeech.protocols import Kind, Party, meet_as_client, meet_as_server
from ppspeech.protocols.networks import (
    Layer,
    NetworkArrays,
    NetworkShape,
    activate,
    answer_network,
    fit_network,
    lines_of,
    network,
    network_cost,
    network_rounds,
    prepare_network,
    product_bytes,
    tell,
)
from ppspeech.protocols.networks.range import ranges
from tests.crypto.pairs import together
from tests.protocols.network_reference import DEEP, MLP, TDNN, collapsed, evaluate, made_network, plain_network

MEETING = {Kind.LATTICE_KEY, CryptoKind.BASE_POINT, CryptoKind.BASE_REPLY, CryptoKind.BASE_COLUMNS, CryptoKind.RESUME}
SHAPES = {
    "mlp": NetworkShape(12, 5, MLP, radius=4.0),
    "tdnn": NetworkShape(24, 5, TDNN, "labels", radius=4.0),
    "deep": NetworkShape(24, 5, DEEP, radius=4.0),
    "one layer": NetworkShape(3, 4, (Layer(2, activation="none"),), "labels", radius=9.0, fraction=10),
}


def spoken(shape: NetworkShape, seed: int = 1, frames: int | None = None) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(frames or shape.frames, shape.dimensions))


@pytest.mark.parametrize("name", SHAPES)
def test_values_and_labels_are_those_of_the_clear(name: str) -> None:
    own = made_network(SHAPES[name])
    for seed, frames in ((1, own.shape.frames), (2, 1)):
        utterance = spoken(own.shape, seed, frames)
        found, told = evaluate(own, utterance)
        wanted = own.scores(own.shape.clipped(utterance))
        assert np.abs(found - wanted).max() < 0.1
        best = found.argmax(axis=1).tolist()
        said = collapsed(own, best) if own.shape.output == "labels" else [own.labels[best[0]]]
        assert told == said


def test_greedy_labels_collapse_repetitions_and_blanks() -> None:
    """A network whose frames say for themselves what they are: blanks, repetitions, and one label after another."""
    shape = NetworkShape(9, 4, (Layer(4, activation="none"),), "labels", radius=4.0)
    own = fit_network(shape, (4 * np.eye(4),), (np.zeros(4),), ("", "a", "b", "c"))
    frames = np.eye(4)[[1, 1, 0, 1, 2, 2, 3, 0, 0]]
    assert evaluate(own, frames)[1] == ["a", None, None, "a", "b", None, "c", None, None]


def test_layers_are_those_of_torch() -> None:
    """Windows with strides and dilations, pools and activations, against convolutions."""
    torch.manual_seed(0)
    layers = (
        Layer(6, width=3, stride=2, activation="relu", pool="max", pool_width=2),
        Layer(5, width=2, dilation=3, activation="relu", pool="mean", pool_width=2),
        Layer(3, activation="none"),
    )
    shape = NetworkShape(40, 4, layers, "labels", radius=5.0)
    own = made_network(shape, seed=5)
    frames = shape.clipped(spoken(shape))
    values = torch.tensor(frames).T.unsqueeze(0)
    for number, (layer, matrix, bias) in enumerate(zip(layers, own.matrices, own.biases, strict=True)):
        inputs = shape.inner(number) // layer.width
        weight = torch.tensor(matrix).reshape(layer.width, inputs, layer.outputs).permute(2, 1, 0)
        convolved = torch.nn.functional.conv1d(
            values, weight, torch.tensor(bias), stride=layer.stride, dilation=layer.dilation
        )
        values = convolved.relu() if layer.activation == "relu" else convolved
        if layer.pool == "max":
            values = torch.nn.functional.max_pool1d(values, layer.pool_width)
        elif layer.pool == "mean":
            values = torch.nn.functional.avg_pool1d(values, layer.pool_width)
    wanted = values[0].T.numpy()
    assert np.allclose(own.scores(frames), wanted)
    assert np.abs(evaluate(own, frames)[0] - wanted).max() < 0.1


@pytest.mark.parametrize(("activation", "error"), [("relu", 0.0), ("sigmoid", 0.01), ("gelu", 0.015)])
def test_lines_are_near_what_they_stand_for(activation: Any, error: float) -> None:
    lines = lines_of(activation)
    assert lines is not None
    x = np.linspace(-30, 30, 50_001)
    clear = {"relu": torch.relu, "sigmoid": torch.sigmoid, "gelu": torch.nn.functional.gelu}[activation]
    apart = np.abs(lines(x) - clear(torch.tensor(x)).numpy()).max()
    assert apart <= max(lines.error * 1.001, 1e-12)
    assert lines.error <= error
    ring, signs, fraction = Ring(22), Ring(15), 8
    values = np.random.default_rng(0).integers(-(2**13), 2**13, 300)
    shares = ring.share(ring.from_signed(values))
    one, other, *_ = together(lambda e, p: lines.of_shares(Shared(e, shares[p], ring), signs, fraction).residues)
    left = Ring(22 - lines.fraction)
    assert np.abs(left.to_signed(left.join(one, other)) - lines(values / 256.0) * 256).max() <= 1


# Ranges.


@pytest.mark.parametrize("name", SHAPES)
def test_no_value_comes_near_the_end_of_its_range(name: str) -> None:
    """For many frames, the longest there are among them, in all layers; and ranges are not far too wide."""
    own = made_network(SHAPES[name], seed=3)
    rng, shape = np.random.default_rng(4), own.shape
    reached = np.zeros(len(shape.layers))
    for _ in range(50):
        values = shape.clipped(100 * rng.normal(size=(shape.frames, shape.dimensions)))
        for number, (layer, matrix, bias) in enumerate(zip(shape.layers, own.matrices, own.biases, strict=True)):
            values = layer.windows(values) @ matrix + bias
            furthest = 0.0 if layer.lines is None else layer.lines.furthest
            reached[number] = max(reached[number], np.abs(values).max() + furthest)
            values = values if layer.lines is None else layer.lines(values)
            values = values[: len(values) // layer.pool_width * layer.pool_width]
            values = values.reshape(-1, layer.pool_width, layer.outputs)
            values = values.max(axis=1) if layer.pool == "max" else values.mean(axis=1)
    bounds = 2.0 ** np.array([layer.range_bits - 1 for layer in shape.layers])
    assert (reached < bounds).all()
    assert reached[0] > bounds[0] / 8


def test_values_at_the_ends_of_the_range_are_right() -> None:
    """One direction, followed as far as frames go: nearly all of the range is used, in every layer."""
    layers = (Layer(2), Layer(2, activation="none"))
    shape = NetworkShape(4, 2, layers, "labels", radius=15.0)
    weights = np.array([[1.05, 0.0], [0.0, 1.05]]), np.array([[2.0, -2.0], [-2.0, 2.0]])
    own = fit_network(shape, weights, (np.zeros(2), np.zeros(2)), ("", "a"))
    frames = np.array([[40.0, 0.0], [0.0, 40.0], [-40.0, 0.0], [0.3, 0.2]])
    found, told = evaluate(own, frames)
    wanted = own.scores(own.shape.clipped(frames))
    assert np.abs(wanted).max() > 30
    assert np.abs(found - wanted).max() < 0.1
    assert told == [None, "a", None, None]


@pytest.mark.parametrize(("scale", "said"), [(300.0, "can reach"), (1e6, "can reach"), (np.nan, "not finite")], ids=str)
def test_networks_that_fit_in_no_ring_are_refused(scale: float, said: str) -> None:
    with pytest.raises((RangeError, ModelError), match=said):
        made_network(SHAPES["deep"], scale=scale)


def test_a_network_beyond_its_shape_is_refused() -> None:
    own = made_network(SHAPES["mlp"])
    assert [layer.range_bits for layer in own.shape.layers] == ranges(own)
    with pytest.raises(RangeError, match="find its ranges"):
        NetworkArrays(own.shape, tuple(4 * each for each in own.matrices), own.biases, own.labels)


# What is refused.


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"frames": 0}, "frames must lie in"),
        ({"frames": 2}, "nothing comes out"),
        ({"dimensions": True}, "dimensions must lie in"),
        ({"radius": 0.0}, "radius must lie in"),
        ({"fraction": 3}, "fraction must lie in"),
        ({"output": "logits"}, "an output is one of"),
        ({"layers": []}, "1 to 32 layers"),
        ({"layers": [{"outputs": 3}]}, "no activation"),
        ({"layers": [{"outputs": 3, "activation": "tanh"}]}, "activations are"),
        ({"layers": [{"outputs": 3, "activation": "none", "pool": "mean"}]}, "two frames or more"),
        ({"layers": [{"outputs": 3, "activation": "none", "more": 1}]}, "not the shape"),
        ({"layers": [{"outputs": 3, "activation": "none"}], "output": "word"}, "one frame in the end"),
        ({"layers": [{"outputs": 4096, "activation": "none"}], "frames": 2000}, "values at once"),
        ({"more": 1}, "not the shape"),
    ],
    ids=str,
)
def test_shapes_that_nobody_agrees_to_are_refused(changed: dict[str, Any], said: str) -> None:
    plain = SHAPES["tdnn"].to_params()
    assert NetworkShape.from_params(plain) == SHAPES["tdnn"]
    with pytest.raises(RangeError, match=said):
        NetworkShape.from_params(plain | changed)


def test_what_does_not_fit_is_refused_before_anything_is_sent() -> None:
    own, nobody = made_network(SHAPES["mlp"]), memory_pair()[0]
    params, plain = own.shape.to_params(), plain_network(own)
    asking, answering = Party("client", {"server": nobody}), Party("server", {"client": nobody})
    for utterance, said in (
        (np.zeros((13, 5)), "1 to 12 frames"),
        (np.zeros((0, 5)), "5 numbers"),
        (np.zeros((3, 4)), "5 numbers"),
        (np.full((3, 5), np.inf), "finite"),
    ):
        with pytest.raises(RangeError, match=said):
            network.client(asking, utterance.tolist(), shape=params)
    for changed, said in (
        ({"labels": ["a"]}, "as many labels"),
        ({"biases": plain["biases"][:2]}, "as many matrices"),
        ({"matrices": [*plain["matrices"][:2], [[1.0]]]}, "has a matrix"),
        ({"matrices": "no"}, "no network"),
    ):
        with pytest.raises(PpspeechError, match=said):
            network.server(answering, plain | changed, shape=params)
    with pytest.raises(PpspeechError, match="missing"):
        network.server(answering, {}, shape=params)


# Who learns what.


def recorded(own: NetworkArrays, utterance: np.ndarray) -> Transcript:
    """The client's transcript of its whole program."""
    ends, params, plain = memory_pair(), own.shape.to_params(), plain_network(own)
    record = Transcript(ends[0], keep_payloads=True)
    run_together(
        lambda _: network.client(Party("client", {"server": record}), utterance.tolist(), shape=params),
        lambda c: network.server(Party("server", {"client": c}), plain, shape=params),
        ends,
    )
    return record


@pytest.mark.parametrize("name", ["mlp", "tdnn"])
def test_lengths_depend_on_public_sizes_alone_and_are_those_of_the_record(name: str) -> None:
    own = made_network(SHAPES[name])
    other = NetworkArrays(own.shape, tuple(each / 9 for each in own.matrices), own.biases, own.labels)
    shapes = [
        recorded(each, spoken(own.shape, seed, frames)).shape()
        for each, seed, frames in ((own, 1, own.shape.frames), (other, 2, 3))
    ]
    assert shapes[0] == shapes[1]
    total = sum(size for _, kind, size in shapes[0] if kind not in MEETING)
    assert total == product_bytes(own.shape) + network_cost(own.shape).total_bytes
    assert network_rounds(own.shape) == len(own.shape.layers) + network_cost(own.shape).rounds


def looks_uniform(residues: np.ndarray, bits: int) -> bool:
    """Chi-square of the highest six bits, at 1e-8."""
    counts = np.bincount((residues >> np.uint64(bits - 6)).astype(np.int64).ravel(), minlength=64)
    return bool(stats.chisquare(counts).pvalue > 1e-8)


def shares_of(own: NetworkArrays, frames: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The server's and the client's shares of every layer's pre-activations, as they follow the protocol."""
    shape, kept = own.shape, {}
    network_cost(shape)  # is recorded before anyone watches

    def watched(engine: ShareEngine, shape: NetworkShape, number: int, share: np.ndarray) -> np.ndarray:
        kept[number, engine.party] = Ring(shape.rings.results[number]).reduce(share)
        return activate(engine, shape, number, share)

    monkeypatch.setattr(network, "activate", watched)
    evaluate(own, frames)
    return [(kept[number, Side.FIRST], kept[number, Side.SECOND]) for number in range(len(shape.layers))]


def test_each_partys_share_of_every_pre_activation_is_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though both add up to a few values: a client that reads its shares reads nothing of the weights."""
    shape = NetworkShape(60, 4, (Layer(40), Layer(40), Layer(8, activation="none")), "labels", radius=4.0)
    own = made_network(shape)
    for number, (server, client) in enumerate(shares_of(own, np.tile(spoken(shape)[:1], (60, 1)), monkeypatch)):
        ring = Ring(own.shape.rings.results[number])
        joined = ring.to_signed(ring.join(server, client))
        assert np.ptp(joined, axis=0).max() < 40  # all frames are alike, but for rounding
        assert looks_uniform(server, ring.bits)
        assert looks_uniform(client, ring.bits)


def test_a_client_is_told_no_more_than_places_of_labels() -> None:
    """Whatever it sends into layers: what is opened to it are texts of the server's, or none."""
    own = made_network(SHAPES["tdnn"])
    shape = own.shape

    def cheat(channel: Any) -> list[str | None]:
        rng, met = np.random.default_rng(3), meet_as_client(channel)
        with met.session():
            engine = prepare_network(met, shape)
            for number in range(len(shape.layers)):
                limit = shape.precision(number).limit
                wild = rng.uniform(-limit, limit, size=(shape.rows(number), shape.inner(number)))
                share = activate(engine, shape, number, met.multiply(shape.product(number), wild))
            told = tell(engine, shape, share, None)
        assert told is not None
        return [read_text(each) for each in told]

    def serve(channel: Any) -> None:
        met = meet_as_server(channel)
        with met.session():
            answer_network(met, own)

    told, _ = run_together(cheat, serve)
    assert set(told) <= {None, *own.labels[1:]}
    assert len(told) == shape.told
    assert shape.answer_bits == shape.told * 2


@pytest.mark.parametrize("kind", [Kind.QUERY, CryptoKind.FLIGHT])
def test_a_client_that_sends_other_bytes_is_refused(kind: int) -> None:
    """A ciphertext or a flight of another length ends the session, and nothing is told."""
    own = made_network(SHAPES["mlp"])
    params, plain = own.shape.to_params(), plain_network(own)

    class Liar(Transcript):
        done = False

        def send(self, number: int, payload: Any) -> None:
            if number == kind and not self.done:
                self.done = True
                payload = bytes(payload)[:-1]
            super().send(number, payload)

    ends = memory_pair()
    with pytest.raises(ProtocolError):
        run_together(
            lambda _: network.client(
                Party("client", {"server": Liar(ends[0])}), spoken(own.shape).tolist(), shape=params
            ),
            lambda c: network.server(Party("server", {"client": c}), plain, shape=params),
            ends,
        )


def test_a_server_of_no_label_is_noticed_at_the_end() -> None:
    own = made_network(SHAPES["mlp"])
    empty = replace(own)
    object.__setattr__(empty, "texts", np.zeros_like(own.texts))

    def ask(channel: Any) -> Any:
        party, params = Party("client", {"server": channel}), own.shape.to_params()
        return network.client(party, spoken(own.shape).tolist(), shape=params)

    def serve(channel: Any) -> None:
        met = meet_as_server(channel)
        with met.session():
            answer_network(met, empty)

    with pytest.raises(ProtocolError, match="no label"):
        run_together(ask, serve)
