"""Rows about people as text, and what a generalized cell says: an interval, one of several values, or anything."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ppspeech.arrays import Whole
from ppspeech.errors import PrivacyError
from ppspeech.privacy.samplers.randomness import random_order

ANY = "*"
"""A cell that tells nothing."""

OR = "|"
"""Between the values that a cell may mean."""

NUMBER = r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
INTERVAL = re.compile(rf"\[({NUMBER}), ({NUMBER})[\])]")
FOLD = 2**62


@dataclass(frozen=True, eq=False)
class Records:
    """A table of text, column by column, all equally long.

    >>> Records({"age": ("31", "9"), "sex": ("f", "m")}).classes(["sex"]).tolist()
    [0, 1]
    """

    columns: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        lengths = {name: len(values) for name, values in self.columns.items()}
        if not lengths or len(set(lengths.values())) > 1:
            raise PrivacyError(f"a table has columns of one length, got {lengths}")

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, str]]) -> "Records":
        """Of rows that all have the same names."""
        return cls({name: tuple(row[name] for row in rows) for name in (rows[0] if rows else ())})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def column(self, name: str) -> tuple[str, ...]:
        """The values of a column. Raises PrivacyError for one that is not there."""
        if name not in self.columns:
            raise PrivacyError(f"the table has no column {name!r}; it has {', '.join(self.columns)}")
        return self.columns[name]

    def replaced(self, columns: Mapping[str, tuple[str, ...]]) -> "Records":
        """The same with other values in these columns."""
        return Records({**self.columns, **columns})

    def select(self, rows: Whole) -> "Records":
        """The rows of these places, in this order."""
        places = rows.tolist()
        return Records({name: tuple(values[at] for at in places) for name, values in self.columns.items()})

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Row by row."""
        return zip(*self.columns.values(), strict=True)

    def coded(self, name: str) -> "Coded":
        """A column as places among its values."""
        column = self.column(name)
        values = tuple(sorted(set(column), key=_in_order))
        place = {value: at for at, value in enumerate(values)}
        return Coded(np.array([place[value] for value in column], dtype=np.int64), values)

    def classes(self, names: Sequence[str]) -> Whole:
        """Which rows are equal in these columns: the number of each row's class, from 0."""
        return joined([self.coded(name).codes for name in names], len(self))


@dataclass(frozen=True, eq=False)
class Coded:
    """A column as numbers: `codes` are places in `values`, which are sorted, numbers by size and before words."""

    codes: Whole
    values: tuple[str, ...]

    @property
    def ordered(self) -> bool:
        """Whether all values are numbers."""
        return all(_in_order(value)[0] < math.inf for value in self.values)


def joined(codes: Sequence[Whole], rows: int) -> Whole:
    """The class of each row, from 0: rows are in one class if all their codes are equal."""
    key, size = np.zeros(rows, dtype=np.int64), 1
    for each in codes:
        width = int(each.max(initial=0)) + 1
        if size * width > FOLD:
            _, key = np.unique(key, return_inverse=True)
            size = int(key.max(initial=0)) + 1
        key, size = key * width + each, size * width
    found: Whole = np.unique(key, return_inverse=True)[1].astype(np.int64)
    return found


def shuffled(records: Records) -> Records:
    """The rows in a random order: where a row stands can tell whose it is."""
    return records.select(random_order(len(records)))


def interval(low: float, high: float, *, closed: bool) -> str:
    """From low to high, with or without its end.

    >>> interval(20, 30, closed=False)
    '[20, 30)'
    """
    return f"[{low:.12g}, {high:.12g}{']' if closed else ')'}"


def ends(cell: str) -> tuple[float, float]:
    """The smallest and the largest number that a cell may mean; not numbers where it says none.

    >>> ends("[20, 30)"), ends("7.5"), ends("*")
    ((20.0, 30.0), (7.5, 7.5), (nan, nan))
    """
    found = INTERVAL.fullmatch(cell)
    if found:
        return float(found[1]), float(found[2])
    value = number(cell)
    return value, value


def number(text: str) -> float:
    """The finite number that a text says; not a number where it says none."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def meant(cell: str) -> frozenset[str]:
    """The values that a cell may mean; none are known where it may be anything."""
    return frozenset() if cell == ANY else frozenset(cell.split(OR))


def _in_order(text: str) -> tuple[float, str]:
    """Numbers by their size, then words."""
    value = number(text)
    return (math.inf, text) if math.isnan(value) else (value, text)
