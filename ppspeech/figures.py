"""One format for every figure ppspeech states, for people (a table) and for programs (JSON lines)."""

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Self

from rich import box
from rich.table import Table

from ppspeech.screen import Console


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value, beside the same thing measured on a peer where there is one.

    Attributes:
        metric: stable dotted name, such as `features.speedup_vs_librosa`.
        value: what was measured.
        unit: its unit: `s`, `ms`, `MB`, `x` for a ratio, `` for a count or a fraction:
            accuracies, errors and rates are between 0 and 1.
        peer: what it was compared with in the same run.
        peer_value: the same quantity for the peer.
        ratio: greater than 1 means we are better.
        note: what a reader needs to know to trust it: sizes, versions, threads.
    """

    metric: str
    value: float
    unit: str = ""
    peer: str | None = None
    peer_value: float | None = None
    ratio: float | None = None
    note: str | None = None

    @classmethod
    def less(cls, metric: str, value: float, unit: str, peer: str, peer_value: float, note: str | None = None) -> Self:
        """A quantity of which less is better, beside the peer's.

        >>> Figure.less("features.batch_ms", 2.0, "ms", "librosa", 12.0).ratio
        6.0
        """
        return cls(metric, value, unit, peer, peer_value, peer_value / value, note)

    def to_json(self) -> str:
        """One JSON object on one line, without the fields that do not apply.

        >>> Figure("corpus.fsdd.utterances", 3000).to_json()
        '{"metric": "corpus.fsdd.utterances", "value": 3000, "unit": ""}'
        """
        return json.dumps({name: value for name, value in asdict(self).items() if value is not None})


def show_figures(figures: Iterable[Figure], *, as_json: bool, title: str = "") -> None:
    """Print figures as JSON lines on standard output, or as one table with the columns that are not empty.

    A note stands below, numbered where it is about some of the rows alone.
    """
    if as_json:
        for figure in figures:
            sys.stdout.write(figure.to_json() + "\n")
        sys.stdout.flush()
        return
    shown = list(figures)
    notes = list(dict.fromkeys(figure.note for figure in shown if figure.note))
    marked = len({figure.note for figure in shown}) > 1  # else one note is about all of them
    cells = {
        "metric": [figure.metric for figure in shown],
        "value": [f"{_number(figure.value)} {figure.unit}".strip() for figure in shown],
        "peer": [f"{f.peer}: {_number(f.peer_value)} {f.unit}".strip() if f.peer else "" for f in shown],
        "ratio": [f"{_number(figure.ratio)}x" if figure.ratio is not None else "" for figure in shown],
        "note": [str(1 + notes.index(figure.note)) if marked and figure.note else "" for figure in shown],
    }
    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD)
    columns = {heading: column for heading, column in cells.items() if heading in {"metric", "value"} or any(column)}
    for heading in columns:
        table.add_column(heading, justify="right" if heading in {"value", "ratio", "note"} else "left", overflow="fold")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    console = Console()
    console.print(table)
    for number, note in enumerate(notes, start=1):
        console.print(f"  {number}: {note}" if marked else f"  {note}", style="dim")


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:.4g}"
