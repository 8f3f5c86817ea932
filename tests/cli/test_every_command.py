"""What holds for every command: names are shown as they are."""

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ppspeech.audio import write_audio
from ppspeech.cli import app
from tests.audio.test_mfcc import voice

EVIL = "no[/red][bold]:smile:such"
TAKEN = "a[red]:smile:file"

ABSENT: dict[str, tuple[str, ...]] = {
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
    "identify": (EVIL, "clip.wav", "--speakers", "folder"),
    "inspect": (EVIL,),
    "keys": ("new", TAKEN),
    "party": (EVIL,),
    "recognize": (EVIL, "clip.wav"),
    "reproduce": (EVIL,),
    "serve": (EVIL,),
    "simulate": (EVIL,),
    "synth": (TAKEN, "--words", "go", "--speakers", "1", "--takes", "1"),
    "transcribe": (EVIL, "clip.wav"),
    "verify": (EVIL, "clip.wav", "--enroll", "other.wav"),
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
