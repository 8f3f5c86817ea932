"""Sentences over TLS, in processes of their own: words and times as in the clear, sizes alone to the server."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from ppspeech.arrays import Residues
from ppspeech.audio import MfccConfig
from ppspeech.bundle import Bundle
from ppspeech.crypto.shares import ShareEngine
from ppspeech.crypto.transfer import GREETING_BYTES
from ppspeech.data import SentenceDataModule, joined_sentences, load_corpus
from ppspeech.errors import (
    AudioError,
    BundleError,
    ModelError,
    PeerGoneError,
    PpspeechError,
    ProtocolError,
    RangeError,
    WrongSessionError,
)
from ppspeech.network import Capacity
from ppspeech.protocols import Kind, meet_as_client
from ppspeech.protocols.sentences import Heard, SentenceShape, check_heard, garbled_bytes, transcribe
from ppspeech.service import BudgetSpentError, Client, SentenceDeployment, export_bundle, plan_sentences, server_health
from ppspeech.service.client import sentences as client_module
from ppspeech.service.estimate import Knowledge
from ppspeech.service.estimate_sentences import choose_way, speaking_way
from ppspeech.service.offer import Offer, describe, read_offers
from ppspeech.service.requests import Ask, Request, send_request
from ppspeech.service.server.sentences import ServedSentences
from ppspeech.service.tasks.sentences import MODES, STEP, Sentences, most_words
from ppspeech.training import SentenceModels, quiet_lightning, release
from tests.service.conftest import Running, serving
from tests.service.voices import LIVE, RATE, SENTENCES, below_best, released, seconds_of, sure, voice

Serve = Callable[..., AbstractContextManager[Running]]

protocol = importlib.import_module("ppspeech.protocols.sentences.transcribe")  # its door offers the function
MFCC = MfccConfig(cepstra=4, deltas=0, hop_s=0.02)
SHORT = SentenceDeployment(frames=96)
NEAR = 1.0  # nats of a whole path that errors of its scores may turn
DIGITS = {"words": ["zero", "one", "two"], "speakers": 8, "takes": 2, "seed": 1}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return released(tmp_path_factory.mktemp("sentences") / "any", SENTENCES, MFCC)


@pytest.fixture(scope="module")
def chatter(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """One that is paid for every word: it hears one every two frames."""
    talks = replace(SENTENCES, word_penalty=-500.0)
    return released(tmp_path_factory.mktemp("sentences") / "chatter", talks, MFCC)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """One whose features are known as they are spoken."""
    return released(tmp_path_factory.mktemp("sentences") / "live", SENTENCES, replace(LIVE, hop_s=0.02))


@pytest.fixture(scope="module")
def asked(
    tmp_path_factory: pytest.TempPathFactory, bundle: Bundle, chatter: Bundle, live: Bundle, bundles: dict[str, Bundle]
) -> Iterator[Running]:
    """One server for all tests that leave it as they found it."""
    every = {"any": bundle, "chatter": chatter, "live": live, "whole": bundles["whole"]}
    with serving(tmp_path_factory.mktemp("server"), every, sentences=SHORT) as found:
        yield found


@pytest.fixture(autouse=True)
def on_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine looks like a slow link: the way that a client chooses is what a test says, or on shares."""
    monkeypatch.setattr(client_module, "choose_way", lambda *_: "frames")


