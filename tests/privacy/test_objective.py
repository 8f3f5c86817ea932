"""Objective perturbation: the plan is made of the right numbers, and the release obeys its density."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq, minimize
from scipy.stats import gamma, kstest, laplace
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy import Accountant, Relation, event_from_json, event_to_json
from ppspeech.privacy.accounting.hockey_stick import gaussian_sigma
from ppspeech.privacy.convex.bounds import huber_svm_head, large_margin_head, logistic_head, softmax_head
from ppspeech.privacy.convex.events import LogisticObjectiveGaussianEvent, SoftmaxObjectivePureEvent
from ppspeech.privacy.convex.minimum import Minimum
from ppspeech.privacy.convex.objective import ObjectivePerturbation, Perturbation

HEADS = [
    (logistic_head(), (1, 3)),
    (huber_svm_head(0.5), (1, 3)),
    (softmax_head(3), (3, 2)),
    (large_margin_head(3, 1, 0.5), (3, 3)),
    (large_margin_head(2, 2, 0.5), (4, 3)),
]


def hook(**changes: object) -> ObjectivePerturbation:
    given: dict[str, object] = {"epsilon": 1.0, "relation": Relation("record", "add_remove"), "regularization": 20.0}
    return ObjectivePerturbation(**(given | changes))  # type: ignore[arg-type]


class Bowl:
    """F = <linear + slope, Theta> + (quadratic / 2) |Theta|^2, minimized exactly, or badly on purpose."""

    def __init__(self, slope: Tensor, residual: float = 0.0) -> None:
        self.slope, self.shape, self.records, self.residual = slope, (slope.shape[0], slope.shape[1]), 10, residual
        self.asked: tuple[Tensor | None, float, float] | None = None

    def minimize(self, linear: Tensor | None, quadratic: float, tolerance: float) -> Minimum:
        self.asked = (linear, quadratic, tolerance)
        tilt = self.slope if linear is None else self.slope + linear
        return Minimum(-tilt / quadratic, self.residual)


GOLD = [
    (2, 1, 0.5, 20, 1, 0.23459),
    (3, 1, 0.5, 40, 1, 0.13111),
    (3, 2, 0.25, 150, 1, 0.16170),
    (5, 1, 0.5, 120, 2, 0.19537),
]


@pytest.mark.parametrize(("classes", "mixtures", "width", "strength", "epsilon", "kappa"), GOLD)
def test_gold_values_of_section_5(
    classes: int, mixtures: int, width: float, strength: float, epsilon: float, kappa: float
) -> None:
    """kappa as derived once the output's share is added on top."""
    budget = hook(epsilon=epsilon / 0.99, regularization=strength)
    plan = budget.for_head(large_margin_head(classes, mixtures, width), 2.0, (classes * mixtures, 6))
    assert plan.regularization == strength
    assert plan.scale == pytest.approx(kappa, abs=1e-5)


@pytest.mark.parametrize(("head", "shape"), HEADS, ids=lambda value: getattr(value, "name", ""))
@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("averaged", [False, True])
def test_the_account_of_a_release_is_the_budget(
    head: object, shape: tuple[int, int], adjacency: Any, delta: float, averaged: bool
) -> None:
    budget = hook(epsilon=0.7, delta=delta, relation=Relation("record", adjacency), regularization=0.1)
    plan = budget.for_head(head, 2.0, shape, averaged=averaged)  # type: ignore[arg-type]
    assert plan.regularization > 0.1  # far too weak: raised
    account = Accountant(budget.relation)
    for event in plan.event.parts:
        account.compose(event_from_json(event_to_json(event)))
    if delta == 0:
        assert account.epsilon(0.0) == pytest.approx(0.7)
    else:
        spent = plan.event.parts[0].delta(budget.epsilon_objective)
        assert 0.5 * delta <= spent <= delta * (1 + 1e-9)
        assert plan.event.parts[1].pure() == pytest.approx(0.007)
    assert (plan.guarantee.epsilon, plan.guarantee.delta, plan.guarantee.float_safe) == (0.7, delta, False)


