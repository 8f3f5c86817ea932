"""Objective perturbation: privacy as a term of a convex objective.

    Theta_hat ~ argmin  sum over units of loss + r(Theta) + (Lambda / 2) |Theta|^2 + <b, Theta>

Three numbers of the hook keep the promise: the noise b, a Lambda large enough for it, and a tolerance tau on the
gradient, fixed beforehand. A point with a gradient of norm at most tau is within tau / Lambda of the exact minimizer,
on both of two neighboring data sets, so a little noise for a sensitivity of 2 tau / Lambda covers the rest.

`ObjectivePerturbation` is the budget, and knows no model. `for_head` makes it a `Perturbation` of one kind of loss,
from public numbers alone: whatever cannot be done is refused before data is touched. Proofs: Theorems 1.16 and 1.20 in
docs/theory/release.md.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from scipy.optimize import brentq
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.accountant import ComposedEvent
from ppspeech.privacy.accounting.events import Event
from ppspeech.privacy.accounting.hockey_stick import gaussian_sigma
from ppspeech.privacy.accounting.renyi import delta_from_renyi
from ppspeech.privacy.convex.bounds import HeadConstants, logistic_kappa, softmax_kappa, softmax_required
from ppspeech.privacy.convex.events import (
    LogisticObjectiveGaussianEvent,
    LogisticObjectivePureEvent,
    ObjectiveGaussianEvent,
    ObjectivePureEvent,
    SoftmaxObjectivePureEvent,
    objective_sigma,
)
from ppspeech.privacy.convex.minimum import TiltableObjective, certified_minimum
from ppspeech.privacy.convex.subspace import gamma_norm_noise, isotropic_normal, subspace_dimension
from ppspeech.privacy.guarantee import REAL_NOISE, Guarantee, Released
from ppspeech.privacy.mechanisms.discrete_laplace import DiscreteLaplace
from ppspeech.privacy.parameters import check_count, check_positive, check_positives, check_probability
from ppspeech.privacy.relation import Relation


@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbation:
    """A budget for one convex model, and how to spend it.

    Attributes:
        epsilon: in all, > 0.
        regularization: Lambda wished for, > 0; raised where privacy needs more. A public constant.
        delta: 0 for pure privacy (gamma-norm noise), else Gaussian noise.
        norm: a public guess B of |Theta*|. Given, Lambda is raised to E|b| / B: weaker, and the noise alone would push
            Theta beyond B.
        output_share: part of epsilon for the noise that covers an inexact minimizer.
        curvature_share: Lambda is raised until J takes at most this part of epsilon (logistic losses pay no J, and
            softmax ones none from Lambda = 4 R^2 / epsilon on, where privacy is pure).
        relative_tolerance: tau over the bound G on one unit's gradient.
    """

    epsilon: float
    relation: Relation
    regularization: float
    delta: float = 0.0
    norm: float | None = None
    output_share: float = 0.01
    curvature_share: float = 0.5
    relative_tolerance: float = 1e-6

    def __post_init__(self) -> None:
        check_positives(self, "epsilon", "regularization", "relative_tolerance")
        check_probability("delta", self.delta, zero=True)
        if self.norm is not None:
            check_positive("norm", self.norm)
        check_probability("output_share", self.output_share)
        check_probability("curvature_share", self.curvature_share)

    @property
    def epsilon_objective(self) -> float:
        """What is left for the objective."""
        return self.epsilon * (1 - self.output_share)

    def for_head(
        self, head: HeadConstants, radius: float, shape: tuple[int, int], *, averaged: bool = False
    ) -> "Perturbation":
        """The hook for losses f(Theta phi) of this head with |phi| <= radius and Theta of `shape`.

        `radius`: R, enforced on the features by whoever calls; `shape`: heads, features; `averaged`: a unit's loss is
        the average over its records (Theorems 1.18 and 1.19 in docs/theory/release.md).
        """
        check_positive("radius", radius)
        for name, size in zip(("heads", "features"), shape, strict=True):
            check_count(name, size)
        least = max(self.regularization, self._required(head, radius, averaged))
        at_least = Perturbation(self, head, radius, shape, averaged, least)
        if self.norm is None or at_least.expected_noise <= self.norm * least:
            return at_least
        # E|b| falls as Lambda grows, because J does: halve the interval in which E|b| = B Lambda.
        low, high = least, at_least.expected_noise / self.norm
        while high - low > 1e-3 * high:
            middle = math.sqrt(low * high)
            enough = Perturbation(self, head, radius, shape, averaged, middle).expected_noise <= self.norm * middle
            low, high = (low, middle) if enough else (middle, high)
        return Perturbation(self, head, radius, shape, averaged, high)

    def _required(self, head: HeadConstants, radius: float, averaged: bool) -> float:
        """A Lambda at which the noise can be calibrated: the one wished for, if it will do."""
        epsilon = self.epsilon_objective
        if _without_curvature(self, head, averaged):
            return radius**2 / epsilon * (1 if self.relation.adjacency == "add_remove" else 2)
        if self.delta > 0 and self.relation.adjacency == "replace":
            epsilon /= 2  # two add_remove steps
        if head.jacobian(radius, self.regularization, averaged=averaged) <= self.curvature_share * epsilon:
            return self.regularization
        required = head.required_regularization(radius, epsilon, averaged=averaged, share=self.curvature_share)
        if head.name == "softmax" and self.delta == 0:
            required = min(required, softmax_required(radius, epsilon, self.relation.adjacency, self.curvature_share))
        return required


@dataclass(frozen=True)
class Perturbation:
    """Objective perturbation of one kind of loss; made by `ObjectivePerturbation.for_head`.

    Formal guarantee: what `release` returns is (epsilon, delta)-DP under `relation`, if the objective
    is the sum of one loss a record (or one average a unit, if `averaged`) with the head's constants, features of norm
    at most `radius`, and terms that do not depend on the data. The noise on the minimizer is exact, and leaves none of
    its low-order bits; the tilt b is a float64, whose law is that of a real number only up to its rounding: not
    float-safe. The time taken, and whether the minimizer was reached, are not protected.
    """

    budget: ObjectivePerturbation
    head: HeadConstants
    radius: float
    shape: tuple[int, int]
    averaged: bool
    regularization: float

    @property
    def pure(self) -> bool:
        """Whether the noise is gamma-norm, and not Gaussian."""
        return self.budget.delta == 0

    @property
    def relation(self) -> Relation:
        """The budget's."""
        return self.budget.relation

    @property
    def centered(self) -> bool:
        """The loss's gradients sum to zero over the heads: noise elsewhere would protect nothing."""
        return self.head.directions < self.shape[0]

    @property
    def dimension(self) -> int:
        """N, of the subspace that the noise lives in."""
        return subspace_dimension(self.shape, centered=self.centered)

    @property
    def tolerance(self) -> float:
        """tau."""
        return self.budget.relative_tolerance * self.head.sensitivity(self.radius, "add_remove")

    @property
    def jacobian(self) -> float:
        """J; 0 where the logistic or the softmax loss does without."""
        if _without_curvature(self.budget, self.head, self.averaged) or self._by_softmax is not None:
            return 0.0
        return self.head.jacobian(self.radius, self.regularization, averaged=self.averaged)

    @cached_property
    def scale(self) -> float:
        """kappa of the gamma-norm noise (pure), or sigma of the Gaussian."""
        budget, epsilon = self.budget, self.budget.epsilon_objective
        without_curvature = _without_curvature(budget, self.head, self.averaged)
        if budget.delta == 0:
            numbers = (self.radius, self.regularization, epsilon, budget.relation.adjacency)
            if without_curvature:
                return logistic_kappa(*numbers)
            if self._by_softmax is not None:
                return self._by_softmax
            return self.head.pure_kappa(*numbers, averaged=self.averaged)
        if without_curvature:
            return self.radius * gaussian_sigma(epsilon, budget.delta)
        terms = (self.radius, self.regularization, budget.relation, self.averaged)
        return _sigma(self.head, epsilon, budget.delta, *terms)

    @cached_property
    def _by_softmax(self) -> float | None:
        """kappa by the softmax loss's own argument, for pure privacy, unless the general one needs less noise."""
        if self.head.name != "softmax" or self.budget.delta > 0:
            return None
        epsilon, adjacency = self.budget.epsilon_objective, self.budget.relation.adjacency
        if self.regularization * epsilon <= self.radius**2:
            return None
        own = softmax_kappa(self.radius, self.regularization, epsilon, adjacency)
        j = self.head.jacobian(self.radius, self.regularization, averaged=self.averaged)
        return own if own * self.head.sensitivity(self.radius, adjacency) >= epsilon - j else None

    @property
    def expected_noise(self) -> float:
        """E|b|, for the Gaussian its root mean square."""
        if self.budget.delta == 0:
            return self.dimension / self.scale
        return self.scale * math.sqrt(self.dimension)

    @property
    def event(self) -> ComposedEvent:
        """The minimizer of the tilted objective, and the noise on it."""
        budget, relation = self.budget, self.relation
        objective: Event
        if _without_curvature(budget, self.head, self.averaged):
            kind = LogisticObjectivePureEvent if budget.delta == 0 else LogisticObjectiveGaussianEvent
            objective = kind(self.scale, self.radius, self.regularization, relation)
        elif self._by_softmax is not None:
            objective = SoftmaxObjectivePureEvent(self.scale, self.radius, self.regularization, relation)
        elif budget.delta == 0:
            reach = self.head.sensitivity(self.radius, relation.adjacency)
            objective = ObjectivePureEvent(self.scale, reach, self.jacobian, relation)
        else:
            numbers: dict[str, Any] = {"radius": self.radius, "regularization": self.regularization}
            objective = ObjectiveGaussianEvent.of_head(
                self.head, sigma=self.scale, relation=relation, averaged=self.averaged, **numbers
            )
        return ComposedEvent((objective, self.output.event))

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        return Guarantee(
            kind="pure" if self.budget.delta == 0 else "approximate",
            relation=self.budget.relation,
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            assumptions=(
                f"features of norm at most {self.radius:.6g}, by clipping",
                "clip, regularization and model chosen without the data",
                "real-valued noise",
                *(("every unit counts once, as the average over its records",) if self.averaged else ()),
            ),
            caveat=f"{REAL_NOISE}; running time is not protected",
        )

    def noise(self, like: Tensor | None = None) -> Tensor:
        """b, fresh, of `shape`."""
        if self.budget.delta == 0:
            return gamma_norm_noise(self.shape, self.scale, centered=self.centered, like=like)
        return self.scale * isotropic_normal(self.shape, centered=self.centered, like=like)

    @property
    def output(self) -> DiscreteLaplace:
        """What covers the distance to the exact minimizer, 2 tau / Lambda in l2, on all of Theta."""
        dimension = math.prod(self.shape)
        return DiscreteLaplace(
            epsilon=self.budget.epsilon * self.budget.output_share,
            sensitivity=math.sqrt(dimension) * 2 * self.tolerance / self.regularization,
            dimension=dimension,
            relation=self.relation,
        )

    def release(self, objective: TiltableObjective) -> Released[Tensor]:
        """Tilt, minimize, certify, and blur: Theta `(heads, features)` that may be published.

        Noise is drawn once. If the solver fails nothing is released, and trying again costs the budget again. Raises
        PrivacyError if the certificate, rounding included, exceeds tau.
        """
        if tuple(objective.shape) != tuple(self.shape):
            raise PrivacyError(f"this hook is for Theta of shape {self.shape}, the objective has {objective.shape}")
        theta = certified_minimum(objective, self.noise(), self.regularization, self.tolerance, self.head, self.radius)
        return Released(self.output.release(theta).value, self.event, self.guarantee)


