"""The store: a file a command, read strictly and written whole."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

from ppspeech.errors import PpspeechError
from ppspeech.evidence.results.provenance import COMMAND, Provenance, machine, versions
from ppspeech.figures import Figure
from ppspeech.storage import atomic_write

METRIC = re.compile(r"[a-z0-9_.]{1,128}")
PLACE = re.compile(r"""(?:^|(?<=[\s("'=:;,]))(?:~|[A-Za-z]:)?[/\\](?:[\w.+-]+[/\\])+""")
"""Folders before a name, from the top of a machine: they tell whose machine it is."""


@dataclass(frozen=True)
class Result:
    """What a command printed, and where that comes from."""

    provenance: Provenance
    figures: tuple[Figure, ...]

    @cached_property
    def by_metric(self) -> dict[str, Figure]:
        """Figures by name."""
        return {figure.metric: figure for figure in self.figures}

    def to_text(self) -> str:
        """The file: provenance with the number of figures, and the figures, a line each."""
        plain = {name: value for name, value in asdict(self.provenance).items() if value is not None}
        first = json.dumps(plain | {"figures": len(self.figures)})
        return "\n".join([first, *(figure.to_json() for figure in self.figures)]) + "\n"


@dataclass(frozen=True)
class Store:
    """All results, by the name of their file."""

    results: Mapping[str, Result]

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results.values())

    def metrics(self) -> list[tuple[str, str, str]]:
        """Name, unit and command of every figure, sorted."""
        return sorted((each.metric, each.unit, result.provenance.command) for result in self for each in result.figures)

    def find(self, name: str) -> tuple[Result, Figure]:
        """A figure by its metric, or by `FILE:METRIC` where two commands print one of that name.

        Raises:
            PpspeechError: if there is none, or if there are two.
        """
        file, _, metric = name.rpartition(":")
        chosen = [result for result in self if not file or result.provenance.name == file]
        found = [(result, result.by_metric[metric]) for result in chosen if metric in result.by_metric]
        if len(found) == 1:
            return found[0]
        if found:
            ways = " or ".join(f"{result.provenance.name}:{metric}" for result, _ in found)
            raise PpspeechError(f"{metric} is stored of {len(found)} commands: write {ways}")
        known = [each for result in self for each in result.by_metric]
        close = get_close_matches(metric, known, n=2)
        hint = f"did you mean {' or '.join(close)}?" if close else "`ppspeech report --metrics` lists those that are"
        raise PpspeechError(f"no figure called {name!r:.140} is stored: {hint}")


def read_store(folder: Path) -> Store:
    """Every result in a folder, in the order of names.

    Raises:
        PpspeechError: if there is none, if one is damaged, or if a command is stored whole and quick.
    """
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise PpspeechError(f"no results in {folder}: `ppspeech bench NAME --store` puts some there")
    found = {path.stem: read_result(path) for path in files}
    for name in found:
        if f"{name}-quick" in found:
            raise PpspeechError(f"{folder} has {name}.jsonl and {name}-quick.jsonl, the same figures: remove one")
    return Store(found)


def read_result(path: Path) -> Result:
    """One file. Raises PpspeechError for anything but what `write_result` wrote."""
    first, figures = _lines(path)
    stated = first.pop("figures", None)
    if stated != len(figures):
        raise PpspeechError(f"{path} is torn: its first line says {stated!r:.20} figures, there are {len(figures)}")
    wanted = {field.name for field in fields(Provenance)}
    if not wanted - {"load"} <= set(first) <= wanted:
        raise PpspeechError(f"{path}: the first line must have {', '.join(sorted(wanted))} and figures")
    found = Result(_provenance(path, first), figures)
    for figure in figures:
        if figure.note and PLACE.search(figure.note):
            raise PpspeechError(f"{path}: the note of {figure.metric} names a folder of a machine: {figure.note:.80}")
    if found.provenance.name != path.stem:
        raise PpspeechError(f"{path} holds results of `{found.provenance.command}`: call it {found.provenance.name}")
    return found


def write_result(provenance: Provenance, figures: Sequence[Figure], folder: Path) -> Path:
    """Keep results in the place of earlier ones of the same command, whole or not at all; folders in notes are cut."""
    kept = tuple(replace(each, note=PLACE.sub("", each.note)) if each.note else each for each in figures)
    result = Result(provenance, kept)
    path = folder / f"{provenance.name}.jsonl"
    with atomic_write(path) as temporary:
        temporary.write_text(result.to_text(), encoding="utf-8")
        _lines(temporary)  # what could not be read is not put in the place of what can
    return path


def add_file(path: Path, folder: Path, *, where: str = "") -> Path:
    """Store what a command printed with `--json`, below a line `{"command": …, "date": …, "seconds": …}`.

    What the first line leaves out is completed by what is here: versions, and the machine unless `where` describes
    another. Raises PpspeechError if it is not so.
    """
    first, figures = _lines(path)
    first.pop("figures", None)
    wanted = {field.name for field in fields(Provenance)}
    if not {"command", "date", "seconds"} <= set(first) <= wanted:
        raise PpspeechError(
            f'{path}: the first line must be {{"command": …, "date": …, "seconds": …}} and may say '
            f"{', '.join(sorted(wanted - {'command', 'date', 'seconds'}))}; got {', '.join(first) or 'nothing'}"
        )
    if isinstance(first["command"], str) and (begun := COMMAND.match(first["command"])):
        rest = first["command"][begun.end() :].split()
        if "--quick" in rest and not begun[3]:
            first["command"] = f"{begun[0]} --quick"
        elif not rest or rest[0].startswith("--"):  # how it was printed, and where pictures went
            first["command"] = begun[0]
    completed = {"machine": where or machine(), "versions": versions()} | first
    return write_result(_provenance(path, completed), figures, folder)


def _provenance(path: Path, plain: Mapping[str, Any]) -> Provenance:
    try:
        return Provenance(**plain)
    except PpspeechError as wrong:
        raise PpspeechError(f"{path}: {wrong}") from None


def _lines(path: Path) -> tuple[dict[str, Any], tuple[Figure, ...]]:
    """The first line's fields, and the figures of the others."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as missing:
        raise PpspeechError(f"{path} cannot be read as text: {missing}") from None
    if not text.endswith("\n"):
        raise PpspeechError(f"{path} is torn: its last line does not end; store it again")
    first, *rest = [_object(path, number, line) for number, line in enumerate(text.splitlines(), start=1)]
    found: dict[str, Figure] = {}
    for number, plain in enumerate(rest, start=2):
        figure = _figure(path, number, plain)
        if figure.metric in found:
            raise PpspeechError(f"{path}, line {number}: {figure.metric} is there twice")
        found[figure.metric] = figure
    if not found:
        raise PpspeechError(f"{path} holds no figures")
    return first, tuple(found.values())


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not a number")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        plain = dict(pairs)
        if len(plain) < len(pairs):
            raise ValueError("a field is there twice")
        return plain

    try:
        plain = json.loads(line, parse_constant=refuse, object_pairs_hook=once)
    except (ValueError, RecursionError) as damaged:
        raise PpspeechError(f"{path}, line {number} is no JSON object: {damaged}") from None
    if not isinstance(plain, dict):
        raise PpspeechError(f"{path}, line {number} is no JSON object: {line:.80}")
    return plain


def _figure(path: Path, number: int, plain: dict[str, Any]) -> Figure:
    kinds = {"metric": str, "unit": str, "peer": str, "note": str}
    known = {field.name for field in fields(Figure)}
    if not {"metric", "value", "unit"} <= set(plain) <= known:
        raise PpspeechError(
            f"{path}, line {number}: a figure has metric, value, unit, and of the rest {', '.join(sorted(known))}"
        )
    for name, value in plain.items():
        good = isinstance(value, kinds[name]) if name in kinds else _finite(value)
        if not good or (name == "metric" and not METRIC.fullmatch(value)):
            raise PpspeechError(f"{path}, line {number}: {name} cannot be {value!r:.80}")
    try:
        return Figure(**plain)
    except ValueError as wrong:
        raise PpspeechError(f"{path}, line {number}: {wrong}") from None


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
