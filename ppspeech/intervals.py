"""A mean over repeated runs with its 95 % interval."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec

import numpy as np
from scipy.stats import t

Arguments = ParamSpec("Arguments")


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
        """Of at least two independent values."""
        spread = np.std(values, ddof=1) / np.sqrt(len(values))
        return cls(float(np.mean(values)), float(spread * t.ppf(0.975, len(values) - 1)))


def repeated(runs: int, work: Callable[Arguments, float], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Mean:
    """The mean of what `work` gives in so many runs."""
    return Mean.of([work(*args, **kwargs) for _ in range(runs)])
