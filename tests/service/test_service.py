"""The service over TLS, in processes of its own: the word in the clear is the word encrypted, and faults stay alone."""

import json
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ppspeech.audio import Mfcc, features_of
from ppspeech.bundle import Bundle
from ppspeech.crypto.lattice import LatticeParameters, key_length
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import (
    AudioError,
    BadTypeError,
    BundleError,
    ModelError,
    PeerGoneError,
    PpspeechError,
    ProtocolError,
    RangeError,
    SpeechWarning,
    WrongKeyError,
    WrongSessionError,
)
from ppspeech.models import floored_scores
from ppspeech.network import Capacity, StreamChannel, make_certificate, memory_pair
from ppspeech.protocols.meeting import meet_as_client
from ppspeech.protocols.message_kinds import Kind
from ppspeech.service import BudgetSpentError, Client, Deployment, ServiceFiles, build_services, server_health
from ppspeech.service.client.session import ClientSession
from ppspeech.service.requests import Ask, Request, receive_request, send_request
from ppspeech.service.server import Choices
from tests.service.conftest import Running
from tests.service.voices import CLASSES, FULL, MARGIN, MIXTURES, RATE, WHOLE, plain_answer, released, voice

Serve = Callable[..., AbstractContextManager[Running]]


def assert_right(bundle: Bundle, sound: torch.Tensor, word: str | None) -> None:
    expected, margin = plain_answer(bundle, sound)
    assert word == expected or margin < 0.5


def test_the_word_is_the_one_in_the_clear(running: Running) -> None:
    bundle = running.bundles["whole"]
    said = set()
    with running.connect() as client:
        for seed in range(4):
            answer = client.recognize(voice(seed), RATE)
            assert_right(bundle, voice(seed), answer.value)
            said.add(plain_answer(bundle, voice(seed))[0])
        assert answer.rounds > 10
        assert answer.bytes_up == answer.transcript.bytes_up > 10_000
        assert answer.seconds > 0 < answer.offline_seconds
        assert client.queries_left is None
        batch = client.recognize_all([voice(seed) for seed in range(4)], RATE)
        with pytest.raises(RangeError, match="whole can be asked by frames, ahead, got 'garbled'"):
            client.recognize_all([voice(0)], RATE, order="garbled")
    assert len(said) > 1  # or else any constant would do
    assert {each.together for each in batch} == {4}
    for seed, each in enumerate(batch):
        assert_right(bundle, voice(seed), each.value)


def test_best_paths_are_followed_in_circuits_too(serve: Serve, bundles: dict[str, Bundle], tmp_path: Path) -> None:
    """On shares and in a circuit the same word, that of the best path in the clear; alone, in batches, with garbage."""
    offered = {"whole": bundles["whole"], "mixtures": released(tmp_path / "m", MIXTURES, seed=2)}
    sounds = [voice(seed) for seed in range(5)]
    with serve(offered, operation="viterbi", reject=True, garbage=-2.0) as running:
        for name, bundle in offered.items():
            with running.connect(name) as client:
                assert client.offer.terms.modes == ("frames", "ahead", "garbled", "stream")
                orders = ("frames", "ahead", "garbled")
                found = {order: client.recognize_all(sounds, RATE, order) for order in orders}
            recognizer = bundle.recognizer
            clips = [recognizer.clipped(Mfcc(bundle.mfcc)(sound).features[0]) for sound in sounds]
            scores = torch.cat(
                [floored_scores(bundle.model, x[None], torch.tensor([len(x)]), None, best_path=True) for x in clips]
            )
            everything = torch.cat([scores, recognizer.garbage_scores(clips, -2.0)[:, None].to(scores)], dim=1)
            best = everything.topk(2)
            sure = (best.values[:, 0] - best.values[:, 1] > 0.5).tolist()
            names = [*bundle.labels, None]
            expected = [names[place] for place in best.indices[:, 0].tolist()]
            for answers in found.values():
                assert [each.together for each in answers] == [4, 4, 4, 4, 1]
                told = zip((each.value for each in answers), expected, sure, strict=True)
                assert all(word == wanted for word, wanted, is_sure in told if is_sure)
            assert any(sure)
            assert {each.how for each in found["garbled"]} == {"garbled"}
            assert [each.rounds for each in found["garbled"]] == [7, 7, 7, 7, 4]  # one offline an utterance, two online


