"""Minimizing a convex objective to a certificate: what both perturbations ask of a model."""

import math
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.convex.bounds import HeadConstants

ROUND_OFF = 2.0**-53


class Minimum(NamedTuple):
    """A point `(heads, features)` and the norm of the whole objective's gradient there."""

    theta: Tensor
    residual: float


class TiltableObjective(Protocol):
    """A sum of losses that can be tilted, regularized and minimized to a given gradient norm, in double precision."""

    @property
    def shape(self) -> tuple[int, int]:
        """Of Theta: heads, features."""

    @property
    def records(self) -> int:
        """Number of losses in the sum; used for rounding errors only."""

    def minimize(self, linear: Tensor | None, quadratic: float, tolerance: float) -> Minimum:
        """Add <linear, Theta> + (quadratic / 2) |Theta|^2; go where the gradient is at most `tolerance`, or raise."""


def certified_minimum(
    objective: TiltableObjective,
    linear: Tensor | None,
    quadratic: float,
    tolerance: float,
    head: HeadConstants,
    radius: float,
) -> Tensor:
    """A point whose exact gradient has a norm of at most `tolerance`, rounding included, else PrivacyError.

    Theorem 1.20 in docs/theory/release.md says why that is enough.
    """
    theta, residual = objective.minimize(linear, quadratic, tolerance / 2)
    size = float(torch.linalg.vector_norm(theta))
    tilt = 0.0 if linear is None else float(torch.linalg.vector_norm(linear))
    records, features = objective.records, objective.shape[1]
    gradients = records * head.gradient * radius * math.log2(records + 2)
    curvature = records * head.trace * radius**2 * features * size
    rounding = 4 * ROUND_OFF * (gradients + curvature + quadratic * size + tilt)
    if not residual + rounding <= tolerance:
        raise PrivacyError(
            f"the gradient's norm {residual:.3g} plus a rounding error of up to {rounding:.3g} exceeds the tolerance "
            f"{tolerance:.3g}: nothing is released; choose a larger relative_tolerance in advance"
        )
    return theta
