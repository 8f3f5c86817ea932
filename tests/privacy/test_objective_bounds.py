"""The constants of objective perturbation: gold values, witnesses that attain them, searches that never exceed them,
and exact privacy losses in one and two dimensions.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy import (
    LogisticObjectivePureEvent,
    ObjectiveGaussianEvent,
    Relation,
    gaussian_sigma,
    objective_sigma,
)
from ppspeech.privacy.convex.bounds import (
    HeadConstants,
    huber_svm_head,
    large_margin_head,
    logistic_head,
    logistic_kappa,
    logistic_loss_bound,
    softmax_head,
    softmax_kappa,
    softmax_loss_bound,
    softmax_required,
)

R: Any = {"relation": Relation("record", "add_remove")}


@pytest.mark.parametrize(
    ("classes", "mixtures", "smoothing", "penalty", "epsilon", "gold"),
    [
        (2, 1, 0.5, 20, 1, (0.33647, 2.82843, 0.23459)),
        (3, 1, 0.5, 40, 1, (0.35767, 4.89898, 0.13111)),
        (3, 2, 0.25, 150, 1, (0.20784, 4.89898, 0.16170)),
        (5, 1, 0.5, 120, 2, (0.25252, 8.94427, 0.19537)),
    ],
)
def test_large_margin_gold(
    classes: int, mixtures: int, smoothing: float, penalty: float, epsilon: float, gold: tuple[float, ...]
) -> None:
    head = large_margin_head(classes, mixtures, smoothing)
    found = (
        head.jacobian(2.0, penalty),
        head.sensitivity(2.0, "add_remove"),
        head.pure_kappa(2.0, penalty, epsilon, "add_remove"),
    )
    assert found == pytest.approx(gold, abs=6e-6)


@pytest.mark.parametrize(("classes", "mixtures", "sigma"), [(2, 1, 5.28), (5, 2, 19.3), (10, 8, 65.7), (40, 1, 222.0)])
def test_gaussian_large_margin_gold(classes: int, mixtures: int, sigma: float) -> None:
    head = large_margin_head(classes, mixtures, 0.5)
    found = objective_sigma(head, epsilon=1.0, delta=1e-5, radius=1.0, regularization=1e12, **R)
    assert found == pytest.approx(sigma, rel=3e-3)
    assert found >= head.gradient * gaussian_sigma(1.0, 1e-5) * (1 - 1e-9)


def test_two_classes_need_only_the_plain_gaussian_after_j() -> None:
    head = large_margin_head(2, 1, 0.5)
    j = head.jacobian(2.0, 50.0)
    found = objective_sigma(head, epsilon=1.0, delta=1e-5, radius=2.0, regularization=50.0, **R)
    assert found == pytest.approx(math.sqrt(2) * 2.0 * gaussian_sigma(1.0 - j, 1e-5), rel=1e-8)


@pytest.mark.parametrize(("epsilon", "penalty"), [(0.1, 156.0), (0.3, 49.4), (1.0, 12.3)])
def test_raised_regularization_gold(epsilon: float, penalty: float) -> None:
    """Two classes, h = 1/2, rho = 2: where J takes half of epsilon."""
    found = large_margin_head(2, 1, 0.5).required_regularization(2.0, epsilon)
    assert found == pytest.approx(penalty, rel=3e-3)
    assert found == pytest.approx(8 / math.expm1(epsilon / 2))


def test_softmax_j() -> None:
    assert softmax_head(5).jacobian(1.5, 3.0) == pytest.approx(4 * math.log(1 + 1.5**2 / (5 * 3.0)))


# --- losses as functions of the outputs u = Theta phi, for witnesses and searches -----------------------------------


def smooth_hinge(u: Tensor, h: float) -> Tensor:
    return torch.where(u < -h, torch.zeros_like(u), torch.where(u > h, u, (u + h) ** 2 / (4 * h)))


def logistic_loss(u: Tensor, y: int) -> Tensor:
    return torch.nn.functional.softplus(-(2 * y - 1) * u[0])


def svm_loss(h: float) -> Callable[[Tensor, int], Tensor]:
    return lambda u, y: smooth_hinge(1 - (2 * y - 1) * u[0], h)


def softmax_loss(u: Tensor, y: int) -> Tensor:
    return torch.logsumexp(u, 0) - u[y]


def margin_loss(
    classes: int, mixtures: int, h: float, competitor: str, average: bool
) -> Callable[[Tensor, int], Tensor]:
    def loss(u: Tensor, y: int) -> Tensor:
        costs = u.reshape(classes, mixtures)
        own = costs[y, 0]
        rivals = [costs[c] for c in range(classes) if c != y]
        if competitor == "lse":
            return smooth_hinge(1 + own + torch.logsumexp(-torch.cat(rivals), 0), h) * (
                1 / (classes - 1) if average else 1
            )
        total = sum((smooth_hinge(1 + own + torch.logsumexp(-rival, 0), h) for rival in rivals), torch.zeros(()))
        return total / (classes - 1) if average else total

    return loss


HEADS: list[tuple[HeadConstants, Callable[[Tensor, int], Tensor], int, int]] = [
    (logistic_head(), logistic_loss, 1, 2),
    (huber_svm_head(0.5), svm_loss(0.5), 1, 2),
    (softmax_head(2), softmax_loss, 2, 2),
    (softmax_head(4), softmax_loss, 4, 4),
    *[
        (
            large_margin_head(c, k, h, competitor=competitor, class_average=average),  # type: ignore[arg-type]
            margin_loss(c, k, h, competitor, average),
            c * k,
            c,
        )
        for c, k, h, competitor, average in [
            (2, 1, 0.5, "sum", False),
            (3, 1, 0.5, "sum", False),
            (3, 2, 0.25, "sum", False),
            (4, 1, 2.0, "sum", True),
            (3, 2, 2.0, "sum", False),
            (3, 2, 0.5, "lse", False),
            (4, 2, 3.0, "lse", True),
        ]
    ],
]


def explore(loss: Callable[[Tensor, int], Tensor], outputs: int, labels: int) -> tuple[list[Tensor], list[Tensor]]:
    """Gradients and Hessians in the outputs at many points: random ones, far ones, and ones on the kinks."""
    generator = torch.Generator().manual_seed(3)
    gradients, hessians = [], []
    for trial in range(64):
        scale = [0.1, 1.0, 5.0, 40.0][trial % 4]
        u = scale * torch.randn(outputs, generator=generator, dtype=torch.float64)
        if trial % 8 == 7:  # all rivals alike and at the kink, where every hinge bends
            u = torch.full((outputs,), float(torch.rand(1, generator=generator) * 2 - 1), dtype=torch.float64)
        y = trial // 4 % labels
        gradients.append(torch.func.grad(lambda v, y=y: loss(v, y))(u))
        hessians.append(torch.autograd.functional.hessian(lambda v, y=y: loss(v, y), u))
    return gradients, hessians


@pytest.mark.parametrize(("head", "loss", "outputs", "labels"), HEADS)
def test_no_point_exceeds_the_constants(
    head: HeadConstants, loss: Callable[[Tensor, int], Tensor], outputs: int, labels: int
) -> None:
    gradients, hessians = explore(loss, outputs, labels)
    assert max(float(g.norm()) for g in gradients) <= head.gradient * (1 + 1e-9)
    assert max(float((g - h).norm()) for g in gradients for h in gradients) <= head.difference * (1 + 1e-9)
    assert max(float(h.trace()) for h in hessians) <= head.trace * (1 + 1e-9)
    for hessian in hessians:
        eigenvalues = torch.linalg.eigvalsh(hessian).clamp_min(0)
        for penalty in (0.3, 3.0):
            exact = float(torch.log1p(eigenvalues / penalty).sum())
            assert exact <= head.jacobian(1.0, penalty) * (1 + 1e-9) + 1e-12
            assert exact <= head.jacobian(1.0, penalty, averaged=True) * (1 + 1e-9) + 1e-12
    span = torch.linalg.matrix_rank(torch.stack(gradients), rtol=1e-9)
    assert int(span) <= head.directions


@pytest.mark.parametrize(("head", "loss", "outputs", "labels"), HEADS)
def test_the_gradient_bound_is_attained(
    head: HeadConstants, loss: Callable[[Tensor, int], Tensor], outputs: int, labels: int
) -> None:
    """Outputs as wrong as they can be: the true class far off, one component of every rival far ahead."""
    u = torch.zeros(outputs, dtype=torch.float64)
    if outputs == 1:
        u[0] = -100.0
        y = 1
    elif head.name == "softmax":
        u[1], y = 100.0, 0
    else:
        mixtures = outputs // labels
        u = u.reshape(labels, mixtures)
        u[:, 1:], u[0], u[1:, 0], y = 200.0, 300.0, -100.0, 0
        if head.extremes[0][0] == outputs - mixtures:  # lse: one rival leads all the others
            u[2:, 0] = 100.0
        u = u.reshape(-1)
    gradient = torch.func.grad(lambda v: loss(v, y))(u)
    assert float(gradient.norm()) == pytest.approx(head.gradient, rel=1e-6)


@pytest.mark.parametrize(
    ("classes", "mixtures", "worst"), [(2, 1, 5.657), (3, 1, 8.481), (5, 1, 14.138), (3, 2, 8.884)]
)
def test_replace_bounds_cover_what_ascent_found(classes: int, mixtures: int, worst: float) -> None:
    head = large_margin_head(classes, mixtures, 0.5)
    assert worst - 5e-4 <= head.sensitivity(2.0, "replace") <= worst * 1.01
    if mixtures == 2:
        assert worst > math.sqrt(2) * classes * 2.0  # the K = 1 constant would be wrong here


def test_extreme_points_are_counted() -> None:
    assert large_margin_head(3, 2, 0.5).extremes == ((4, math.sqrt(2)), (4, math.sqrt(6)))
    assert large_margin_head(3, 2, 0.5, competitor="lse").extremes == ((4, math.sqrt(2)),)
    halved = large_margin_head(3, 1, 0.5, class_average=True)
    assert (halved.gradient, halved.trace) == pytest.approx((math.sqrt(6) / 2, 2.0))


# --- exact losses of the mechanism itself ----------------------------------------------------------------------------


def one_dimensional_laws(penalty: float, log_noise: Callable[[Any], Any]) -> tuple[Any, Any, Any]:
    """ln densities of theta* for 1-D logistic regression on {(1, +1)} and on no data, on a grid of theta."""
    theta = np.linspace(-60 / penalty, 60 / penalty, 400_001)
    p = expit(-theta)
    with_record = log_noise(-(-p + penalty * theta)) + np.log(p * (1 - p) + penalty)
    without = log_noise(-penalty * theta) + np.log(penalty)
    return theta, with_record, without


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_logistic_pure_loss_is_exactly_epsilon(epsilon: float) -> None:
    penalty = 1.0 / epsilon
    kappa = logistic_kappa(1.0, penalty, epsilon, "add_remove")
    assert kappa == epsilon
    _, p, q = one_dimensional_laws(penalty, lambda b: -kappa * np.abs(b))
    worst = np.abs(p - q).max()
    assert worst <= epsilon * (1 + 1e-9)
    assert worst == pytest.approx(epsilon, rel=1e-3)
    event = LogisticObjectivePureEvent(kappa, 1.0, penalty, **R)
    assert event.pure() == pytest.approx(epsilon)


def test_logistic_loss_bound_against_a_grid() -> None:
    p = np.linspace(0, 1, 100_001)
    for kappa, penalty in ((1.0, 0.1), (0.2, 0.5), (3.0, 1.0)):
        brute = (kappa * 2 * p + np.log1p(4 * p * (1 - p) / penalty)).max()
        assert logistic_loss_bound(2.0, penalty, kappa, "add_remove") == pytest.approx(brute, rel=1e-8)
        assert logistic_loss_bound(2.0, penalty, kappa, "replace") == pytest.approx(brute + 2 * kappa, rel=1e-8)
    assert logistic_kappa(2.0, 8.0, 1.0, "replace") == 0.25
    assert logistic_loss_bound(2.0, 8.0, 0.25, "replace") == pytest.approx(1.0)
    with pytest.raises(PrivacyError, match="raise it"):
        logistic_kappa(2.0, 7.9, 1.0, "replace")


@pytest.mark.parametrize("mutant", ["twice kappa", "no J", "half the gradient"])
def test_wrong_constants_are_caught_by_the_exact_loss(mutant: str) -> None:
    """Huber-SVM in one dimension, theta on the kink: the loss of the sound kappa is epsilon, a mutant's is above."""
    h, penalty, epsilon = 0.5, 2.0, 1.0
    head = huber_svm_head(h)
    j = head.jacobian(1.0, penalty)
    kappas = {
        "sound": head.pure_kappa(1.0, penalty, epsilon, "add_remove"),
        "twice kappa": 2 * head.pure_kappa(1.0, penalty, epsilon, "add_remove"),
        "no J": epsilon / head.gradient,
        "half the gradient": (epsilon - j) / (head.gradient / 2),
    }
    # At the edge of the bend (margin u = 1 - theta = h) slope is 1 and curvature 1/2h; just inside it.
    theta = (1 - h) + 1e-9
    slope, bend = 1.0, 1 / (2 * h)

    def loss(kappa: float) -> float:
        without, with_record = abs(-penalty * theta), abs(-(penalty * theta - slope))
        return abs(kappa * (without - with_record)) + math.log1p(bend / penalty)

    assert loss(kappas["sound"]) == pytest.approx(epsilon, rel=1e-6)
    assert loss(kappas[mutant]) > epsilon * 1.1


