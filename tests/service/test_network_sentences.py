"""Sentences by networks, over TLS: words as in the clear, steps of length alone to the server."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ppspeech.audio import Mfcc
from ppspeech.bundle import Bundle, CtcNetworkSettings, CtcTranscriber, SentenceNetworkSettings, SentenceTranscriber
from ppspeech.errors import BundleError, ModelError, PeerGoneError, RangeError, WrongSessionError
from ppspeech.models import FrameLayer, SequenceNetwork, StateNetwork, greedy_labels
from ppspeech.protocols import Kind, meet_as_client
from ppspeech.protocols.networks import network_cost, product_bytes
from ppspeech.protocols.sentences import total_bytes
from ppspeech.service import (
    Ask,
    Request,
    SentenceDeployment,
    export_bundle,
    export_ctc,
    export_sequence,
    plan_network,
    plan_sentences,
)
from ppspeech.service.client import networks as client_module
from ppspeech.service.offer import describe, read_offers
from ppspeech.service.server.networks import ServedNetworkSentences
from ppspeech.service.server.sentences import ServedSentences
from ppspeech.service.tasks.sentences import STEP
from tests.service.conftest import Running, serving
from tests.service.voices import LABELS, RATE, WHOLE, released, seconds_of, voice
from tests.service.voices import sure as sure_of_states

LAYERS = (FrameLayer(6, width=5, stride=2), FrameLayer(5, width=2, dilation=3, pool="max", pool_width=2))
CTC = CtcNetworkSettings(radius=6.0, layers=LAYERS)
STATES = SentenceNetworkSettings(
    states=2, grammar=None, word_penalty=2.0, leave=0.3, scale=0.5, radius=6.0,
    layers=(FrameLayer(6, width=3), FrameLayer(5, width=2, dilation=2)),
)  # fmt: skip
SHORT = SentenceDeployment(frames=64)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return released(tmp_path_factory.mktemp("ctc") / "ctc", CTC)


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return released(tmp_path_factory.mktemp("ctc") / "hybrid", STATES)


@pytest.fixture(scope="module")
def asked(
    tmp_path_factory: pytest.TempPathFactory, bundle: Bundle, hybrid: Bundle, bundles: dict[str, Bundle]
) -> Iterator[Running]:
    every = {"ctc": bundle, "hybrid": hybrid, "whole": bundles["whole"]}
    with serving(tmp_path_factory.mktemp("server"), every, sentences=SHORT) as found:
        yield found


def transcriber(bundle: Bundle) -> CtcTranscriber:
    found = bundle.transcriber
    assert isinstance(found, CtcTranscriber)
    return found


def sure(bundle: Bundle, frames: int, seed: int = 0) -> Tensor:
    """A sound of so many frames in each of which the best label is clear, and in which words are heard."""
    own = transcriber(bundle)
    for each in range(100 * seed, 100 * seed + 100):
        sound = voice(each, seconds_of(bundle.mfcc, frames))
        best = own.scores(Mfcc(bundle.mfcc)(sound).features[0]).topk(2).values
        if float((best[:, 0] - best[:, 1]).min()) > 0.15 and own.transcribe_all([sound], RATE)[0]:
            return sound
    raise AssertionError("every sound is a matter of opinion")


@pytest.mark.parametrize("layers", [LAYERS, (), (FrameLayer(4, width=3),)], ids=len)
@torch.no_grad()
def test_exported_networks_score_as_the_module(layers: tuple[FrameLayer, ...]) -> None:
    """Also near both ends, where the module sees zeros; what comes after the end changes nothing before it."""
    torch.manual_seed(1)
    module = SequenceNetwork(4, 4, 5.0, layers).double()
    own = export_sequence(module, LABELS, 32)
    assert own.labels == ("", *LABELS)
    assert own.shape.span == (module.span, module.stride)
    for frames in (1, 21, 32):
        features = 3 * torch.randn(1, frames, 4, dtype=torch.float64)
        wanted = module(features, torch.tensor([frames]))[0].numpy()
        zeros = np.zeros((module.lead, 4))
        found = own.scores(own.shape.clipped(np.concatenate((zeros, features[0].numpy()))))
        assert len(found) == 32 // module.stride
        assert len(wanted) == -(-frames // module.stride)
        assert np.abs(found[: len(wanted)] - wanted).max() < 1e-9


def test_what_is_no_network_is_refused(bundle: Bundle) -> None:
    with pytest.raises(ModelError, match="sentences_ctc"):
        export_sequence(nn.Linear(2, 2), LABELS, 32)
    with pytest.raises(RangeError, match="leave it out"):
        export_ctc(bundle, SentenceDeployment(bits=21))
    with pytest.raises(ModelError, match="has no graph"):
        transcriber(bundle).transcribe_all([voice(0)], RATE, grammar="aardvark")
    for layers in ((FrameLayer(3, width=3, stride=3),), (FrameLayer(3, stride=2),), (FrameLayer(2, width=99),) * 6):
        with pytest.raises(BundleError, match="stride"):
            CtcNetworkSettings(radius=1.0, layers=layers)


def test_words_are_those_of_the_clear(asked: Running, bundle: Bundle) -> None:
    """Of lengths that fill their steps, that do not, and of which a stride is the last; lengths are told in steps."""
    sounds = [sure(bundle, frames, seed) for seed, frames in enumerate((64, 41, 33, 32, 9))]
    with asked.connect("ctc", task="sentences") as client:
        answers = client.transcribe_all(sounds, RATE)
        with client.listen(RATE) as listening:
            for piece in sounds[1].split(999):
                listening.feed(piece)
            spoken = listening.finish()
    assert [answer.value for answer in answers] == [bundle.transcribe(sound, RATE) for sound in sounds]
    assert spoken.value == answers[1].value
    assert not listening.is_live
    shapes = [tuple(answer.transcript.shape()) for answer in answers]
    assert shapes[0] == shapes[1] == shapes[2] != shapes[3] == shapes[4]
    shape = export_ctc(bundle, SHORT).shape
    total = product_bytes(shape) + network_cost(shape).total_bytes
    assert total <= answers[0].bytes_up + answers[0].bytes_down <= total + 200
    assert answers[0].how == "layers"


def test_a_client_is_told_where_words_begin_and_not_how_long_they_are_the_best(
    asked: Running, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frame that repeats its label, and one of the blank, are told alike: by an empty text."""
    told = []

    def watched(*given: object) -> list[str | None]:
        found = asked_of(*given)  # type: ignore[arg-type]
        told.append(found)
        return found

    from ppspeech.service.client import network_sentences

    asked_of = network_sentences.ask_network
    monkeypatch.setattr(network_sentences, "ask_network", watched)
    own = transcriber(bundle)
    for seed in range(20):
        sound = sure(bundle, 64, seed)
        best = own.scores(Mfcc(bundle.mfcc)(sound).features[0]).argmax(-1).tolist()
        if any(one == other != 0 for one, other in pairwise(best)):
            break
    with asked.connect("ctc") as client:
        client.transcribe(sound, RATE)
    begins = {at: own.names[label - 1] for label, at in greedy_labels(best)}
    assert told == [[begins.get(at) for at in range(len(best))]]
    assert len(begins) < sum(label > 0 for label in best)


