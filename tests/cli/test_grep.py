"""`serve FILE` and `grep`, as people type them: real processes over TLS."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_encrypted_cli import run, start

TEXT = "Hello, this is Zoë.\nI want my MONEY back!\n\nno refund, no money\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    (folder / "calls.txt").write_text(TEXT, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[list[str]]:
    process, words = start(folder / "calls.txt", "--listen", "127.0.0.1:0", "--texts", "tells=places")
    assert process.stdout is not None
    assert "calls.txt takes patterns over letters" in process.stdout.readline()
    assert process.stdout.readline().startswith("a client may ask 10 of calls.txt")
    yield words
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    for word in (
        "money",
        "refund",
        "zoe",
        "mon[ae]y",
    ):  # of the text and of patterns; no names of sessions, which are hex
        assert word not in out + errors


@pytest.mark.parametrize("tells", ["found", "count", "lines", "places"])
def test_grep_by_a_server_is_as_in_the_clear(server: list[str], folder: Path, tells: str) -> None:
    row = json.loads(run("grep", "mon[ae]y|zoe", *server, "--tells", tells, "--json"))
    clear = json.loads(run("grep", "mon[ae]y|zoe", folder / "calls.txt", "--tells", tells, "--json"))
    found = {"found": True, "count": 3, "lines": [1, 2, 4], "places": [[1, 16], [2, 11], [4, 15]]}[tells]
    assert row["found"] == clear["found"] == found
    assert row["bytes"] > 100_000


def test_people_see_lines_and_what_the_server_saw(server: list[str], folder: Path) -> None:
    shown = run("grep", "no", *server, "--tells", "lines", "--show-transcript")
    assert "calls.txt:4" in shown
    assert "round trips" in shown
    assert "What the server saw of the pattern" in shown
    assert "not found" in run("grep", "zebra", folder / "calls.txt")
    assert f"{folder / 'calls.txt'}:4:1" in run("grep", "no", folder / "calls.txt", "--tells", "places")


def test_what_goes_wrong_is_said_with_the_way_out(server: list[str], folder: Path) -> None:
    assert "cannot be read at character" in run("grep", "(a", *server, code=2)
    assert "or the --server that keeps one" in run("grep", "a", code=2)
    assert "go with --server" in run("grep", "a", folder / "calls.txt", "--pin", "ab", code=2)
    assert "cannot read the text" in run("grep", "a", folder / "none.txt", code=2)
    assert "the alphabets are" in run("grep", "a", folder / "calls.txt", "--alphabet", "greek", code=2)
    assert "ask it with `ppspeech grep`" in run("transcribe", server[1], folder / "calls.txt", *server[2:], code=2)
