"""Intervals of 95 %: of a mean over repeated runs, and of a share of independent trials."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec

import numpy as np
from scipy.stats import beta, t

Arguments = ParamSpec("Arguments")

SHARE = (0.0, 1.0)
"""Where a share lies, and the ends of its interval."""


@dataclass(frozen=True)
class Mean:
    """A mean and half the width of its 95 % interval (Student's t).

    >>> round(Mean.of([1.0, 2.0, 3.0]).half_width, 3)
    2.484
    """

    value: float
    half_width: float

    @classmethod
    def of(cls, values: list[float]) -> "Mean":
        """Of at least two independent values. Raises ValueError for fewer: of one there is no interval."""
        if len(values) < 2:
            raise ValueError(f"a mean with an interval needs two values or more, got {len(values)}")
        spread = np.std(values, ddof=1) / np.sqrt(len(values))
        return cls(float(np.mean(values)), float(spread * t.ppf(0.975, len(values) - 1)))

    @property
    def low(self) -> float:
        """The interval's lower end."""
        return self.value - self.half_width

    @property
    def high(self) -> float:
        """Its upper end."""
        return self.value + self.half_width


def repeated(runs: int, work: Callable[Arguments, float], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Mean:
    """The mean of what `work` gives in so many runs."""
    return Mean.of([work(*args, **kwargs) for _ in range(runs)])


def clopper_pearson(right: float, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of a proportion (Clopper and Pearson 1934): it covers the truth at least as often as stated.

    `right` may be a mean over runs with the same trials, and then need not be whole.

    >>> low, high = clopper_pearson(0, 10)
    >>> low, round(high, 3)
    (0.0, 0.308)
    """
    if not 0 <= right <= trials or trials == 0:
        raise ValueError(f"of some trials none, some or all are right, got {right:g} of {trials}")
    half = (1 - confidence) / 2
    low = float(beta.ppf(half, right, trials - right + 1)) if right else 0.0
    high = float(beta.ppf(1 - half, right + 1, trials - right)) if right < trials else 1.0
    return low, high