def test_a_bundle_says_its_hop(serve: Serve, tmp_path: Path) -> None:
    """A frame every 30 ms: half a second is 17 of them, and words are those in the clear."""
    slow = released(tmp_path / "slow", mfcc=replace(WHOLE, hop_s=0.03), seed=4)
    with serve({"slow": slow}, frames=None) as running, running.connect("slow") as client:
        assert client.offer.terms.shape.frames == 51
        assert client.offer.terms.mfcc.hop_s == 0.03
        for seed in range(3):
            assert_right(slow, voice(seed, 0.9), client.recognize(voice(seed, 0.9), RATE).value)
        with pytest.raises(RangeError, match="3 to 51 frames here, got 52"):
            client.recognize(voice(1, 0.025 + 51 * 0.03 + 1e-4), RATE)


def test_batches_are_cut_to_what_the_server_takes(running: Running) -> None:
    with running.connect() as client:
        answers = client.recognize_all([voice(seed, 0.2) for seed in range(22)], RATE)
    assert [each.together for each in answers] == [16] * 16 + [4] * 4 + [1] * 2


def test_a_sound_file_of_another_rate(running: Running, tmp_path: Path) -> None:
    from ppspeech.audio import write_audio

    write_audio(tmp_path / "a.wav", voice(3), 8_000)  # as if it had been spoken at half the speed
    with running.connect() as client:
        with (
            pytest.warns(SpeechWarning, match="nothing above 4,000 Hz"),
            pytest.raises(RangeError, match="3 to 40 frames here, got 58"),
        ):
            client.recognize(tmp_path / "a.wav")
        write_audio(tmp_path / "a.wav", voice(3, 0.15), 8_000)
        with pytest.warns(SpeechWarning, match="nothing above 4,000 Hz"):
            assert client.recognize(tmp_path / "a.wav").value is not None


def test_features_far_from_zero_are_heard_as_in_the_clear(running: Running) -> None:
    bundle = running.bundles["far"]
    sounds = [scale * voice(seed) for seed, scale in enumerate((1.0, 0.3, 0.01, 1.0, 0.1, 1.0))]
    assert max(float(Mfcc(bundle.mfcc)(sound).features.abs().max()) for sound in sounds) > 40
    with running.connect("far") as client:
        heard = [each.value for each in client.recognize_all(sounds, RATE)]
    assert len(set(heard)) > 1
    for sound, word in zip(sounds, heard, strict=True):
        assert_right(bundle, sound, word)


@pytest.mark.parametrize("model", ["whole", "live", "far"])
def test_listening(running: Running, model: str) -> None:
    """Where features wait for the end the sound is kept; where they do not, frames are scored as they come."""
    bundle = running.bundles[model]
    with running.connect(model) as client:
        for seed in range(3):
            with client.stream() as listening:
                assert listening.is_live == (model != "whole")
                for chunk in voice(seed).split(700):
                    listening.feed(chunk)
                answer = listening.finish()
            assert_right(bundle, voice(seed), answer.value)
            assert (answer.how == "stream") == (model != "whole")  # a clip is asked about in the order that is sooner
        assert_right(bundle, voice(9), client.recognize(voice(9), RATE).value)


