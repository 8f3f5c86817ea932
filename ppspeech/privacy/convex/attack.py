"""Attack objective perturbation as it is released: fit with one record and without it, and compute the exact loss.

The record lies at the radius, phi = R e_1, so that only the first column of Theta is more than -b / Lambda; where a
loss is steep only when its record is badly wrong, a public crowd of others, all alike, pulls Theta there. An attacker
who knows the crowd reads b from a released Theta, once as if the record was in and once as if not; the ratio of both
densities is the privacy loss.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.convex.bounds import HeadConstants
from ppspeech.privacy.convex.minimum import Minimum, TiltableObjective
from ppspeech.privacy.guarantee import Released

Vector = NDArray[np.float64]

CROWD = 1_000_000  # records of the crowd: nobody's secret
MOST_STEPS = 200


class Attacked(Protocol):
    """What is attacked: a `Perturbation`."""

    @property
    def head(self) -> HeadConstants:
        """The loss."""

    @property
    def radius(self) -> float:
        """The most norm of a row."""

    @property
    def shape(self) -> tuple[int, int]:
        """Of Theta."""

    @property
    def regularization(self) -> float:
        """Lambda."""

    @property
    def scale(self) -> float:
        """kappa, or sigma."""

    @property
    def pure(self) -> bool:
        """Whether the noise is gamma-norm."""

    def release(self, objective: TiltableObjective) -> Released[Tensor]:
        """Theta that may be published."""


@dataclass(frozen=True)
class Record:
    """One record's loss in its outputs t `(heads,)`: slope and curvature; `crowd` others want the opposite."""

    head: HeadConstants
    outputs: int

    @property
    def crowd(self) -> int:
        """Hinges are steepest where nobody has pulled; soft losses where everybody else has."""
        return CROWD if self.head.name in ("logistic", "softmax") else 0

    def of_record(self, t: Vector) -> tuple[Vector, Vector]:
        """Slope `(heads,)` and curvature `(heads, heads)` of the loss of the record, whose class is the first."""
        name = self.head.name
        if name == "logistic":
            return _logistic(t, 1.0)
        if name == "softmax":
            return _softmax(t, 0)
        if name == "huber_svm":
            slope, bend = _hinge(1 - t, 1 / (2 * self.head.trace))
            return -slope, np.diag(bend)
        width = (self.outputs - 1) / self.head.trace
        slope, bend = _hinge(1 + t[0] - t[1:], width)
        whole = np.concatenate([[bend.sum()], -bend])
        curvature = np.diag(np.concatenate([[bend.sum()], bend]))
        curvature[0, 1:] = curvature[1:, 0] = whole[1:]
        return np.concatenate([[slope.sum()], -slope]), curvature

    def of_crowd(self, t: Vector) -> tuple[Vector, Vector]:
        """The same of all others together."""
        if self.crowd == 0:
            return np.zeros(len(t)), np.zeros((len(t), len(t)))
        slope, curvature = _logistic(t, -1.0) if self.head.name == "logistic" else _softmax(t, 1)
        return self.crowd * slope, self.crowd * curvature


def attacked(head: HeadConstants, outputs: int) -> Record:
    """The record to attack a head with. Raises PrivacyError for one whose loss is not known here."""
    plain = head.name != "large_margin" or (
        outputs >= 2 and math.isclose(head.gradient, math.sqrt(outputs * (outputs - 1)))
    )
    if head.name not in ("logistic", "softmax", "huber_svm", "large_margin") or not plain:
        raise PrivacyError(f"no record is known that a {head.name} of {outputs} outputs is attacked with")
    return Record(head, outputs)


@dataclass
class _Objective:
    """The crowd, with the record or without."""

    plan: Attacked
    record: Record
    present: bool

    @property
    def shape(self) -> tuple[int, int]:
        return self.plan.shape

    @property
    def records(self) -> int:
        return self.record.crowd + int(self.present)

    def minimize(self, linear: Tensor | None, quadratic: float, tolerance: float) -> Minimum:
        """Newton's method on the first column, halving steps that do not lower the gradient; the rest is linear."""
        tilt = np.zeros(self.shape) if linear is None else linear.double().numpy()
        theta = -tilt / quadratic
        column = np.zeros(self.shape[0])
        for _ in range(MOST_STEPS):
            gradient, hessian = self._first(column, tilt[:, 0], quadratic)
            size = float(np.linalg.norm(gradient))
            if size <= tolerance:
                theta[:, 0] = column
                return Minimum(torch.from_numpy(theta), size)
            step, share = np.linalg.solve(hessian, gradient), 1.0
            while share > 1e-6:
                tried = column - share * step
                if np.linalg.norm(self._first(tried, tilt[:, 0], quadratic)[0]) < size:
                    break
                share /= 2
            column = column - share * step
        raise PrivacyError(f"no minimum was reached: the gradient is {size:.3g}, the tolerance {tolerance:.3g}")

    def _first(self, column: Vector, tilt: Vector, quadratic: float) -> tuple[Vector, Vector]:
        reach = self.plan.radius
        slope, curvature = self.record.of_crowd(reach * column)
        if self.present:
            own = self.record.of_record(reach * column)
            slope, curvature = slope + own[0], curvature + own[1]
        return quadratic * column + reach * slope + tilt, quadratic * np.eye(len(column)) + reach**2 * curvature


def released_losses(plan: Attacked, runs: int, present: bool) -> Tensor:
    """Privacy losses `(runs,)` of fresh releases, with the record in or out."""
    record = attacked(plan.head, plan.shape[0])
    objective = _Objective(plan, record, present)
    found = [_loss(plan, record, plan.release(objective).value.double().numpy()) for _ in range(runs)]
    return torch.tensor(found, dtype=torch.float64)


def _loss(plan: Attacked, record: Record, theta: Vector) -> float:
    """ln of the density of Theta with the record over that without."""
    outputs = plan.radius * theta[:, 0]
    (others, flat), (own, bend) = record.of_crowd(outputs), record.of_record(outputs)
    out = -plan.regularization * theta
    out[:, 0] -= plan.radius * others
    within = out.copy()
    within[:, 0] -= plan.radius * own
    if plan.pure:
        ratio = plan.scale * float(np.linalg.norm(out) - np.linalg.norm(within))
    else:
        ratio = float((out**2).sum() - (within**2).sum()) / (2 * plan.scale**2)
    ridge = plan.regularization * np.eye(len(outputs))
    before, after = (np.linalg.slogdet(ridge + plan.radius**2 * h)[1] for h in (flat, flat + bend))
    return ratio + float(after - before)


def _logistic(t: Vector, label: float) -> tuple[Vector, Vector]:
    wrong = 1 / (1 + np.exp(np.clip(label * t, -700, 700)))
    return -label * wrong, np.diag(wrong * (1 - wrong))


def _softmax(t: Vector, label: int) -> tuple[Vector, Vector]:
    p = np.exp(t - t.max())
    p /= p.sum()
    return p - np.eye(len(t))[label], np.diag(p) - np.outer(p, p)


def _hinge(u: Vector, width: float) -> tuple[Vector, Vector]:
    """Slope and curvature of the Huber hinge."""
    return ((u + width) / (2 * width)).clip(0, 1), (np.abs(u) <= width) / (2 * width)
