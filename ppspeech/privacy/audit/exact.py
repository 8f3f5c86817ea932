"""Audit by exact densities: the strongest test, where the law of the output is known."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError


@dataclass(frozen=True)
class ExactAudit:
    """Log-densities of outputs on two neighboring data sets, and cell volumes if the points tile, `(points,)` each."""

    log_p: Tensor
    log_q: Tensor
    volumes: Tensor | None

    @property
    def sup_loss(self) -> float:
        """The largest |ln p - ln q| found: a lower bound on the epsilon of a pure mechanism."""
        possible = ~(torch.isneginf(self.log_p) & torch.isneginf(self.log_q))
        return float((self.log_p - self.log_q)[possible].abs().max()) if bool(possible.any()) else 0.0

    def delta(self, epsilon: float) -> float:
        """The larger of both hockey-stick divergences, summed over the cells, whose volumes must be known."""
        if self.volumes is None:
            raise PrivacyError("delta needs the volume of every point's cell; sup_loss does not")
        grow = math.exp(epsilon)
        p, q = self._masses
        return float(torch.maximum((p - grow * q).clamp_min(0).sum(), (q - grow * p).clamp_min(0).sum()))

    @cached_property
    def _masses(self) -> tuple[Tensor, Tensor]:
        assert self.volumes is not None
        return self.log_p.exp() * self.volumes, self.log_q.exp() * self.volumes


def audit_exact(
    log_density: Callable[[Tensor, Any], Tensor],
    data: Any,
    neighbor: Any,
    points: Tensor,
    *,
    volumes: Tensor | float | None = None,
) -> ExactAudit:
    """Compare the law of a mechanism's output on two neighboring data sets.

    `log_density(points, data)` is the ln density (or ln probability) at each point, `(points,)`: of a grid, or of
    samples of the mechanism. `volumes` of the points' cells (1 for whole numbers) are needed for delta.
    """
    log_p = log_density(points, data).to(torch.float64)
    log_q = log_density(points, neighbor).to(torch.float64)
    if log_p.shape != log_q.shape or log_p.dim() != 1:
        raise PrivacyError(f"densities must be vectors of one length, got {tuple(log_p.shape)}, {tuple(log_q.shape)}")
    if bool(torch.isnan(log_p).any() | torch.isnan(log_q).any()):
        raise PrivacyError("a log-density is NaN")
    cells = None if volumes is None else torch.as_tensor(volumes, dtype=torch.float64).expand(log_p.shape)
    return ExactAudit(log_p, log_q, cells)
