"""`music index`, `music serve` and `music find`, as people type them: real processes over TLS."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from ppspeech.audio import write_audio
from ppspeech.audio.music import MUSIC_RATE
from tests.audio.test_music import tune
from tests.cli.test_encrypted_cli import run

NAMES = ("aardvark tune", "bumblebee")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("music")
    (folder / "songs").mkdir()

    def write(name: str, seed: int, begin: int = 0) -> None:
        write_audio(folder / name, torch.from_numpy(tune(8.0, seed)[begin:]).float().clamp(-1, 1), MUSIC_RATE)

    for seed, name in enumerate(NAMES):
        write(f"songs/{name}.flac", seed)
    write("clip.wav", 1, 12_345)
    write("strange.wav", 9)
    write("short.wav", 0, 7 * MUSIC_RATE)
    return folder


@pytest.fixture(scope="module")
def index(folder: Path) -> Path:
    told = json.loads(run("music", "index", folder / "songs", "-o", folder / "songs.index", "--json"))
    assert told["songs"] == 2
    assert told["alike"] == []
    assert "2 songs" in run("music", "index", folder / "songs", "-o", folder / "songs.index")
    return folder / "songs.index"


@pytest.fixture(scope="module")
def server(index: Path, folder: Path) -> Iterator[list[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "ppspeech", "music", "serve", str(index), "--listen", "127.0.0.1:0", "--budget", "7"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    assert first.startswith("serving music at "), first + process.communicate()[1]
    typed = process.stdout.readline().split()
    assert "may ask 7 of music" in process.stdout.readline()
    yield typed[typed.index("--server") :]
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    for name in NAMES:
        assert name not in out + errors


def test_songs_are_found_by_a_server_as_in_the_clear(
    server: list[str], index: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PPSPEECH_CACHE", str(tmp_path))
    clips = [folder / "clip.wav", folder / "strange.wav"]
    for way in ("fingerprints", "landmarks", "shapes"):
        rows = [json.loads(line) for line in run("music", "find", *clips, *server, "--by", way, "--json").splitlines()]
        clear = run("music", "find", *clips, "--index", index, "--by", way, "--json").splitlines()
        assert [(row["clip"], row["song"]) for row in rows] == [
            (row["clip"], row["song"]) for row in map(json.loads, clear)
        ]
        assert [row["song"] for row in rows] == ["bumblebee", None]
        assert all(row["by"] == way for row in rows)
        assert (rows[0]["rounds"] == 1) == (way == "landmarks")
        assert rows[0]["bytes"] == rows[1]["bytes"]
    (kept,) = (tmp_path / "maps").iterdir()
    assert kept.stat().st_size > 40_000  # taken once: the second clip found it here
    shown = run("music", "find", clips[0], *server, "--show-transcript")
    assert "bumblebee" in shown
    assert "round trips" in shown
    assert "no more: 1 queries asked, 0 left" in run("music", "find", clips[0], *server, code=2)


def test_what_goes_wrong_is_said_with_the_way_out(index: Path, folder: Path) -> None:
    clip, short = folder / "clip.wav", folder / "short.wav"
    assert "1.0 s of music are not enough: give 5.2 s" in run("music", "find", short, "--index", index, code=2)
    said = run("music", "find", short, clip, "--index", index, code=1)
    assert "not used: " in said
    assert "bumblebee" in said
    assert "give sound files or --mic" in run("music", "find", code=2)
    assert "give sound files or --mic" in run("music", "find", clip, "--mic", "--index", index, code=2)
    assert "got 'hum'" in run("music", "find", clip, "--index", index, "--by", "hum", code=2)
    assert "need a server" in run("music", "find", clip, "--index", index, "--pin", "ab", code=2)
    assert "nobody listens" in run("music", "find", clip, "--server", "127.0.0.1:9", "--insecure", code=2)
    assert "is no index of songs" in run("music", "serve", clip, code=2)
    assert "songs are found by" in run("music", "serve", index, "--by", "hum", code=2)
