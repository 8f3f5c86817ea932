"""The command line as a person meets it: real processes, exit codes, and nothing half-written."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from ppspeech import __version__
from ppspeech.audio import write_audio
from ppspeech.cli import app
from tests.audio.test_mfcc import voice

runner = CliRunner()


def run(*words: str | Path, code: int = 0) -> str:
    result = runner.invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output + str(result.exception)
    return result.output


def json_lines(*words: str | Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in run(*words).splitlines()]


def test_version_help_and_info() -> None:
    assert run("--version").strip() == f"ppspeech {__version__}"
    overview = run("--help")
    for command in ("info", "synth", "corpus", "features", "recognize", "verify", "party", "bench", "reproduce"):
        assert command in overview
        assert "Example" in run(command, "--help")
    facts = json_lines("info", "--json")[0]
    assert facts["ppspeech"] == __version__
    assert str(facts["torch"]).startswith("2.11")


def test_synth_then_corpus(tmp_path: Path) -> None:
    folder = tmp_path / "commands"
    assert "8 recordings by 2 voices" in run("synth", folder, "--words", "go,stop", "--speakers", 2, "--takes", 2)
    figures = {f["metric"]: f["value"] for f in json_lines("corpus", folder, "--json", "--plot", tmp_path / "c.png")}
    assert figures["corpus.commands.utterances"] == 8
    assert figures["corpus.commands.speakers"] == 2
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert "go, stop" in run("corpus", folder)


def test_features_of_clips(tmp_path: Path) -> None:
    clips = [tmp_path / f"{i}.wav" for i in range(2)]
    for i, clip in enumerate(clips):
        write_audio(clip, voice(16_000, i).clamp(-1, 1), 16_000)
    rows = json_lines("features", *clips, "--out", tmp_path / "a.npz", "--picture", tmp_path / "a.png", "--json")
    assert [row["frames"] for row in rows] == [98, 98]
    with np.load(tmp_path / "a.npz") as arrays:
        assert arrays[str(clips[0])].shape == (98, 39)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_errors_are_words_and_exit_with_2(tmp_path: Path) -> None:
    assert "no sound file" in run("features", tmp_path / "absent.wav", code=2)
    assert "no corpus called" in run("corpus", "nonesuch", code=2)
    assert "no benchmark called" in run("bench", "nonesuch", code=2)
    write_audio(tmp_path / "silent.wav", torch.zeros(16_000), 16_000)
    output = run("features", tmp_path / "silent.wav", "--out", tmp_path / "a.npz", code=2)
    assert "silent.wav: the waveform is silent" in output
    assert "Traceback" not in output
    assert not (tmp_path / "a.npz").exists()
    write_audio(tmp_path / "a.wav", voice(9_000).clamp(-1, 1), 16_000)
    assert ".npz" in run("features", tmp_path / "a.wav", "--out", tmp_path / "a.txt", code=2)
    assert ".png" in run("features", tmp_path / "a.wav", "--picture", tmp_path / "a.bmp", code=2)


def test_a_full_disk_is_a_word_and_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    write_audio(tmp_path / "a.wav", voice(9_000).clamp(-1, 1), 16_000)
    said = run("features", tmp_path / "a.wav", "--out", tmp_path / "a.npz", code=1)
    assert f"cannot write: {tmp_path / 'a.npz'}: No space left on device; make room" in said
    assert [p.name for p in tmp_path.iterdir()] == ["a.wav"]


def test_a_wrong_place_is_a_word_and_exit_code_1(tmp_path: Path) -> None:
    clip = tmp_path / "a.wav"
    write_audio(clip, voice(16_000), 16_000)
    (tmp_path / "folder.npz").mkdir()
    assert "a file stands where a folder is needed" in run("features", clip, "--out", clip / "x.npz", code=1)
    assert "give the name of a file" in run("features", clip, "--out", tmp_path / "folder.npz", code=1)
    few = ("--words", "go", "--speakers", 1, "--takes", 1)
    for words in (("keys", "new", clip), ("keys", "new", clip / "x"), ("synth", clip / "x", *few)):
        assert "a file stands where a folder is needed" in run(*words, code=1)


def test_a_cache_that_is_a_file_is_a_word_and_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("")
    monkeypatch.setenv("PPSPEECH_CACHE", str(tmp_path / "cache"))
    assert "a file stands where a folder is needed" in run("corpus", "synthetic", code=1)


def test_a_name_that_the_locale_cannot_spell_is_a_word(tmp_path: Path) -> None:
    clip = tmp_path / "ä.wav"
    write_audio(clip, voice(16_000), 16_000)
    poor = {**os.environ, "PYTHONUTF8": "0", "LC_ALL": "POSIX"}
    command = [sys.executable, "-m", "ppspeech", "features", str(clip)]
    done = subprocess.run(command, env=poor, capture_output=True, check=False)
    assert b"Traceback" not in done.stderr, done.stderr.decode(errors="replace")
    assert done.returncode in {0, 2}
    assert str(clip).encode() in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["no[red]such.wav", "no[/red]such.wav", "no[such].wav"])
def test_names_are_shown_as_they_are(name: str) -> None:
    assert name in run("features", name, code=2)


def test_ctrl_c_leaves_nothing_half_written(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    command = [sys.executable, "-m", "ppspeech", "synth", str(folder), "--takes", "50"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not list(tmp_path.rglob("*.wav")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert b"stopped" in errors
    assert b"Traceback" not in errors
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


@pytest.mark.parametrize(("corpus", "count"), [("fsdd", 3_000), ("audiomnist", 4_800), ("emodb", 535)])
def test_counts_of_real_corpora(data: Path, corpus: str, count: int) -> None:
    figures = {f["metric"]: f["value"] for f in json_lines("corpus", corpus, "--json")}
    assert figures[f"corpus.{corpus}.utterances"] == count


@pytest.mark.slow
def test_bench_features_prints_the_figure() -> None:
    figures = {f["metric"]: f for f in json_lines("bench", "features", "--quick", "--json")}
    assert figures["features.speedup_vs_librosa"]["value"] > 0
    assert str(figures["features.batch_ms"]["peer"]).startswith("librosa")
    assert "features" in run("bench")


def test_demo_tells_its_story(tmp_path: Path) -> None:
    output = run("demo", "--folder", tmp_path)
    assert "40 speakers" in output
    assert "without privacy" in output
    assert "with privacy" in output
    assert "epsilon" in output
    assert json.loads(run("inspect", tmp_path / "bundle", "--json"))["privacy"]["guarantee"]["unit"] == "utterance"
    for picture in ("clip.png", "corpus.png", "confusion.png", "confusion_private.png"):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
