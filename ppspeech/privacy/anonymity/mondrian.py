"""Mondrian: boxes of at least k rows, cut at medians (LeFevre, DeWitt and Ramakrishnan 2006).

Each box is cut along the column in which its rows differ most, if both halves keep k rows, else along the next; rows of
an uncut box become equal. A greedy method: what it loses is an upper bound on what is needed. No row is left out.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Whole
from ppspeech.errors import PrivacyError
from ppspeech.privacy.anonymity.records import OR, Coded, interval


def boxes(columns: Sequence[Coded], k: int) -> list[Whole]:
    """The rows of each box."""
    rows = len(columns[0].codes)
    if rows < k:
        raise PrivacyError(f"{rows} rows cannot be made {k}-anonymous: choose a smaller k")
    codes = np.stack([column.codes for column in columns], axis=1)
    domains = np.array([max(len(column.values) - 1, 1) for column in columns])
    waiting, done = [np.arange(rows)], []
    while waiting:
        box = waiting.pop()
        halves = _cut(codes[box], domains, k)
        if halves is None:
            done.append(box)
        else:
            waiting += [box[halves], box[~halves]]
    return done


def described(column: Coded, codes: Whole) -> tuple[str, float]:
    """What a cell of a box with these codes says, and what is lost: (values that it may be - 1) / (V - 1)."""
    there = np.unique(codes)
    if len(there) == 1:
        return column.values[there[0]], 0.0
    domain = len(column.values) - 1
    if column.ordered:
        ends = float(column.values[there[0]]), float(column.values[there[-1]])
        return interval(*ends, closed=True), float(there[-1] - there[0]) / domain
    return OR.join(column.values[code] for code in there), (len(there) - 1) / domain


def _cut(codes: Whole, domains: Whole, k: int) -> NDArray[np.bool_] | None:
    """Which rows are in the lower half; None where no column can be cut."""
    if len(codes) < 2 * k:
        return None
    spans = (codes.max(axis=0) - codes.min(axis=0)) / domains
    for at in np.argsort(-spans, kind="stable"):
        if spans[at] == 0:
            return None
        own: Whole = codes[:, at]
        middle = np.sort(own)[(len(own) - 1) // 2]
        for lower in (own <= middle, own < middle):
            if k <= int(lower.sum()) <= len(own) - k:
                return np.asarray(lower, dtype=np.bool_)
    return None