def ended(running: Running, protocol: str, count: int) -> list[dict[str, Any]]:
    """What the server's own log says of so many sessions."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        time.sleep(0.05)
        lines = [json.loads(line) for line in running.log.read_text().splitlines()]
        found = [line for line in lines if line["event"] == "session ended" and line["protocol"] == protocol]
    return found


def test_sentences_of_people_are_heard_as_in_the_clear(tmp_path: Path, serve: Serve) -> None:
    """The built-in voices, trained on some and asked by others, clicks and all."""
    import pytorch_lightning as lightning

    quiet_lightning()
    joined = SentenceDataModule(
        corpus="synthetic", options=DIGITS, mfcc={"hop_s": 0.03}, sentences=6, test_sentences=3, test=0.25, seed=2
    )
    model = SentenceModels(states=4, covariance="diagonal", floor=0.1, prior_covariance=100.0)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    lightning.Trainer(max_epochs=3, enable_model_summary=False, **quiet).fit(model, datamodule=joined)  # type: ignore
    digits = release(model, tmp_path / "digits", not_private=True)
    held_out = {joined.vocabulary["speaker"][place] for place in joined.parts["test"].speakers.tolist()}
    corpus = load_corpus("synthetic", **DIGITS).select(lambda u: u.speaker in held_out)
    said = [(each.waveform, each.text) for each in joined_sentences(corpus, 3, RATE, (2, 4), seed=5)]
    clicking = said[0][0].clone()
    clicking[4000:4004] = 1.0
    with serve({"digits": digits}) as running, running.connect("digits") as client:
        answers = client.transcribe_all([sound for sound, _ in said], RATE)
        answered = [(each.value, sound) for each, (sound, _) in zip(answers, said, strict=True)]
        for heard, sound in [*answered, (client.transcribe(clicking, RATE).value, clicking)]:
            assert [word.value for word in heard] == [word.value for word in digits.transcribe(sound, RATE)]
            assert below_best(digits, sound, heard) < NEAR
        late = [replace(word, start=word.start + 0.18) for word in answers[0].value]
        assert below_best(digits, said[0][0], late) > 5 * NEAR
        assert (
            sum([w.value for w in each.value] == list(text) for each, (_, text) in zip(answers, said, strict=True)) > 3
        )
        assert len({each.bytes_up for each in answers}) > 1  # lengths differ, in steps
        first = answers[0]
        assert (first.how, first.together) == ("frames", 1)
        assert first.seconds > 0 < first.offline_seconds
        assert first.bytes_up == first.transcript.bytes_up > 10_000
        quiet_room = 1e-3 * torch.randn(RATE, generator=torch.Generator().manual_seed(0))
        assert client.transcribe(quiet_room, RATE).value == digits.transcribe(quiet_room, RATE)


def test_a_grammar_and_dear_words_are_followed_as_in_the_clear(tmp_path: Path, serve: Serve) -> None:
    strict = replace(SENTENCES, grammar="aardvark [bumblebee] caterpillar", word_penalty=300.0)
    dear = replace(SENTENCES, word_penalty=140.0)
    found = {name: released(tmp_path / name, each, MFCC) for name, each in (("strict", strict), ("dear", dear))}
    with serve(found, sentences=SHORT) as running:
        for name, each in found.items():
            with running.connect(name) as client:
                for seed in range(3):
                    sound = sure(each, 30 + 20 * seed, seed)
                    assert client.transcribe(sound, RATE).value == each.transcribe(sound, RATE)
    for arrays, cost in ((export_bundle(found["strict"], SHORT), 300.0), (export_bundle(found["dear"], SHORT), 140.0)):
        assert arrays.arcs.min() < 5 - cost  # what words cost is not cut off
        assert arrays.starts.min() < 5 - cost
    several = found["strict"].transcribe(frames_long(40), RATE)
    assert [word.value for word in several] in (["aardvark", "caterpillar"], ["aardvark", "bumblebee", "caterpillar"])


def frames_long(frames: int, seed: int = 0) -> torch.Tensor:
    """A sound of so many frames."""
    return voice(seed, seconds_of(MFCC, frames))


def test_the_shortest_and_the_longest_are_heard_and_others_not_sent(asked: Running, bundle: Bundle) -> None:
    with asked.connect("any") as client:
        for frames in (2, 32, 33, 96):
            sound = sure(bundle, frames, frames)
            answer = client.transcribe(sound, RATE)
            assert answer.value == bundle.transcribe(sound, RATE)
            assert (
                answer.bytes_up + answer.bytes_down == costs(client.offer.terms, -(-frames // 32)) + 2 * GREETING_BYTES
            )
        before = asked.log.read_text().count("session ended")
        with pytest.raises(RangeError, match=r"recording 2 of 2: .* 0\.04 to 1\.9 s here .*cut it at a pause"):
            client.transcribe_all([frames_long(50), frames_long(97)], RATE)
        with pytest.raises((RangeError, AudioError)):
            client.transcribe(frames_long(1), RATE)
        assert asked.log.read_text().count("session ended") == before
        sound = sure(bundle, 40)
        assert client.transcribe(sound, RATE).value == bundle.transcribe(sound, RATE)


def costs(terms: Sentences, steps: int) -> int:
    from ppspeech.protocols.sentences import total_bytes

    return total_bytes(terms.shape_of(steps))


# What the server sees.


def test_two_sentences_of_one_length_look_the_same(asked: Running, bundle: Bundle) -> None:
    """Lengths and order are equal; bytes pass a two-sample chi-square at 1e-4, which plain samples fail."""
    shapes, counts, plain = [], [], []
    sounds = [frames_long(33, seed=1), 0.01 * frames_long(64, seed=2)]
    assert bundle.transcribe(sounds[0], RATE) != bundle.transcribe(sounds[1], RATE)
    with asked.connect("any", keep_payloads=True) as client:
        for sound in sounds:
            answers = [client.transcribe(sound, RATE) for _ in range(3)]
            shapes += [answer.transcript.shape() for answer in answers]
            sent = [e.payload or b"" for a in answers for e in a.transcript.entries if e.direction == "sent"]
            online = b"".join(payload for payload in sent if len(payload) > 100)
            counts.append(np.bincount(np.frombuffer(online, np.uint8), minlength=256))
            samples = (32_767 * sound).numpy().astype(np.int16)
            plain.append(np.bincount(np.frombuffer(samples.tobytes(), np.uint8), minlength=256) + 1)
        other = client.transcribe(frames_long(65), RATE).transcript.shape()
    assert all(shape == shapes[0] != other for shape in shapes)
    assert stats.chi2_contingency(np.array(counts) + 1).pvalue > 1e-4
    assert stats.chi2_contingency(np.array(plain)).pvalue < 1e-4


def test_no_words_or_frames_are_on_the_wire(asked: Running, bundle: Bundle) -> None:
    sound = frames_long(64, seed=4)
    with asked.connect("any", keep_payloads=True) as client:
        answer = client.transcribe(sound, RATE)
        frames = client._questions.frames(sound, RATE)
    assert answer.value
    wire = b"".join(entry.payload or b"" for entry in answer.transcript.entries)
    for label in bundle.labels:
        assert label.encode() not in wire
    for frame in frames[:5]:
        for form in (np.float32, np.float64):
            assert frame[:2].astype(form).tobytes() not in wire


@pytest.mark.parametrize("careful", [False, True], ids=["strict", "as it is"])
def test_what_is_opened_does_not_change_what_is_sent(
    careful: bool, serve: Serve, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that spoils what is known where a word ends: it must not learn whether one ended there."""
    original, hop = protocol.walk_back, MFCC.hop_s
    ends: dict[int, set[int]] = {}
    for seed in range(20):
        words = bundle.transcribe(sure(bundle, 60, seed), RATE)
        ends[seed] = {round(at / hop) - 1 for word in words for at in (word.start, word.end)} - {-1, 59}
    known = next(seed for seed, found in ends.items() if found)
    place = max(ends[known])
    other = next(seed for seed, found in ends.items() if place not in found)
    sounds = {True: sure(bundle, 60, known), False: sure(bundle, 60, other)}

    def spoiled(engine: ShareEngine, shape: SentenceShape, records: Residues, frames: int | None) -> Any:
        if engine.is_first:
            records = records.copy()
            records[place : place + 1] ^= np.uint64(2 ** sum(shape.fields) - 1)
        return original(engine, shape, records, frames)

    monkeypatch.setattr(protocol, "walk_back", spoiled)

    def strict(*given: Any) -> list[Heard]:
        """As it was: what makes no sense ends the session, which the server sees."""
        return check_heard(given[1], transcribe(*given))

    meant = [True, False, False, True]
    with serve({"any": bundle}, sentences=SHORT) as running:
        if not careful:
            monkeypatch.setattr(client_module, "transcribe", strict)
        for each in meant:
            with running.connect("any") as client, suppress(RangeError):
                client.transcribe_all([sounds[each]] * 2, RATE)  # the second comes in any case
                assert not each
        log = ended(running, "any", len(meant))
    seen = [{name: line[name] for name in ("outcome", "queries", "rounds", "bytes_up", "bytes_down")} for line in log]
    assert [each != seen[1] for each in seen] == ([False] * 4 if careful else meant)


