"""Sentences asked by the client of the page, under node and in a real browser: words and times are those of Python, and
the server sees the same of both.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ppspeech import connect, serve
from ppspeech.audio import MfccConfig
from ppspeech.bundle import Bundle, Spoken
from ppspeech.service import Deployment, SentenceDeployment, Serving
from ppspeech.service.server import Choices
from tests.service.conftest import QUICK
from tests.service.test_network_sentences import STATES
from tests.service.voices import RATE, SENTENCES, below_best, released, sure, voice
from tests.web.browser import ASK, browser, needs_browser, new_page, write_wave
from tests.web.relay import relayed
from tests.web.test_client import asked
from tests.web.test_other_questions import serving
from tests.web.test_words import MEETING

MFCC = MfccConfig(cepstra=4, deltas=0, hop_s=0.02)
SHORT = SentenceDeployment(frames=96)
NEAR = 1.0  # nats of a whole path that errors of its scores may turn


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return released(tmp_path_factory.mktemp("sentences") / "any", SENTENCES, MFCC)


@pytest.fixture(scope="module")
def clips(bundle: Bundle) -> list[Any]:
    """Of every length that may be asked for."""
    return [sure(bundle, frames).numpy() for frames in (20, 40, 80)]


@pytest.fixture(scope="module")
def server(bundle: Bundle) -> Iterator[Serving]:
    with serve(bundle, web="127.0.0.1:0", sentences=SHORT, budget=100) as found:
        yield found


@pytest.fixture(scope="module")
def port(bundle: Bundle) -> Iterator[int]:
    """Of the same over plain TCP, for relays that read what passes."""
    with serve(bundle, insecure=True, sentences=SHORT, budget=None) as found:
        yield int(found.address.rsplit(":", 1)[1])


def spelled(words: Any) -> list[tuple[str, float, float]]:
    return [(each.value, round(each.start, 6), round(each.end, 6)) for each in words]


def test_words_and_times_are_those_of_python(node: str, bundle: Bundle, port: int, clips: list[Any]) -> None:
    """And what the server sees: kinds and lengths of all frames, both ways, of sentences of every length."""
    seen = []
    with relayed(port) as relay, connect(f"127.0.0.1:{relay.port}", insecure=True, limits=QUICK) as client:
        expected = [spelled(client.transcribe_all([clip], RATE, "frames")[0].value) for clip in clips]
    seen.append([(up.frames, down.frames) for up, down in relay.connections])
    with relayed(port) as relay:
        found = asked(node, relay.port, clips, RATE)
    seen.append([(up.frames, down.frames) for up, down in relay.connections])
    for clip, mine, theirs in zip(clips, found, expected, strict=True):
        assert "error" not in mine, mine
        told = [(each["word"], round(each["start"], 6), round(each["end"], 6)) for each in mine["value"]]
        assert told == theirs == spelled(bundle.transcribe(clip, RATE))
        assert len(told) >= 2
        assert mine["offlineMs"] > 0 < mine["onlineMs"]
    assert [len(connection) for connection in seen] == [2, 2]
    assert sum(len(up) for up, _ in seen[0]) > 500
    assert seen[0] == seen[1]


def test_nothing_is_sent_for_sound_that_cannot_be_used(node: str, port: int, clips: list[Any]) -> None:
    silent, long, broken = np.zeros(8_000), np.tile(clips[2], 2), np.full(8_000, np.nan)
    with relayed(port) as relay:
        found = asked(node, relay.port, [silent, long, broken, clips[0][:100]], RATE, prepares=False)
    for answer, reason in zip(found, ("silent", r"0\.0\d to 1\.93 s here", "NaN", "too short"), strict=True):
        assert re.match(f"AudioError: .*{reason}", answer["error"]), answer
    assert len(relay.connections) == 1, "what is offered is asked, and nothing else"


def test_a_server_that_cheats_is_refused(node: str, port: int, clips: list[Any]) -> None:
    cheats = {(3, 0): "not of this product and key", (204, -1): "it cheats", (215, 0): "expected a message of kind"}
    with relayed(port, [None, *cheats]) as relay:
        *found, last = asked(node, relay.port, [clips[0]] * (len(cheats) + 1), RATE)
    for answer, why in zip(found, cheats.values(), strict=True):
        assert why in answer.get("error", "no error")
    assert "error" not in last
    assert {up.frames[-1] for up, _ in relay.connections[1 : len(cheats) + 1]} == {(255, 1)}, "one constant ABORT"


def test_a_network_is_refused_in_words_and_others_beside_it_are_asked(
    node: str, bundle: Bundle, clips: list[Any], tmp_path: Path
) -> None:
    every = {
        "any": bundle,
        "hybrid": released(tmp_path / "hybrid", STATES, MFCC),
        "words": released(tmp_path / "words"),
    }
    with serving(tmp_path, every, Choices(Deployment(frames=40), sentences=SHORT)) as port:
        refused, *_ = asked(node, port, clips[:1], RATE, model="hybrid")
        (found,) = asked(node, port, clips[:1], RATE, model="any")
        unchosen, *_ = asked(node, port, clips[:1], RATE)
    assert "hybrid scores frames by a network" in refused["error"]
    assert [each["word"] for each in found["value"]] == [each.value for each in bundle.transcribe(clips[0], RATE)]
    assert "choose one of words, any, hybrid" in unchosen["error"]


@needs_browser
@pytest.mark.timeout(600)
def test_a_page_writes_down_what_its_microphone_hears(
    bundle: Bundle, server: Serving, tmp_path: Path, clips: list[Any]
) -> None:
    microphone = tmp_path / "said.wav"
    write_wave(microphone, clips[2], RATE)
    with browser(microphone) as opened:
        page = new_page(opened)
        page.goto(server.web)
        page.wait_for_selector("#record:enabled")
        assert page.inner_text("#title") == "Say a sentence. It stays here."
        assert page.inner_text("#record") == "Record a sentence"
        heard = []
        for sound in (clips[2], voice(7, 1.2)):
            write_wave(microphone, sound, RATE)
            page.wait_for_selector("#record:enabled")
            said = page.evaluate(ASK)
            assert "error" not in said, said
            heard.append(said)
        shown = page.inner_text("#word")
        page.close()
    same = 0
    with connect(server.address, pin=server.pin) as client:
        for said in heard:
            samples = np.asarray(said["samples"], np.float32)
            answer = client.transcribe_all([samples], RATE, "frames")[0]
            ours = [Spoken(each["word"], each["start"], each["end"]) for each in said["value"]]
            assert below_best(bundle, torch.from_numpy(samples), ours) < NEAR
            same += spelled(ours) == spelled(answer.value)
    assert same
    # For the same public sizes the server sees the same, whoever asks: of the last, on a connection that had met.
    sizes: dict[tuple[str, int], list[int]] = {}
    for direction, kind, size in answer.transcript.shape():
        sizes.setdefault((direction, kind), []).append(28 + size)
    theirs = {(each["direction"], each["kind"]): (each["messages"], each["bytes"]) for each in heard[-1]["traffic"]}
    assert {key: each for key, each in theirs.items() if key[1] not in MEETING} == {
        key: (len(each), sum(each)) for key, each in sizes.items()
    }
    assert shown.split()[0] == heard[-1]["value"][0]["word"]
    assert re.search(r"\d\.\d\d–\d\.\d\d s", shown)
