"""One format for every figure ppspeech states, for people (a table) and for programs (JSON lines)."""

import json
import math
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Self

from rich import box
from rich.table import Table

from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.intervals import Mean


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
        note: what a reader needs to know to trust it: sizes, versions, threads, and over what an interval is.
        low: the lower end of a 95 % interval around the value, where there is one.
        high: its upper end.
    """

    metric: str
    value: float
    unit: str = ""
    peer: str | None = None
    peer_value: float | None = None
    ratio: float | None = None
    note: str | None = None
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            return
        if self.low is None or self.high is None:
            raise ValueError(f"the interval of {self.metric} needs both ends, got {self.low} and {self.high}")
        if not self.low <= self.value <= self.high:
            raise ValueError(
                f"the interval of {self.metric}, {self.low:g} to {self.high:g}, must hold its value {self.value:g}"
            )

    @classmethod
    def mean(
        cls,
        metric: str,
        mean: "Mean",
        unit: str = "",
        peer: str | None = None,
        peer_value: float | None = None,
        ratio: float | None = None,
        note: str | None = None,
        *,
        limits: tuple[float, float] = (-math.inf, math.inf),
    ) -> Self:
        """A mean over runs with its interval, of which no end is outside `limits`.

        >>> from ppspeech.intervals import SHARE, Mean
        >>> Figure.mean("fsdd.accuracy", Mean(0.98, 0.03), limits=SHARE).high
        1.0
        """
        made = cls(metric, mean.value, unit, peer, peer_value, ratio, note)
        return made.between(max(mean.low, limits[0]), min(mean.high, limits[1]))

    @classmethod
    def share(
        cls,
        metric: str,
        right: int,
        trials: int,
        over: str,
        peer: str | None = None,
        peer_value: float | None = None,
        ratio: float | None = None,
        note: str | None = None,
    ) -> Self:
        """A share of trials with the interval of Clopper and Pearson, which takes them for independent.

        The note says over what it is: of utterances of a few people an interval over utterances is optimistic.

        >>> Figure.share("fsdd.accuracy", 297, 300, "utterances").note
        'interval over 300 utterances'
        """
        from ppspeech.intervals import clopper_pearson

        made = cls(metric, right / trials, "", peer, peer_value, ratio, _over(note, trials, over))
        return made.between(*clopper_pearson(right, trials))

    @classmethod
    def count(
        cls,
        metric: str,
        found: int,
        trials: int,
        over: str,
        unit: str = "",
        peer: str | None = None,
        peer_value: float | None = None,
        note: str | None = None,
    ) -> Self:
        """How many of so many trials, with the interval of `share` times their number: of none, an upper bound.

        >>> round(Figure.count("encrypted.flips", 0, 300, "clips").high, 2)
        3.67
        """
        from ppspeech.intervals import clopper_pearson

        low, high = clopper_pearson(found, trials)
        made = cls(metric, found, unit, peer, peer_value, None, _over(note, trials, over))
        return made.between(low * trials, high * trials)

    def between(self, low: float, high: float) -> Self:
        """The same with an interval; one of a bootstrap that does not hold the value is widened until it does.

        Runs or people that all gave the same would have one without width, as if the value were certain: the note says
        so instead.

        >>> Figure("words.accuracy", 1.0).between(1.0, 1.0).note
        'nothing varied: no interval'
        """
        low, high = min(low, self.value), max(high, self.value)
        if low == high:
            return replace(self, note="; ".join(filter(None, (self.note, "nothing varied: no interval"))))
        return replace(self, low=low, high=high)

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
        "interval": ["" if f.low is None else f"{_number(f.low)} to {_number(f.high)}" for f in shown],
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


def _over(note: str | None, trials: int, over: str) -> str:
    said = f"interval over {trials:,} {over}"
    return f"{note}; {said}" if note else said


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:.4g}"
