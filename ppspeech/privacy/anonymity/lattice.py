"""The best full-domain generalization: one level a column, of all combinations the one that loses least.

Rows in classes smaller than k are left out, up to a limit. Two facts make the search short and keep it exact. Classes
only merge from a level to the next, so whatever leaves out too many rows does so on all finer levels too (Samarati
2001). And a row that is left out loses 1 a cell, at least what it would lose on its level: the mean loss of the levels
with all rows kept, which needs no look at classes, bounds the loss from below. Combinations are tried in the order of
that bound, until it exceeds the best loss found.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ppspeech.arrays import Whole
from ppspeech.errors import PrivacyError
from ppspeech.privacy.anonymity.hierarchy import Ladder
from ppspeech.privacy.anonymity.records import joined


@dataclass(frozen=True, eq=False)
class Choice:
    """One level a column, the rows that are kept (places, ascending), and what is lost, between 0 and 1."""

    levels: tuple[int, ...]
    kept: Whole
    loss: float


def combinations(ladders: Sequence[Ladder]) -> int:
    """How many there are."""
    return int(np.prod([len(ladder) for ladder in ladders], dtype=np.float64))


def evaluated(ladders: Sequence[Ladder], levels: tuple[int, ...], k: int) -> Choice:
    """What one combination keeps and loses."""
    rows = len(ladders[0].codes)
    chosen = list(zip(ladders, levels, strict=True))
    member = joined([ladder.groups[level][ladder.codes] for ladder, level in chosen], rows)
    kept = np.flatnonzero(np.bincount(member)[member] >= k)
    lost = sum(float(ladder.losses[level][ladder.codes[kept]].sum()) for ladder, level in chosen)
    return Choice(levels, kept, (lost + (rows - len(kept)) * len(ladders)) / (rows * len(ladders)))


def search(ladders: Sequence[Ladder], k: int, most_left_out: int) -> Choice:
    """The combination of least loss in which all classes have k rows, after at most so many rows are left out."""
    means = [[float(losses[ladder.codes].mean()) / len(ladders) for losses in ladder.losses] for ladder in ladders]
    nodes = np.array(list(itertools.product(*(range(len(ladder)) for ladder in ladders))), dtype=np.int64)
    bounds = np.sum([np.array(mean)[nodes[:, at]] for at, mean in enumerate(means)], axis=0)
    order = np.argsort(bounds, kind="stable")
    possible = np.ones(len(nodes), dtype=np.bool_)
    best: Choice | None = None
    for at in order.tolist():
        if best is not None and bounds[at] >= best.loss:
            break
        if not possible[at]:
            continue
        tried = evaluated(ladders, tuple(nodes[at].tolist()), k)
        if len(ladders[0].codes) - len(tried.kept) > most_left_out:
            possible &= (nodes > nodes[at]).any(axis=1)  # nor does anything finer
        elif best is None or tried.loss < best.loss:
            best = tried
    if best is None:
        raise PrivacyError(f"{len(ladders[0].codes)} rows cannot be made {k}-anonymous: choose a smaller k")
    return best