@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_gaussian_objective_delta_covers_the_exact_one_in_one_dimension(adjacency: Any) -> None:
    penalty, epsilon, delta = 4.0, 1.0, 1e-3
    sigma = objective_sigma(
        logistic_head(),
        epsilon=epsilon,
        delta=delta,
        radius=1.0,
        regularization=penalty,
        relation=Relation("record", adjacency),
    )
    theta, p, q = one_dimensional_laws(penalty, lambda b: -(b**2) / (2 * sigma**2) - np.log(sigma * np.sqrt(2 * np.pi)))
    if adjacency == "replace":
        q = p[::-1]  # the record (1, -1) instead: the mirror image
    step = theta[1] - theta[0]
    assert np.exp(p).sum() * step == pytest.approx(1.0, abs=1e-6)
    for a, b in ((p, q), (q, p)):
        exact = np.maximum(np.exp(a) - np.exp(epsilon) * np.exp(b), 0).sum() * step
        assert exact <= delta
    if adjacency == "add_remove":  # two steps of add_remove are loose
        assert exact > delta / 1000


@pytest.mark.parametrize("averaged", [False, True])
def test_gaussian_objective_delta_covers_the_exact_one_in_two_dimensions(averaged: bool) -> None:
    """Softmax with two classes and one feature: the density of theta* in the plane."""
    penalty, epsilon, delta = 3.0, 1.0, 1e-3
    head = softmax_head(2)
    sigma = objective_sigma(
        head, epsilon=epsilon, delta=delta, radius=1.0, regularization=penalty, averaged=averaged, **R
    )
    axis = np.linspace(-6 * sigma / penalty - 1, 6 * sigma / penalty + 1, 1201)
    u, v = np.meshgrid(axis, axis, indexing="ij")
    p1 = expit(v - u)  # the probability of the wrong class for label 0
    b = np.stack([-(penalty * u - p1), -(penalty * v + p1)])
    log_noise = -(b**2).sum(0) / (2 * sigma**2) - np.log(2 * np.pi * sigma**2)
    with_record = log_noise + np.log(penalty * (penalty + 2 * p1 * (1 - p1)))
    without = -(penalty**2) * (u**2 + v**2) / (2 * sigma**2) - np.log(2 * np.pi * sigma**2) + 2 * np.log(penalty)
    cell = (axis[1] - axis[0]) ** 2
    assert np.exp(with_record).sum() * cell == pytest.approx(1.0, abs=1e-3)
    for a, c in ((with_record, without), (without, with_record)):
        assert np.maximum(np.exp(a) - np.exp(epsilon) * np.exp(c), 0).sum() * cell <= delta


