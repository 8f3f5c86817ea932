"""`index`, `serve` and `spot` as people type them: real processes over TLS."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ppspeech.audio import write_audio
from tests.cli.test_encrypted_cli import run, start
from tests.service.test_spotting import MFCC
from tests.service.voices import RATE, SENTENCES, released, voice


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    released(folder / "spoken", SENTENCES, MFCC)
    for number, seconds in enumerate((0.9, 1.7)):
        write_audio(folder / "calls" / f"secretname{number}.wav", voice(number, seconds), RATE)
    write_audio(folder / "word.wav", voice(1, 0.5), RATE)
    (folder / "calls" / "no.wav").write_bytes(b"no sound")
    said = run("index", folder / "calls", "-o", folder / "calls.archive", "--bundle", folder / "spoken",
               "--longest", "0.3", "--piece", "1", code=1)  # fmt: skip
    assert "2 recordings" in said
    assert "not a readable sound file" in said
    return folder


@pytest.fixture(scope="module")
def archive(folder: Path) -> Iterator[list[str]]:
    process, words = start(folder / "calls.archive", "--listen", "127.0.0.1:0", "--budget", "50")
    assert process.stdout is not None
    assert "calls takes keywords for 2 recordings" in process.stdout.readline()
    yield words
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    for word in ("aardvark", "bumblebee", "secretname"):
        assert word not in out + errors


@pytest.mark.parametrize("keyword", [["aardvark"], ["bumblebee ... sil"], ["WORD"]], ids=str)
def test_spot_by_a_server_is_as_in_the_clear(archive: list[str], folder: Path, keyword: list[str]) -> None:
    """Everything is said at a threshold that low, and nothing at one that high; where is a matter of opinion."""
    given = [str(folder / "word.wav") if each == "WORD" else each for each in keyword]
    for threshold, present in (("-400", True), ("400", False)):
        rows = [
            json.loads(line) for line in run("spot", *given, *archive, "--threshold", threshold, "--json").splitlines()
        ]
        plain = [
            json.loads(line)
            for line in run(
                "spot", *given, "--archive", folder / "calls.archive", "--threshold", threshold, "--json"
            ).splitlines()
        ]
        assert [row["recording"] for row in rows[:-1]] == ["1", "2"] == [row["recording"] for row in plain]
        assert [row["present"] for row in (*rows[:-1], *plain)] == [present] * 4
        assert rows[-1]["recordings"] == 2
        assert rows[-1]["rounds"] > 10


def test_spot_for_people(archive: list[str]) -> None:
    shown = run("spot", "aardvark", *archive, "--threshold", "-400", "--show-transcript")
    for fact in ("2 of 2 recordings; one question for all", "round trips", "What the server saw"):
        assert fact in shown
    assert "it is not said" in run("spot", "aardvark", *archive, "--threshold", "400", "--average")


def test_recordings_of_ours_are_searched_for_keywords_of_a_server(folder: Path) -> None:
    process, words = start(
        folder / "spoken", "--listen", "127.0.0.1:0", "--spotting", "threshold=-400,longest=0.3,seconds=1.8"
    )
    ours = [folder / "calls" / f"secretname{n}.wav" for n in range(2)]
    said = run("spot", "--in", ours[0], "--in", ours[1], *words, "--json")
    rows = [json.loads(line) for line in said.splitlines()]
    assert [row["recording"] for row in rows[:-1]] == [str(path) for path in ours]
    assert {each["keyword"] for row in rows[:-1] for each in row["found"]} == {"aardvark", "bumblebee", "caterpillar"}
    assert "keywords and no recordings" in run("spot", "aardvark", *words, code=2)
    assert "server's choice" in run("spot", "--in", ours[0], *words, "--average", code=2)
    assert "ask it with `ppspeech spot`" in run("recognize", words[1], ours[0], *words[2:], code=2)
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "secretname" not in out + errors


def test_what_goes_wrong_is_said_with_the_way_out(archive: list[str], folder: Path) -> None:
    file = folder / "calls.archive"
    assert "no unit for zebra; there are aardvark" in run("spot", "zebra", *archive, code=2)
    assert "no sound file at" in run("spot", folder / "none.wav", *archive, code=2)
    assert "give a keyword" in run("spot", *archive, code=2)
    assert "give --server HOST:PORT" in run("spot", "aardvark", code=2)
    assert "go with a server" in run("spot", "aardvark", "--archive", file, "--insecure", code=2)
    assert "recordings and no keywords" in run("spot", "--in", folder / "word.wav", *archive, code=2)
    assert "nobody listens" in run("spot", "aardvark", "--server", "127.0.0.1:9", "--insecure", code=2)
    assert "make one with `ppspeech index`" in run("spot", "aardvark", "--archive", folder / "word.wav", code=2)
    (folder / "bad.archive").write_bytes(b"no archive")
    assert "make one with `ppspeech index`" in run("serve", folder / "bad.archive", code=2)
    assert "no sound files in" in run("index", folder / "spoken", "-o", folder / "x", code=2)
    assert "NAME=VALUE for threshold" in run("serve", folder / "spoken", "--spotting", "words=3", code=2)
    (told,) = run("index", folder / "word.wav", "-o", folder / "one.archive", "--json").splitlines()
    assert json.loads(told)["recordings"] == 1
