"""The objective against autograd, the solver against long-hand optimization."""

import pytest
import torch

from ppspeech.errors import ModelError
from ppspeech.models import convex
from ppspeech.models.convex import ConvexObjective, minimize
from ppspeech.models.linear import HuberSvm, LogisticRegression, SoftmaxRegression
from ppspeech.models.margin.gaussians import LargeMarginGaussians
from ppspeech.models.margin.loss import MarginLoss

MODELS = {
    "logistic": (LogisticRegression(3), 2),
    "softmax": (SoftmaxRegression(3, 4), 4),
    "svm": (HuberSvm(3, width=0.7), 2),
    "gaussian": (LargeMarginGaussians(3, 3, loss=MarginLoss(0.7)), 3),
    "average": (LargeMarginGaussians(4, 3, loss=MarginLoss(0.7, class_average=True)), 4),
    "mixture": (LargeMarginGaussians(3, 3, components=2, loss=MarginLoss(0.7)), 3),
    "lse": (LargeMarginGaussians(3, 3, components=2, loss=MarginLoss(0.7, "lse")), 3),
    "lse one": (LargeMarginGaussians(4, 3, loss=MarginLoss(0.7, "lse", class_average=True)), 4),
}


def problem(name: str, examples: int = 17) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(5)
    model, classes = MODELS[name]
    x = torch.randn(examples, 3, generator=generator, dtype=torch.double)
    data: tuple[torch.Tensor, ...] = (x, torch.randint(classes, (examples,), generator=generator))
    if isinstance(model, LargeMarginGaussians) and model.components > 1:
        data = (*data, torch.randint(model.components, (examples,), generator=generator))
    return model, data


@pytest.mark.parametrize("name", MODELS)
def test_objective_equals_autograd_through_the_module(name: str) -> None:
    model, data = problem(name)
    generator = torch.Generator().manual_seed(6)
    weights = torch.rand(17, generator=generator, dtype=torch.double)
    size = model.objective(*data, quadratic=1.0).shape
    linear = torch.randn(size, generator=generator, dtype=torch.double)
    objective = model.objective(*data, quadratic=1.7, linear=linear, weights=weights)
    theta = 0.3 * torch.randn(size, generator=generator, dtype=torch.double)
    parameter, tensor = next(iter(model.double().named_parameters()))
    weight = theta.view(tensor.shape).clone().requires_grad_()

    def by_module(weight: torch.Tensor) -> torch.Tensor:
        class Losses(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = model

            def forward(self) -> torch.Tensor:
                return self.model.loss(*data)

        losses = torch.func.functional_call(Losses(), {f"model.{parameter}": weight}, ())
        flat = weight.view(size)
        return losses @ weights + (linear * flat).sum() + 1.7 / 2 * flat.square().sum()

    value, gradient = objective.value_and_gradient(theta)
    expected = by_module(weight)
    (expected_gradient,) = torch.autograd.grad(expected, weight)
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(gradient, expected_gradient.view(size))
    hessian = torch.autograd.functional.hessian(by_module, weight).view(objective.parameters, -1)
    torch.testing.assert_close(objective.hessian(objective.at(theta)), hessian)
    direction = torch.randn(size, generator=generator, dtype=torch.double)
    product = objective.hessian_vector(objective.at(theta), direction)
    torch.testing.assert_close(product.view(-1), hessian @ direction.view(-1))


@pytest.mark.parametrize("name", MODELS)
def test_gradient_is_numerically_right(name: str) -> None:
    model, data = problem(name)
    objective = model.objective(*data, quadratic=0.5)
    theta = 0.2 * torch.randn(objective.shape, dtype=torch.double, generator=torch.Generator().manual_seed(7))

    class Value(torch.autograd.Function):
        @staticmethod
        def forward(theta: torch.Tensor) -> torch.Tensor:
            return objective.value_and_gradient(theta)[0]

        @staticmethod
        def setup_context(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, incoming):  # type: ignore[no-untyped-def]
            return incoming * objective.value_and_gradient(*ctx.saved_tensors)[1]

    assert torch.autograd.gradcheck(Value.apply, (theta.requires_grad_(),), eps=1e-6, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_minimum_is_certified_and_the_same_by_conjugate_gradients(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = problem(name, examples=60)
    objective = model.objective(*data, quadratic=0.8)
    exact = minimize(objective, tolerance=1e-9)
    value, gradient = objective.value_and_gradient(exact.theta)
    certificate = exact.certificate
    assert certificate.converged
    assert certificate.residual == pytest.approx(float(gradient.norm()), abs=1e-12)
    assert certificate.residual <= 1e-9
    assert certificate.objective == pytest.approx(float(value))
    rough = minimize(objective, tolerance=1.0)
    assert float((rough.theta - exact.theta).norm()) <= rough.certificate.distance + 1e-8
    assert rough.certificate.objective - certificate.objective <= rough.certificate.gap + 1e-9
    monkeypatch.setattr(convex, "LARGEST_EXPLICIT", 1)
    iterative = minimize(objective, start=torch.ones(objective.shape), tolerance=1e-7)
    torch.testing.assert_close(iterative.theta, exact.theta, rtol=0, atol=1e-6)


def test_the_linear_term_moves_the_minimum_as_it_must() -> None:
    model, data = problem("softmax")
    linear = torch.full(model.weight.shape, 2.0, dtype=torch.double)
    solution = minimize(model.objective(*data, quadratic=3.0, linear=linear))
    # the losses do not change when all heads move together, so along that direction only the terms act
    torch.testing.assert_close(solution.theta.mean(0), -linear[0] / 3.0)


def test_refusals() -> None:
    model, (x, y) = problem("logistic")
    head, features = model.head(y), model.features(x)
    with pytest.raises(ModelError, match="quadratic"):
        ConvexObjective(head, features, 1, quadratic=0.0)
    with pytest.raises(ModelError, match="shape"):
        ConvexObjective(head, features, 1, 1.0, linear=torch.zeros(2, 2))
    with pytest.raises(ModelError, match="finite"):
        ConvexObjective(head, features * torch.nan, 1, 1.0)
    with pytest.raises(ModelError, match="weights"):
        ConvexObjective(head, features, 1, 1.0, weights=torch.full((17,), -1.0))
    with pytest.raises(ModelError, match="n >= 1"):
        ConvexObjective(head, features[:0], 1, 1.0)
    objective = ConvexObjective(head, features, 1, 1e-3)
    with pytest.raises(ModelError, match="asked for 1e-08 within 1 iterations"):
        minimize(objective, max_iterations=1)
    with pytest.raises(ModelError, match="tolerance"):
        minimize(objective, tolerance=0.0)
