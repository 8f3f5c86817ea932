"""Output perturbation: noise on the minimizer of a strongly convex objective.

One unit moves the minimizer of a Lambda-strongly convex sum by at most G / Lambda in l2 (Delta_rep / Lambda if it is
replaced), and a point certified to a gradient norm of tau by 2 tau / Lambda more. Objective perturbation is better
at equal epsilon; this one needs nothing but a bound on the gradient, and holds to the bit. Proof: Theorem 1.14 in
docs/theory/release.md.
"""

import math
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import Event
from ppspeech.privacy.convex.bounds import HeadConstants
from ppspeech.privacy.convex.minimum import TiltableObjective, certified_minimum
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussian, DiscreteGaussianEvent
from ppspeech.privacy.mechanisms.discrete_laplace import DiscreteLaplace, DiscreteLaplaceEvent
from ppspeech.privacy.parameters import check_count, check_positives, check_probability
from ppspeech.privacy.relation import Relation


@dataclass(frozen=True, kw_only=True)
class OutputPerturbation:
    """A budget for one convex model, spent on its minimizer.

    The noise is inversely proportional to Lambda = `regularization` > 0, a public constant; it is discrete Laplace for
    `delta` = 0 (pure privacy: about sqrt(2) times as long as noise of density exp(-kappa |b|_2), which is not to be had
    to the bit), else discrete Gaussian. `relative_tolerance` is tau over the bound G on a unit's gradient.
    """

    epsilon: float
    relation: Relation
    regularization: float
    delta: float = 0.0
    relative_tolerance: float = 1e-6

    def __post_init__(self) -> None:
        check_positives(self, "epsilon", "regularization", "relative_tolerance")
        check_probability("delta", self.delta, zero=True)

    def for_head(
        self, head: HeadConstants, radius: float, shape: tuple[int, int], *, averaged: bool = False
    ) -> "OutputNoise":
        """The hook for losses of this head with |phi| <= radius; the same for records and for averages of them."""
        del averaged  # an average of gradients is no longer than the longest
        heads, features = shape
        dimension = check_count("heads", heads) * check_count("features", features)
        tolerance = self.relative_tolerance * head.sensitivity(radius, "add_remove")
        sensitivity = (head.sensitivity(radius, self.relation.adjacency) + 2 * tolerance) / self.regularization
        numbers: dict[str, Any] = {"epsilon": self.epsilon, "dimension": dimension, "relation": self.relation}
        mechanism: DiscreteLaplace | DiscreteGaussian
        if self.delta == 0:
            mechanism = DiscreteLaplace(sensitivity=math.sqrt(dimension) * sensitivity, **numbers)
        else:
            mechanism = DiscreteGaussian.calibrated(delta=self.delta, sensitivity=sensitivity, **numbers)
        return OutputNoise(mechanism, sensitivity, head, radius, shape, self.regularization, tolerance)


@mechanism("output", DiscreteLaplaceEvent, DiscreteGaussianEvent)
@dataclass(frozen=True)
class OutputNoise:
    """Output perturbation of one kind of loss; made by `OutputPerturbation.for_head`.

    Formal guarantee: that of `mechanism`, whose sensitivity follows from that of the minimizer found, `sensitivity` in
    l2, and that from the head's constants, if every feature vector has a norm of at most `radius`.
    """

    mechanism: DiscreteLaplace | DiscreteGaussian
    sensitivity: float
    head: HeadConstants
    radius: float
    shape: tuple[int, int]
    regularization: float
    tolerance: float

    @property
    def relation(self) -> Relation:
        """The mechanism's."""
        return self.mechanism.relation

    @property
    def event(self) -> Event:
        """The mechanism's."""
        return self.mechanism.event

    @property
    def guarantee(self) -> Guarantee:
        """The mechanism's promise."""
        return self.mechanism.guarantee

    def release(self, objective: TiltableObjective) -> Released[Tensor]:
        """Minimize, certify to tau (or PrivacyError) and blur: Theta `(heads, features)` that may be published."""
        if tuple(objective.shape) != tuple(self.shape):
            raise PrivacyError(f"this hook is for Theta of shape {self.shape}, the objective has {objective.shape}")
        theta = certified_minimum(objective, None, self.regularization, self.tolerance, self.head, self.radius)
        return self.mechanism.release(theta)