def test_too_many_words_are_an_error_of_the_client_alone(asked: Running, chatter: Bundle) -> None:
    assert len(chatter.transcribe(frames_long(90), RATE)) > most_words(96)
    before = len(ended(asked, "chatter", 0))
    with asked.connect("chatter") as client:
        with pytest.raises(
            RangeError, match=r"recording 1 of 2: more than 14 words and pauses were heard in 96 frames"
        ):
            client.transcribe_all([frames_long(90), frames_long(2)], RATE)
        few = sure(chatter, 8)
        assert client.transcribe(few, RATE).value == chatter.transcribe(few, RATE)  # the session goes on
    assert (ended(asked, "chatter", before + 1)[-1]["queries"], client.queries_left) == (3, None)


# Budgets, faults and cheats.


def test_a_sentence_is_one_query_however_long_and_paid_before_it_is_answered(serve: Serve, bundle: Bundle) -> None:
    with serve({"any": bundle}, limit=3, sentences=SHORT) as running:
        with running.connect("any") as client:
            for frames, left in ((96, 2), (2, 1)):
                client.transcribe(frames_long(frames), RATE)
                assert client.queries_left == left
            channel = running.door().open("any", client.offer.agreement)
            meet_as_client(channel)
            assert send_request(channel, Request(Ask.SENTENCE, steps=1)) == 0
            channel.abort()
            with pytest.raises(BudgetSpentError, match="0 left"):
                client.transcribe(frames_long(2), RATE)
        assert server_health(running.door())["refused"] == 1