def test_nothing_is_sent_before_an_utterance_that_is_kept_is_over(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first message on, the server sees what it sees of a recorded clip, not how long was listened."""
    sent: list[int] = []
    send = StreamChannel.send

    def spied(channel: StreamChannel, kind: int, payload: bytes) -> None:
        sent.append(kind)
        send(channel, kind, payload)

    with running.connect() as client:
        clip = client.recognize(voice(0), RATE)
        monkeypatch.setattr(StreamChannel, "send", spied)
        with client.stream() as listening:
            for chunk in voice(0).split(700):
                listening.feed(chunk)
                assert not sent
            kept = listening.finish()
    assert sent[0] == Kind.REQUEST
    assert kept.transcript.shape() == clip.transcript.shape()
    assert kept.value == clip.value
    assert kept.seconds > kept.offline_seconds == 0


def test_what_goes_wrong_while_listening_ends_one_session_and_no_more(running: Running) -> None:
    with running.connect("live") as client:
        with pytest.raises(AudioError, match="listens at 16000 Hz"), client.stream(rate=8_000):
            pass
        with pytest.raises(RangeError, match="at most 40 frames"), client.stream() as listening:
            listening.feed(voice(0, seconds=1.0))
        with pytest.raises(AudioError, match="finite"), client.stream() as listening:
            listening.feed(torch.tensor([float("nan")]))
        assert_right(running.bundles["live"], voice(2), client.recognize(voice(2), RATE).value)
    with (
        running.connect() as client,
        pytest.raises(PpspeechError, match="nothing was heard"),
        client.stream() as listening,
    ):
        listening.finish()


@pytest.mark.parametrize(
    ("settings", "choices"),
    [
        (MIXTURES, {}),
        (FULL, {"operation": "viterbi"}),
        (MARGIN, {}),
        (CLASSES, {}),
    ],
    ids=["mixtures", "full", "large margin", "classes"],
)
def test_every_type_of_model_with_labels(settings: Any, choices: dict[str, Any], serve: Serve, tmp_path: Path) -> None:
    bundle = released(tmp_path / "model", settings)
    with serve({"model": bundle}, **choices) as running, running.connect("model") as client:
        for seed in range(2):
            sound = voice(seed)
            answer = client.recognize(sound, RATE)
            if settings is not FULL:  # forward and Viterbi may differ
                assert_right(bundle, sound, answer.value)
            assert answer.value in bundle.labels


def test_what_is_rejected_is_rejected_in_the_clear_too(serve: Serve, bundles: dict[str, Bundle]) -> None:
    bundle = bundles["whole"]
    sounds = [voice(seed) for seed in range(4)]
    features = features_of(sounds, Mfcc(bundle.mfcc), RATE)
    recognizer = bundle.recognizer
    other = recognizer.garbage_scores(features)
    assert other is not None
    above = ((recognizer.score(features).amax(-1) - other) / len(features[0])).sort().values
    garbage = float(above[1] + above[2]) / 2  # so that it takes two of them
    expected = [each.value for each in recognizer.recognize_all(sounds, RATE, reject=True, garbage=garbage)]
    assert expected.count(None) == 2
    with serve({"whole": bundle}, reject=True, garbage=garbage) as running, running.connect() as client:
        assert [each.value for each in client.recognize_all(sounds, RATE)] == expected


def test_sound_that_cannot_be_used_is_refused_before_anything_is_sent(running: Running) -> None:
    with running.connect() as client:
        for sound, rate, why in (
            (torch.zeros(RATE // 4), RATE, "silent"),
            (voice(0), None, "needs its rate"),
            (torch.zeros(2, 100), RATE, "shape"),
            (torch.full((RATE // 4,), torch.nan), RATE, "NaN"),
            ("absent.wav", None, "no sound file"),
            ("absent.wav", RATE, "its own rate"),
        ):
            with pytest.raises(AudioError, match=why):
                client.recognize(sound, rate)
        for seconds in (0.02, 0.04, 2.0):
            with pytest.raises((RangeError, AudioError)):
                client.recognize(voice(0, seconds), RATE)
        assert client._session is None  # the server was asked for its description, and nothing more


def test_who_is_not_trusted_is_left(running: Running) -> None:
    with pytest.raises(WrongKeyError, match="pinned"):
        running.connect(pin="ab" * 32)
    with pytest.raises(PpspeechError, match="does not offer 'other', only"):
        running.connect("other")
    with pytest.raises(PpspeechError, match="choose one of whole, live"):
        running.connect(model=None)  # type: ignore[arg-type]
    with pytest.raises(WrongSessionError, match="not the one asked for"):
        running.connect(fingerprint="0" * 64)
    assert running.connect(fingerprint=running.bundles["whole"].fingerprint).offer.name == "whole"
    with pytest.raises(PpspeechError, match="either the server's fingerprint"):
        running.connect(pin=None)
    with pytest.raises(PpspeechError, match="HOST:PORT"):
        replace(running, process=replace(running.process, address="nowhere")).connect()  # type: ignore[arg-type]


def test_four_clients_at_once(running: Running) -> None:
    def ask(seed: int) -> None:
        with running.connect() as client:
            for each in (seed, seed + 10):
                assert_right(running.bundles["whole"], voice(each), client.recognize(voice(each), RATE).value)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))


KEY_BYTES = key_length(LatticeParameters())


def misbehave(channel: StreamChannel, fault: str) -> None:
    messages = {
        "garbage": (Kind.QUERY, b"garbage"),
        "bad key": (Kind.LATTICE_KEY, b"\xff" * KEY_BYTES),
        "short key": (Kind.LATTICE_KEY, b"\xff" * 10),
        "unknown": (Kind.REQUEST, b"\xff\0\0\1\0\0"),
        "too many": (Kind.REQUEST, Request(Ask.WORDS, "frames", 3).encode()),
        "not offered": (Kind.REQUEST, Request(Ask.VERIFY).encode()),
    }
    if fault in ("bad key", "short key"):
        PairSetup.agree(channel, Side.SECOND)
    elif fault != "garbage":
        meet_as_client(channel)
    if fault in messages:
        channel.send(*messages[fault])
    else:
        send_request(channel, Request(Ask.WORDS))
        channel.abort()


@pytest.mark.parametrize("fault", ["garbage", "bad key", "short key", "unknown", "too many", "not offered", "dies"])
def test_a_client_that_misbehaves_hurts_nobody_else(running: Running, fault: str) -> None:
    with running.connect() as client:
        client.recognize(voice(0), RATE)
        channel = running.door().open(client.offer.name, client.offer.agreement)
        misbehave(channel, fault)
        with pytest.raises(PeerGoneError):
            channel.receive(Kind.READY, at_most=100)
        assert_right(running.bundles["whole"], voice(1), client.recognize(voice(1), RATE).value)


def test_another_shape_is_refused_at_the_door(running: Running) -> None:
    offer = running.connect().offer
    wrong = {"model": offer.fingerprint, "shape": "0" * 64}
    for params in (wrong, {}, offer.agreement | {"more": 1}):
        with pytest.raises(ProtocolError):
            running.door().open(offer.name, params)
    with pytest.raises(ProtocolError):
        running.door().open("nonesuch", {})


def test_a_budget_is_spent_once_by_all_sessions_of_a_client(serve: Serve, bundles: dict[str, Bundle]) -> None:
    with serve({"whole": bundles["whole"]}, limit=5) as running:
        with running.connect() as client:
            assert client.offer.queries_left == 5
            client.recognize(voice(0), RATE)
            assert client.queries_left == 4
            client.recognize(voice(0), RATE)
            with pytest.raises(BudgetSpentError, match="4 queries asked, 3 left"):
                client.recognize_all([voice(0)] * 4, RATE)
            client.recognize(voice(0), RATE)  # the session goes on
            client.recognize(voice(0), RATE)
        with running.connect() as other:
            assert other.offer.queries_left == 1
            other.recognize(voice(0), RATE)
            with pytest.raises(BudgetSpentError, match="0 left"):
                other.recognize(voice(0), RATE)
        health = server_health(running.door())
        assert (health["status"], health["queries"], health["refused"]) == ("ok", 5, 5)


def test_clients_with_certificates_have_budgets_of_their_own(
    serve: Serve, bundles: dict[str, Bundle], tmp_path: Path
) -> None:
    both = b""
    for name in ("ann", "bob", "eve"):
        make_certificate(tmp_path / f"{name}.pem", tmp_path / f"{name}.key", names=(name,))
        both += (tmp_path / f"{name}.pem").read_bytes() if name != "eve" else b""
    (tmp_path / "clients.pem").write_bytes(both)
    with serve({"whole": bundles["whole"]}, limit=1, client_ca=tmp_path / "clients.pem") as running:
        for name in ("ann", "bob"):
            options = {"certificate": tmp_path / f"{name}.pem", "key": tmp_path / f"{name}.key"}
            with running.connect(**options) as client:
                client.recognize(voice(0), RATE)
                with pytest.raises(BudgetSpentError):
                    client.recognize(voice(0), RATE)
        for stranger in ({}, {"certificate": tmp_path / "eve.pem", "key": tmp_path / "eve.key"}):
            with pytest.raises(ProtocolError):
                running.connect(**stranger)


def ask_until_it_fails(client: Client) -> None:
    for _ in range(100):
        client.recognize(voice(0), RATE)
        time.sleep(0.05)


def test_a_server_that_stops(serve: Serve, bundles: dict[str, Bundle]) -> None:
    with serve({"whole": bundles["whole"]}, capacity=Capacity(grace_seconds=0.2)) as running:
        with running.connect() as client:
            client.recognize(voice(0), RATE)
            os.kill(running.process.pid, signal.SIGTERM)
            with pytest.raises(ProtocolError):
                ask_until_it_fails(client)
            with pytest.raises(PeerGoneError, match="nobody listens"):
                client.recognize(voice(0), RATE)
        with pytest.raises(PeerGoneError):
            running.connect()
    counters = running.process.counters
    assert counters is not None
    assert counters.finished >= 1  # the description
    assert counters.failed.total() == 1  # the session that was under way
    assert counters.started == counters.finished + 1


def test_a_stale_session_is_met_anew(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    import ppspeech.service.client.session as module

    with running.connect() as client:
        client.recognize(voice(0), RATE)
        first = client._session
        monkeypatch.setattr(module, "STALE_SECONDS", 0.0)
        client.recognize(voice(0), RATE)
        assert client._session is first  # it answered the ping
        assert isinstance(first, ClientSession)
        first._channel.abort()
        assert_right(running.bundles["whole"], voice(1), client.recognize(voice(1), RATE).value)
        assert client._session is not first


def test_what_cannot_be_served_is_refused_by_name(bundles: dict[str, Bundle], tmp_path: Path) -> None:
    files = ServiceFiles.at(tmp_path / "state")
    for offered in ({"describe": bundles["whole"]}, {"Not A Name": bundles["whole"]}, {}):
        with pytest.raises(BundleError):
            build_services(offered, files)
    margin = {"margin": released(tmp_path / "margin", MARGIN)}
    with pytest.raises(ModelError, match="no garbage model"):
        build_services(margin, files, Choices(Deployment(reject=True)))


def test_requests_are_read_literally() -> None:
    for request in (Request(Ask.PING), Request(Ask.WORDS, "garbled", 16), Request(Ask.SENTENCE, "garbled", steps=300)):
        assert Request.decode(request.encode()) == request
    for data in (b"\x7f\0\0\1\0\0", b"\1\4\0\1\0\0", b"\1\0\0\0\0\0", b"\1\0\0\1\0\1", b"\x09\0\0\1\0\0"):
        with pytest.raises(BadTypeError):
            Request.decode(data)
    here, there = memory_pair()
    here.send(Kind.REQUEST, b"\1")
    with pytest.raises(ProtocolError):
        receive_request(there)
    here, there = memory_pair()
    there.send(Kind.READY, b"\7\0\0\0\0")
    with pytest.raises(BadTypeError):
        send_request(here, Request(Ask.PING))


def test_logs_and_metrics_hold_public_facts_alone(running: Running) -> None:
    with running.connect() as client:
        answer = client.recognize(voice(5), RATE)
    time.sleep(0.5)
    lines = [json.loads(line) for line in running.log.read_text().splitlines()]
    ended = [line for line in lines if line["event"] == "session ended"]
    assert ended
    for line in ended:
        assert set(line) == {
            "time", "level", "from", "event", "session", "protocol", "outcome", "seconds", "bytes_up", "bytes_down",
            "rounds", "queries",
        }  # fmt: skip
    own = next(line for line in reversed(ended) if line["protocol"] == "whole")
    assert own["outcome"] == "finished"
    assert own["queries"] == 1
    assert own["rounds"] >= answer.rounds
    everything = running.log.read_text() + running.metrics.read_text()
    assert answer.value is not None
    for secret in (*running.bundles["whole"].labels, "127.0.0.1:1"):
        assert secret not in everything
    assert 'ppspeech_sessions_total{protocol="whole",outcome="finished"}' in everything
