"""How much one record can move the objective of each head: the constants of objective perturbation.

A head is a loss f(Theta phi) with |phi|_2 <= R. Its gradient in the outputs, a, lies in a set A; constants are stated
for R = 1 and scaled by the methods. Everything here is a pure function of public numbers. Proofs: Theorems 1.16 to 1.18
in docs/theory/release.md.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

from scipy.optimize import brentq

from ppspeech.errors import PrivacyError
from ppspeech.privacy.parameters import check_choice, check_count, check_positive
from ppspeech.privacy.relation import Adjacency

Competitor = Literal["sum", "lse"]


@dataclass(frozen=True, slots=True)
class HeadConstants:
    """What Theorem 1.16 in docs/theory/release.md needs to know about a loss.

    `gradient` is sup |a| over records and parameters, `difference` sup |a (x) phi - a' (x) phi'| over two records, for
    `replace`; `trace` T, sup of the trace of the Hessian in the outputs; `curvature` holds (multiplicity, coefficient)
    with J = sum m ln(1 + c R^2 / Lambda), `extremes` (count, norm) of the nonzero extreme points of the convex hull of
    A, which spans `directions`.
    """

    name: str
    gradient: float
    difference: float
    trace: float
    curvature: tuple[tuple[int, float], ...]
    extremes: tuple[tuple[int, float], ...]
    directions: int

    def jacobian(self, radius: float, regularization: float, *, averaged: bool = False) -> float:
        """J: ln of the most that one record can multiply the Jacobian's determinant by.

        `radius`: R, the bound on |phi|; `averaged`: a unit is the average of many records, whose Hessian has no low
        rank: J = T R^2 / Lambda.
        """
        ratio = check_positive("radius", radius) ** 2 / check_positive("regularization", regularization)
        if averaged:
            return self.trace * ratio
        return sum(times * math.log1p(coefficient * ratio) for times, coefficient in self.curvature)

    def sensitivity(self, radius: float, adjacency: Adjacency) -> float:
        """How far one unit can move the sum of gradients: G = R sup|a| (add_remove) or Delta_rep (replace)."""
        check_choice("adjacency", adjacency, ("add_remove", "replace"))
        return check_positive("radius", radius) * (self.gradient if adjacency == "add_remove" else self.difference)

    def required_regularization(
        self, radius: float, epsilon: float, *, averaged: bool = False, share: float = 0.5
    ) -> float:
        """The Lambda at which J takes the part `share` of epsilon: where to go when epsilon <= J."""
        check_positive("epsilon", epsilon)
        if not 0 < share < 1:
            raise PrivacyError(f"share must be in (0, 1), got {share}")
        scale = self.trace * radius**2 / (share * epsilon)  # J <= T R^2 / Lambda, so the root is at most this

        def excess(log_ratio: float) -> float:
            return self.jacobian(radius, scale * math.exp(log_ratio), averaged=averaged) - share * epsilon

        if excess(0.0) >= 0:
            return scale
        low = -1.0
        while excess(low) < 0:
            low *= 2
        return scale * math.exp(float(brentq(excess, low, 0.0, xtol=1e-13)))

    def pure_kappa(
        self, radius: float, regularization: float, epsilon: float, adjacency: Adjacency, *, averaged: bool = False
    ) -> float:
        """kappa = (epsilon - J) / Delta of gamma-norm noise for epsilon-DP; PrivacyError if epsilon <= J."""
        check_positive("epsilon", epsilon)
        j = self.jacobian(radius, regularization, averaged=averaged)
        if epsilon <= j:
            enough = self.required_regularization(radius, epsilon, averaged=averaged)
            raise PrivacyError(
                f"epsilon = {epsilon} does not exceed J = {j:.4g} at regularization {regularization:.4g}: "
                f"raise the regularization to {enough:.6g}"
            )
        return (epsilon - j) / self.sensitivity(radius, adjacency)


def logistic_head() -> HeadConstants:
    """Binary logistic loss with labels -1, 1. See also `logistic_kappa`, which needs no J."""
    return HeadConstants("logistic", 1.0, 2.0, 0.25, ((1, 0.25),), ((1, 1.0),), 1)


def huber_svm_head(smoothing: float) -> HeadConstants:
    """Binary hinge loss smoothed over [-h, h]: curvature at most 1 / 2h."""
    bend = 1 / (2 * check_positive("smoothing", smoothing))
    return HeadConstants("huber_svm", 1.0, 2.0, bend, ((1, bend),), ((1, 1.0),), 1)


def softmax_head(classes: int) -> HeadConstants:
    """Multinomial logistic loss: J = (C - 1) ln(1 + R^2 / (C Lambda)). See also `softmax_kappa`, which needs no J."""
    check_count("classes", classes, least=2)
    root = math.sqrt(2.0)
    rank = classes - 1
    return HeadConstants("softmax", root, 2 * root, 1 - 1 / classes, ((rank, 1 / classes),), ((rank, root),), rank)


def large_margin_head(
    classes: int, mixtures: int, smoothing: float, *, competitor: Competitor = "sum", class_average: bool = False
) -> HeadConstants:
    """Large-margin Gaussians (K = 1) and mixtures, with phi = svec(x x') and so R -> rho.

    `competitor` is `sum` of one hinge for every wrong class (Pathak and Raj 2012), or `lse`: one hinge against the soft
    minimum of all wrong components, whose gradient does not grow with C. `class_average` divides the loss by C - 1;
    `smoothing` is h of the smoothed hinge. Theorem 1.17 in docs/theory/release.md.
    """
    c, k, h = check_count("classes", classes, least=2), check_count("mixtures", mixtures), smoothing
    check_positive("smoothing", h)
    check_choice("competitor", competitor, ("sum", "lse"))
    if competitor == "lse":
        rivals = (c - 1) * k
        root = math.sqrt(2.0)
        trace = max(1 / h, (1 + 1 / rivals) / (2 * h) + 1 - 1 / rivals)
        curvature: tuple[tuple[int, float], ...] = ((rivals, trace / rivals),)
        head = HeadConstants("large_margin", root, 2 * root, trace, curvature, ((rivals, root),), c * k - 1)
    else:
        extremes = tuple((math.comb(c - 1, n) * k**n, math.sqrt(n * n + n)) for n in range(1, c))
        gradient = math.sqrt(c * (c - 1))
        if k == 1:
            trace, difference = (c - 1) / h, math.sqrt(2.0) * c
            curvature = ((1, c / (2 * h)), (c - 2, 1 / (2 * h))) if c > 2 else ((1, c / (2 * h)),)
        else:
            trace = (c - 1) * max(1 / h, (1 + 1 / k) / (2 * h) + 1 - 1 / k)
            difference = math.sqrt(2.0 * (c - 1) * (c + 2))
            curvature = (((c - 1) * k, trace / ((c - 1) * k)),)
        head = HeadConstants("large_margin", gradient, difference, trace, curvature, extremes, c * k - 1)
    return _scaled(head, 1 / (c - 1)) if class_average else head


def logistic_kappa(radius: float, regularization: float, epsilon: float, adjacency: Adjacency) -> float:
    """The logistic head's kappa without J: epsilon / R once Lambda >= R^2 / epsilon (twice both for replace).

    The record's gradient p and curvature p (1 - p) trade off: the loss is at most
    max_p kappa R p + ln(1 + R^2 p (1 - p) / Lambda), which p = 1 attains. Raises PrivacyError if the regularization is
    below the condition. Proof: Theorem 1.18 in docs/theory/release.md.
    """
    check_positive("epsilon", epsilon)
    times = 1 if check_choice("adjacency", adjacency, ("add_remove", "replace")) == "add_remove" else 2
    enough = times * check_positive("radius", radius) ** 2 / epsilon
    if check_positive("regularization", regularization) < enough:
        raise PrivacyError(
            f"regularization {regularization:.6g} is below {enough:.6g} = {times} R^2 / epsilon: raise it, "
            "or use logistic_head().pure_kappa"
        )
    return epsilon / (times * radius)


def logistic_loss_bound(radius: float, regularization: float, kappa: float, adjacency: Adjacency) -> float:
    """The largest privacy loss of the logistic head at any kappa and Lambda: max over p in [0, 1].

    add_remove: kappa R p + ln(1 + R^2 p (1 - p) / Lambda); replace adds kappa R for the other record.
    """
    slope, ratio = kappa * radius, radius**2 / regularization
    # Stationary points solve slope (1 + c p - c p^2) + c - 2 c p = 0, a quadratic in p.
    a, b, c = -slope * ratio, ratio * (slope - 2), slope + ratio
    root = math.sqrt(max(b * b - 4 * a * c, 0.0))
    candidates = [0.0, 1.0, *(min(1.0, max(0.0, (-b + sign * root) / (2 * a))) for sign in (-1, 1))]
    worst = max(slope * p + math.log1p(ratio * p * (1 - p)) for p in candidates)
    return worst + (slope if adjacency == "replace" else 0.0)


def softmax_kappa(radius: float, regularization: float, epsilon: float, adjacency: Adjacency) -> float:
    r"""The softmax head's kappa without J: epsilon / (sqrt(2) R) once Lambda >= 4 R^2 / epsilon (twice both, replace).

    Proof. A record of class y whose probabilities are p moves the gradient by a = p - e_y (times phi) and the Hessian
    by H = diag p - p p'. With c = R^2 / Lambda, ln det(I + c H) <= c tr H = c (1 - |p|^2), so that its loss is at most

        kappa R |a| + c (1 - |p|^2).

    Let s = 1 - p_y and q = the sum of squares of the other probabilities: |a|^2 = s^2 + q = 2 t^2 with t in [0, 1], as
    q <= s^2 <= 1, and 1 - |p|^2 = 2 s - s^2 - q = 2 s - 2 t^2. As s <= 1 and s^2 <= 2 t^2, the loss is at most

        A t + 2 c (min(1, sqrt(2) t) - t^2),    A = sqrt(2) kappa R,

    which grows up to t = 1 / sqrt(2), and from there on is A t + 2 c (1 - t^2), largest at t = A / 4c, or at the end
    of [1 / sqrt(2), 1] that is nearer. Once A >= 4 c that is A itself, the loss at p = e_k, k != y: the gradient is
    longest where the curvature vanishes. Between, and for smaller Lambda, `softmax_loss_bound` is the value. Replacing
    a record adds A for the other one, whose Hessian is at least 0. An average of records obeys the average of these
    bounds, as norms and traces do. For fixed phi with |phi| < R all terms are smaller. []

    Raises PrivacyError where no kappa is small enough: Lambda <= R^2 / epsilon.
    """
    check_positive("epsilon", epsilon)
    check_choice("adjacency", adjacency, ("add_remove", "replace"))
    ratio = check_positive("radius", radius) ** 2 / check_positive("regularization", regularization) / epsilon
    if ratio >= 1:
        raise PrivacyError(
            f"regularization {regularization:.6g} is not above {radius**2 / epsilon:.6g} = R^2 / epsilon: raise it"
        )
    return epsilon * _softmax_share(ratio, adjacency) / (math.sqrt(2.0) * radius)


def softmax_required(radius: float, epsilon: float, adjacency: Adjacency, share: float) -> float:
    """The Lambda at which curvature takes the part `share` of epsilon from the softmax head's kappa."""
    longest = 1.0 if adjacency == "add_remove" else 0.5
    root = brentq(lambda ratio: _softmax_share(ratio, adjacency) - (1 - share) * longest, 1e-9, 1 - 1e-9, xtol=1e-13)
    return radius**2 / (float(root) * (1 - 1e-9) * epsilon)


def softmax_loss_bound(radius: float, regularization: float, kappa: float, adjacency: Adjacency) -> float:
    """The largest privacy loss of the softmax head at any kappa and Lambda: see `softmax_kappa`."""
    slope, ratio = math.sqrt(2.0) * kappa * radius, radius**2 / regularization
    t = min(1.0, max(math.sqrt(0.5), slope / (4 * ratio)))
    worst = slope * t + 2 * ratio * (1 - t * t)
    return worst + (slope if adjacency == "replace" else 0.0)


def _softmax_share(ratio: float, adjacency: Adjacency) -> float:
    """The largest A / epsilon with a loss of at most epsilon, for R^2 / Lambda = ratio epsilon, ratio in (0, 1)."""
    if adjacency == "add_remove":
        if ratio <= 1 / 4:
            return 1.0
        return math.sqrt(8 * ratio * (1 - 2 * ratio)) if ratio <= 1 / 3 else math.sqrt(2.0) * (1 - ratio)
    if ratio <= 1 / 8:
        return 0.5
    low = (1 - ratio) / (1 + math.sqrt(0.5))
    middle = math.sqrt(8 * ratio) - 4 * ratio
    return middle if middle >= math.sqrt(8.0) * ratio else low


def _scaled(head: HeadConstants, factor: float) -> HeadConstants:
    """The constants of the loss times `factor`."""
    return replace(
        head,
        gradient=head.gradient * factor,
        difference=head.difference * factor,
        trace=head.trace * factor,
        curvature=tuple((times, coefficient * factor) for times, coefficient in head.curvature),
        extremes=tuple((count, norm * factor) for count, norm in head.extremes),
    )