HOSTILE = {
    "no steps": b"\x09\0\0\1\0\0",
    "too many steps": Request(Ask.SENTENCE, steps=4).encode(),
    "far too many steps": Request(Ask.SENTENCE, steps=65_535).encode(),
    "several at once": Request(Ask.SENTENCE, utterances=2, steps=1).encode(),
    "another order": b"\x09\2\0\1\0\1",
    "a word": Request(Ask.WORDS).encode(),
    "a word of some steps": b"\x01\0\0\1\0\1",
}


@pytest.mark.parametrize("fault", [*HOSTILE, "dies"])
def test_a_client_that_misbehaves_hurts_nobody_else(asked: Running, bundle: Bundle, fault: str) -> None:
    sound = sure(bundle, 20)
    with asked.connect("any") as client:
        client.transcribe(sound, RATE)
        channel = asked.door().open("any", client.offer.agreement)
        meet_as_client(channel)
        if fault == "dies":
            send_request(channel, Request(Ask.SENTENCE, steps=2))
            channel.abort()
        else:
            channel.send(Kind.REQUEST, HOSTILE[fault])
        with pytest.raises(PeerGoneError):
            channel.receive(Kind.READY, at_most=100)
        assert client.transcribe(sound, RATE).value == bundle.transcribe(sound, RATE)


