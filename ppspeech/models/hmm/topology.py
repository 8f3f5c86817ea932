"""Which states of a hidden Markov model may begin, follow one another, and end."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.errors import ModelError

Row = tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """The structure of a model: what is False here has probability zero and keeps it.

    It holds plain tuples, not tensors, so it is part of a model's configuration, never of its weights: it needs no
    buffer (Opacus refuses them), stays out of `state_dict` and is a constant to `torch.compile`. Raises ModelError if
    the sizes differ, a state can lead nowhere, or no state may begin or end. `transitions[i][j]` says whether state j
    may follow state i.
    """

    transitions: tuple[Row, ...]
    initial: Row
    final: Row

    def __post_init__(self) -> None:
        states = len(self.transitions)
        if states < 1:
            raise ModelError("a topology needs at least one state, got none")
        sizes = {len(row) for row in (*self.transitions, self.initial, self.final)}
        if sizes != {states}:
            raise ModelError(f"a topology of {states} states needs rows of {states} entries, got {sorted(sizes)}")
        stuck = [i for i, row in enumerate(self.transitions) if not any(row)]
        if stuck:
            raise ModelError(f"states {stuck} can lead nowhere: allow a transition, at least to the state itself")
        if not any(self.initial) or not any(self.final):
            raise ModelError("a topology needs at least one initial and one final state, got none")

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.transitions)

    @property
    def offsets(self) -> tuple[int, ...]:
        """The distinct j - i over the allowed transitions, ascending: the diagonals of the matrix in use.

        >>> left_right(4).offsets, left_right(4, skips=1).offsets, ergodic(2).offsets
        ((0, 1), (0, 1, 2), (-1, 0, 1))
        """
        pairs = ((i, j) for i, row in enumerate(self.transitions) for j, allowed in enumerate(row) if allowed)
        return tuple(sorted({j - i for i, j in pairs}))

    def masks(self, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Boolean `(states, states)`, `(states,)`, `(states,)` on the device of `like`."""
        make = like.new_tensor
        return (
            make(self.transitions, dtype=torch.bool),
            make(self.initial, dtype=torch.bool),
            make(self.final, dtype=torch.bool),
        )


def left_right(states: int, skips: int = 0, must_finish: bool = False) -> Topology:
    """States in order, each staying, moving on, or leaping over at most `skips`: the usual model of a word."""
    if states < 1 or skips < 0:
        raise ModelError(f"left_right needs states >= 1 and skips >= 0, got {states} and {skips}")
    rows = tuple(tuple(0 <= j - i <= 1 + skips for j in range(states)) for i in range(states))
    last = tuple(j == states - 1 or not must_finish for j in range(states))
    return Topology(rows, tuple(j == 0 for j in range(states)), last)


def ergodic(states: int) -> Topology:
    """Every state may begin, follow any state, and end."""
    everything = (True,) * max(states, 0)
    return Topology((everything,) * max(states, 0), everything, everything)
