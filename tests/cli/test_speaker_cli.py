"""`enroll --private`, `serve --scoring`, and speakers in the clear from a bundle, as people type them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ppspeech.audio import write_audio
from tests.cli.test_encrypted_cli import run, start
from tests.service.voices import RATE, SPEAKERS, WHOLE, released, voice


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("speakers")
    released(folder / "voices", SPEAKERS)
    for seed in (0, 1, 5):
        write_audio(folder / f"{seed}.wav", voice(seed), RATE)
    for name, seeds in {"ann": (0, 3), "bob": (1,)}.items():
        (folder / "family" / name).mkdir(parents=True)
        for seed in seeds:
            write_audio(folder / "family" / name / f"{seed}.wav", voice(seed), RATE)
    return folder


@contextmanager
def stopped(process: "subprocess.Popen[str]") -> Iterator[None]:
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == 0, errors
    assert "ann" not in errors


def test_a_gallery_that_its_server_cannot_read(folder: Path) -> None:
    """A store, a keeper and a prober, each a process of its own."""
    bundle = folder / "voices"
    served, words = start(bundle, "--listen", "127.0.0.1:0", "--galleries", "--speakers", "places=3")
    with stopped(served):
        enrolling = ["enroll", bundle, folder / "0.wav", "--name", "ann", "--private", "family", "--threshold", "0.95"]
        kept = subprocess.Popen(
            [sys.executable, "-m", "ppspeech", *map(str, enrolling), "--listen", "127.0.0.1:0", *words, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"COLUMNS": "200"},
        )
        assert kept.stdout is not None
        with stopped(kept):
            first = kept.stdout.readline()
            assert first, kept.communicate()[1]
            claim = ["--claim", json.loads(first)["place"]]
            assert json.loads(first)["name"] == "ann"
            assert kept.stdout.readline().startswith("keeping family at ")
            typed = kept.stdout.readline().split()
            keeper = typed[typed.index("--keeper") :]
            mine = run("verify", bundle, folder / "0.wav", *claim, *words, *keeper, "--show-transcript")
            assert "accepted" in mine
            assert "reply" in mine
            other = json.loads(run("verify", bundle, folder / "5.wav", *claim, *words, *keeper, "--json"))
            assert other["accepted"] is False
            assert "the name is another's" not in mine
        assert "nobody listens" in run("verify", bundle, folder / "0.wav", *claim, *words, *keeper, code=2)


def test_names_for_the_server_by_mixtures(folder: Path, tmp_path: Path) -> None:
    choices = ["--speakers", "scoring=gmm,threshold=-1", "--speakers", "names=server,places=2"]
    served, words = start(
        folder / "voices", "--listen", "127.0.0.1:0", "--frames", "30", "--state", tmp_path, "--enroll", *choices
    )
    with stopped(served):
        run("enroll", folder / "voices", folder / "0.wav", "--name", "ann", *words)
        assert "the other party knows" in run("identify", folder / "voices", folder / "0.wav", *words)
    assert json.loads((tmp_path / "identified.jsonl").read_text())["speaker"] == "ann"


def test_speakers_in_the_clear(folder: Path, tmp_path: Path) -> None:
    bundle, clip = folder / "voices", folder / "0.wav"
    enrolled = ["--enroll", clip, "--enroll", folder / "family" / "ann" / "3.wav"]
    scores = [
        json.loads(run("verify", bundle, trial, *enrolled, "--threshold", "0.1", "--json"))["score"]
        for trial in (clip, folder / "5.wav")
    ]
    assert scores[0] > scores[1]
    assert "accepted" in run("verify", bundle, clip, *enrolled, f"--threshold={scores[0] - 0.01}")
    assert "rejected" in run("verify", bundle, clip, *enrolled, f"--threshold={scores[0] + 0.01}")
    found = json.loads(run("identify", bundle, clip, "--speakers", folder / "family", "--threshold=-1", "--json"))
    assert found["speaker"] == "ann"
    assert set(found["scores"]) == {"ann", "bob"}
    assert "nobody known" in run("identify", bundle, clip, "--speakers", folder / "family", "--threshold", "9")
    assert "--threshold" in run("verify", bundle, clip, *enrolled, code=2)
    others = tmp_path / "others"
    for who in range(6):
        (others / str(who)).mkdir(parents=True)
        for take in range(3):
            write_audio(others / str(who) / f"{take}.wav", voice(10 * who + take + 20, 0.5), RATE)
    asked = ["verify", bundle, clip, *enrolled, "--cohort", others, "--json"]
    strict, loose = (json.loads(run(*asked, "--false-accept", rate)) for rate in ("0.01", "0.9"))
    assert strict["threshold"] > loose["threshold"]
    assert (strict["false_accept"], strict["unlike"]) == (0.01, [])
    assert loose["accepted"]
    rate = ["--speakers", folder / "family", "--cohort", others, "--false-accept", "0.9"]
    assert "ann" in (shown := run("identify", bundle, clip, *rate))
    assert "for a false-accept rate of 0.9" in shown
    write_audio(tmp_path / "tone.wav", 0.5 * torch.sin(torch.arange(RATE) / 6), RATE)
    released(tmp_path / "raw", SPEAKERS, replace(WHOLE, cmvn="none"))
    warned = run(
        "verify", tmp_path / "raw", tmp_path / "tone.wav", *enrolled, "--cohort", others, "--false-accept", "0.9"
    )
    assert "rejected" in warned
    assert "warning: the trial is unlike the cohort's speech" in warned
    released(tmp_path / "words")
    assert "speaker_ubm is needed" in run("verify", tmp_path / "words", clip, *enrolled, code=2)
    assert "no folder" in run("identify", bundle, clip, "--speakers", tmp_path / "absent", code=2)


def test_encrypt_plan_of_speakers(folder: Path) -> None:
    shown = run("encrypt-plan", folder / "voices", "--places", "4", "--frames", "40")
    for part in ("linear identify", "gmm verify", "hardened verify", "private verify", "leaks", "encrypted templates"):
        assert part in shown
    plan = json.loads(run("encrypt-plan", folder / "voices", "--places", "200", "--cohort", "5", "--json"))
    assert plan["modes"]["gmm verify"]["bytes_up"] > plan["modes"]["linear verify"]["bytes_up"]
    assert plan["modes"]["hardened verify"]["bytes_down"] > 200 * 1024  # a code of 8192 bits each
    assert any("mixtures have no names" in warning for warning in plan["warnings"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serve", "voices", "--speakers", "names=server"], "--state"),
        (["serve", "voices", "--speakers", "scoring=hardened"], "its decision is the server's"),
        (["serve", "voices", "--enroll", "--speakers", "decision=server"], "rare among strangers"),
        (["serve", "voices", "--enroll"], "rare among strangers"),
        (["serve", "voices", "--enroll", "--speakers", "scoring=gmm"], "rare among strangers"),
        (["serve", "voices", "--speakers", "false_accept=2"], "within 0 and 1"),
        (["verify", "voices", "0.wav", "--enroll", "1.wav", "--cohort", "family"], "5 people or more"),
        (["serve", "voices", "--speakers", "cohort=absent"], "no folder"),
        (["serve", "voices", "--speakers", "cohort=family"], "3 to 64 members"),
        (["serve", "voices", "--speakers", "threshold=2"], "cosine"),
        (["enroll", "voices", "0.wav"], "--name"),
        (["enroll", "voices", "--name", "ann"], "sound files"),
        (["verify", "voices", "0.wav", "--claim", "0", "--keeper", "127.0.0.1:1"], "--enroll"),
    ],
)
def test_wrong_requests_are_words(words: list[str], said: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert said in run(*words, code=2)
