"""`serve`, `recognize --server`, `encrypt-plan` and `keys`, as people type them: real processes over TLS."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ppspeech.audio import write_audio
from ppspeech.bundle import load_bundle
from ppspeech.cli import app
from tests.service.voices import CLASSES, RATE, SPEAKERS, plain_answer, released, voice


def run(*words: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output + str(result.exception)
    return result.output


def start(*words: str | Path) -> tuple["subprocess.Popen[str]", list[str]]:
    """A server, and what it tells clients to type to reach it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ppspeech", "serve", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    assert first.startswith("serving "), first + process.communicate()[1]
    typed = process.stdout.readline().split()
    if "--server" in typed:
        return process, typed[typed.index("--server") :]
    return process, ["--server", typed[2], *typed[4:]]  # ppspeech recognize HOST:PORT clip.wav …


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    released(folder / "words")
    for seed in range(2):
        write_audio(folder / f"{seed}.wav", voice(seed), RATE)
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[list[str]]:
    process, words = start(
        folder / "words", "--listen", "127.0.0.1:0", "--frames", "40", "--budget", "6", "--metrics", folder / "m.prom"
    )
    assert process.stdout is not None
    assert "utterances of up to" in process.stdout.readline()
    assert process.stdout.readline().startswith("a client may ask 6 of words")
    yield words
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "stopped: " in out
    lines = [json.loads(line) for line in errors.splitlines()]
    assert {"describe", "words"} <= {line["protocol"] for line in lines if line["event"] == "session ended"}
    for word in ("aardvark", "bumblebee", "caterpillar"):
        assert word not in out + errors


def test_recognize_by_a_server(server: list[str], folder: Path) -> None:
    clips = [folder / "0.wav", folder / "1.wav"]
    asked = [server[1], *clips, *server[2:]]
    rows = [json.loads(line) for line in run("recognize", *asked, "--json").splitlines()]
    plain = [json.loads(line) for line in run("recognize", folder / "words", *clips, "--json").splitlines()]
    bundle = load_bundle(folder / "words")
    for seed, (row, clear) in enumerate(zip(rows, plain, strict=True)):
        word, margin = plain_answer(bundle, voice(seed))
        assert clear["word"] == word
        assert row["word"] == word or margin < 0.5
        assert row["bytes"] > 10_000
    shown = run("recognize", clips[0], *server, "--show-transcript")
    assert "What the server saw" in shown
    assert "query" in shown
    assert "ppspeech_sessions_total" in (folder / "m.prom").read_text()


