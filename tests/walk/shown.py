"""What documents show people to type, in a form in which it can be compared with what the tests run."""

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import typer

from ppspeech.cli import app
from ppspeech.cli.train import STAGES as PHASES
from ppspeech.registry import listed
from tests.fresh import TOP
from tests.test_docs import DOCUMENTS, blocks, commands, spans
from tests.walk.step import Step

GENERATED = ("docs/reference/commands.md", "docs/reference/configs.md", "docs/results/index.md")
TEXTS = {name: (TOP / name).read_text() for name in DOCUMENTS if name not in GENERATED}
"""The documents that are written by hand."""

COUNTED = ("audit", "bench", "filter train", "party", "reproduce", "serve", "simulate", "train")
"""Commands that are another thing for another first word: a recipe, a protocol, an experiment, what is served."""

SHELL = re.compile(r"(make|pip|cat|source|git|python3?|\.venv/bin/[\w-]+) \S")


@dataclass(frozen=True)
class Line:
    """What counts of a command line: the command, what it is about where that counts, and which options are given."""

    command: str
    about: str = ""
    options: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return " ".join(["ppspeech", self.command, *filter(None, [self.about]), *sorted(self.options)])

    def is_run_by(self, other: "Line") -> bool:
        """Whether whoever runs the other has run this: with the same options at least, and about the same thing."""
        same = other.command == self.command or other.command.startswith(f"{self.command} ")
        return same and self.about in {"", other.about} and self.options <= other.options


@cache
def _typer() -> Any:
    return typer.main.get_command(app)


def read(words: list[str]) -> Line:
    """The words after `ppspeech`; documents may leave values out, and write what may be anything in capitals."""
    command = _typer()
    path, left = [], list(words)
    while hasattr(command, "commands") and left and left[0] in command.commands:
        path.append(left.pop(0))
        command = command.commands[path[-1]]
    if path == ["keys"] and left:  # two commands in one
        path.append(left.pop(0))
    known = {name: each for each in command.params for name in (*each.opts, *each.secondary_opts)}
    options, things = set(), []
    while left:
        word = left.pop(0)
        if not re.match("--?[a-z]", word):
            things.append(word)
            continue
        option = known.get(word)  # there is none where the rest belongs to Lightning's command line
        options.add(max(option.opts, key=len) if option is not None and word in option.opts else word)
        has_value = (option is None or not option.is_flag) and left and not left[0].startswith("-")
        value = left.pop(0) if has_value else ""
        if word == "--config" and path == ["filter", "train"]:
            things.insert(0, Path(value).stem)
    name = " ".join(path)
    about = next((word for word in things if name in COUNTED and word not in PHASES), "")
    return Line(name, "" if Path(about).stem.isupper() else about, frozenset(options))


def shown(texts: Iterable[str] = TEXTS.values()) -> set[Line]:
    """Every command line of `ppspeech` in some documents."""
    return {read(words) for text in texts for words in commands(text)}


def run_by(steps: Iterable[Step]) -> set[Line]:
    """What steps run to the end that readers expect: that it can be refused shows nothing."""
    lines = [step.run for step in steps if not step.python and (step.code == 0 or step.told)]
    return {read(shlex.split(line)[1:]) for line in lines if line.startswith("ppspeech ")}


def typed(texts: Iterable[str] = TEXTS.values()) -> set[str]:
    """Every other line that documents show for a shell; of `make`, a target a line."""
    found = set()
    for text in texts:
        lines = [line.strip() for code in blocks(text, "console") for line in code.splitlines()]
        lines = [line for line in lines if line] + [span for span in spans(text) if SHELL.match(span)]
        for line in (line.split(" #")[0].strip() for line in lines):
            if line.startswith("make "):
                found |= {f"make {target}" for target in line.split()[1:]}
            elif not re.match(r"(\.venv/bin/)?ppspeech ", line):
                found.add(line)
    return found


def made_by_ci() -> set[str]:
    """What CI makes: the targets that it names, and what these need first."""
    makefile = (TOP / "Makefile").read_text()
    needs = {target: words.split() for target, words in re.findall(r"^([a-z-]+):([^#\n]*)", makefile, re.MULTILINE)}
    found = set(re.findall(r"^make ([a-z-]+)$", (TOP / ".ci" / "run").read_text(), re.MULTILINE))
    while more := {need for target in found for need in needs[target] if need in needs} - found:
        found |= more
    return {f"make {target}" for target in found}


ROOMS = {"bench": ("bench", "BENCHES"), "reproduce": ("experiments", "EXPERIMENTS")}


def is_measured(line: Line, results: Path = TOP / "docs" / "results") -> bool:
    """Whether there is a stored result of a bench or an experiment, or a test that runs it."""
    room, registry = ROOMS[line.command]
    known = listed(f"ppspeech.evidence.{room}")
    if line.about not in known:  # the beginning of several names stands for all of them
        parts = [name for name in known if name.startswith(f"{line.about}-")]
        return bool(parts) and all(is_measured(replace(line, about=part), results) for part in parts)
    if any((results / f"{line.command}-{line.about}{size}.jsonl").exists() for size in ("", "-quick")):
        return True
    entry = f'{registry}.register("{line.about}")'
    module = next(p.stem for p in (TOP / "ppspeech" / "evidence" / room).glob("*.py") if entry in p.read_text())
    place = rf"from ppspeech\.evidence\.{room}"
    for path in (TOP / "tests" / "evidence").rglob("test_*.py"):
        text = path.read_text()
        names = re.findall(rf"^{place} import (?:[\w, ]+, )?{module}\b(?: as (\w+))?", text, re.MULTILINE)
        calls = [rf"\b{name or module}\.run\(" for name in names]
        calls += [r"[^.\w]run\("] if re.search(rf"{place}\.{module} import [\w, ]*\brun\b", text) else []
        if any(re.search(call, text) for call in [*calls, re.escape(f'{registry}["{line.about}"]')]):
            return True
    return False


def python_blocks() -> Iterator[tuple[str, str]]:
    """Every Python block, and the document that it stands in."""
    for name, text in TEXTS.items():
        for code in blocks(text, "python"):
            yield name, code
