"""Output perturbation: noise on the minimizer of a strongly convex objective.

One unit moves the minimizer of a Lambda-strongly convex sum by at most G / Lambda in l2 (Delta_rep / Lambda if it is
replaced), and a point certified to a gradient norm of tau by 2 tau / Lambda more. Objective perturbation is better
at equal epsilon; this one needs nothing but a bound on the gradient, and with Gaussian noise it holds to the bit.
"""

from dataclasses import dataclass

from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import Event, PureEvent
from ppspeech.privacy.convex.bounds import HeadConstants
from ppspeech.privacy.convex.minimum import TiltableObjective, certified_minimum
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussian, DiscreteGaussianEvent
from ppspeech.privacy.mechanisms.gamma_norm import GammaNorm
from ppspeech.privacy.parameters import check_count, check_positive, check_probability
from ppspeech.privacy.relation import Relation


@dataclass(frozen=True, kw_only=True)
class OutputPerturbation:
    """A budget for one convex model, spent on its minimizer.

    Attributes:
        regularization: Lambda, > 0, a public constant; the noise is inversely proportional to it.
        delta: 0 for pure privacy (gamma-norm noise), else discrete Gaussian noise.
        relative_tolerance: tau over the bound G on one unit's gradient.
    """

    epsilon: float
    relation: Relation
    regularization: float
    delta: float = 0.0
    relative_tolerance: float = 1e-6

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_positive("regularization", self.regularization)
        check_probability("delta", self.delta, zero=True)
        check_positive("relative_tolerance", self.relative_tolerance)

    def for_head(
        self, head: HeadConstants, radius: float, shape: tuple[int, int], *, averaged: bool = False
    ) -> "OutputNoise":
        """The hook for losses of this head with |phi| <= radius; the same for records and for averages of them."""
        del averaged  # an average of gradients is no longer than the longest
        heads, features = shape
        dimension = check_count("heads", heads) * check_count("features", features)
        tolerance = self.relative_tolerance * head.sensitivity(radius, "add_remove")
        sensitivity = (head.sensitivity(radius, self.relation.adjacency) + 2 * tolerance) / self.regularization
        mechanism: GammaNorm | DiscreteGaussian
        if self.delta == 0:
            mechanism = GammaNorm(epsilon=self.epsilon, sensitivity=sensitivity, relation=self.relation)
        else:
            mechanism = DiscreteGaussian.calibrated(
                epsilon=self.epsilon,
                delta=self.delta,
                sensitivity=sensitivity,
                dimension=dimension,
                relation=self.relation,
            )
        return OutputNoise(mechanism, head, radius, shape, self.regularization, tolerance)


@mechanism("output", PureEvent, DiscreteGaussianEvent)
@dataclass(frozen=True)
class OutputNoise:
    """Output perturbation of one kind of loss; made by `OutputPerturbation.for_head`.

    Formal guarantee: that of `mechanism`, whose sensitivity follows from the head's constants if every feature vector
    has a norm of at most `radius`.
    """

    mechanism: GammaNorm | DiscreteGaussian
    head: HeadConstants
    radius: float
    shape: tuple[int, int]
    regularization: float
    tolerance: float

    @property
    def sensitivity(self) -> float:
        """Of the minimizer found, l2."""
        return self.mechanism.sensitivity

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
        """Minimize, certify and blur: Theta `(heads, features)` that may be published.

        Raises PrivacyError if the objective has another shape, or the certificate exceeds tau.
        """
        if tuple(objective.shape) != tuple(self.shape):
            raise PrivacyError(f"this hook is for Theta of shape {self.shape}, the objective has {objective.shape}")
        theta = certified_minimum(
            objective,
            linear=None,
            quadratic=self.regularization,
            tolerance=self.tolerance,
            head=self.head,
            radius=self.radius,
        )
        return self.mechanism.release(theta)