def test_what_cannot_be_heard_is_refused_and_not_sent(asked: Running) -> None:
    with asked.connect("ctc") as client:
        left = client.queries_left
        with pytest.raises(RangeError, match=r"up to 0\.7 s here \(64 frames\)"):
            client.transcribe(voice(1, 0.8), RATE)
        with pytest.raises(RangeError, match="order of its layers"):
            client.transcribe_all([voice(1)], RATE, "garbled")
        with pytest.raises(ModelError, match="does not recognize"):
            client.recognize(voice(1), RATE)
        assert client.queries_left == left


HOSTILE = {
    "too many steps": Request(Ask.SENTENCE, steps=3).encode(),
    "another order": Request(Ask.SENTENCE, "garbled", steps=1).encode(),
    "several at once": Request(Ask.SENTENCE, utterances=2, steps=1).encode(),
    "a word": Request(Ask.WORDS).encode(),
}


@pytest.mark.parametrize("fault", HOSTILE)
def test_a_client_that_asks_for_something_else_is_refused(asked: Running, fault: str) -> None:
    with asked.connect("ctc") as client:
        channel = asked.door().open("ctc", client.offer.agreement)
        meet_as_client(channel)
        channel.send(Kind.REQUEST, HOSTILE[fault])
        with pytest.raises(PeerGoneError):
            channel.receive(Kind.READY, at_most=100)


def test_offers_are_read_to_the_last_field(bundle: Bundle) -> None:
    served = ServedNetworkSentences.of("ctc", bundle, SHORT)
    terms = served.offer.terms
    assert (terms.frames, terms.steps, terms.step) == (64, range(1, 3), STEP)
    assert set(served.networks) == {1, 2}
    said = describe((served.offer,))
    assert read_offers(said, "network_sentences") == (served.offer,)
    for old, new in (
        (b'"output":"labels"', b'"output":"word"'),
        (b'"dimensions":4', b'"dimensions":5'),
        (b'"step":32', b'"step":30'),
        (b'"step":32', b'"step":0'),
        (b'"step":32', b'"step":128'),
        (b'"stride":2', b'"stride":3'),
        (b'"range_bits":', b'"range_bits":9'),
    ):
        assert old in said
        with pytest.raises(WrongSessionError, match="cannot be used"):
            read_offers(said.replace(old, new, 1), "network_sentences")
    with pytest.raises(BundleError, match="front end gives"):
        replace(terms, mfcc=replace(WHOLE, cepstra=5))


