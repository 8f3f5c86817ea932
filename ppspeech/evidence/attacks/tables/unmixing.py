"""What was mixed by a secret matrix, unmixed: by independence alone, or by a few rows that are known.

Independent component analysis needs as many outputs as sources and sources that are independent and, all but one, not
Gaussian. Known rows need neither: m independent pairs of x and y = x R give R by least squares, for any k. With k < m
outputs what is left unknown is filled in by the best linear guess from public rows that are distributed alike.
"""

import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from ppspeech.arrays import Reals
from ppspeech.errors import PrivacyError

RECOVERED = 0.95
"""Absolute correlation from which on a column counts as read."""

SMALL = 1e-9
NORMAL = 0.37457  # the mean of ln cosh of a standard normal number


def unmixed(mixed: Reals, starts: int = 3) -> Reals:
    """Independent components of the columns of `mixed` `(rows, k)`, `(rows, components)`; as many as its rank.

    The search can end in a local optimum: of several starts the components that are least Gaussian are kept, by the
    mean of ln cosh, which is 0.3746 for a standard normal number.
    """
    centered = mixed - mixed.mean(axis=0)
    rank = int(np.linalg.matrix_rank(centered, tol=SMALL * np.abs(centered).max() * len(mixed)))
    best = -1.0
    found: Reals = centered
    for seed in range(starts):
        analysis = FastICA(n_components=rank, whiten="unit-variance", random_state=seed, max_iter=1_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # what did not converge is a worse guess, and counted
            parts: Reals = analysis.fit_transform(centered)
        away = float(np.square(np.logaddexp(parts, -parts).mean(axis=0) - np.log(2) - NORMAL).sum())
        if away > best:
            best, found = away, parts
    return found


def from_known(known: Reals, known_mixed: Reals, mixed: Reals, public: Reals | None = None) -> Reals:
    """What the rows of `mixed` `(rows, k)` were, `(rows, m)`, by pairs that are known, `(pairs, m)` and `(pairs, k)`.

    `public`: rows `(any, m)` that are distributed alike, for what k < m outputs do not tell; without, the shortest
    rows that fit are taken.
    """
    if np.linalg.matrix_rank(known) < known.shape[1]:
        raise PrivacyError(f"{known.shape[1]} independent rows must be known, got {np.linalg.matrix_rank(known)}")
    matrix = np.linalg.lstsq(known, known_mixed, rcond=None)[0]
    m = known.shape[1]
    mean, spread = (np.zeros(m), np.eye(m)) if public is None else (public.mean(axis=0), np.cov(public.T))
    seen = matrix.T @ spread @ matrix
    guess: Reals = mean + (mixed - mean @ matrix) @ np.linalg.pinv(seen, rcond=1e-12) @ matrix.T @ spread
    return guess


def matched(truth: Reals, found: Reals) -> Reals:
    """The absolute correlation of each column of `truth` with its own column of `found`, under the best matching.

    Columns that nothing is left for have 0.
    """
    columns = truth.shape[1]
    both = np.corrcoef(truth.T, found.T)[:columns, columns:]
    likeness = np.nan_to_num(np.abs(both))
    rows, places = linear_sum_assignment(-likeness)
    best = np.zeros(columns)
    best[rows] = likeness[rows, places]
    return best


def recovered(truth: Reals, found: Reals, least: float = RECOVERED) -> int:
    """How many columns are read."""
    return int((matched(truth, found) > least).sum())
