"""Gaussian objective perturbation of the logistic loss: its curvature costs nothing.

A record whose probability of being wrong is p moves the gradient by p phi and the Hessian by p (1 - p) phi phi'. Its
privacy loss, with N standard normal, c = R^2 / Lambda and s = R / sigma, is therefore at most

    Z = sup over p of   c p (1 - p) + p^2 s^2 / 2 + p s N.

For every t >= c - s^2 / 2 the event {Z > t} is the event {s^2 / 2 + s N > t}: where the loss is large, p = 1 is worst,
and there the curvature vanishes. (If s^2 / 2 >= c, Z is convex in p; otherwise the best p is below 1 only where
s N < c - s^2, and Z is at most c - s^2 / 2 there.) So delta(epsilon) = H(epsilon; s), the plain Gaussian's, once
epsilon >= R^2 / Lambda - s^2 / 2.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from ppspeech.privacy.accounting.events import INTERVAL, Event, register_event
from ppspeech.privacy.accounting.hockey_stick import gaussian_delta
from ppspeech.privacy.accounting.loss import LossDistribution, loss_from_survival
from ppspeech.privacy.convex.bounds import logistic_head
from ppspeech.privacy.convex.events import ObjectiveGaussianEvent
from ppspeech.privacy.parameters import check_choice, check_positive
from ppspeech.privacy.relation import Relation

REACH = 40.0
"""Standard deviations beyond which the loss is never found."""


@register_event("objective_gaussian_logistic")
@dataclass(frozen=True, slots=True)
class LogisticObjectiveGaussianEvent(Event):
    """Gaussian noise on the logistic loss's gradient, one record a unit, add_remove only.

    Attributes:
        sigma: of the noise on the gradient.
        radius: R, the bound on the features' norm.
        regularization: Lambda.
        unit: what is protected.
        relation: under `add_remove`; for the rest `ObjectiveGaussianEvent` holds.
    """

    sigma: float
    radius: float
    regularization: float
    relation: Relation

    def __post_init__(self) -> None:
        check_positive("sigma", self.sigma)
        check_positive("radius", self.radius)
        check_positive("regularization", self.regularization)
        check_choice("adjacency", self.relation.adjacency, ("add_remove",))

    @property
    def threshold(self) -> float:
        """The loss from which on the curvature plays no part: max(c - s^2 / 2, 0)."""
        s = self.radius / self.sigma
        return max(self.radius**2 / self.regularization - s * s / 2, 0.0)

    @property
    def with_curvature(self) -> ObjectiveGaussianEvent:
        """The general analysis, which pays J; it holds below the threshold too."""
        return ObjectiveGaussianEvent.of_head(
            logistic_head(),
            sigma=self.sigma,
            radius=self.radius,
            regularization=self.regularization,
            relation=self.relation,
        )

    def delta(self, epsilon: float) -> float:
        """H(epsilon; R / sigma) from the threshold on, the general bound below."""
        if epsilon >= self.threshold:
            return gaussian_delta(epsilon, self.radius / self.sigma)
        return self.with_curvature.delta(epsilon)

    def rdp(self, alpha: float) -> float:
        """By the general analysis."""
        return self.with_curvature.rdp(alpha)

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """From the law of Z above the threshold; below it nothing is claimed."""
        s, threshold = self.radius / self.sigma, self.threshold

        def remove(t: Any) -> Any:
            return np.where(np.asarray(t) >= threshold, _tail(t, s), 1.0)

        def add(t: Any) -> Any:  # without the record there is no curvature to gain
            return np.where(np.asarray(t) >= 0, _tail(t, s), 1.0)

        return loss_from_survival(remove, add, top=s * s / 2 + REACH * s + threshold, bottom=0.0, interval=interval)


def _tail(t: Any, s: float) -> Any:
    """P(s^2 / 2 + s N > t)."""
    return ndtr(s / 2 - np.asarray(t) / s)
