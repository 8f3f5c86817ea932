"""The grid that discrete noise lives on: real values to whole steps and back.

Rounding to the grid can move each coordinate by one step more than the value itself moved, so the sensitivity in
steps grows to s1 = l1/g + d and s2 = l2/g + sqrt(d). The step is a power of two, so dividing
by it and multiplying with it are exact. Proof: Lemma 1.8 in docs/theory/release.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ppspeech.errors import PrivacyError

FINENESS = 1024  # steps per sensitivity and coordinate: the growth costs a 1/1024 part

LIMIT = 2**60  # values are clamped to so many steps; clamping moves no pair of values apart


@dataclass(frozen=True, slots=True)
class Grid:
    """A step g and what the sensitivity becomes in whole steps: s1 (a whole number) for `norm` 1, s2 for `norm` 2.

    `integer_valued`: the sensitivity is that of whole numbers, and others are refused.
    """

    step: float
    sensitivity: float
    dimension: int
    norm: Literal[1, 2]
    integer_valued: bool = False

    @classmethod
    def for_values(cls, sensitivity: float, dimension: int, norm: Literal[1, 2], *, integer_valued: bool) -> "Grid":
        """The default grid for real values; step 1 and no growth for a value that is whole anyway."""
        if integer_valued:
            # Whole vectors differ by a whole l1 distance and by the root of a whole number in l2.
            exact = math.floor(sensitivity) if norm == 1 else math.sqrt(math.floor(sensitivity**2 * (1 + 1e-12)))
            if exact == 0:
                raise PrivacyError(f"a whole-valued function has sensitivity >= 1, got {sensitivity}")
            return cls(1.0, exact, dimension, norm, integer_valued=True)
        spread = dimension if norm == 1 else math.sqrt(dimension)
        step = 2.0 ** math.floor(math.log2(sensitivity / (FINENESS * spread)))
        grown = sensitivity / step + spread
        return cls(step, math.floor(grown) if norm == 1 else grown, dimension, norm)

    def to_steps(self, value: Tensor) -> Tensor:
        """The nearest grid point of each of the `dimension` finite coordinates, as whole steps (int64, same shape)."""
        if value.numel() != self.dimension:
            raise PrivacyError(f"calibrated for {self.dimension} coordinates, got {value.numel()}")
        if not bool(torch.isfinite(value).all()):
            raise PrivacyError("the value to release holds infinities or NaN; clip it before")
        if self.integer_valued and not bool((value == value.round()).all()):
            raise PrivacyError(
                "integer_valued promises whole numbers, and the value to release has fractions, which rounding would "
                "move further apart than the sensitivity says: leave integer_valued out"
            )
        return (value.detach().to(torch.float64) / self.step).round().clamp(-LIMIT, LIMIT).to(torch.int64)

    def add(self, value: Tensor, noise: NDArray[np.int64]) -> Tensor:
        """Round `value`, add whole noise, and return to the value's own units and dtype."""
        steps = self.to_steps(value)
        noisy = steps + torch.from_numpy(noise).to(steps.device).reshape(steps.shape)
        dtype = value.dtype if value.dtype.is_floating_point else torch.float64
        return (noisy.to(torch.float64) * self.step).to(dtype)


def dyadic(scale: float, bits: int = 24) -> Fraction:
    """The smallest fraction >= `scale` whose denominator is a power of two and that keeps about `bits` bits.

    >>> dyadic(4.0), float(dyadic(1 / 3)) >= 1 / 3
    (Fraction(4, 1), True)
    """
    denominator = 2 ** max(0, bits - max(0, math.floor(math.log2(scale))) if scale >= 1 else bits)
    return Fraction(math.ceil(Fraction(scale) * denominator), denominator)
