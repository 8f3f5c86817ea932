"""The projection on the cone, its derivative, and the constrained solver."""

import pytest
import torch

from ppspeech.errors import ModelError
from ppspeech.models.convex import ConvexObjective, Expansion, minimize
from ppspeech.models.gaussian.phi import smat, svec
from ppspeech.models.margin.gaussians import LargeMarginGaussians
from ppspeech.models.margin.loss import MarginLoss
from ppspeech.models.margin.psd import PsdCone, minimize_psd, project_psd, psd_root


def symmetric(*shape: int, seed: int = 0) -> torch.Tensor:
    matrix = torch.randn(*shape, shape[-1], generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    return matrix + matrix.mT


def test_projection_is_the_nearest_point() -> None:
    matrix = symmetric(5, 4)
    nearest = project_psd(matrix)
    assert torch.linalg.eigvalsh(nearest).min() >= -1e-12
    root = psd_root(matrix)
    torch.testing.assert_close(root @ root.mT, nearest)
    # variational inequality: the way back to the matrix makes an obtuse angle with the way to any other point
    for seed in range(20):
        other = psd_root(symmetric(5, 4, seed=seed))
        other = other @ other.mT
        assert (((matrix - nearest) * (other - nearest)).sum((-2, -1)) <= 1e-10).all()


def test_cone_projects_like_the_matrices_and_knows_its_derivative() -> None:
    matrix = symmetric(3, 4)
    cone = PsdCone(10, matrix)
    vector = svec(matrix)
    projection = cone.project(vector)
    torch.testing.assert_close(smat(projection.vector), project_psd(matrix))
    bases, stiffness = cone.faces(projection)
    numeric = torch.autograd.functional.jacobian(lambda v: svec(project_psd_by_abs(smat(v))), vector)
    for head in range(3):
        derivative = (bases[head] / (1 + stiffness[head])) @ bases[head].mT
        torch.testing.assert_close(derivative, numeric[head, :, head], atol=1e-7, rtol=1e-7)


def project_psd_by_abs(matrix: torch.Tensor) -> torch.Tensor:
    """(M + |M|) / 2, differentiable by autograd where the eigenvalues differ."""
    values, vectors = torch.linalg.eigh(matrix)
    return (matrix + (vectors * values.abs().unsqueeze(-2)) @ vectors.mT) / 2


def data(classes: int, components: int, spread: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(classes)
    y = torch.randint(classes, (80,), generator=generator)
    m = torch.randint(components, (80,), generator=generator)
    centers = torch.randn(classes, components, 3, generator=generator, dtype=torch.double)
    return centers[y, m] + spread * torch.randn(80, 3, generator=generator, dtype=torch.double), y, m


@pytest.mark.parametrize("quadratic", [100.0, 1.0, 0.03])
@pytest.mark.parametrize(("classes", "components"), [(2, 1), (4, 1), (3, 2)])
def test_the_certificate_holds(classes: int, components: int, quadratic: float) -> None:
    x, y, m = data(classes, components, spread=0.5)
    model = LargeMarginGaussians(classes, 3, components, MarginLoss(0.3))
    objective = model.objective(x, y, m, quadratic=quadratic, gamma=0.5)
    solution = minimize_psd(objective, tolerance=1e-7)
    theta = solution.theta
    assert torch.linalg.eigvalsh(smat(theta)).min() >= -1e-9
    # optimality, checked from outside: the gradient lies in the dual cone and is orthogonal to the point
    _, gradient = objective.value_and_gradient(theta)
    assert torch.linalg.eigvalsh(smat(gradient)).min() >= -1e-6
    assert (gradient * theta).sum().abs() <= 1e-6 * (1 + theta.norm())
    again = minimize_psd(objective, start=torch.randn(objective.shape), tolerance=1e-7)
    assert (again.theta - theta).norm() <= again.certificate.distance + solution.certificate.distance + 1e-9
    rough = minimize_psd(objective, tolerance=1.0)
    assert (rough.theta - theta).norm() <= rough.certificate.distance + solution.certificate.distance
    assert rough.certificate.objective - solution.certificate.objective <= rough.certificate.gap + 1e-7


def test_without_active_constraints_it_is_the_unconstrained_minimum() -> None:
    target = svec(torch.eye(3, dtype=torch.double)).expand(2, -1)

    def flat(scores: torch.Tensor) -> Expansion:
        return Expansion(lambda: scores[:, 0] * 0, scores * 0, lambda direction: direction * 0)

    objective = ConvexObjective(flat, torch.ones(1, 6), 2, 2.0, linear=-2 * target)
    torch.testing.assert_close(minimize_psd(objective).theta, minimize(objective).theta)


def test_refusals() -> None:
    x, y, _ = data(2, 1, spread=1.0)
    objective = LargeMarginGaussians(2, 3).objective(x, y, quadratic=1e-4)
    with pytest.raises(ModelError, match="within 1 iterations"):
        minimize_psd(objective, max_iterations=1)
    with pytest.raises(ModelError, match="svec"):
        PsdCone(7, x)
    large = ConvexObjective(objective.head, torch.ones(1, 5151), 2, 1.0)
    with pytest.raises(ModelError, match="10302 parameters"):
        minimize_psd(large)