def test_a_microphone(server: list[str], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no recorder" in run("recognize", "--mic", *server, code=2)
    raw = (voice(0) * 32_767).numpy().astype("<i2").tobytes()
    (tmp_path / "sound.raw").write_bytes(raw)
    recorder = tmp_path / "arecord"
    recorder.write_text(f"#!/bin/sh\nexec /bin/cat {tmp_path / 'sound.raw'}\n")
    recorder.chmod(0o755)
    row = json.loads(run("recognize", "--mic", *server, "--json"))
    word, margin = plain_answer(load_bundle(folder / "words"), voice(0))
    assert row["clip"] == "the microphone"
    assert row["word"] == word or margin < 0.5
    recorder.write_text("#!/bin/sh\necho no card >&2\nexit 1\n")
    assert "no card" in run("recognize", "--mic", *server, code=2)


def test_the_budget_ends(server: list[str], folder: Path) -> None:
    said = ""
    for _ in range(7):
        result = CliRunner().invoke(app, ["recognize", str(folder / "0.wav"), *server])
        said = result.output
        if result.exit_code:
            break
    assert "the server answers no more" in said


def test_speakers_behind_certificates_of_ones_own(folder: Path, tmp_path: Path) -> None:
    """One server for words and speakers, with a certificate of its own, that lets in one client."""
    bundle, ann = tmp_path / "voices", tmp_path / "ann"
    released(bundle, SPEAKERS)
    for seed in (0, 5):
        write_audio(tmp_path / f"{seed}.wav", voice(seed), RATE)
    for name in ("server", "ann"):
        run("keys", "new", tmp_path / name)
    own = ["--certificate", tmp_path / "server" / "certificate.pem", "--key", tmp_path / "server" / "key.pem"]
    choices = ["--enroll", "--speakers", "places=3,threshold=0.95", "--frames", "40"]
    process, words = start(
        bundle, folder / "words", "--listen", "127.0.0.1:0", *own, "--client-ca", ann / "certificate.pem", *choices
    )
    stranger = ["--server", words[words.index("--server") + 1], "--ca", own[1]]
    server = [*stranger, "--certificate", ann / "certificate.pem", "--key", ann / "key.pem"]
    try:
        enrolled = json.loads(run("enroll", bundle, tmp_path / "0.wav", "--name", "ann", *server, "--json"))
        place = enrolled["place"]
        assert enrolled == {"name": "ann", "place": place}
        assert "accepted" in run("verify", bundle, tmp_path / "0.wav", "--claim", place, *server)
        other = json.loads(run("verify", bundle, tmp_path / "5.wav", "--claim", place, *server, "--json"))
        assert other["accepted"] is False
        assert json.loads(run("identify", bundle, tmp_path / "0.wav", *server, "--json"))["speaker"] == "ann"
        shown = run("identify", bundle, tmp_path / "5.wav", *server, "--show-transcript")
        assert "nobody known" in shown
        assert "What the server saw" in shown
        assert json.loads(run("recognize", folder / "0.wav", *server, "--json"))["word"]
        assert "--claim" in run("verify", bundle, tmp_path / "0.wav", *server, code=2)
        assert "error" in run("recognize", folder / "0.wav", *stranger, code=2)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert "no words" in run("recognize", bundle, tmp_path / "0.wav", code=2)
    for command in ("verify", "identify"):
        assert "--server" in run(command, bundle, tmp_path / "0.wav", code=2)


def test_encrypt_plan(folder: Path, tmp_path: Path) -> None:
    shown = run("encrypt-plan", folder / "words", "--frames", "40")
    for part in (
        "rounds",
        "leaks",
        "128 bits",
        "nat typically",
        "can leave their range",
        "2 bits of the model at the most",
    ):
        assert part in " ".join(shown.split())
    chosen = json.loads(run("encrypt-plan", folder / "words", "--words", "limit=6,bits=28", "--json"))["shape"]
    assert (chosen["limit"], chosen["bits"]) == (6, 28)
    for command in ("encrypt-plan", "serve"):
        assert "raise bits" in run(command, folder / "words", "--words", "bits=12", code=2)
    plan = json.loads(run("encrypt-plan", folder / "words", "--operation", "viterbi", "--json"))
    assert plan["shape"]["operation"] == "viterbi"
    assert plan["modes"]["frames"]["bytes_up"] > 10_000
    assert plan["knowledge"] == {"bits": 2, "queries": plan["knowledge"]["queries"], "budget": 100}
    released(tmp_path / "classes", CLASSES)
    assert "no garbage model" in run("encrypt-plan", tmp_path / "classes", "--reject", code=2)


def test_keys(tmp_path: Path) -> None:
    said = run("keys", "new", tmp_path / "ann")
    key = tmp_path / "ann" / "key.pem"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    assert "fingerprint: " in said
    assert "already" in run("keys", "new", tmp_path / "ann", code=2)
    assert "--name" in run("keys", "new", tmp_path / "no host name", code=2)
    run("keys", "new", tmp_path / "no host name", "--name", "speech.example.org")
    run("keys", "old", tmp_path / "bob", code=2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["recognize"], "give a bundle, a checkpoint"),
        (["recognize", "x.wav", "--server", "127.0.0.1:1"], "fingerprint"),
        (["recognize", "x.wav", "--server", "nowhere", "--insecure"], "HOST:PORT"),
        (["recognize", "x.wav", "--server", "127.0.0.1:1", "--insecure"], "nobody listens"),
        (["recognize", "x.wav", "--server", "10.0.0.1:1", "--insecure"], "loopback"),
        (["recognize", "--server", "127.0.0.1:1", "--insecure"], "either sound files or --mic"),
        (["recognize", "x.wav", "--mic", "--server", "127.0.0.1:1", "--insecure"], "either sound files or --mic"),
        (["recognize", "words", "x.wav", "--pin", "12"], "go with a server"),
        (["serve", "absent"], "no bundle"),
        (["serve", "absent", "--words", "operation=guess"], "must be one of forward, viterbi"),
        (["serve", "absent", "--words", "reject=1"], "must be of type bool"),
        (["serve", "absent", "--speakers", "scoring"], "NAME=VALUE for places, scoring"),
        (["serve", "absent", "--speakers", "rooms=3"], "got 'rooms=3'"),
        (["serve", "a", "b/a"], "must differ"),
        (["encrypt-plan", "absent"], "no bundle"),
    ],
)
def test_wrong_requests_are_words(words: list[str], said: str) -> None:
    assert said in run(*words, code=2)


def test_a_server_that_cannot_start(folder: Path) -> None:
    assert "both or neither" in run("serve", folder / "words", "--certificate", "x.pem", code=2)
    assert "loopback" in run("serve", folder / "words", "--listen", "10.0.0.1:0", "--insecure", code=2)
    assert "cannot listen" in run("serve", folder / "words", "--listen", "192.0.2.1:7000", code=2)