@given(strength=st.floats(0.01, 1e4), epsilon=st.floats(0.05, 8.0), replace=st.booleans())
@settings(max_examples=40, deadline=None)
def test_curvature_never_takes_more_than_its_share(strength: float, epsilon: float, replace: bool) -> None:
    budget = hook(
        epsilon=epsilon, regularization=strength, relation=Relation("record", "replace" if replace else "add_remove")
    )
    plan = budget.for_head(large_margin_head(3, 2, 0.5), 2.0, (6, 3))
    assert plan.regularization >= strength
    assert plan.jacobian <= 0.5 * budget.epsilon_objective * (1 + 1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_a_guess_of_the_norm_balances_the_noise(delta: float) -> None:
    plan = hook(delta=delta, regularization=1.0, norm=2.0).for_head(softmax_head(3), 2.0, (3, 10))
    assert plan.expected_noise == pytest.approx(2.0 * plan.regularization, rel=2e-3)
    strong = hook(delta=delta, regularization=1e5, norm=2.0).for_head(softmax_head(3), 2.0, (3, 10))
    assert strong.regularization == 1e5


def test_noise_lives_where_the_gradients_do() -> None:
    """Its length is Gamma(N, 1 / kappa) with N = (heads - 1) features; false alarm rate 1e-4."""
    plan = hook().for_head(large_margin_head(3, 1, 0.5), 2.0, (3, 6))
    drawn = torch.stack([plan.noise() for _ in range(2000)])
    assert plan.dimension == 12
    assert drawn.sum(1).abs().max() < 1e-9
    lengths = drawn.flatten(1).norm(dim=1).numpy()
    assert kstest(lengths, gamma(12, scale=1 / plan.scale).cdf).pvalue > 1e-4
    assert kstest(lengths, gamma(18, scale=1 / plan.scale).cdf).pvalue < 1e-6
    alone = hook().for_head(logistic_head(), 2.0, (1, 6))
    assert alone.dimension == 6
    assert not alone.centered


def test_gaussian_noise_has_the_scale_of_the_analytic_gaussian() -> None:
    """Two classes have one extreme point: sigma = sqrt(2) rho sigma_AG(epsilon - J, delta)."""
    plan = hook(delta=1e-5).for_head(large_margin_head(2, 1, 0.5), 2.0, (2, 6))
    wanted = math.sqrt(2) * 2.0 * gaussian_sigma(0.99 - plan.jacobian, 1e-5)
    assert plan.scale == pytest.approx(wanted, rel=1e-6)
    spread = torch.stack([plan.noise() for _ in range(4000)])[:, 0].std()
    assert float(spread) == pytest.approx(wanted * math.sqrt(0.5), rel=0.03)  # centering halves the variance


def test_a_release_tilts_regularizes_and_blurs() -> None:
    plan = hook().for_head(softmax_head(2), 1.0, (2, 3))
    bowl = Bowl(torch.zeros(2, 3, dtype=torch.double))
    theta = plan.release(bowl).value
    assert bowl.asked is not None
    linear, quadratic, tolerance = bowl.asked
    assert linear is not None
    assert (quadratic, tolerance) == (plan.regularization, plan.tolerance / 2)
    blur = theta + linear / quadratic
    assert 0 < blur.norm() < 100 * 2 * plan.tolerance / (0.01 * plan.regularization)
    noise = torch.stack([plan.output.release(torch.zeros(2, 3)).value for _ in range(500)]).flatten()
    scale = math.sqrt(6) * 2 * plan.tolerance / (0.01 * plan.regularization)  # l2 to l1, over epsilon
    assert kstest(noise.numpy(), laplace(scale=scale).cdf).pvalue > 1e-4
    steps = theta / plan.output.grid.step
    assert torch.equal(steps, steps.round())  # nothing is left of the minimizer's low-order bits


def test_a_poor_certificate_releases_nothing() -> None:
    plan = hook().for_head(logistic_head(), 1.0, (1, 3))
    with pytest.raises(PrivacyError, match="nothing is released"):
        plan.release(Bowl(torch.zeros(1, 3, dtype=torch.double), residual=1.01 * plan.tolerance))
    crowded = Bowl(torch.zeros(1, 3, dtype=torch.double))
    crowded.records = 10**12  # rounding alone is too large
    with pytest.raises(PrivacyError, match="rounding"):
        plan.release(crowded)
    with pytest.raises(PrivacyError, match="shape"):
        plan.release(Bowl(torch.zeros(2, 3, dtype=torch.double)))


def exact_delta(plan: Perturbation, strength: float, epsilon: float, noise: float = 1.0) -> float:
    """sup over both directions of the hockey stick between the minimizers of {} and {x = R}, y = 1, in one dimension.

    Written out by hand: b(theta) = -(gradient), density = density of b times |db / dtheta|.
    """
    radius, sigma = plan.radius, noise * plan.scale

    def log_density(theta: float, present: bool) -> float:
        p = 1 / (1 + math.exp(min(theta * radius, 700.0)))
        b = -(strength * theta - (radius * p if present else 0.0))
        slope = strength + (radius**2 * p * (1 - p) if present else 0.0)
        return -((b / sigma) ** 2) / 2 - math.log(sigma * math.sqrt(2 * math.pi)) + math.log(slope)

    grid = np.linspace(-12, 12, 10_001) * sigma / strength
    worst = 0.0
    for one, other in ((True, False), (False, True)):
        p = np.exp([log_density(t, one) for t in grid])
        q = np.exp([log_density(t, other) for t in grid])
        worst = max(worst, float(np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), grid)))
    return worst


