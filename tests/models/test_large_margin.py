"""Large-margin Gaussians against CVXPY, a loop over the paper's formulas, and autograd training."""

import math
import warnings

import cvxpy as cp
import numpy as np
import pytest
import torch

from ppspeech.errors import ModelError
from ppspeech.models.gaussian.mixture import GaussianMixture
from ppspeech.models.margin.gaussians import LargeMarginGaussians, sum_form
from ppspeech.models.margin.loss import MarginLoss

GAMMA, QUADRATIC = 0.4, 1.5


def data(classes: int = 3, components: int = 1, examples: int = 40):
    generator = torch.Generator().manual_seed(11)
    y = torch.arange(examples) % classes
    m = torch.randint(components, (examples,), generator=generator)
    centers = 1.5 * torch.randn(classes, components, 2, generator=generator, dtype=torch.double)
    return centers[y, m] + 0.7 * torch.randn(examples, 2, generator=generator, dtype=torch.double), y, m


def by_cvxpy(x, y, m, classes: int, components: int, loss: MarginLoss, psd: bool) -> float:
    """The same problem, written from the paper's equations for CVXPY."""
    z = np.c_[x.numpy(), np.ones(len(x))]
    phi = [[cp.Variable((3, 3), PSD=True) if psd else cp.Variable((3, 3), symmetric=True)
            for _ in range(components)] for _ in range(classes)]  # fmt: skip
    squares = np.einsum("ni,nj->nij", z, z).reshape(len(z), -1)
    hinges = []
    for label in range(classes):
        for part in range(components):
            rows = np.flatnonzero((y.numpy() == label) & (m.numpy() == part))
            if not len(rows):
                continue
            costs = [[squares[rows] @ cp.vec(matrix, order="C") for matrix in row] for row in phi]
            rivals = [c for c in range(classes) if c != label]
            groups = [rivals] if loss.competitor == "lse" else [[c] for c in rivals]
            for group in groups:
                negative = cp.vstack([-costs[c][k] for c in group for k in range(components)])
                soft = negative[0] if negative.shape[0] == 1 else cp.log_sum_exp(negative, axis=0)
                u = 1 + costs[label][part] + soft
                if loss.width == 0:
                    hinges.append(cp.sum(cp.pos(u)))
                else:
                    capped = cp.Variable(len(rows))
                    hinges.append(cp.sum(cp.pos(capped)) + cp.sum_squares(
                        cp.pos(u + loss.width - capped)) / (4 * loss.width))  # fmt: skip
    matrices = [matrix for row in phi for matrix in row]
    scale = 1 / (classes - 1) if loss.class_average else 1
    total = scale * sum(hinges) + sum(
        GAMMA * cp.trace(matrix[:2, :2]) + QUADRATIC / 2 * cp.sum_squares(matrix) for matrix in matrices
    )
    problem = cp.Problem(cp.Minimize(total))
    with warnings.catch_warnings():  # with exponential and semidefinite cones it stops a little short of its own goal
        warnings.simplefilter("ignore", UserWarning)
        problem.solve(solver="CLARABEL")
    return float(problem.value)


@pytest.mark.parametrize(
    ("classes", "components", "loss", "psd"),
    [
        (2, 1, MarginLoss(0.5), "projection"),
        (2, 1, MarginLoss(0.5), "factorization"),
        (3, 1, MarginLoss(0.2, class_average=True), "none"),
        (3, 1, MarginLoss(0.2, class_average=True), "projection"),
        (3, 1, MarginLoss(0.0), "none"),
        (3, 1, MarginLoss(0.0), "projection"),
        (3, 2, MarginLoss(0.5), "none"),
        (3, 2, MarginLoss(0.5), "projection"),
        (2, 2, MarginLoss(0.0), "none"),
        (3, 2, MarginLoss(0.5, "lse"), "none"),
        (3, 2, MarginLoss(0.5, "lse"), "projection"),
    ],
)
def test_objective_equals_cvxpy(classes: int, components: int, loss: MarginLoss, psd: str) -> None:
    x, y, m = data(classes, components)
    model = LargeMarginGaussians(classes, 2, components, loss, psd=psd, dtype=torch.double)
    certificate = model.fit(x, y, m, quadratic=QUADRATIC, gamma=GAMMA).certificate
    reached = (model.loss(x, y, m).sum() + model.regularization(QUADRATIC, GAMMA)).item()
    reference = by_cvxpy(x, y, m, classes, components, loss, psd != "none")
    assert reached == pytest.approx(reference, rel=1e-4 if loss.width == 0 or components > 1 else 1e-6)
    assert certificate.objective == pytest.approx(reached, abs=certificate.gap + 1e-6)
    assert certificate.converged
    if psd != "none":
        assert torch.linalg.eigvalsh(model.phi().detach()).min() >= -1e-9


def test_losses_equal_a_loop_over_the_equations() -> None:
    x, y, m = data(3, 2)
    model = LargeMarginGaussians(3, 2, 2, MarginLoss(0.5), constant=2.0, dtype=torch.double)
    noise = torch.randn(3, 2, 3, 3, generator=torch.Generator().manual_seed(1), dtype=torch.double)
    model.set_phi_(noise + noise.mT)
    for i in range(len(x)):
        z = torch.cat([x[i], torch.tensor([2.0])])
        cost = [[float(z @ phi @ z) for phi in row] for row in model.phi().detach()]
        total = 0.0
        for c in range(3):
            if c != y[i]:
                u = 1 + cost[y[i]][m[i]] + math.log(sum(math.exp(-t) for t in cost[c]))
                total += 0 if u < -0.5 else u if u > 0.5 else (u + 0.5) ** 2 / 2
        assert model.loss(x[i : i + 1], y[i : i + 1], m[i : i + 1]).item() == pytest.approx(total)
        assert int(model.predict(x[i])) == int(np.argmin([min(row) for row in cost]))
        soft = np.argmax([sum(math.exp(-t) for t in row) for row in cost])
        assert int(model.predict(x[i], soft=True)) == soft


