"""Heads on public embeddings over TLS, in processes of their own: words as in the clear, nothing else to anybody."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from ppspeech.arrays import Reals
from ppspeech.audio.embeddings import EmbeddingConfig, WordVectors
from ppspeech.bundle import Bundle, to_plain
from ppspeech.cli.app import app
from ppspeech.crypto.lattice import LatticeParameters
from ppspeech.errors import AudioError, BundleError, ModelError, PpspeechError, RangeError, WrongSessionError
from ppspeech.models import EmbeddingHead
from ppspeech.network import StreamChannel, run_together
from ppspeech.protocols import meet_as_client, meet_as_server
from ppspeech.protocols.scores import WordArrays
from ppspeech.protocols.words import KeywordJob, Questions, answer, encode_models, recognize
from ppspeech.service import BudgetSpentError, Deployment, export_words, plan_words, serve
from ppspeech.service.client import heads as client_module
from ppspeech.service.client.connect import Door
from ppspeech.service.client.heads import head_input
from ppspeech.service.offer import DESCRIBE, describe, read_offers
from ppspeech.service.requests import Ask, Request
from ppspeech.service.server.words import AHEAD, ServedHead
from ppspeech.service.tasks.heads import HeadScale
from ppspeech.training import Background, learn_words
from ppspeech.training.own_words import Stream
from tests.service.conftest import Running, serving
from tests.service.heads import OTHERS, RATE, UTTERANCE, WINDOW, WORDS, known, released, said, scene
from tests.training.test_embedded import like_a_word


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, heads: dict[str, Bundle]) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("server"), heads, frames=None) as found:
        yield found


# In the clear and encrypted.


@pytest.mark.parametrize("which", ["words", "margin", "sure"])
@torch.no_grad()
def test_exported_heads_score_as_the_module(heads: dict[str, Bundle], which: str) -> None:
    bundle = heads[which]
    models = export_words("embedding_head", bundle.model, WORDS)
    vectors = torch.from_numpy(3 * np.random.default_rng(0).standard_normal((50, bundle.config.features)))
    wanted = bundle.recognizer.scores(bundle.model.mean.double().numpy() + vectors.numpy()).numpy()
    if models.shape.reject:
        wanted = np.roll(wanted, -1, axis=1)
    scale = ServedHead.of("a", bundle, Deployment(), Path("unused")).offer.terms.scale
    found = [
        models.shape.padded_monomials(head_input(bundle.model.mean.double().numpy() + each, scale)[None])
        @ models.weights
        for each in vectors.numpy()
    ]
    assert np.abs(np.concatenate(found) - wanted).max() < 1e-3
    assert models.shape.words == len(WORDS)


def told_of(models: WordArrays, inputs: list[Reals]) -> list[str | None]:
    """What a client in memory is told of inputs."""
    job = KeywordJob(models.shape, len(inputs))

    def ask(channel: Any) -> list[str | None]:
        met = meet_as_client(channel)
        with met.session():
            return recognize(met, job, inputs)

    def help_client(channel: Any) -> None:
        met = meet_as_server(channel)
        with met.session():
            answer(met, job, models, encode_models(models, len(inputs)))

    return run_together(ask, help_client)[0]


def test_words_with_a_threshold_each_are_told_as_in_the_clear(tmp_path: Path) -> None:
    """What `words learn --over window` makes, on made-up vectors: near the thresholds, some above and some below."""
    clips, background = like_a_word(4 * 96)
    streams = [Stream(each.embeddings[:, :96], None, 160.0, each.digest) for each in background.training]
    others = [Stream(each.embeddings[:, :96], None, 160.0, each.digest) for each in background.calibrating]
    heard = Background(tuple(streams), tuple(others), "made up")
    learned = learn_words(clips, heard, over="window")
    bundle = learned.release(tmp_path / "bundle")
    models = export_words("embedding_head", bundle.model, ("far", "near"))
    scale = ServedHead.of("a", bundle, Deployment(), tmp_path).offer.terms.scale
    drawn = np.random.default_rng(4)
    vectors = np.concatenate([clips[word][drawn.integers(10, size=20)] for word in ("far", "near")])
    vectors = drawn.random((len(vectors), 1)) * vectors + 0.3 * drawn.standard_normal(vectors.shape)
    clear = bundle.recognizer.decide(vectors)
    words = told_of(models, [head_input(each, scale)[None] for each in vectors])
    assert {each.value for each in clear} == {None, "far", "near"}
    assert all(one.value == other for one, other in zip(clear, words, strict=True) if one.margin > 0.01)
    assert sum(one.margin > 0.01 for one in clear) > 30


@pytest.mark.parametrize("which", ["words", "margin", "sure"])
def test_words_of_many_vectors_are_those_of_the_clear(heads: dict[str, Bundle], which: str) -> None:
    """Vectors of any length, far beyond the radius too."""
    bundle = heads[which]
    models = export_words("embedding_head", bundle.model, WORDS)
    scale = ServedHead.of("a", bundle, Deployment(), Path("unused")).offer.terms.scale
    drawn = np.random.default_rng(3)
    spoken = known(UTTERANCE)[0].double().numpy()
    vectors = spoken[drawn.integers(len(spoken), size=64)]
    vectors = vectors + 0.7 * bundle.model.std.numpy() * drawn.standard_normal(vectors.shape)
    vectors[::4] *= 20
    clear = bundle.recognizer.decide(vectors)
    words = told_of(models, [head_input(each, scale)[None] for each in vectors])
    certain = [(one.value, other) for one, other in zip(clear, words, strict=True) if one.margin > 0.05]
    assert len(certain) > 50
    assert all(one == other for one, other in certain)
    assert len({one.value for one in clear}) > 1


@pytest.mark.parametrize("which", ["words", "margin", "sure", "live"])
def test_real_clips_are_heard_as_in_the_clear(asked: Running, heads: dict[str, Bundle], which: str) -> None:
    clips = [said()[word, 3] for word in (*WORDS, *OTHERS)]
    clear = heads[which].recognizer.recognize_all(clips, RATE)
    with asked.connect(which) as client:
        answers = client.recognize_all(clips, RATE)
        slow = client.recognize_all(clips[:2], RATE, order="garbled")
        with client.stream(RATE) as listening:
            for piece in np.split(clips[0], 7 * np.arange(1, 5) ** 4):
                listening.feed(piece)
            spoken = listening.finish()
    certain = [(one.value, other.value) for one, other in zip(clear, answers, strict=True) if one.margin > 0.05]
    assert len(certain) > 4
    assert all(one == other for one, other in certain)
    assert [each.value for each in slow] == [each.value for each in answers[:2]]
    assert spoken.value == answers[0].value
    if which in ("words", "live"):
        assert [each.value for each in answers[:3]] == list(WORDS)
        assert any(each.value is None for each in answers[3:])
    assert answers[0].together == 4
    assert slow[0].how == "garbled"


def test_a_word_takes_few_bytes_and_round_trips(asked: Running) -> None:
    with asked.connect("words") as client:
        one, two = (client.recognize(said()[word, 0], RATE) for word in ("yes", "paper"))
    job = KeywordJob(client.offer.terms.shape)
    assert one.transcript.shape() == two.transcript.shape()
    assert one.bytes_up + one.bytes_down < 100_000
    assert job.rounds <= 6
    assert one.rounds <= job.rounds + 2


# Listening.


def test_every_window_is_told_as_in_the_clear(asked: Running, heads: dict[str, Bundle]) -> None:
    sound = scene("yes", "paper")
    vectors = WordVectors(WINDOW).all(sound)
    clear = heads["live"].recognizer.decide(vectors)
    with asked.connect("live") as client, client.watch() as watching:
        heard = [each for piece in np.array_split(sound, 23) for each in watching.feed(piece)]
    assert len(heard) == len(clear) > AHEAD
    certain = [(one.value, other.word) for one, other in zip(clear, heard, strict=True) if one.margin > 0.05]
    assert len(certain) > len(heard) // 2
    assert all(one == other for one, other in certain)
    assert {"yes", None} <= {each.word for each in heard}
    assert np.diff([each.at for each in heard]) == pytest.approx(0.08)
    assert heard[-1].at == pytest.approx(len(sound) / RATE, abs=0.08)


def test_who_listens_on_begins_another_session(asked: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "LONGEST_SESSION_S", 0.0)
    with asked.connect("live") as client, client.watch() as watching:
        heard = watching.feed(scene("yes", pause=2.2))
        assert len(heard) > AHEAD
    assert "yes" in {each.word for each in heard}


def test_what_is_said_does_not_show_while_listening(asked: Running) -> None:
    """Same kinds, sizes and order of messages, for words, other words and quiet."""
    shapes = []
    for sound in (scene("yes"), scene("paper"), np.zeros_like(scene("yes"))):
        with asked.connect("live") as client, client.watch() as watching:
            heard = list(watching.over(np.array_split(sound[: 3 * RATE], 5)))
            record = watching.record
            shapes.append((len(heard), record.shape()))
    assert shapes[0] == shapes[1] == shapes[2]
    assert shapes[0][0] > 5


def test_listening_is_refused_where_it_cannot_be(asked: Running) -> None:
    with asked.connect("words") as client, pytest.raises(ModelError, match="whole utterances"), client.watch():
        pass
    with asked.connect("live") as client:
        with pytest.raises(AudioError, match="16000 Hz, got 8000"), client.watch(8_000):
            pass
        with client.watch() as watching:  # and the session goes on
            assert watching.feed(np.zeros(100, np.float32)) == []
        assert client.recognize(said()["yes", 0], RATE).value == "yes"


def test_what_cannot_be_heard_is_refused_and_not_sent(asked: Running) -> None:
    with asked.connect("words") as client:
        with pytest.raises(AudioError, match="silent"):
            client.recognize(np.zeros(RATE, np.float32), RATE)
        with pytest.raises(RangeError, match="frames, garbled"):
            client.recognize_all([said()["yes", 0]], RATE, "ahead")
        with pytest.raises(ModelError, match="does not transcribe"):
            client.transcribe(said()["yes", 0], RATE)


def test_windows_are_paid_for_as_they_are_prepared(tmp_path: Path, heads: dict[str, Bundle]) -> None:
    only = {"live": heads["live"]}
    with serving(tmp_path, only, limit=AHEAD + 1, frames=None) as running, running.connect("live") as client:
        with client.watch() as watching:
            watching.feed(scene("yes")[: 2 * RATE])
        assert client.queries_left == 1
        with pytest.raises(BudgetSpentError), client.watch():
            pass
        assert client.recognize(said()["yes", 0], RATE).value == "yes"


# Who learns it.


@pytest.fixture(scope="module")
def telling(tmp_path_factory: pytest.TempPathFactory, heads: dict[str, Bundle]) -> Iterator[Running]:
    every = {name: heads[name] for name in ("words", "live")}
    with serving(tmp_path_factory.mktemp("telling"), every, frames=None, outcome="server") as found:
        yield found


def outcomes(running: Running, wanted: int = 0) -> list[dict[str, Any]]:
    """What the server wrote down, once there are as many: it is not waited for when it is asked."""
    path = running.log.parent / "outcomes.jsonl"
    for _ in range(600):
        lines = path.read_text().splitlines() if path.exists() else []
        if len(lines) >= wanted:
            break
        time.sleep(0.05)
    return [json.loads(line) for line in lines]


def test_the_server_alone_learns_the_word_where_both_agreed(telling: Running) -> None:
    before = len(outcomes(telling))
    with telling.connect("words", outcome="server") as client:
        answers = client.recognize_all([said()[word, 3] for word in (*WORDS, "paper")], RATE)
    told = outcomes(telling, before + 4)[before:]
    assert [each["word"] for each in told] == [*WORDS, None]
    assert {each["model"] for each in told} == {"words"}
    assert [each.value for each in answers] == [None] * 4
    assert all(each.transcript.entries[-1].direction == "sent" for each in answers)  # and nothing comes back
    assert len({tuple(each.transcript.shape()) for each in answers}) == 1
    assert (telling.log.parent / "outcomes.jsonl").stat().st_mode & 0o77 == 0
    assert not any(f'"{word}"' in telling.log.read_text() for word in WORDS)


def test_the_server_learns_every_window(telling: Running, heads: dict[str, Bundle]) -> None:
    sound, before = scene("stop")[: 3 * RATE], len(outcomes(telling))
    clear = heads["live"].recognizer.decide(WordVectors(WINDOW).all(sound))
    with telling.connect("live", outcome="server") as client, client.watch() as watching:
        heard = watching.feed(sound)
    told = [each["word"] for each in outcomes(telling, before + len(clear))[before:]]
    assert [each.word for each in heard] == [None] * len(clear)
    assert len(told) == len(clear)
    assert all(one.value == other for one, other in zip(clear, told, strict=True) if one.margin > 0.05)


def test_a_server_that_is_told_has_each_key_for_so_many_bits(telling: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it is told of a key it could have chosen: a client leaves the key before that is worth anything."""
    before = len(outcomes(telling))

    def key_of(client: Any) -> bytes:
        found: bytes = client._session.met.lattice.public_key
        return found

    with telling.connect("words", outcome="server") as client, monkeypatch.context() as patch:
        patch.setattr(LatticeParameters, "leakable_bits", 2 * client.offer.terms.shape.answer_bits)
        keys = []
        for _ in range(5):
            client.recognize(said()["yes", 0], RATE)
            keys.append(key_of(client))
    assert [keys.index(each) for each in keys] == [0, 0, 2, 2, 4]
    with telling.connect("live", outcome="server") as client:
        monkeypatch.setattr(LatticeParameters, "leakable_bits", AHEAD * client.offer.terms.shape.answer_bits)
        sound = scene("stop")
        windows = len(WordVectors(WINDOW).all(sound))
        with client.watch() as watching:
            keys = [key_of(client)]
            for piece in np.split(sound, range(RATE // 4, len(sound), RATE // 4)):
                watching.feed(piece)
                keys.append(key_of(client))
    assert len(set(keys)) == -(-windows // AHEAD) > 1
    assert len(outcomes(telling, before + 5 + windows)) == before + 5 + windows  # no test after this one sees them come


def test_nothing_is_asked_without_consent(telling: Running, asked: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    plain = Door.open

    def noted(self: Door, service: str, params: dict[str, Any]) -> StreamChannel:
        opened.append(service)
        return plain(self, service, params)

    monkeypatch.setattr(Door, "open", noted)
    with pytest.raises(WrongSessionError, match=r"to the server alone.*--outcome server"):
        telling.connect("words")
    with pytest.raises(WrongSessionError, match=r"to you alone.*--outcome client"):
        asked.connect("words", outcome="server")
    assert opened == [DESCRIBE] * 2
    offer = read_offers(telling.door().hear("describe"), "heads")[0]
    assert offer.terms.outcome == "server"
    assert "The server alone learns" in offer.task
    assert "server alone" in offer.terms.takes


def test_where_the_client_is_told_the_server_writes_nothing(asked: Running) -> None:
    with asked.connect("live") as client, client.watch() as watching:
        assert watching.feed(scene("yes")[: 3 * RATE])
    assert not outcomes(asked)


@pytest.mark.parametrize(
    "request_",
    [Request(Ask.WATCH, utterances=2), Request(Ask.WATCH, "garbled"), Request(Ask.WORDS), Request(Ask.STREAM)],
    ids=str,
)
def test_other_questions_end_the_session_and_no_other(telling: Running, request_: Request) -> None:
    from ppspeech.errors import ProtocolError

    with telling.connect("words", outcome="server") as client:
        session = client.session(meet_as_client)
        with pytest.raises(ProtocolError), session.asking(request_) as record:
            record.receive(1, 1)
        client.close()
        assert client.recognize(said()["yes", 0], RATE).value is None


def test_a_server_that_is_told_has_a_place_to_write_it(heads: dict[str, Bundle], tmp_path: Path) -> None:
    released(tmp_path / "words", heads["words"].model)  # type: ignore[arg-type]
    done = CliRunner().invoke(app, ["serve", str(tmp_path / "words"), "--words", "outcome=server"])
    assert done.exit_code == 2
    assert "--state" in done.output
    with pytest.raises(PpspeechError, match="state"), serve(heads["words"], words=Deployment(outcome="server")):
        pass


def test_words_of_frames_are_told_to_clients_alone(bundles: dict[str, Bundle]) -> None:
    whole = bundles["whole"]
    with pytest.raises(ModelError, match="heads on embeddings alone"):
        export_words(whole.config.type, whole.model, whole.labels, Deployment(outcome="server"), whole.mfcc)


def test_plans_say_who_is_told(heads: dict[str, Bundle]) -> None:
    usual, other = plan_words(heads["live"]), plan_words(heads["live"], Deployment(outcome="server"))
    assert {each.mode for each in usual.modes} >= {"frames", "garbled", "watch"}
    assert [each.statement.name for each in other.modes] == ["keyword_outcome"]
    assert "to the server alone" in other.modes[0].statement.functionality
    assert "here the server is told" in " ".join(other.warnings)


# Offers.


def test_offers_are_read_to_the_last_field(heads: dict[str, Bundle]) -> None:
    for name in ("words", "margin", "live"):
        served = ServedHead.of(name, heads[name], Deployment(), Path("unused"))
        said_ = describe((served.offer,))
        assert read_offers(said_, "heads") == (served.offer,)
        assert len(said_) < 200_000
    for old, new, why in (
        (UTTERANCE.weights.encode(), b"0" * 64, "use the version that the model was made with"),
        (b'"outcome":"client"', b'"outcome":"nobody"', "one of client, server"),
        (b'"ahead":25', b'"ahead":0', "windows are prepared"),
        (b'"ahead":25', b'"ahead":257', "windows are prepared"),
        (b'"name":"speech"', b'"name":"voice"', "."),
        (b'"batches":[1,', b'"batches":[', "begin with 1"),
        (b'"radius":2.0', b'"radius":null', "within a radius"),
        (b'"parts":4', b'"parts":2', "the front end gives 192"),
        (b'"std":[', b'"std":[0.0,', "as many deviations"),
        (b'"mean":[', b'"mean":[1e9,', "."),
        (b'"projection":[', b'"projection":[1.0', "rows of a projection"),
    ):
        assert old in said_
        with pytest.raises(WrongSessionError, match=why):
            read_offers(said_.replace(old, new), "heads")


def test_scales_that_cannot_be_are_refused() -> None:
    for numbers, why in (
        (((0.0,), (0.0,)), "all > 0"),
        (((0.0,), ()), "as many"),
        (((1e7,), (1.0,)), "within"),
        (((0.0, 1.0), (1.0, 1.0), (1.0,)), "rows of a projection"),
    ):
        with pytest.raises(BundleError, match=why):
            HeadScale(*numbers)
    assert to_plain(HeadScale((0.0,), (1.0,))) == {"mean": [0.0], "std": [1.0], "projection": []}


@pytest.mark.parametrize(
    ("made", "chosen", "why"),
    [
        (EmbeddingHead(3, 192, radius=200.0), Deployment(), "length up to 100"),
        (EmbeddingHead(3, 192), Deployment(garbage=1.0), "no garbage model"),
        (EmbeddingHead(3, 192), Deployment(reject=True), "no garbage model"),
        (EmbeddingHead(4, 192), Deployment(bits=12), "bits"),
    ],
    ids=["radius", "garbage", "reject", "bits"],
)
def test_heads_that_cannot_be_served_are_refused(made: EmbeddingHead, chosen: Deployment, why: str) -> None:
    with torch.no_grad():
        made.head.weight += torch.arange(made.head.weight.numel()).view_as(made.head.weight)
    with pytest.raises((ModelError, RangeError), match=why):
        export_words("embedding_head", made, WORDS, chosen)


def test_the_longest_vectors_are_served() -> None:
    made = EmbeddingHead(4, EmbeddingConfig("speech", pooling=replace(WINDOW.pooling, parts=64, windows=64)).features)
    shape = export_words("embedding_head", made, WORDS).shape
    assert shape.dimensions == 6_144
    assert KeywordJob(shape).total_bytes < 1_000_000
    with pytest.raises(RangeError, match="dimensions"):
        replace(shape, dimensions=6_145)
    with pytest.raises(RangeError, match="dimensions"):
        replace(shape, terms="diagonal")


def test_questions_are_prepared_in_numbers_that_can_be(heads: dict[str, Bundle]) -> None:
    shape = export_words("embedding_head", heads["words"].model, WORDS).shape
    for bad in ({"steps": 0}, {"steps": 257}, {"told": "both"}, {"shape": replace(shape, frames=2)}):
        with pytest.raises(RangeError, match="prepared at once"):
            Questions(**({"shape": shape} | bad))  # type: ignore[arg-type]
