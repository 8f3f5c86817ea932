"""What holds for every command: names are shown as they are, help and lists are quick, facts come as JSON too."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ppspeech.audio import write_audio
from ppspeech.cli import app
from ppspeech.registry import listed
from tests.audio.test_mfcc import voice

EVIL = "no[/red][bold]:smile:such"
TAKEN = "a[red]:smile:file"

ABSENT: dict[str, tuple[str, ...]] = {
    "ask": (EVIL, "--epsilon", "1"),
    "anonymize": (EVIL, "--quasi", "age", "--out", "anonymous.csv"),
    "attack": (EVIL,),
    "audit": (EVIL,),
    "bench": (EVIL,),
    "classify": (EVIL, "rows.csv"),
    "corpus": (EVIL,),
    "encrypt-plan": (EVIL,),
    "enroll": (EVIL, EVIL, "--name", "ann", "--server", "127.0.0.1:9", "--insecure"),
    "export": (f"{EVIL}.ckpt", "--out", "bundle"),
    "features": (f"{EVIL}.wav",),
    "filter apply": (EVIL, "synthetic", "--out", "filtered"),
    "filter attack": (EVIL,),
    "filter train": ("--config", EVIL, "--out", "filter"),
    "grep": ("word", EVIL),
    "identify": (EVIL, "clip.wav", "--speakers", "folder"),
    "index": (EVIL, "-o", "archive"),
    "inspect": (EVIL,),
    "keys": ("new", TAKEN),
    "ledger add": ("releases.jsonl", EVIL, "--data", "ward 7", "--by", "ann"),
    "ledger show": (EVIL,),
    "ledger sign": (EVIL, "--key", "signing.pem"),
    "ledger verify": (EVIL,),
    "login check": ("127.0.0.1:9", "ann", "--key", EVIL, "--insecure"),
    "login enroll": ("127.0.0.1:9", "ann", f"{EVIL}.wav", "--key", "ann.key", "--insecure"),
    "login remove": ("ann", "--store", EVIL),
    "login serve": (EVIL, "--store", "people"),
    "login unlock": ("ann", "--store", EVIL),
    "music find": ("clip.wav", "--index", EVIL),
    "music index": (EVIL, "-o", "songs.index"),
    "music serve": (EVIL,),
    "pack": (EVIL, "--out", "packed"),
    "party": (EVIL,),
    "patches": (EVIL, "--background", EVIL, "-o", "word.patches"),
    "recognize": (EVIL, "clip.wav"),
    "report": ("add", EVIL),
    "reproduce": (EVIL,),
    "serve": (EVIL,),
    "sign": (EVIL, "--key", "signing.pem"),
    "simulate": (EVIL,),
    "spot": ("word", "--archive", EVIL),
    "studio": (EVIL, "--no-browser"),
    "synth": (TAKEN, "--words", "go", "--speakers", "1", "--takes", "1"),
    "train": (EVIL,),
    "transcribe": (EVIL, "clip.wav"),
    "verify": (EVIL, "clip.wav", "--enroll", "other.wav"),
    "verify-release": (EVIL, "--key", "signing.pub"),
    "voices learn": (EVIL, "--out", "voices"),
    "words learn": (EVIL,),
    "wake": (f"{EVIL}.wav", "--server", "127.0.0.1:9", "--insecure"),
}
"""What each command is given that cannot be used, and must be named in its answer."""


def leaves(command: Any, name: str = "") -> dict[str, Any]:
    """Every command by its words."""
    if not hasattr(command, "commands"):
        return {name: command}
    return {
        k: v for word, below in command.commands.items() for k, v in leaves(below, f"{name} {word}".strip()).items()
    }


COMMANDS = leaves(typer.main.get_command(app))


def run(*words: str) -> tuple[int, str]:
    """Exit code and output; nothing may escape as a traceback."""
    result = CliRunner().invoke(app, words)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_every_command_is_here() -> None:
    assert set(ABSENT) == {name for name, command in COMMANDS.items() if name not in {"demo", "info"}}


@pytest.mark.parametrize("command", ABSENT)
def test_what_is_not_there_is_named_as_it_was_written(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / TAKEN).write_text("a file where a folder is needed")
    code, output = run(*command.split(), *ABSENT[command])
    assert code in {1, 2}
    assert EVIL in output or TAKEN in output


@pytest.mark.parametrize("name", ["x[red]y.wav", "a:smile:b.wav", "[bold]c[/bold].wav"])
def test_names_in_tables_are_shown_as_they_were_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_audio(tmp_path / name, voice(16_000).clamp(-1, 1), 16_000)
    code, output = run("features", name, "--picture", f"{name}.png", "--out", f"{name}.npz")
    assert code == 0
    assert output.count(name) == 3


HEAVY = {"torch", "pytorch_lightning", "numba", "sklearn", "matplotlib", "scipy", "opacus", "tenseal"}
LISTS = [
    ["--help"],
    *([*name.split(), "--help"] for name in COMMANDS),
    ["bench"],
    ["reproduce"],
    ["party"],
    ["info"],
    ["train"],
]

ASK = """
import sys, tempfile
from typer.testing import CliRunner
from ppspeech.cli import app
for words in {lists} + [["keys", "new", tempfile.mkdtemp() + "/keys"]]:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, (words, result.output, result.exception)
    print(words[0], *({heavy} & set(sys.modules)))
