"""Networks over TLS, in processes of their own: words as in the clear, sizes alone to the server."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ppspeech.bundle import Bundle, KeywordNetworkSettings
from ppspeech.errors import BundleError, ModelError, RangeError, WrongSessionError
from ppspeech.models import FrameLayer, FrameNetwork
from ppspeech.protocols.networks import network_cost, product_bytes
from ppspeech.service import BudgetSpentError, export_network, plan_network
from ppspeech.service.client import networks as client_module
from ppspeech.service.offer import describe, read_offers
from ppspeech.service.server.networks import ServedNetwork
from tests.service.conftest import Running, serving
from tests.service.voices import LABELS, RATE, WHOLE, released, voice

LAYERS = (FrameLayer(6, width=3, stride=2), FrameLayer(5, activation="gelu"))
NETWORK = KeywordNetworkSettings(frames=40, radius=6.0, layers=LAYERS)
POOLED = (FrameLayer(6, width=3, stride=2, pool="max", pool_width=2), FrameLayer(5, activation="sigmoid"))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return released(tmp_path_factory.mktemp("networks") / "net", NETWORK)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, bundle: Bundle, bundles: dict[str, Bundle]) -> Iterator[Running]:
    every = {"net": bundle, "whole": bundles["whole"]}
    with serving(tmp_path_factory.mktemp("server"), every, limit=12) as found:
        yield found


@pytest.mark.parametrize("layers", [LAYERS, POOLED, (), (FrameLayer(3, pool="mean", pool_width=7),)], ids=len)
@torch.no_grad()
def test_exported_networks_score_as_the_module(layers: tuple[FrameLayer, ...]) -> None:
    torch.manual_seed(1)
    module = FrameNetwork(3, 4, 30, 5.0, layers).double()
    own = export_network(module, LABELS)
    features = 3 * torch.randn(1, 22, 4, dtype=torch.float64)
    wanted = module(features, torch.tensor([22]))[0].numpy()
    found = own.scores(own.shape.clipped(features[0].numpy()))
    assert found.shape == (1, 3)
    assert np.abs(found[0] - wanted).max() < (1e-9 if layers != LAYERS and layers != POOLED else 0.05)


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(ModelError, match="no network on frames"):
        export_network(nn.Linear(2, 2), LABELS)
    module = FrameNetwork(3, 4, 30, 5.0, LAYERS)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter *= 1e5
    with pytest.raises(RangeError, match="can reach"):
        export_network(module, LABELS)


def test_words_are_those_of_the_clear(asked: Running, bundle: Bundle) -> None:
    sounds = [voice(seed) for seed in range(4)]
    shape = export_network(bundle.model, bundle.labels).shape
    with asked.connect("net") as client:
        answers = client.recognize_all(sounds, RATE)
        with client.stream(RATE) as listening:
            for piece in sounds[0].split(999):
                listening.feed(piece)
            spoken = listening.finish()
    clear = bundle.recognizer.recognize_all(sounds, RATE)
    sure = [(heard.value, answer.value) for heard, answer in zip(clear, answers, strict=True) if heard.margin > 0.1]
    assert len(sure) >= 3
    assert all(one == other for one, other in sure)
    assert spoken.value == answers[0].value
    total = product_bytes(shape) + network_cost(shape).total_bytes
    assert all(total <= answer.bytes_up + answer.bytes_down <= total + 200 for answer in answers)
    assert len({tuple(answer.transcript.shape()) for answer in answers}) == 1


def test_what_cannot_be_heard_is_refused_and_not_sent(asked: Running) -> None:
    with asked.connect("net") as client:
        left = client.queries_left
        with pytest.raises(RangeError, match="1 to 40 frames"):
            client.recognize(voice(1, 0.8), RATE)
        with pytest.raises(RangeError, match="order of its layers"):
            client.recognize_all([voice(1)], RATE, "garbled")
        with pytest.raises(ModelError, match="does not transcribe"):
            client.transcribe(voice(1), RATE)
        assert client.queries_left == left


def test_a_client_is_answered_so_often(asked: Running) -> None:
    with asked.connect("net") as client:
        while client.queries_left != 0:
            client.recognize(voice(0), RATE)
        with pytest.raises(BudgetSpentError):
            client.recognize(voice(0), RATE)


def test_the_command_line_task_of_words_takes_networks_too(asked: Running) -> None:
    with asked.connect("net", task="words") as client:
        assert client.offer.terms.TASK == "networks"


def test_offers_are_read_to_the_last_field(bundle: Bundle) -> None:
    served = ServedNetwork.of("net", bundle)
    said = describe((served.offer,))
    assert read_offers(said, "networks") == (served.offer,)
    for old, new in (
        (b'"output":"word"', b'"output":"labels"'),
        (b'"dimensions":4', b'"dimensions":5'),
        (b'"activation":"gelu"', b'"activation":"exp"'),
        (b'"range_bits":', b'"range_bits":9'),
    ):
        assert old in said
        with pytest.raises(WrongSessionError, match="cannot be used"):
            read_offers(said.replace(old, new, 1), "networks")
    with pytest.raises(BundleError, match="front end gives"):
        replace(served.offer.terms, mfcc=replace(WHOLE, cepstra=5))


def test_an_offer_that_is_too_dear_is_refused(asked: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MOST_BYTES", 1_000)
    with pytest.raises(WrongSessionError, match="would exchange"):
        asked.connect("net")


def test_the_plan_says_what_it_will_take(bundle: Bundle) -> None:
    plan = plan_network(bundle)
    shape = export_network(bundle.model, bundle.labels).shape
    (way,) = plan.modes
    assert way.cost.bytes_up + way.cost.bytes_down == product_bytes(shape) + network_cost(shape).total_bytes
    assert plan.details["knowledge"]["bits"] == 2
    assert plan.to_json()["shape"]["layers"][0]["outputs"] == 6


def test_a_bundle_is_read_back(bundle: Bundle, tmp_path: Path) -> None:
    again = released(tmp_path / "again", NETWORK)
    assert again.fingerprint == bundle.fingerprint
    settings: Any = again.config.settings
    assert settings == NETWORK
