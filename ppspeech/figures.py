"""One format for every figure ppspeech states, for people (a table) and for programs (JSON lines)."""

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Self

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table


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
    """Print figures as JSON lines on standard output, or as one table."""
    if as_json:
        for figure in figures:
            sys.stdout.write(figure.to_json() + "\n")
        sys.stdout.flush()
        return
    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("metric", "value", "peer", "ratio"):
        table.add_column(heading, justify="right" if heading in {"value", "ratio"} else "left", overflow="fold")
    notes: dict[str, None] = {}
    for figure in figures:
        table.add_row(
            figure.metric,
            f"{_number(figure.value)} {figure.unit}".strip(),
            f"{figure.peer}: {_number(figure.peer_value)} {figure.unit}".strip() if figure.peer else "",
            f"{_number(figure.ratio)}x" if figure.ratio is not None else "",
        )
        if figure.note:
            notes[figure.note] = None
    console = Console(highlight=False)
    console.print(table)
    for note in notes:
        console.print(f"  [dim]{escape(note)}[/]")


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:.4g}"
