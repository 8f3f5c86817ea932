"""What the documents say is true: imports work, files are there, commands and options exist."""

import importlib
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from ppspeech.cli import app

TOP = Path(__file__).parents[1]
DOCUMENTS = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (TOP / "docs").glob("*.md"))]
FENCE = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
DOOR = re.compile(r"`(ppspeech(?:\.\w+)+)`(?: \(([^)]*)\))?")
FOLDERS = "ppspeech|tests|configs|docs|notebooks"


def spans(text: str) -> list[str]:
    """What stands in code type within sentences and tables."""
    return SPAN.findall(FENCE.sub("", text))


def blocks(text: str, language: str) -> list[str]:
    """Code blocks in one language."""
    return [code for kind, code in FENCE.findall(text) if kind == language]


def imported(text: str) -> list[str]:
    """The import statements of Python blocks and spans."""
    code = "\n".join([*blocks(text, "python"), *spans(text)])
    return re.findall(r"^(?:from ppspeech[\w.]* import [\w, ]+|import ppspeech[\w.]*)$", code, re.MULTILINE)


def offered(text: str) -> list[tuple[str, str]]:
    """Doors named in sentences, each with the names said to be behind it: `ppspeech.room` (…, `Name`)."""
    found = []
    for door, behind in DOOR.findall(FENCE.sub("", text)):
        found.append((door, ""))
        found += [(door, name) for name in SPAN.findall(behind) if name.isidentifier()]
    return found


def files(text: str) -> list[str]:
    """Paths of the project."""
    every = spans(text) + [word for code in blocks(text, "console") for word in code.split()]
    words = [word.rstrip(".,;:)").split("#")[0] for each in every for word in each.split()]
    linked = re.findall(r"\]\(((?!http)[^)#]+)\)", text)
    return [word for word in words if re.match(rf"({FOLDERS})/", word) and not re.search(r"[*{…]", word)] + linked


def commands(text: str) -> list[list[str]]:
    """Command lines of `ppspeech`, word by word."""
    lines = [line for code in blocks(text, "console") for line in code.splitlines()]
    lines += [part for span in spans(text) for part in re.split(r", (?=ppspeech )", span)]
    split = [shlex.split(line.split("#")[0].replace("…", "")) for line in lines if re.match(r"ppspeech [a-z-]+", line)]
    return [words[1:] for words in split]


def unknown(words: list[str]) -> str | None:
    """What the command line would not take: a command, or an option of one."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return words[0]
        command, words = command.commands[words[0]], words[1:]
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return next((word for word in words if word.startswith("--") and word not in options), None)


def resolve(door: str, name: str) -> None:
    """Import a door and take a name from it, as a reader would.

    Raises:
        ImportError: if there is no such door or name.
    """
    try:
        module: Any = importlib.import_module(door)
    except ImportError:
        room, _, last = door.rpartition(".")
        module = getattr(importlib.import_module(room), last, None)
        if module is None:
            raise
    if name and not hasattr(module, name):
        raise ImportError(f"{door} has no {name}")


def run_imports(text: str) -> None:
    """Everything that a document imports or says can be imported."""
    for statement in imported(text):
        exec(statement, {})
    for door, name in offered(text):
        resolve(door, name)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_imports_work(document: str) -> None:
    run_imports((TOP / document).read_text())


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_are_there(document: str) -> None:
    folder = (TOP / document).parent
    missing = [
        name for name in files((TOP / document).read_text()) if not any((d / name).exists() for d in (TOP, folder))
    ]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_and_options_exist(document: str) -> None:
    for words in commands((TOP / document).read_text()):
        assert unknown(words) is None, f"{' '.join(words)}: {unknown(words)}"


def test_the_readme_is_read() -> None:
    """Or else the checks above would hold for anything."""
    text = (TOP / "README.md").read_text()
    assert len(imported(text)) >= 1
    assert len({door for door, _ in offered(text)}) >= 10
    assert len([name for _, name in offered(text) if name]) >= 4
    assert len(files(text)) >= 6
    assert len({words[0] for words in commands(text)}) >= 15


@pytest.mark.parametrize(
    "lie",
    [
        "```python\nfrom ppspeech.audio import Nothing\n```",
        "`from ppspeech.nowhere import Mfcc`",
        "`ppspeech.audio` (`Mfcc`, `Nothing`)",
        "`ppspeech.nowhere` (things)",
    ],
)
def test_a_wrong_import_is_seen(lie: str) -> None:
    with pytest.raises(ImportError):
        run_imports(lie)


@pytest.mark.parametrize("lie", ["ppspeech sing clip.wav", "ppspeech bench --louder", "ppspeech filter sing"])
def test_a_wrong_command_is_seen(lie: str) -> None:
    assert [unknown(words) for words in commands(f"`{lie}`")] != [None]


def test_a_missing_file_is_seen() -> None:
    assert files("`ppspeech/nowhere.py`, [x](docs/no.png)") == ["ppspeech/nowhere.py", "docs/no.png"]