def ask_until_it_fails(client: Client) -> None:
    for _ in range(100):
        client.transcribe(frames_long(20), RATE)
        time.sleep(0.05)


def test_a_server_that_stops(serve: Serve, bundle: Bundle) -> None:
    quick = Capacity(grace_seconds=0.2)
    with serve({"any": bundle}, capacity=quick, sentences=SHORT) as running, running.connect("any") as client:
        client.transcribe(frames_long(20), RATE)
        os.kill(running.process.pid, signal.SIGTERM)
        with pytest.raises(ProtocolError):
            ask_until_it_fails(client)
        with pytest.raises(PeerGoneError, match="nobody listens"):
            client.transcribe(frames_long(20), RATE)


def test_who_asks_for_what_is_not_offered_is_told_what_is(
    asked: Running, serve: Serve, bundles: dict[str, Bundle]
) -> None:
    with pytest.raises(PpspeechError, match="several models, choose one of any, chatter"):
        asked.connect(model=None, task="sentences")
    with pytest.raises(PpspeechError, match="does not offer 'whole' for sentences, only any, chatter"):
        asked.connect("whole", task="sentences")
    with asked.connect("whole") as client, pytest.raises(ModelError, match="whole does not transcribe_all"):
        client.transcribe(voice(0), RATE)
    with serve({"whole": bundles["whole"]}) as words, pytest.raises(PpspeechError, match="ask it with `ppspeech recog"):
        words.connect(model=None, task="sentences")


# What is offered.


@pytest.fixture(scope="module")
def offer(bundle: Bundle) -> Offer[Sentences]:
    return ServedSentences.of("any", bundle, SHORT).offer


def test_an_offer_comes_back_as_it_was(offer: Offer[Sentences]) -> None:
    assert read_offers(describe((offer,)), "sentences") == (offer,)
    assert read_offers(describe((offer,)), "words") == ()
    assert list(offer.terms.steps) == [1, 2, 3]
    for other in (replace(offer.terms, step=16), replace(offer.terms, shape=offer.terms.shape_of(2))):
        assert replace(offer, terms=other).agreement != offer.agreement
    assert offer.terms.shape_of(3) is offer.terms.shape_of(3)  # what follows from it is computed once
    with pytest.raises(BundleError, match="at most"):
        describe([replace(offer, name=f"n{n}", terms=replace(offer.terms, type="x" * 30_000)) for n in range(40)])


CHANGES: list[tuple[str, Any]] = [
    ("modes", []),
    ("modes", ["frames", "frames"]),
    ("modes", ["telepathy"]),
    ("step", 0),
    ("step", 33),
    ("step", 32.0),
    ("shape.frames", 97),
    ("shape.frames", 10**6),
    ("shape.most_words", 1_000),
    ("shape.most_words", 13),
    ("shape.dimensions", 5),
    ("shape.words", ["a\x1b[2Jb", "b", "c", ""]),
    ("shape.words", ["a", "b", "c", None]),
    ("shape.words", []),
    ("shape.radius", -1.0),
    ("shape.arcs", [[0, 0, 0, -1]] * 60_000),
    ("shape.arcs", [[0, 0, 0]]),
    ("shape.columns", [0, 1]),
    ("shape.more", 1),
    ("mfcc.sample_rate", 0),
    ("mfcc.window_s", 1e6),
    ("more", 1),
]


@pytest.mark.parametrize(("field", "value"), CHANGES, ids=lambda value: str(value)[:40])
def test_a_description_that_is_not_right_is_refused(offer: Offer[Sentences], field: str, value: Any) -> None:
    plain = json.loads(describe((offer,)))
    at = plain["sentences"][0]
    *path, last = field.split(".")
    for name in path:
        at = at[name]
    at[last] = value
    with pytest.raises(WrongSessionError, match="cannot be used"):
        read_offers(json.dumps(plain).encode(), "sentences")


