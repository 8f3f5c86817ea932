"""A table of one's own: a CSV file with a header, in which one column may be the class."""

import math
from collections.abc import Sequence
from pathlib import Path

import torch

from ppspeech.data.layout import first_few, read_rows
from ppspeech.data.tables.table import Table
from ppspeech.errors import CorpusError


def read_table(path: str | Path, label: str = "", columns: Sequence[str] = (), labels: Sequence[str] = ()) -> Table:
    """Read a CSV file: all columns but `label` are numbers, or just those of `columns`, in that order.

    `labels`: the classes in their order; by default those that occur, sorted. Without `label` every row is of one class
    without a name. Raises CorpusError naming the line and column of what is no finite number, or no known class.
    """
    path = Path(path)
    if not path.is_file():
        raise CorpusError(f"there is no file {path}: a table of one's own is a CSV file with a header")
    rows = read_rows(path, [*columns, *([label] if label else [])])
    names = tuple(columns) or tuple(name for name in rows[0] if name != label)
    if not names:
        raise CorpusError(f"{path} has no column of numbers beside {label!r}")
    said = [row[label] if label else "" for row in rows]
    known = tuple(labels) if labels and label else tuple(sorted(set(said), key=_in_order))
    unknown = sorted(set(said) - set(known))
    if unknown:
        raise CorpusError(f"{path}: {label} is one of {', '.join(known)}, got {first_few(unknown)}")
    values = [[_number(path, line, name, row[name]) for name in names] for line, row in enumerate(rows, start=2)]
    places = {name: place for place, name in enumerate(known)}
    return Table(path.stem, torch.tensor(values), torch.tensor([places[each] for each in said]), names, known)


def _number(path: Path, line: int, column: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise CorpusError(f"{path}, row {line}: {column} must be a finite number, got {text!r:.40}")
    return value


def _in_order(text: str) -> tuple[float, str]:
    """Numbers by their size, then words."""
    try:
        return float(text), text
    except ValueError:
        return math.inf, text