def test_sum_form_is_n_times_the_seeds_objective() -> None:
    x, y, _ = data()
    model = LargeMarginGaussians(3, 2, dtype=torch.double)
    model.fit(x, y, quadratic=3.0)
    form = sum_form(len(x), lam=0.07, gamma=0.02)
    phi = model.phi()
    seed = (
        model.loss(x, y).mean() + 0.02 * phi[..., :2, :2].diagonal(dim1=-2, dim2=-1).sum() + 0.07 * phi.square().sum()
    )
    ours = model.loss(x, y).sum() + model.regularization(form.quadratic, form.gamma)
    torch.testing.assert_close(ours, len(x) * seed)


def test_feature_norm_is_bounded_by_the_public_constants() -> None:
    model = LargeMarginGaussians(2, 2, radius=2.0, constant=0.5)
    norms = model.features(100 * torch.randn(50, 2, generator=torch.Generator().manual_seed(0))).norm(dim=-1)
    torch.testing.assert_close(norms, torch.full((50,), 4.25))


def test_post_hoc_projection_gives_psd_and_keeps_the_unconstrained_certificate() -> None:
    x, y, _ = data()
    free = LargeMarginGaussians(3, 2, dtype=torch.double).fit(x, y, quadratic=1.0)
    model = LargeMarginGaussians(3, 2, psd="projection", dtype=torch.double)
    solution = model.fit(x, y, quadratic=1.0, post_hoc=True)
    torch.testing.assert_close(solution.theta, free.theta)
    assert torch.linalg.eigvalsh(free.theta.new_tensor(model.phi().tolist())).min() >= -1e-12


def test_component_labels_from_a_generative_start() -> None:
    x, y, _ = data(2, 2, examples=60)
    mixture = GaussianMixture(2, 2, batch=(2,), dtype=torch.double)
    with torch.no_grad():
        mixture.gaussians.mean.copy_(torch.randn(2, 2, 2, generator=torch.Generator().manual_seed(3)))

    def most_likely(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        densities = mixture.gaussians.log_density(x)  # (n, classes, components)
        return densities[torch.arange(len(x)), y].argmax(-1)

    model = LargeMarginGaussians(2, 2, components=2, psd="projection", dtype=torch.double)
    solution = model.fit(x, y, most_likely, quadratic=0.5)
    direct = LargeMarginGaussians(2, 2, components=2, psd="projection", dtype=torch.double)
    torch.testing.assert_close(solution.theta, direct.fit(x, y, most_likely(x, y), quadratic=0.5).theta)


def test_mini_batches_by_autograd_near_the_convex_minimum() -> None:
    x, y, _ = data(3)
    x = x / 3
    best = LargeMarginGaussians(3, 2, psd="projection").fit(x, y, quadratic=QUADRATIC, gamma=GAMMA).certificate
    for psd in ("projection", "factorization"):
        model = LargeMarginGaussians(3, 2, psd=psd, dtype=torch.double)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.5e-2)
        decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.94)
        generator = torch.Generator().manual_seed(0)
        for _ in range(40):
            for batch in torch.randperm(len(x), generator=generator).split(20):
                optimizer.zero_grad()
                losses = model.loss(x[batch], y[batch])
                (2 * losses.sum() + model.regularization(QUADRATIC, GAMMA)).backward()
                optimizer.step()
                if psd == "projection":
                    model.project_()
            decay.step()
        reached = (model.loss(x, y).sum() + model.regularization(QUADRATIC, GAMMA)).item()
        assert best.objective - 1e-6 <= reached <= 1.05 * best.objective
        assert not list(model.buffers())


def test_refusals() -> None:
    x, y, m = data(3, 2)
    model = LargeMarginGaussians(3, 2, 2)
    with pytest.raises(ModelError, match="component of each example"):
        model.loss(x.float(), y)
    with pytest.raises(ModelError, match=r"0\.\.2"):
        model.fit(x, y + 1, m, quadratic=1.0)
    with pytest.raises(ModelError, match=r"0\.\.1"):
        model.fit(x, y, m + 1, quadratic=1.0)
    with pytest.raises(ModelError, match="integers"):
        model.fit(x, y[:3], m, quadratic=1.0)
    with pytest.raises(ModelError, match="finite"):
        model.fit(x / 0, y, m, quadratic=1.0)
    with pytest.raises(ModelError, match="features"):
        model(torch.zeros(1, 5))
    with pytest.raises(ModelError, match="kink"):
        LargeMarginGaussians(2, 2, loss=MarginLoss(0.0)).objective(x, y % 2, quadratic=1.0)
    for wrong in (
        lambda: LargeMarginGaussians(1, 2),
        lambda: LargeMarginGaussians(2, 2, psd="cone"),
        lambda: LargeMarginGaussians(2, 2, radius=0.0),
        lambda: MarginLoss(-1.0),
        lambda: MarginLoss(1.0, "all"),
        lambda: sum_form(0, 1.0),
    ):
        with pytest.raises(ModelError):
            wrong()