def test_the_objective_loss_distribution_reproduces_the_closed_form() -> None:
    """Within 1 % at buckets of 1e-3."""
    event = ObjectiveGaussianEvent.of_head(logistic_head(), sigma=3.8, radius=1.0, regularization=10.0, **R)
    for epsilon in (0.3, 0.7, 1.0):
        assert event.pld(1e-3).get_delta_for_epsilon(epsilon) == pytest.approx(event.delta(epsilon), rel=1e-2)


def test_renyi_of_one_extreme_point_is_nearly_the_gaussian() -> None:
    event = ObjectiveGaussianEvent.of_head(logistic_head(), sigma=2.0, radius=1.0, regularization=1e9, **R)
    for alpha in (8.0, 32.0):
        assert alpha / 8 <= event.rdp(alpha) <= alpha / 8 + math.log(2) / (alpha - 1)


def test_epsilon_below_j_names_the_regularization_that_helps() -> None:
    head = softmax_head(10)
    with pytest.raises(PrivacyError, match="raise the regularization to") as refused:
        head.pure_kappa(1.0, 0.1, 0.5, "add_remove")
    enough = head.required_regularization(1.0, 0.5)
    assert f"{enough:.6g}" in str(refused.value)
    assert head.jacobian(1.0, enough) == pytest.approx(0.25)
    assert head.pure_kappa(1.0, enough, 0.5, "add_remove") == pytest.approx(0.5 / (2 * math.sqrt(2)))
    averaged = head.required_regularization(1.0, 0.5, averaged=True)
    assert head.jacobian(1.0, averaged, averaged=True) == pytest.approx(0.25)
    with pytest.raises(PrivacyError, match="raise the regularization to"):
        objective_sigma(head, epsilon=0.5, delta=1e-5, radius=1.0, regularization=0.1, **R)


