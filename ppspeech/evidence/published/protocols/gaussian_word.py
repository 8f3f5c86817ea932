"""A word as an HMM with one Gaussian a state, and its log-densities as the paper writes them: z' W z with z = [x, 1].

    W_j = [ -C_j^-1 / 2    C_j^-1 μ_j ]
          [      0             w_j     ]

Correction: the paper prints w_j = +μ' C^-1 μ / 2 - ln|C^-1| / 2 - (d / 2) ln 2π, with two signs wrong. The density has
w_j = -μ' C^-1 μ / 2 - ln|C| / 2 - (d / 2) ln 2π. `strict` gives the printed one. Correction 2.29 in
docs/theory/asking.md.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.errors import ModelError, RangeError

TOLERANCE = 1e-6
LARGEST_WEIGHT = 1e9  # what an entry of W may be in magnitude: at scale 10^6 it still is a machine word


@dataclass(frozen=True, eq=False)
class Chain:
    """Π and A of the paper. `initial`: P(state 1), `(states,)`; `transitions`: P(next state | state), `(states,
    states)`, a row for each state. Raises `ModelError` unless these are probabilities that add up to 1.
    """

    initial: Reals
    transitions: Reals

    def __post_init__(self) -> None:
        states = self.initial.shape[-1]
        if self.initial.shape != (states,) or self.transitions.shape != (states, states):
            raise ModelError(
                "a chain has (states,) initial and (states, states) transition probabilities, "
                f"got {self.initial.shape} and {self.transitions.shape}"
            )
        check_distributions(self.initial[None], "initial probabilities")
        check_distributions(self.transitions, "transition probabilities")

    @property
    def states(self) -> int:
        """How many."""
        return len(self.initial)


def check_distributions(rows: Reals, what: str) -> None:
    """Refuse rows that are not distributions. Raises `ModelError` with the first row that is none."""
    good = (rows >= 0).all(1) & (np.abs(rows.sum(1) - 1) <= TOLERANCE)
    if not good.all():
        row = rows[np.flatnonzero(~good)[0]]
        raise ModelError(f"{what} must be 0 or more and add up to 1, got {row.tolist()}")


@dataclass(frozen=True, eq=False)
class GaussianWord:
    """λ and τ of the paper. `means`: μ, `(states, d)`; `covariances`: C, `(states, d, d)`, positive definite. Raises
    `ModelError` for shapes that do not fit each other, or matrices that are no covariances.
    """

    word: str
    chain: Chain
    means: Reals
    covariances: Reals

    def __post_init__(self) -> None:
        states, size = self.chain.states, self.means.shape[-1]
        if self.means.shape != (states, size) or self.covariances.shape != (states, size, size):
            raise ModelError(
                f"{self.word!r} of {states} states needs means of shape ({states}, d) and covariances of shape "
                f"({states}, d, d), got {self.means.shape} and {self.covariances.shape}"
            )
        if not (np.isfinite(self.means).all() and np.isfinite(self.covariances).all()):
            raise ModelError(f"{self.word!r} has means or covariances that are not finite")
        symmetric = np.allclose(self.covariances, self.covariances.transpose(0, 2, 1))
        if not symmetric or np.linalg.eigvalsh(self.covariances).min() <= 0:
            raise ModelError(f"{self.word!r} has a covariance that is not symmetric and positive definite")

    @classmethod
    def parse(cls, plain: Mapping[str, Any]) -> "GaussianWord":
        """From a mapping of `word`, `initial`, `transitions`, `means` and `covariances`; other fields are refused."""
        fields = ("initial", "transitions", "means", "covariances")
        if set(plain) != {"word", *fields}:
            raise ModelError(f"a word has the fields word, {', '.join(fields)}, got {', '.join(sorted(plain))}")
        initial, transitions, means, covariances = (np.asarray(plain[name], np.float64) for name in fields)
        return cls(str(plain["word"]), Chain(initial, transitions), means, covariances)

    @property
    def dimensions(self) -> int:
        """d."""
        return int(self.means.shape[-1])

    def weights(self, *, strict: bool = False) -> Reals:
        """W of every state, `(states, d + 1, d + 1)`, with `strict` the printed constant; at most 10^9 in magnitude."""
        precisions = np.linalg.inv(self.covariances)
        shifted = np.einsum("jab,jb->ja", precisions, self.means)
        square = np.einsum("ja,ja->j", self.means, shifted)
        log_det = np.linalg.slogdet(self.covariances)[1]
        sign = 1 if strict else -1  # ln|C^-1| = -ln|C|
        size = self.dimensions
        weights = np.zeros((self.chain.states, size + 1, size + 1))
        weights[:, :size, :size] = -precisions / 2
        weights[:, :size, size] = shifted
        weights[:, size, size] = sign * (square + log_det) / 2 - size / 2 * math.log(2 * math.pi)
        if np.abs(weights).max() > LARGEST_WEIGHT:
            raise RangeError(
                f"{self.word!r} has weights up to {np.abs(weights).max():.3g}, above {LARGEST_WEIGHT:.0e}: "
                "floor its variances"
            )
        return weights
