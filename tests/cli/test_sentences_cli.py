"""`serve`, `transcribe --server` and `encrypt-plan` of sentences, as people type them: real processes over TLS."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ppspeech.audio import write_audio
from tests.cli.test_encrypted_cli import run, start
from tests.service.voices import RATE, SENTENCES, released, sure, voice

FRAMES = (30, 70)
"""Of the clips."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    bundle = released(folder / "spoken", SENTENCES)
    for number, frames in enumerate(FRAMES):
        write_audio(folder / f"{number}.wav", sure(bundle, frames, number), RATE)
    write_audio(folder / "long.wav", voice(0, 5.0), RATE)
    (folder / "no.wav").write_bytes(b"no sound")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[list[str]]:
    process, words = start(folder / "spoken", "--listen", "127.0.0.1:0", "--frames", "90", "--budget", "8")
    assert process.stdout is not None
    assert "spoken takes utterances of up to 1.0 s (96 frames)" in process.stdout.readline()
    assert process.stdout.readline().startswith("a client may ask 8 of spoken")
    yield words
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    for word in ("aardvark", "bumblebee", "caterpillar"):
        assert word not in out + errors


def test_transcribe_by_a_server_is_as_in_the_clear(server: list[str], folder: Path) -> None:
    clips = [folder / "0.wav", folder / "1.wav"]
    rows = [json.loads(line) for line in run("transcribe", *clips, *server, "--json").splitlines()]
    plain = [json.loads(line) for line in run("transcribe", folder / "spoken", *clips, "--json").splitlines()]
    for row, clear in zip(rows, plain, strict=True):
        assert (row["clip"], row["words"]) == (clear["clip"], clear["words"])
        assert row["rounds"] >= 2
        assert row["bytes"] > 10_000
    shown = run("transcribe", server[1], clips[0], *server[2:], "--show-transcript")
    assert "round trips" in shown
    assert "What the server saw of the voice" in shown


def test_what_goes_wrong_is_said_with_the_way_out(server: list[str], folder: Path) -> None:
    good, long = folder / "0.wav", folder / "long.wav"
    said = run("transcribe", good, long, *server, code=2)
    assert f"{long}: a sentence lasts 0.04 to 1.0 s here (2 to 96 frames), got 5.00 s: cut it at a pause" in said
    said = run("transcribe", good, folder / "no.wav", *server, code=1)
    assert "not used: " in said
    assert "not a readable sound file" in said
    assert "ask it with `ppspeech transcribe`" in run("recognize", server[1], good, *server[2:], code=2)
    assert "is the server's choice" in run("transcribe", good, *server, "--grammar", "aardvark", code=2)
    assert "go with a server" in run("transcribe", folder / "spoken", good, "--pin", "ab", code=2)
    assert "then sound files" in run("transcribe", *server, code=2)
    assert "nobody listens" in run("transcribe", good, "--server", "127.0.0.1:9", "--insecure", code=2)


def test_the_plan_of_a_bundle_of_sentences(folder: Path) -> None:
    told = json.loads(run("encrypt-plan", folder / "spoken", "--frames", "96", "--json"))
    assert set(told["modes"]) == {f"{seconds} s, {way}" for seconds in ("1.0", "0.3") for way in ("frames", "garbled")}
    assert told["most_apart"] < told["bound"]
    shown = run("encrypt-plan", folder / "spoken", "--frames", "96")
    for fact in (
        "a second of speech",
        "MB and",
        "bits of the model at the most",
        "each a query",
        "nats at the very worst",
    ):
        assert fact in shown
    assert "bits=…" in run("encrypt-plan", folder / "spoken", "--sentences", "bits=8", code=2)
    assert "NAME=VALUE for frames, bits" in run("serve", folder / "spoken", "--sentences", "words=3", code=2)
