"""Expectation maximization under a Lightning Trainer."""

from collections.abc import Callable, Iterable
from typing import Any

from torch import nn
from torch.optim import Optimizer


class MaximizationStep(Optimizer):
    """The M-step in the place of a gradient step.

    Lightning counts, logs, checkpoints and resumes by optimizer steps; with this, EM gets all of that: a module
    adds up statistics in `training_step` and calls `self.optimizers().step()` after the epoch's last batch.

    Args:
        parameters: what the M-step sets.
        maximize: sets them.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], maximize: Callable[[], None]) -> None:
        super().__init__(list(parameters), {})
        self._maximize = maximize

    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Run the closure, if any, then the M-step."""
        if closure is not None:
            closure()
        self._maximize()
