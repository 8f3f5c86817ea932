"""Events of objective perturbation: the minimizer of a randomly tilted objective is released."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import gammaincc, logsumexp, ndtr

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import INTERVAL, Event, PureLike, UnsupportedAnalysisError, register_event
from ppspeech.privacy.accounting.hockey_stick import gaussian_delta, least
from ppspeech.privacy.accounting.loss import TAIL, LossDistribution, loss_from_survival
from ppspeech.privacy.accounting.renyi import ORDERS, delta_from_renyi
from ppspeech.privacy.convex.bounds import HeadConstants, logistic_head, logistic_loss_bound, softmax_loss_bound
from ppspeech.privacy.parameters import check_choice, check_count, check_positive, check_positives, check_probability
from ppspeech.privacy.relation import Relation

CELLS = 4096  # cells of the one-sided sum that bounds delta from above

REACH = 40.0  # standard deviations beyond which the loss is never found


@register_event("objective_pure")
@dataclass(frozen=True, slots=True)
class ObjectivePureEvent(PureLike):
    """Gamma-norm noise of rate kappa on the gradient: (kappa sensitivity + jacobian)-DP."""

    kappa: float
    sensitivity: float
    jacobian: float
    relation: Relation

    def __post_init__(self) -> None:
        check_positives(self, "kappa", "sensitivity")
        check_positive("jacobian", self.jacobian, zero=True)

    def pure(self) -> float:
        """Kappa sensitivity + J."""
        return self.kappa * self.sensitivity + self.jacobian


@register_event("objective_pure_logistic")
@dataclass(frozen=True, slots=True)
class LogisticObjectivePureEvent(PureLike):
    """Gamma-norm noise on the logistic loss, whose gradient and curvature cannot both be large: no J to pay."""

    kappa: float
    radius: float
    regularization: float
    relation: Relation

    def __post_init__(self) -> None:
        check_positives(self, "kappa", "radius", "regularization")

    def pure(self) -> float:
        """The largest loss over the record's own probability."""
        return logistic_loss_bound(self.radius, self.regularization, self.kappa, self.relation.adjacency)


@register_event("objective_pure_softmax")
@dataclass(frozen=True, slots=True)
class SoftmaxObjectivePureEvent(PureLike):
    """Gamma-norm noise on the softmax loss, whose gradient and curvature cannot both be large: no J to pay."""

    kappa: float
    radius: float
    regularization: float
    relation: Relation

    def __post_init__(self) -> None:
        check_positives(self, "kappa", "radius", "regularization")

    def pure(self) -> float:
        """The largest loss over the record's own probabilities."""
        return softmax_loss_bound(self.radius, self.regularization, self.kappa, self.relation.adjacency)