@pytest.mark.parametrize("strength", [None, 50.0])
def test_logistic_without_curvature_holds_exactly(strength: float | None) -> None:
    """At the least Lambda allowed, and above: the true delta in one dimension never exceeds the stated one."""
    budget = hook(delta=1e-3, regularization=strength or 1e-3)
    plan = budget.for_head(logistic_head(), 3.0, (1, 1))
    event = plan.event.parts[0]
    assert isinstance(event, LogisticObjectiveGaussianEvent)
    if strength is None:
        assert plan.regularization == pytest.approx(9 / 0.99)
    for epsilon in (0.3, 0.99, 1.5):
        assert exact_delta(plan, plan.regularization, epsilon) <= event.delta(epsilon) * (1 + 1e-3)
    assert plan.scale == pytest.approx(3.0 * gaussian_sigma(0.99, 1e-3))
    assert exact_delta(plan, plan.regularization, 0.99, noise=0.5) > event.delta(0.99)  # half the noise is caught


def test_the_supremum_over_p_is_what_the_event_says() -> None:
    """P(Z > t) by maximizing over p for every N, against the event's tail and its loss distribution."""
    event = LogisticObjectiveGaussianEvent(5.0, 2.0, 6.0, Relation("record", "add_remove"))
    s, c = 2.0 / 5.0, 4.0 / 6.0
    p = np.linspace(0, 1, 2001)
    normal = np.random.default_rng(0).standard_normal(4000)
    z = (np.log1p(c * p * (1 - p)) + p**2 * s**2 / 2 + p * s * normal[:, None]).max(axis=1)
    above = z > event.threshold
    assert np.allclose(z[above], s * s / 2 + s * normal[above])

    def stick(epsilon: float) -> float:
        inside = lambda n: max(0.0, 1 - math.exp(epsilon - s * s / 2 - s * n)) * math.exp(-n * n / 2)  # noqa: E731
        start = (epsilon - s * s / 2) / s
        return quad(inside, start, start + 20)[0] / math.sqrt(2 * math.pi)

    for epsilon in (event.threshold, 1.0, 2.0):
        assert event.delta(epsilon) == pytest.approx(stick(epsilon), rel=1e-5)
        assert event.delta(epsilon) <= event.pld(1e-3).get_delta_for_epsilon(epsilon) <= 1.2 * event.delta(epsilon)
    assert event.delta(0.0) >= event.delta(event.threshold)
    assert event.rdp(2.0) > 0