@pytest.mark.parametrize(
    "call",
    [
        lambda: softmax_head(1),
        lambda: large_margin_head(1, 1, 0.5),
        lambda: large_margin_head(2, 0, 0.5),
        lambda: large_margin_head(2, 1, 0.0),
        lambda: large_margin_head(2, 1, 0.5, competitor="max"),  # type: ignore[arg-type]
        lambda: huber_svm_head(-1.0),
        lambda: logistic_head().jacobian(0.0, 1.0),
        lambda: logistic_head().jacobian(1.0, 0.0),
        lambda: logistic_head().sensitivity(1.0, "both"),  # type: ignore[arg-type]
        lambda: logistic_head().required_regularization(1.0, 1.0, share=1.0),
    ],
)
def test_bad_parameters_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises(PrivacyError):
        call()


def softmax_losses(p: np.ndarray, slope: float, ratio: float) -> np.ndarray:
    """Exact: kappa R |p - e_0| + ln det(I + c (diag p - p p')) of probabilities `(n, classes)`."""
    classes = p.shape[1]
    hessian = p[:, :, None] * (np.eye(classes) - p[:, None, :])
    away = np.linalg.norm(p - np.eye(classes)[0], axis=1)
    return slope * away + np.linalg.slogdet(np.eye(classes) + ratio * hessian)[1]


