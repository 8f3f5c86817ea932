"""Whose row is it? Records without names, linked to a little that is known of people (Narayanan and Shmatikov 2008).

A record is scored by how much it resembles what is known, attribute by attribute,

    score(record) = sum_i wt(i) exp(-|known_i - record_i| / scale_i),    wt(i) = 1 / ln |supp(i)|,

over those attributes i that both have; |supp(i)| is how many records have attribute i: what is rare counts more. The
best record is believed if it stands out: (max - second) / deviation of the scores >= 1.5. What is known may be wrong in
places, and no attribute must be right. Where a record says an interval, the distance is that from the interval. An
attribute that one or two records have weighs as one of two (the printed weight is infinite for one).

Against noise that is a weak attack: records whose noise happens to be short resemble everybody. Who knows something of
all people, and that each has one record, matches them jointly: the matching of least squared distances, in which the
length of a record cancels, is the most likely one under Gaussian noise. Limit 4.18 in docs/theory/filters.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from ppspeech.arrays import Reals, Whole
from ppspeech.errors import PrivacyError
from ppspeech.privacy.anonymity import Records, ends, meant, number
from ppspeech.privacy.samplers import random_order

ECCENTRICITY = 1.5
"""How far the best record must stand out to be believed, as printed."""

TIE = 1e-9


@dataclass(frozen=True, eq=False)
class Linked:
    """Scores of all records for all people, `(people, records)`."""

    scores: Reals

    @property
    def eccentricity(self) -> Reals:
        """How far each person's best record stands out, `(people,)`; 0 where all are alike."""
        ranked = np.sort(self.scores, axis=1)
        spread = self.scores.std(axis=1)
        gap: Reals = (ranked[:, -1] - ranked[:, -2]) / np.where(spread > 0, spread, 1.0)
        return np.where(gap > TIE, gap, 0.0)

    @property
    def best(self) -> Reals:
        """Which records resemble each person most, 1 or 0, `(people, records)`; several where they are equal."""
        top: Reals = (self.scores >= self.scores.max(axis=1, keepdims=True) - TIE).astype(np.float64)
        return top

    def hits(self, truth: Whole) -> Reals:
        """The chance that each person is given the own record, `(people,)`; among equals one is drawn."""
        best = self.best
        found: Reals = best[np.arange(len(truth)), truth] / best.sum(axis=1)
        return found

    def narrowed(self, truth: Whole) -> float:
        """Share of people whose own record is among those that resemble most, however many these are."""
        return float((self.hits(truth) > 0).mean())

    def named(self, truth: Whole) -> float:
        """Share of people who are given their own record."""
        return float(self.hits(truth).mean())

    def believed(self, truth: Whole, least: float = ECCENTRICITY) -> tuple[float, float]:
        """Precision and recall of what stands out: shares right of those believed, and of all people."""
        sure = self.eccentricity >= least
        right = float(self.hits(truth)[sure].sum())
        return (right / int(sure.sum()) if sure.any() else math.nan), right / len(truth)


def link(known: Reals, low: Reals, high: Reals | None = None) -> Linked:
    """Score all records for people of whom `known` `(people, attributes)` is known; the scale is the deviation.

    `low` and `high`, `(records, attributes)`, are what a record may mean, or `low` is what it says. What is missing is
    not a number.
    """
    high = low if high is None else high
    if known.ndim != 2 or low.shape != high.shape or known.shape[1:] != low.shape[1:] or len(low) < 2:
        raise PrivacyError(f"two or more records are linked by the same attributes, got {low.shape}, {known.shape}")
    support = (~np.isnan(low)).sum(axis=0)
    weights = np.where(support > 0, 1 / np.log(np.maximum(support, 2)), 0.0)
    scale = _deviation((low + high) / 2)
    scores = np.zeros((len(known), len(low)))
    for person, own in enumerate(known):
        there = np.flatnonzero(~np.isnan(own))
        away = np.maximum(low[:, there] - own[there], own[there] - high[:, there])
        like = np.exp(-np.maximum(away, 0.0) / scale[there])
        scores[person] = np.where(np.isnan(like), 0.0, like) @ weights[there]
    return Linked(scores)


def match(known: Reals, low: Reals, high: Reals | None = None) -> Whole:
    """One record for each person, `(people,)`, no record twice: the least sum of squared distances, in deviations.

    Arguments are those of `link`. What is missing is as far as an attribute is in the mean. Records are put in a random
    order before, so that among equals one is drawn. Where people are more than records, some have none, -1.
    """
    high = low if high is None else high
    order = random_order(len(low))
    scale = _deviation((low + high) / 2)
    away = np.zeros((len(known), len(low)))
    for at in range(known.shape[1]):
        own, bottom, top = known[:, at : at + 1], low[order, at], high[order, at]
        square = np.square(np.maximum(np.maximum(bottom - own, own - top), 0.0) / scale[at])
        there = ~np.isnan(square)
        away += np.where(there, square, square[there].mean() if there.any() else 0.0)
    people, places = linear_sum_assignment(away)
    found = np.full(len(known), -1, dtype=np.int64)
    found[people] = order[places]
    return found