@register_event("objective_gaussian")
@dataclass(frozen=True, slots=True)
class ObjectiveGaussianEvent(Event):
    """Gaussian noise N(0, sigma^2 I) on the gradient.

    The loss is J + (|g|^2 + 2 <b, g>) / 2 sigma^2 with g = a (x) phi and a depending on b. It is convex in a, so it is
    largest at an extreme point of A, of which there are few: P(Z > t) <= sum_a P(J + s_a^2/2 + s_a N > t), s_a =
    |a| R / sigma. Always valid besides: Z <= J + G^2 / 2 sigma^2 + (G / sigma) chi, chi of `directions` degrees.
    There is no zCDP parameter by this analysis. Under `replace`: two add_remove steps, or chi of twice the degrees.
    `extremes` are (count, norm) of the extreme points, norms times R; `gradient` is G for add_remove and Delta_rep for
    replace; of an `averaged` unit, an average of records, only the Renyi curve holds (by Jensen). Proof: Theorem 1.19
    in docs/theory/release.md.
    """

    sigma: float
    jacobian: float
    extremes: tuple[tuple[int, float], ...]
    gradient: float
    directions: int
    averaged: bool
    relation: Relation

    def __post_init__(self) -> None:
        check_positives(self, "sigma", "gradient")
        check_positive("jacobian", self.jacobian, zero=True)
        check_count("directions", self.directions)
        if not isinstance(self.averaged, bool):
            raise PrivacyError(f"averaged must be true or false, got {self.averaged!r}")
        if not isinstance(self.extremes, tuple) or not self.extremes:
            raise PrivacyError(f"extremes must be pairs (count, norm), got {self.extremes!r}")
        for pair in self.extremes:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise PrivacyError(f"extremes must be pairs (count, norm), got {pair!r}")
            check_count("count of extreme points", pair[0])
            check_positive("norm of extreme points", pair[1])

    @classmethod
    def of_head(
        cls,
        head: HeadConstants,
        *,
        sigma: float,
        radius: float,
        regularization: float,
        relation: Relation,
        averaged: bool = False,
    ) -> "ObjectiveGaussianEvent":
        """The event of a head with features of norm at most `radius` and regularization Lambda."""
        return cls(
            sigma,
            head.jacobian(radius, regularization, averaged=averaged),
            tuple((count, norm * radius) for count, norm in head.extremes),
            head.sensitivity(radius, relation.adjacency),
            head.directions,
            averaged,
            relation,
        )

    def delta(self, epsilon: float) -> float:
        """The smallest of the bounds that hold."""
        if self.relation.adjacency == "add_remove":
            return self._delta_add_remove(epsilon)
        twice = (1 + math.exp(epsilon / 2)) * self._delta_add_remove(epsilon / 2)
        return min(1.0, twice if self.averaged else min(twice, self._delta_by_survival(epsilon)))

    def rdp(self, alpha: float) -> float:
        """J + ln(1 + sum_a exp(alpha (alpha - 1) s_a^2 / 2)) / (alpha - 1), for add_remove."""
        if self.relation.adjacency == "replace":
            raise UnsupportedAnalysisError("no Renyi bound for Gaussian objective perturbation under replace")
        return self._renyi(alpha)

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """From the survival bound; the addition of a record has no J. Averaged units by Chernoff's bound."""
        if self.relation.adjacency == "replace" and self.averaged:
            raise UnsupportedAnalysisError("no loss distribution for averaged units under replace")
        top = _reach(self)
        shift = 0.0 if self.relation.adjacency == "replace" else self.jacobian

        def add(t: Any) -> Any:  # the loss when the record is absent is at least this much smaller
            return self._survival(t + shift)

        return loss_from_survival(self._survival, add, top=top, bottom=min(0.0, self.jacobian), interval=interval)

    def _delta_add_remove(self, epsilon: float) -> float:
        if self.averaged:
            return min(delta_from_renyi(self._renyi, epsilon), self._delta_by_survival(epsilon))
        over = max(epsilon - self.jacobian, 0.0)
        sticks = min(1.0, sum(count * gaussian_delta(over, norm / self.sigma) for count, norm in self.extremes))
        short = math.exp(min(epsilon - self.jacobian, 0.0))  # below J: 1 - e^(epsilon - J) is lost for certain
        bound = (1 - short) + short * sticks
        if len(self.extremes) == 1 and self.extremes[0][0] == 1:
            return bound
        return min(bound, self._delta_by_survival(epsilon) if self.relation.adjacency == "add_remove" else 1.0)

    def _delta_by_survival(self, epsilon: float) -> float:
        """delta = integral over t > epsilon of e^(epsilon - t) P(Z > t), each cell by its larger end."""
        edges = np.linspace(epsilon, max(_reach(self), epsilon + 1.0), CELLS + 1)
        weights = np.exp(epsilon - edges)
        cells = self._survival(edges[:-1]) * (weights[:-1] - weights[1:])
        return min(1.0, float(cells.sum() + weights[-1] * self._survival(edges[-1:])[0]))

    def _survival(self, t: Any) -> Any:
        """An upper bound of P(Z > t) when the record is present."""
        over = np.asarray(t, dtype=np.float64) - self.jacobian
        if self.averaged:
            orders = np.array(ORDERS)
            curve = np.array([self._renyi(alpha) for alpha in ORDERS]) - self.jacobian
            return np.exp(np.minimum(((orders - 1) * (curve - over[..., None])).min(axis=-1), 0.0))
        s = self.gradient / self.sigma
        degrees = self.directions * (2 if self.relation.adjacency == "replace" else 1)
        chi = np.maximum(over - s * s / 2, 0.0) / s
        bound = gammaincc(degrees / 2, chi**2 / 2)
        if self.relation.adjacency == "add_remove":
            reaches = [(count, norm / self.sigma) for count, norm in self.extremes]
            bound = np.minimum(bound, sum(count * ndtr(one / 2 - over / one) for count, one in reaches))
        return np.where(over < 0, 1.0, np.minimum(bound, 1.0))

    def _renyi(self, alpha: float) -> float:
        return self.jacobian + _renyi_of_extremes(self.sigma, self.extremes, alpha)


