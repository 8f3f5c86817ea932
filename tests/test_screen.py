"""What people see is what was written: no markup, no emoji, nothing cut off, whatever the terminal."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich import box
from rich.table import Table
from rich.text import Text

from ppspeech.cli.lists import show_list
from ppspeech.figures import Figure, show_figures
from ppspeech.registry import Listed
from ppspeech.screen import Console

EVIL = ("x[red]y.flac", "no[/red]file.wav", "a:smile:.wav", "[peers]", "[/]")
LONG = "/a/path/" + "long/" * 40 + "clip.wav"


def table() -> Table:
    grid = Table("clip", "word", title=EVIL[0], caption=EVIL[1])
    for name in EVIL:
        grid.add_row(name, Text(name, "red"))
    grid.add_row(LONG, "yes")
    return grid


@pytest.mark.parametrize("columns", ["", "40", "1000"])
def test_text_is_shown_as_it_is(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    else:
        monkeypatch.delenv("COLUMNS", raising=False)
    for name in EVIL:
        Console().print(f"{name} is here")
        Console().print(Text.assemble(("error:", "bold red"), f" {name}"))
    Console().print(table())
    output = capsys.readouterr().out
    for name in EVIL:
        assert output.count(name) >= 4
    assert "…" not in output
    assert LONG in output


def test_nobodys_words_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """An error of a peer, or a name, that clears the screen, or writes another line over what was said."""
    evil = "ann\x1b[2J\x1b]0;title\x07\r\x9b1Abob\x00\x7f"
    grid = Table("name")
    grid.add_row(evil)
    for shown in (evil, Text(evil, "red"), grid):
        Console().print(shown)
    output = capsys.readouterr().out
    assert output.count("ann�[2J") == 3
    assert not [char for char in output if not char.isprintable() and char != "\n"]


def test_a_narrow_terminal_gets_a_paragraph_a_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    Console().print(table())
    assert f"clip: {LONG}\nword: yes\n" in capsys.readouterr().out


@pytest.mark.parametrize("columns", range(30, 120, 6))
def test_no_word_of_a_list_is_cut_at_any_width(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    about = "Forty people to train on, twenty never heard; " * 3
    entries = {f"a_name_of_{'many_' * n}words": Listed(about, "the corpora audiomnist and fsdd") for n in range(5)}
    show_list(entries, as_json=False)
    said = capsys.readouterr().out
    words = said.split()
    assert "…" not in said
    assert set(entries) <= set(words)
    assert words.count("audiomnist") == words.count("twenty") / 3 == len(entries)
    if not said.startswith("name:"):
        assert {len(line) for line in said.splitlines()} <= set(range(columns + 1))


def test_columns_move_together_before_a_table_is_given_up(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = Table(*(f"column{place}" for place in range(9)), box=box.SIMPLE_HEAD)
    grid.add_row(*(str(place) * 7 for place in range(9)))
    monkeypatch.setenv("COLUMNS", "80")
    Console().print(grid)
    assert "column0 column1 column2" in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "70")
    Console().print(grid)
    assert "column0: 0000000\n" in capsys.readouterr().out


def test_only_this_file_opens_a_console() -> None:
    """Rich's own reads markup in what users wrote."""
    top = Path(__file__).parents[1] / "ppspeech"
    for path in top.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module in {"rich.console", "rich.markup", "rich"}:
                assert node.module == "rich", path
                assert not {alias.name for alias in node.names} & {"console", "markup", "print"}, path


def test_notes_belong_to_rows_and_empty_columns_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    show_figures([Figure("a", 1, note="all"), Figure("b", 2, note="all")], as_json=False)
    one = capsys.readouterr().out
    assert "peer" not in one
    assert "ratio" not in one
    assert one.rstrip().endswith("\n  all")
    show_figures([Figure("a", 1, note="of a"), Figure.less("b", 2, "s", "c", 4, "of b"), Figure("d", 3)], as_json=False)
    several = capsys.readouterr().out.splitlines()
    marks = {line.split()[0]: line.split()[-1] for line in several if line.startswith(("  metric", "  a", "  b"))}
    assert marks == {"metric": "note", "a": "1", "b": "2"}
    assert several[-2:] == ["  1: of a", "  2: of b"]


@pytest.mark.parametrize("name", ["ä.wav", os.fsdecode(b"\xe4.wav"), "名.wav"])
def test_any_name_can_be_printed_in_any_locale(name: str) -> None:
    spelled = f"{os.fsencode(name)!r}.decode(errors='surrogateescape')"
    code = f"from ppspeech.screen import *; speak_any_language(); Console().print({spelled})"
    plain = {**os.environ, "PYTHONUTF8": "0", "LC_ALL": "POSIX", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=plain, capture_output=True, check=True)
    assert done.stdout.strip() == os.fsencode(name)