def _without_curvature(budget: ObjectivePerturbation, head: HeadConstants, averaged: bool) -> bool:
    """Whether the logistic loss's own argument holds, which pays no J once Lambda >= R^2 / epsilon (twice, replace).

    Averages of logistic losses keep it for pure privacy: both the gradient's norm and, through the trace, the
    determinant are bounded by averages over records of what one record obeys. With Gaussian noise a record's argument
    is about one direction of b, which an average does not have.
    """
    if head.name != "logistic":
        return False
    return budget.delta == 0 or (budget.relation.adjacency == "add_remove" and not averaged)


@lru_cache(maxsize=256)
def _sigma(
    head: HeadConstants,
    epsilon: float,
    delta: float,
    radius: float,
    regularization: float,
    relation: Relation,
    averaged: bool,
) -> float:
    """The least sigma, remembered: a search over numerical bounds, and the same public numbers come back.

    An averaged unit obeys the Renyi curve (Theorem 1.19 in docs/theory/release.md); the search uses it alone, as the
    bounds beside it gain nothing and take seconds.
    """
    if not averaged:
        return objective_sigma(
            head, epsilon=epsilon, delta=delta, radius=radius, regularization=regularization, relation=relation
        )
    jacobian = head.jacobian(radius, regularization, averaged=True)
    extremes = tuple((count, norm * radius) for count, norm in head.extremes)
    if relation.adjacency == "replace":  # two add_remove steps: (2 epsilon, (1 + e^epsilon) delta)
        epsilon, delta = epsilon / 2, delta / (1 + math.exp(epsilon / 2))

    terms = (jacobian, extremes, head.gradient * radius, head.directions, True, Relation(relation.unit, "add_remove"))

    def excess(log_sigma: float) -> float:
        event = ObjectiveGaussianEvent(math.exp(log_sigma), *terms)
        return math.log(max(delta_from_renyi(event.rdp, epsilon), 1e-300)) - math.log(delta)

    low = high = math.log(radius * head.gradient * gaussian_sigma(epsilon, delta))
    while excess(high) > 0:
        high += 0.25
    while excess(low) <= 0:
        low -= 0.25
    # brentq may end on either side of the root: the margin is a thousand times its tolerance
    return math.exp(float(brentq(excess, low, high, xtol=1e-9)) + 1e-6)
