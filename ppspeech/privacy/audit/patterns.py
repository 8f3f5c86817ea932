"""The exact probability of every answer pattern of the sparse vector technique."""

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ppspeech.privacy.mechanisms.sparse_vector import SparseVector


def pattern_log_probabilities(
    mechanism: SparseVector, queries: Sequence[float], threshold: float, patterns: Sequence[Sequence[bool]]
) -> NDArray[np.float64]:
    """ln P(the run answers a pattern to `queries`) for each pattern, numeric answers left aside.

    Given the threshold's noise the answers are independent, so each probability is one sum over that noise of a product
    of discrete Laplace tails. A pattern may be shorter than `queries` (the run ended at its last positive).
    """
    grid = mechanism.grid
    outer, inner = float(mechanism.threshold_scale), float(mechanism.query_scale)
    reach = math.ceil(40 * outer)
    noise = np.arange(-reach, reach + 1, dtype=np.float64)
    law = math.log(math.tanh(1 / (2 * outer))) - np.abs(noise) / outer
    level = round(threshold / grid.step)
    tails: dict[float, dict[bool, NDArray[np.float64]]] = {}
    for query in set(queries):
        gap = level + noise - round(query / grid.step)  # above iff the query's noise reaches it
        tails[query] = {True: _log_at_least(gap, inner), False: _log_at_least(1 - gap, inner)}
    found = []
    for pattern in patterns:
        total = law.copy()
        for query, above in zip(queries, pattern, strict=False):
            total += tails[query][above]
        found.append(float(logsumexp(total)))
    return np.array(found)


def possible_patterns(mechanism: SparseVector, count: int) -> list[tuple[bool, ...]]:
    """Every pattern that a run over `count` queries can answer: it ends with the last positive allowed."""
    found: dict[tuple[bool, ...], None] = {}
    for answers in product((False, True), repeat=count):
        positives, pattern = 0, []
        for above in answers:
            if positives == mechanism.positives:
                break
            pattern.append(above)
            positives += above
        found[tuple(pattern)] = None
    return list(found)


def _log_at_least(k: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """ln P(noise >= k) of the discrete Laplace law: q^k / (1 + q) for k >= 1, 1 - q^(1-k) / (1 + q) below."""
    log_norm = math.log1p(math.exp(-1 / scale))
    positive = -np.maximum(k, 1) / scale - log_norm
    negative = np.log1p(-np.exp(-(1 - np.minimum(k, 0)) / scale - log_norm))
    tail: NDArray[np.float64] = np.where(k >= 1, positive, negative)
    return tail