@lru_cache(maxsize=4096)
def _renyi_of_extremes(sigma: float, extremes: tuple[tuple[int, float], ...], alpha: float) -> float:
    terms = [0.0, *(math.log(n) + alpha * (alpha - 1) * (norm / sigma) ** 2 / 2 for n, norm in extremes)]
    return float(logsumexp(terms)) / (alpha - 1)


@lru_cache(maxsize=256)
def _reach(event: ObjectiveGaussianEvent) -> float:
    """A loss above which almost nothing lies."""
    s = max(event.gradient, *(norm for _, norm in event.extremes)) / event.sigma
    reach = event.jacobian + s * s / 2 + s
    while float(event._survival(np.array([reach]))[0]) > TAIL:
        reach += s
    return reach


@register_event("objective_gaussian_logistic")
@dataclass(frozen=True, slots=True)
class LogisticObjectiveGaussianEvent(Event):
    """Gaussian noise on the logistic loss's gradient, one record a unit, add_remove only: curvature costs nothing.

    A record whose probability of being wrong is p moves the gradient by p phi and the Hessian by p (1 - p) phi phi'.
    Its privacy loss, with N standard normal, c = R^2 / Lambda and s = R / sigma, is therefore at most

        Z = sup over p of   c p (1 - p) + p^2 s^2 / 2 + p s N.

    For every t >= c - s^2 / 2 the event {Z > t} is the event {s^2 / 2 + s N > t}: where the loss is large, p = 1 is
    worst, and there the curvature vanishes. (If s^2 / 2 >= c, Z is convex in p; otherwise the best p is below 1 only
    where s N < c - s^2, and Z is at most c - s^2 / 2 there.) So delta(epsilon) = H(epsilon; s), the plain Gaussian's,
    once epsilon >= R^2 / Lambda - s^2 / 2. `radius`: R, the bound on the features' norm; `relation`: under
    `add_remove`; for the rest `ObjectiveGaussianEvent` holds. Proof: Theorem 1.19 in docs/theory/release.md.
    """

    sigma: float
    radius: float
    regularization: float
    relation: Relation

    def __post_init__(self) -> None:
        check_positives(self, "sigma", "radius", "regularization")
        check_choice("adjacency", self.relation.adjacency, ("add_remove",))

    @property
    def threshold(self) -> float:
        """The loss from which on the curvature plays no part: max(c - s^2 / 2, 0)."""
        s = self.radius / self.sigma
        return max(self.radius**2 / self.regularization - s * s / 2, 0.0)

    @property
    def with_curvature(self) -> ObjectiveGaussianEvent:
        """The general analysis, which pays J; it holds below the threshold too."""
        numbers: dict[str, Any] = {"sigma": self.sigma, "radius": self.radius, "regularization": self.regularization}
        return ObjectiveGaussianEvent.of_head(logistic_head(), relation=self.relation, **numbers)

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


def objective_sigma(
    head: HeadConstants,
    *,
    epsilon: float,
    delta: float,
    radius: float,
    regularization: float,
    relation: Relation,
    averaged: bool = False,
) -> float:
    """The least sigma (to 1e-9) for (epsilon, delta)-DP by Gaussian noise; PrivacyError if epsilon <= J."""
    check_positive("epsilon", epsilon)
    check_probability("delta", delta)
    j = head.jacobian(radius, regularization, averaged=averaged)
    spendable = epsilon if relation.adjacency == "add_remove" else epsilon / 2
    if (spendable if averaged else epsilon) <= j:
        least_lambda = head.required_regularization(radius, spendable, averaged=averaged)
        raise PrivacyError(
            f"epsilon = {epsilon} does not exceed J = {j:.4g} at regularization {regularization:.4g}: "
            f"raise the regularization to {least_lambda:.6g}"
        )

    def enough(sigma: float) -> bool:
        event = ObjectiveGaussianEvent.of_head(
            head, sigma=sigma, radius=radius, regularization=regularization, relation=relation, averaged=averaged
        )
        return event.delta(epsilon) <= delta

    start = head.sensitivity(radius, relation.adjacency)
    refusal = f"no practical noise reaches epsilon={epsilon}, delta={delta} with J = {j:.4g}"
    return least(enough, start, grow=2.0, tolerance=1e-9, refusal=refusal)