def test_pure_averages_of_logistic_losses_keep_their_bound() -> None:
    """A search over units of several records never finds more than epsilon: kappa |g| + ln det (section 4.4)."""
    budget = hook(regularization=1e-3)
    plan = budget.for_head(logistic_head(), 2.0, (1, 3), averaged=True)
    generator = np.random.default_rng(0)

    def loss(flat: np.ndarray) -> float:
        directions = flat[:9].reshape(3, 3)
        directions = 2 * directions / np.linalg.norm(directions, axis=1, keepdims=True)
        p = 1 / (1 + np.exp(-flat[9:]))
        slope = (p[:, None] * directions).mean(0)
        bend = (directions.T * (p * (1 - p))) @ directions / 3
        volume = np.linalg.slogdet(np.eye(3) + bend / plan.regularization)[1]
        return float(plan.scale * np.linalg.norm(slope) + volume)

    worst = max(
        -minimize(lambda flat: -loss(flat), generator.standard_normal(12), method="L-BFGS-B").fun for _ in range(5)
    )
    assert 0.9 * budget.epsilon_objective <= worst <= budget.epsilon_objective * (1 + 1e-9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be > 0"),
        ({"delta": 1.0}, "delta must be in"),
        ({"regularization": 0.0}, "regularization must be > 0"),
        ({"norm": -1.0}, "norm must be > 0"),
        ({"output_share": 0.0}, "output_share must be in"),
        ({"curvature_share": 1.0}, "curvature_share must be in"),
        ({"relative_tolerance": 0.0}, "relative_tolerance must be > 0"),
    ],
)
def test_bad_budgets_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(PrivacyError, match=message):
        hook(**changes)


def test_bad_plans_are_refused() -> None:
    with pytest.raises(PrivacyError, match="radius"):
        hook().for_head(logistic_head(), -1.0, (1, 3))
    with pytest.raises(PrivacyError, match="features"):
        hook().for_head(logistic_head(), 1.0, (1, 0))
    with pytest.raises(PrivacyError, match="adjacency"):
        LogisticObjectiveGaussianEvent(1.0, 1.0, 1.0, Relation("record", "replace"))


def test_the_required_strength_is_the_root() -> None:
    plan = hook(regularization=1e-3).for_head(huber_svm_head(0.5), 2.0, (1, 3))
    root = brentq(lambda strength: math.log1p(4 / strength) - 0.5 * 0.99, 1, 100)
    assert plan.regularization == pytest.approx(root)


@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_softmax_spends_nothing_on_curvature_where_it_may(classes: int, averaged: bool) -> None:
    """At Lambda = 4 R^2 / epsilon all of the objective's epsilon is noise, and the event says what it costs."""
    plan = hook(epsilon=1.0, regularization=16 / 0.99).for_head(
        softmax_head(classes), 2.0, (classes, 3), averaged=averaged
    )
    assert plan.jacobian == 0
    assert plan.scale == pytest.approx(0.99 / (math.sqrt(2) * 2.0))
    assert plan.event.parts[0] == SoftmaxObjectivePureEvent(plan.scale, 2.0, plan.regularization, plan.relation)
    assert plan.event.pure() <= 1.0
    weak = hook(epsilon=1.0, regularization=1e-3).for_head(softmax_head(classes), 2.0, (classes, 3), averaged=averaged)
    assert weak.scale * 2 * math.sqrt(2) >= 0.99 / 2 * (1 - 1e-6)  # never worse than half of it
    assert weak.event.pure() <= 1.0
