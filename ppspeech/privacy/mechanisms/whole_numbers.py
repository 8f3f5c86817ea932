"""Noise for whole numbers, and real ones made whole: what counts, sums and means of a table share.

A column's bounds are public. Between them a value is told in whole steps: sums are exact, have no order, and move by
whole numbers, to which rounding adds nothing.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.gradients.clipping import limit_contributions
from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussian
from ppspeech.privacy.mechanisms.discrete_laplace import DiscreteLaplace
from ppspeech.privacy.parameters import check_count, check_finite, check_positive, check_probability
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.rows import OWN_ROWS, check_rows

STEPS = 2**20  # at least so many between the bounds of a column
LARGEST = 2**52  # of a sum in steps, that floats hold exactly


@lru_cache(maxsize=64)
def whole_mechanism(
    epsilon: float, delta: float, l1: float, l2: float, dimension: int, relation: Relation
) -> DiscreteLaplace | DiscreteGaussian:
    """What adds noise to `dimension` whole numbers that one unit moves by at most `l1` or `l2`: discrete Laplace for
    `delta` = 0, else discrete Gaussian. Remembered: it may take a search, and every release asks.
    """
    terms: dict[str, Any] = {"epsilon": epsilon, "dimension": dimension, "relation": relation, "integer_valued": True}
    if delta == 0:
        return DiscreteLaplace(sensitivity=float(l1), **terms)
    return DiscreteGaussian.calibrated(delta=delta, sensitivity=float(l2), **terms)


def check_release(epsilon: float, delta: float, relation: Relation, most: int) -> None:
    """Refuse a budget that is none, and several values of a unit that has one."""
    check_positive("epsilon", epsilon)
    check_probability("delta", delta, zero=True)
    check_count("most", most)
    if relation.unit in OWN_ROWS and most > 1:
        raise PrivacyError(f"a {relation.unit} is one value: most must be 1, got {most}")


def kept_rows(rows: Tensor, unit_ids: Tensor | None, relation: Relation, most: int) -> Tensor:
    """Rows `(n,)` of which no unit has more than `most`; of more, random ones are kept.

    `unit_ids`, `(n,)`, say whose each row is; only for the unit `record` or `frame` is it its own.
    """
    if rows.dim() != 1:
        raise PrivacyError(f"a column is a vector of one value a row, got shape {tuple(rows.shape)}")
    check_rows(relation.unit, len(rows), unit_ids)
    return rows if unit_ids is None else rows[limit_contributions(unit_ids, most)]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Public bounds of a column, and whole steps between them."""

    lower: float
    upper: float

    def __post_init__(self) -> None:
        check_finite("lower", self.lower)
        if not check_finite("upper", self.upper) > self.lower:
            raise PrivacyError(f"bounds are lower < upper, got {self.lower} and {self.upper}")
        if max(abs(self.lower), abs(self.upper)) / self.step > LARGEST / 2**20:
            raise PrivacyError(
                f"bounds of {self.lower} to {self.upper} are far from 0 and close together: subtract a public number"
            )

    @property
    def step(self) -> float:
        """A power of two, by which dividing is exact."""
        return 2.0 ** math.floor(math.log2((self.upper - self.lower) / STEPS))

    @property
    def whole(self) -> tuple[int, int]:
        """The bounds in steps."""
        return round(self.lower / self.step), round(self.upper / self.step)

    def steps(self, values: Tensor) -> Tensor:
        """Values `(n,)` in steps, int64, each within the bounds; what is no number is as near to 0 as they allow."""
        nearest = min(max(0.0, self.lower), self.upper)
        inside = values.detach().to(torch.float64).nan_to_num(nearest, self.upper, self.lower)
        return (inside.clamp(self.lower, self.upper) / self.step).round().to(torch.int64)


def whole_tensor(*numbers: int) -> Tensor:
    """Whole numbers as mechanisms take them, float64; refused where floats do not hold them."""
    if any(abs(number) > LARGEST for number in numbers):
        raise PrivacyError("a sum of so many values is not held exactly: release it in parts")
    return torch.tensor(numbers, dtype=torch.float64)