"""


def test_help_and_lists_import_nothing_heavy() -> None:
    code = ASK.format(lists=[*LISTS, ["corpus", "list"]], heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if " " in line] == []


def test_lists_name_everything_there_is() -> None:
    """They read the files; this imports them."""
    from ppspeech.cli.party import ROOMS, protocols
    from ppspeech.data import corpus_names, table_names
    from ppspeech.evidence.bench import BENCHES
    from ppspeech.evidence.experiments import EXPERIMENTS
    from ppspeech.protocols import PROTOCOLS

    for room in ROOMS:
        PROTOCOLS.look_in(room)
    described = protocols()
    assert set(described) == {name for name in PROTOCOLS.names() if not name.startswith(("doc_", "test_"))}
    for name, entry in described.items():
        assert PROTOCOLS[name].functionality.startswith(entry.about)
    assert set(listed("ppspeech.data.corpora", "register_corpus")) == set(corpus_names())
    assert set(listed("ppspeech.data.tables", "register_table")) == set(table_names())
    assert set(listed("ppspeech.evidence.bench")) == set(BENCHES)
    assert set(listed("ppspeech.evidence.experiments")) == set(EXPERIMENTS)


@pytest.mark.parametrize("package", ["bench", "experiments"])
def test_lists_say_what_is_needed(package: str) -> None:
    for name, entry in listed(f"ppspeech.evidence.{package}").items():
        assert re.fullmatch(r"[^.;]+(; --quick takes about \d+ (s|min))?", entry.needs), f"{name}: {entry}"
        assert len(entry.about) > 20


@pytest.mark.parametrize("words", [["bench"], ["reproduce"], ["party"], ["corpus", "list"], ["train"]])
def test_lists_are_for_programs_too(words: list[str]) -> None:
    code, output = run(*words, "--json")
    assert code == 0
    rows = [json.loads(line) for line in output.splitlines()]
    assert len(rows) >= 9
    assert all(row["name"] and row["about"] for row in rows)


def test_every_command_that_prints_facts_has_json() -> None:
    stories = {"demo", "serve", "login serve", "music serve", "studio", "train"}  # for people; one that logs JSON
    for name, command in COMMANDS.items():
        options = {option for parameter in command.params for option in parameter.opts}
        assert "--json" in options or name in stories, name


HELP = """
import typer
from typer.testing import CliRunner
from ppspeech.cli import app
for name, command in typer.main.get_command(app).commands.items():
    shown = CliRunner().invoke(app, [name, "--help"]).output
    print(*(option for parameter in command.params for option in parameter.opts if option not in shown))
"""


@pytest.mark.parametrize("columns", ["40", "80"])
def test_help_names_every_option_however_narrow(columns: str) -> None:
    narrow = {**os.environ, "COLUMNS": columns, "TERMINAL_WIDTH": columns}
    done = subprocess.run([sys.executable, "-c", HELP], env=narrow, capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if "--" in line] == []