def of_people(values: Reals, people: Whole) -> Reals:
    """What is known of each person, from 0: the mean of an attribute over the person's rows that have it."""
    count = int(people.max()) + 1
    there = ~np.isnan(values)
    totals, seen = np.zeros((count, values.shape[1])), np.zeros((count, values.shape[1]))
    np.add.at(totals, people, np.where(there, values, 0.0))
    np.add.at(seen, people, there)
    return np.where(seen > 0, totals / np.maximum(seen, 1), np.nan)


def attributes(released: Records, known: Records, columns: Sequence[str]) -> tuple[Reals, Reals, Reals]:
    """Two tables of text as attributes: `low` and `high` of the released, `(records, attributes)`, and the known ones.

    A column of numbers is one attribute. Of any other each value is one, which a cell has or
    has not (0 or missing); a cell that may mean several has all of them, and one that may mean anything has none.
    """
    left: list[list[tuple[float, float]]] = []
    right: list[list[float]] = []
    for name in columns:
        theirs, ours = released.column(name), known.column(name)
        numbers = [number(cell) for cell in ours]
        if not any(math.isnan(value) for value in numbers):
            left.append([ends(cell) for cell in theirs])
            right.append(numbers)
            continue
        cells = [meant(cell) for cell in theirs]
        for value in sorted(set(ours)):
            left.append([(0.0, 0.0) if value in cell else (math.nan, math.nan) for cell in cells])
            right.append([0.0 if value == own else math.nan for own in ours])
    if not left:
        raise PrivacyError("rows are linked by columns that both tables have: there is none")
    low, high = np.moveaxis(np.array(left), (0, 1, 2), (2, 1, 0))
    return low, high, np.array(right).T


@dataclass(frozen=True)
class Link:
    """How people were linked to rows of a table.

    Attributes:
        people: how many were looked for: those that have a row.
        rows: of the table.
        columns: that both tables have.
        named: share of people who were given a row of their own.
        chance: the same by drawing a row.
        believed: how many people's best row stands out.
        precision: share right of these; 0 where there are none.
        recall: share of people whose row stands out and is right.
        matched: share of people given a row of their own when all are matched jointly.
    """

    people: int
    rows: int
    columns: tuple[str, ...]
    named: float
    chance: float
    believed: int
    precision: float
    recall: float
    matched: float


def link_tables(released: Records, known: Records, person: str) -> Link:
    """Link rows of a table to people of whom some rows are known; the column `person` of the table is for the judge.

    Raises PrivacyError where the tables share no column, or nobody who is known is in the table.
    """
    columns = tuple(name for name in known.columns if name in released.columns and name != person)
    whose, names = released.column(person), known.column(person)
    there = sorted(set(names) & set(whose))
    if not there:
        raise PrivacyError(f"nobody who is known is in the table: column {person!r} has no name in common")
    place = {name: at for at, name in enumerate(there)}
    rows = np.flatnonzero([name in place for name in names])
    low, high, values = attributes(released, known.select(rows), columns)
    told = of_people(values, np.array([place[names[at]] for at in rows.tolist()]))
    linked, rowed = link(told, low, high), match(told, low, high)
    own = np.array([[row == name for row in whose] for name in there])
    best = linked.best / linked.best.sum(axis=1, keepdims=True)
    hits = (best * own).sum(axis=1)
    sure = linked.eccentricity >= ECCENTRICITY
    right = float(hits[sure].sum())
    return Link(
        people=len(there),
        rows=len(released),
        columns=columns,
        named=float(hits.mean()),
        chance=float(own.mean()),
        believed=int(sure.sum()),
        precision=right / max(int(sure.sum()), 1),
        recall=right / len(there),
        matched=float(np.mean([row >= 0 and own[at, row] for at, row in enumerate(rowed.tolist())])),
    )


def _deviation(records: Reals) -> Reals:
    """Of each attribute among the records that have it; 1 where it does not vary."""
    there = ~np.isnan(records)
    count = np.maximum(there.sum(axis=0), 1)
    mean = np.where(there, records, 0.0).sum(axis=0) / count
    spread: Reals = np.sqrt(np.where(there, np.square(records - mean), 0.0).sum(axis=0) / count)
    return np.where(spread > 0, spread, 1.0)
