"""What a table with classes of equal rows gives away: how large they are, and what is the same within them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ppspeech.arrays import Reals, Whole
from ppspeech.privacy.anonymity.records import Coded, Records


@dataclass(frozen=True)
class Told:
    """About rows that are equal in the quasi-identifiers.

    Attributes:
        smallest: k, rows of the smallest class.
        classes: how many there are.
        diversity: l, the fewest different sensitive values in a class (distinct l-diversity, Machanavajjhala 2006).
        closeness: t, how far the sensitive values of a class are from those of the table, at most (Li 2007).
        homogeneous: share of rows whose class has one sensitive value: whoever knows their age and sex knows it.
        guessed: share of rows whose sensitive value is the most frequent of its class.
        frequent: the same of the whole table, which anyone can guess.
    """

    smallest: int
    classes: int
    diversity: int
    closeness: float
    homogeneous: float
    guessed: float
    frequent: float


def smallest_class(records: Records, quasi: Sequence[str]) -> int:
    """k: rows of the smallest class of rows that are equal in these columns."""
    return int(np.bincount(records.classes(quasi)).min())


def measure(records: Records, quasi: Sequence[str], sensitive: str) -> Told:
    """What a table tells of one column to whoever knows the others named."""
    member, column = records.classes(quasi), records.coded(sensitive)
    counts = np.zeros((int(member.max()) + 1, len(column.values)), dtype=np.int64)
    np.add.at(counts, (member, column.codes), 1)
    sizes, kinds = counts.sum(axis=1), (counts > 0).sum(axis=1)
    rows = len(records)
    return Told(
        smallest=int(sizes.min()),
        classes=len(sizes),
        diversity=int(kinds.min()),
        closeness=float(distances(counts, column).max()),
        homogeneous=float(sizes[kinds == 1].sum()) / rows,
        guessed=float(counts.max(axis=1).sum()) / rows,
        frequent=float(counts.sum(axis=0).max()) / rows,
    )


def distances(counts: Whole, column: Coded) -> Reals:
    """The earth mover's distance of each class's values `(classes, V)` from the table's, between 0 and 1.

    Numbers are as far apart as their places in order, (V - 1) being 1; other values are all 1 apart.
    """
    apart = counts / counts.sum(axis=1, keepdims=True) - counts.sum(axis=0) / counts.sum()
    if column.ordered:
        moved: Reals = np.abs(np.cumsum(apart, axis=1)).sum(axis=1) / max(len(column.values) - 1, 1)
        return moved
    halved: Reals = np.abs(apart).sum(axis=1) / 2
    return halved