def test_an_offer_of_more_than_a_client_exchanges_is_refused(
    asked: Running, offer: Offer[Sentences], monkeypatch: pytest.MonkeyPatch
) -> None:
    size = costs(offer.terms, 3)
    monkeypatch.setattr(client_module, "MOST_BYTES", garbled_bytes(offer.terms.shape))
    asked.connect("any").close()
    monkeypatch.setattr(client_module, "MOST_BYTES", size)
    with pytest.raises(WrongSessionError, match="tables of more than"):  # what shares exchange is not too much
        asked.connect("any")
    for most in (size - 1, size // 4):  # by what is exchanged, or before it is counted
        monkeypatch.setattr(client_module, "MOST_BYTES", most)
        with pytest.raises(WrongSessionError, match="bytes for the longest sentence"):
            asked.connect("any")


def test_lengths_below_the_shortest_are_not_offered(tmp_path: Path) -> None:
    long = replace(SENTENCES, states=6, grammar=" ".join(["aardvark", "bumblebee", "caterpillar"] * 2))
    served = ServedSentences.of("long", released(tmp_path / "long", long, MFCC), SHORT)
    assert served.offer.terms.shape.shortest == 36
    assert list(served.offer.terms.steps) == [2, 3] == list(served.models)
    with pytest.raises(RangeError, match=r"short as|within 32"):
        ServedSentences.of("long", released(tmp_path / "again", long, MFCC), SentenceDeployment(frames=32))


WARM = """
import sys
from numba.core.registry import CPUDispatcher
from ppspeech.service.server.sentences import warm_up
from tests.protocols.sentence_reference import loop_arrays, say
from tests.protocols.test_sentence import converse

def compiled():
    loaded = [module for name, module in list(sys.modules.items()) if name.startswith("ppspeech")]
    kernels = [each for module in loaded for each in vars(module).values() if isinstance(each, CPUDispatcher)]
    return {(each.py_func.__qualname__, str(kinds)) for each in kernels for kinds in each.signatures}

warm_up()
before = compiled()
arrays = loop_arrays(words=5, states=3, frames=64)
converse(arrays, say(arrays, 0, 1))
assert len(before) > 20
print(compiled() - before)
"""


def test_nothing_is_compiled_while_a_client_waits() -> None:
    """Or else every session's process does it anew."""
    done = subprocess.run([sys.executable, "-c", WARM], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "set()", done.stdout + done.stderr


# While it is spoken.


@pytest.mark.parametrize("engine", ["shares", "garbled"])
def test_a_sentence_is_heard_while_it_is_spoken(
    asked: Running, live: Bundle, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three in one session; the words and times of the whole recording."""
    monkeypatch.setattr(client_module, "speaking_way", lambda *_: engine)
    with asked.connect("live", keep_payloads=True) as client:
        for frames in (20, 41, 90):
            sound = sure(live, frames)
            with client.listen() as listening:
                assert listening.is_live
                for chunk in sound.split(777):
                    listening.feed(chunk)
                answer = listening.finish()
            assert answer.value == live.transcribe(sound, RATE)
            assert answer.how == "stream"
    assert client.queries_left is None


def test_sound_is_kept_where_features_wait_for_the_end(asked: Running, bundle: Bundle) -> None:
    sound = sure(bundle, 30)
    with asked.connect("any") as client:
        with client.listen(RATE) as listening:
            assert not listening.is_live
            for chunk in sound.split(500):
                listening.feed(chunk)
            assert listening.finish().value == bundle.transcribe(sound, RATE)
        with client.listen(RATE) as silent, pytest.raises(PpspeechError, match="nothing was heard"):
            silent.finish()


def test_frames_are_scored_in_a_circuit_where_a_round_trip_takes_longer_than_they(live: Bundle) -> None:
    shape = export_bundle(live, SHORT).shape
    assert speaking_way(shape, 0.03, 1e-4, MODES) == "shares"
    assert speaking_way(shape, 0.03, 0.04, MODES) == "garbled"
    assert speaking_way(shape, 0.03, 0.04, ("frames",)) == "shares"  # what is not offered is not asked for


# What it costs, and which way.


def test_a_circuit_hears_what_shares_hear(asked: Running, bundle: Bundle) -> None:
    """Over the same session; words, times, and what cannot be asked."""
    sounds = [sure(bundle, 30), sure(bundle, 40, 3), sure(bundle, 64, 5)]
    with asked.connect("any") as client:
        found = {way: client.transcribe_all(sounds, RATE, way) for way in MODES}
        with pytest.raises(RangeError, match="can be asked by frames, garbled, got 'scan'"):
            client.transcribe_all(sounds, RATE, "scan")
    assert [a.value for a in found["frames"]] == [a.value for a in found["garbled"]]
    assert found["garbled"][0].value == bundle.transcribe(sounds[0], RATE)
    shapes = [answer.transcript.shape() for answer in found["garbled"][1:]]
    assert shapes[0] == shapes[1]


def test_a_circuit_is_chosen_where_a_round_trip_is_dear(bundle: Bundle) -> None:
    shape = export_bundle(bundle, SHORT).shape
    assert choose_way(shape, MODES, 0.0) == "frames"
    assert choose_way(shape, MODES, 0.04) == "garbled"
    assert choose_way(shape, ("frames",), 0.04) == "frames"


def test_the_plan_says_what_happens(asked: Running, bundle: Bundle) -> None:
    plan = plan_sentences(bundle, SHORT)
    longest = plan.modes[0]
    with asked.connect("any") as client:
        for number, mode in enumerate(plan.modes):
            frames, way = (96, 96, 20, 20)[number], MODES[number % 2]
            (answer,) = client.transcribe_all([frames_long(frames)], RATE, way)
            assert answer.how == way
            assert answer.bytes_up == mode.cost.bytes_up + GREETING_BYTES
            assert answer.bytes_down == mode.cost.bytes_down + GREETING_BYTES
            if way == "garbled":
                continue
            kinds = {2, 3, 215}
            online = sum(entry.size for entry in answer.transcript.entries if entry.kind in kinds)
            assert online == mode.cost.online_bytes
            assert mode.cost.rounds < answer.rounds <= mode.cost.rounds + 10  # the others are of what is prepared
    told = plan.to_json()
    assert [mode.mode for mode in plan.modes] == [f"{seconds} s, {way}" for seconds in ("1.9", "0.6") for way in MODES]
    assert told["bytes_a_second"] == round((longest.cost.bytes_up + longest.cost.bytes_down) / 1.92)
    assert told["most_apart"] < told["bound"]
    shape = export_bundle(bundle, SHORT).shape
    assert told["knowledge"]["bits"] == shape.answer_bits == 14 * sum(shape.fields)
    assert ServedSentences.of("any", bundle, SHORT).usual_budget == told["knowledge"]["budget"] == 100
    assert any("could know the model within the usual budget" in each for each in plan.warnings)
    weights = shape.monomials * shape.scores
    assert Knowledge.about(weights, shape.answer_bits).queries <= told["knowledge"]["queries"]


def test_what_cannot_be_served(bundle: Bundle, bundles: dict[str, Bundle]) -> None:
    with pytest.raises(ModelError, match="writes down no sentences"):
        export_bundle(bundles["whole"])
    with pytest.raises(RangeError, match="variance floor"):
        export_bundle(bundle, SentenceDeployment(frames=64, bits=8))
    with pytest.raises(RangeError, match="frames must lie"):
        export_bundle(bundle, SentenceDeployment(frames=5_000))
    assert export_bundle(bundle, SentenceDeployment(frames=33)).shape.frames == 2 * STEP
    assert export_bundle(bundle).shape.frames == 512  # ten seconds
