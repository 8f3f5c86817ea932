"""Which figures the page of results shows first, in what order and words: `docs/results/shown.yaml`.

```yaml
groups:
  - title: Words and sentences under encryption
    commands:
      - command: ppspeech reproduce encrypted-fsdd
        about: FSDD's official test, encrypted against in the clear
        rows:
          - metric: encrypted_fsdd.flips
            what: decisions that differ
          - metric: encrypted_fsdd.accuracy
            what: words right
            form: percent
```

`form` is `percent`, `fraction` or `number`, with decimals as in `percent:2`; without one the unit decides.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from ppspeech.errors import PpspeechError
from ppspeech.evidence.results.forms import form_of
from ppspeech.evidence.results.provenance import known_command
from ppspeech.evidence.results.store import Store


@dataclass(frozen=True)
class Row:
    """A figure to show: its metric, what it is in words, and how it is written."""

    metric: str
    what: str
    form: str = ""


@dataclass(frozen=True)
class ShownCommand:
    """What is shown of a command."""

    command: str
    about: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Group:
    """Commands that people look for together."""

    title: str
    commands: tuple[ShownCommand, ...]


@dataclass(frozen=True)
class Shown:
    """All groups, in their order."""

    groups: tuple[Group, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for each in self.commands:
            known_command(each.command)
            if each.command in seen:
                raise PpspeechError(f"{each.command} is shown twice")
            seen.add(each.command)

    @property
    def commands(self) -> tuple[ShownCommand, ...]:
        """Of all groups."""
        return tuple(command for group in self.groups for command in group.commands)

    def missing(self, store: Store) -> list[str]:
        """Commands of which nothing is stored."""
        stored = {result.provenance.command for result in store}
        return [each.command for each in self.commands if not stored & {each.command, f"{each.command} --quick"}]

    def check(self, store: Store) -> None:
        """Raise PpspeechError, naming all of them, for rows that their command did not print or that have no such form.

        A quick run prints fewer figures: of those it has, rows are shown, and none is missed.
        """
        wrong = []
        for result in store:
            for row in rows_of(self, result.provenance.command):
                if row.metric in result.by_metric:
                    form_of(result.by_metric[row.metric], row.form)
                elif not result.provenance.quick:
                    wrong.append(f"{row.metric} (`{result.provenance.command}`)")
        if wrong:
            raise PpspeechError(
                f"shown.yaml shows what is not stored, correct the name or store it: {'; '.join(wrong)}"
            )


def rows_of(shown: Shown, command: str) -> tuple[Row, ...]:
    """The rows of a command, whole or quick."""
    names = {command, command.removesuffix(" --quick")}
    return next((each.rows for each in shown.commands if each.command in names), ())


def read_shown(path: Path) -> Shown:
    """Raises PpspeechError for a file that is not there, or says something else."""
    try:
        plain = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as damaged:
        raise PpspeechError(f"{path}, which says what the page shows, cannot be read: {damaged}") from None
    try:
        groups = _parts(plain, "the file", {"groups"})["groups"]
        return Shown(tuple(_group(each) for each in groups))
    except (PpspeechError, TypeError) as wrong:
        raise PpspeechError(f"{path}: {wrong}") from None


def _group(plain: Any) -> Group:
    found = _parts(plain, "a group", {"title", "commands"})
    return Group(_text(found["title"]), tuple(_command(each) for each in found["commands"]))


def _command(plain: Any) -> ShownCommand:
    found = _parts(plain, "a command", {"command", "about", "rows"})
    rows = tuple(_row(each) for each in found["rows"])
    return ShownCommand(_text(found["command"]), _text(found["about"]), rows)


def _row(plain: Any) -> Row:
    found = _parts(plain, "a row", {"metric", "what"}, {"form"})
    form = _text(found["form"]) if "form" in found else ""
    return Row(_text(found["metric"]), _text(found["what"]), form)


def _parts(plain: Any, what: str, needed: set[str], optional: Set[str] = frozenset()) -> Mapping[str, Any]:
    if not isinstance(plain, Mapping) or not needed <= set(plain) <= needed | optional:
        raise PpspeechError(f"{what} has {', '.join(sorted(needed | optional))}, got {plain!r:.120}")
    return plain


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise PpspeechError(f"{value!r:.80} is no text")
    return value