def test_an_offer_that_is_too_dear_is_refused(asked: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MOST_BYTES", 1_000)
    with pytest.raises(WrongSessionError, match="would exchange"):
        asked.connect("ctc")


def test_the_plan_says_what_it_will_take(bundle: Bundle) -> None:
    plan = plan_network(bundle, SHORT)
    shape = export_ctc(bundle, SHORT).shape
    (way,) = plan.modes
    assert way.cost.bytes_up + way.cost.bytes_down == product_bytes(shape) + network_cost(shape).total_bytes
    assert plan.details["knowledge"]["bits"] == 2 * 64 // 4  # three words and the blank, every four frames


# Networks that score the states of a graph.


@torch.no_grad()
def test_exported_states_score_as_the_module_with_what_staying_costs(hybrid: Bundle) -> None:
    """Priors and scale in the last layer; shares hold all scores for certain."""
    module, arrays = hybrid.model, export_bundle(hybrid, SHORT)
    assert isinstance(module, StateNetwork)
    assert arrays.network is not None
    assert arrays.shape.scores == 2 * (len(LABELS) + 1)
    features = 3 * torch.randn(33, 4, generator=torch.Generator().manual_seed(0))
    wanted = module(features.unsqueeze(0), torch.tensor([33]))[0].double().numpy()
    found = arrays.network.scores(arrays.shape.factor(features.double().numpy()))[:33]
    apart = found - wanted  # columns are states in the order of the graph: what staying costs is the same in all
    assert np.abs(apart - np.log1p(-STATES.leave)).max() < 1e-4
    assert arrays.most_apart < arrays.shape.scale.bound


def test_sentences_by_states_of_a_network_are_those_of_the_clear(asked: Running, hybrid: Bundle) -> None:
    sounds = [sure_of_states(hybrid, frames, seed) for seed, frames in enumerate((64, 40, 20))]
    with asked.connect("hybrid", task="sentences") as client:
        assert (client.offer.terms.modes, client.offer.terms.streams) == (("frames",), False)
        answers = client.transcribe_all(sounds, RATE)
        with client.listen(RATE) as listening:
            listening.feed(sounds[2])
            assert listening.finish().value == answers[2].value
        with pytest.raises(RangeError, match="can be asked by frames"):
            client.transcribe_all(sounds[:1], RATE, "garbled")
    assert [answer.value for answer in answers] == [hybrid.transcribe(sound, RATE) for sound in sounds]
    shapes = [tuple(answer.transcript.shape()) for answer in answers]
    assert shapes[0] == shapes[1] != shapes[2]
    total = total_bytes(export_bundle(hybrid, SHORT).shape)
    assert total <= answers[0].bytes_up + answers[0].bytes_down <= total + 200


def test_other_words_may_be_said_in_the_clear(hybrid: Bundle) -> None:
    own, sound = hybrid.transcriber, sure_of_states(hybrid, 40)
    assert isinstance(own, SentenceTranscriber)
    (strict,) = own.transcribe_all([sound], RATE, grammar="aardvark bumblebee")
    assert [word.value for word in strict] == ["aardvark", "bumblebee"]
    (dear,) = own.transcribe_all([sound], RATE, word_penalty=900.0)
    assert dear == []
    with pytest.raises(BundleError, match="needs models of zebra"):
        replace(STATES, grammar="zebra").build(LABELS, 4)
    with pytest.raises(BundleError, match="every frame"):
        replace(STATES, layers=(FrameLayer(3, width=2, stride=2),))


def test_offers_of_networks_under_a_graph_are_read_to_the_last_field(hybrid: Bundle) -> None:
    served = ServedSentences.of("hybrid", hybrid, SHORT)
    said = describe((served.offer,))
    assert read_offers(said, "sentences") == (served.offer,)
    assert served.weights == {}
    for old, new in (
        (b'"output":"scores"', b'"output":"labels"'),
        (b'"radius":6.0', b'"radius":5.0'),
        (b'"modes":["frames"]', b'"modes":["garbled"]'),
        (b'"activation":"none"', b'"activation":"relu"'),
    ):
        assert old in said
        with pytest.raises(WrongSessionError, match="cannot be used"):
            read_offers(said.replace(old, new, 1), "sentences")


def test_the_plan_of_a_network_under_a_graph(hybrid: Bundle) -> None:
    plan, shape = plan_sentences(hybrid, SHORT), export_bundle(hybrid, SHORT).shape
    cost = plan.modes[0].cost
    assert cost.bytes_up + cost.bytes_down == total_bytes(shape)
    assert not any("garbled" in warning for warning in plan.warnings)
    assert shape.network is not None
    assert plan.details["shape"]["network"]["layers"][0]["outputs"] == 6