def simplex(classes: int) -> np.ndarray:
    """Random points inside and on faces of every dimension, and fine lines between all pairs of corners."""
    generator = np.random.default_rng(0)
    inside = [generator.dirichlet(np.full(classes, a), 4000) for a in (0.05, 0.3, 1.0, 5.0)]
    faces = generator.dirichlet(np.ones(classes), 4000) * (generator.random((4000, classes)) < 0.4)
    faces = faces[faces.sum(1) > 0]
    line = np.linspace(0, 1, 401)[:, None]
    corners = np.eye(classes)
    edges = [line * corners[i] + (1 - line) * corners[j] for i in range(min(classes, 3)) for j in range(i)]
    return np.concatenate([*inside, faces / faces.sum(1, keepdims=True), *edges, corners])


@pytest.mark.parametrize("classes", [2, 3, 5, 10, 20])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
@pytest.mark.parametrize("times", [1.2, 1.7, 2.5, 3.3, 4.0, 6.0, 9.0, 40.0])
def test_softmax_needs_no_j(classes: int, adjacency: Any, times: float) -> None:
    """Over the simplex: no record loses more than epsilon; from 4 R^2 / epsilon on (8 for replace) nothing is lost."""
    radius, epsilon = 1.5, 0.8
    strength = times * radius**2 / epsilon
    kappa = softmax_kappa(radius, strength, epsilon, adjacency)
    found = softmax_losses(simplex(classes), kappa * radius, radius**2 / strength)
    other = math.sqrt(2) * kappa * radius if adjacency == "replace" else 0.0
    assert found.max() + other <= epsilon * (1 + 1e-12)
    assert softmax_loss_bound(radius, strength, kappa, adjacency) == pytest.approx(epsilon, rel=1e-9)
    if times > 2:  # below, traces bound the determinants of few classes loosely
        assert found.max() + other > 0.75 * epsilon
    enough, reach = (4.0, math.sqrt(2)) if adjacency == "add_remove" else (8.0, 2 * math.sqrt(2))
    if times >= enough:
        assert kappa == pytest.approx(epsilon / (reach * radius))
        assert found.max() + other == pytest.approx(epsilon)


def test_softmax_below_its_threshold_would_lose_more() -> None:
    """The same kappa at half the Lambda: some record loses 1.08 epsilon or more: the condition is not for nothing."""
    for classes in (3, 5, 10):
        found = softmax_losses(simplex(classes), 1 / math.sqrt(2), 0.5)
        assert 1.08 < found.max() < 1.3
    with pytest.raises(PrivacyError, match="raise it"):
        softmax_kappa(1.0, 1.0, 1.0, "add_remove")


@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_the_lambda_that_softmax_requires(adjacency: Any, share: float) -> None:
    longest = 1 / math.sqrt(2) * (1 if adjacency == "add_remove" else 0.5)
    found = softmax_kappa(1.0, softmax_required(1.0, 2.0, adjacency, share), 2.0, adjacency)
    assert found / 2.0 == pytest.approx((1 - share) * longest, rel=1e-6)
