"""The hidden chain of an HMM, as Bob holds it: where words start and how they go on."""

from dataclasses import dataclass

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.errors import ModelError

TOLERANCE = 1e-6


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
