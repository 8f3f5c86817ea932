import math
from dataclasses import dataclass

import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.filters import (
    KiwielOptions,
    LinearFilter,
    MinimaxProblem,
    SigmoidNetwork,
    TargetTask,
    solve_alternating,
    solve_kiwiel,
)
from ppspeech.filters.problem import FlatFilter
from ppspeech.filters.solvers.alternating import StepMemory
from ppspeech.filters.solvers.joint import Joint, Linearized
from ppspeech.filters.solvers.kiwiel import Piece, descend
from tests.filters.games import game, people

SOLVERS = {"kiwiel": solve_kiwiel, "alternating": solve_alternating}


@dataclass(frozen=True, eq=False)
class Here:
    u: Tensor
    value: Tensor
    v: Tensor


class Saddle:
    """f(u, v) = |u|^2 / 2 + u'Bv - |v|^2 / 2 + b'u + a'v: convex in u, concave in v."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(1)
        self.matrix = torch.randn(4, 3, generator=generator, dtype=torch.float64)
        self.b = torch.randn(4, generator=generator, dtype=torch.float64)
        self.a = torch.randn(3, generator=generator, dtype=torch.float64)

    def _f(self, u: Tensor, v: Tensor) -> Piece:
        value = u @ u / 2 + u @ self.matrix @ v - v @ v / 2 + self.b @ u + self.a @ v
        return Piece(value, u + self.matrix @ v + self.b, torch.zeros(()).double(), torch.zeros_like(u))

    def evaluate(self, u: Tensor, near: Here | None) -> Here:
        v = self.matrix.T @ u + self.a
        return Here(u, self._f(u, v).max_value, v)

    def piece(self, at: Here) -> Piece:
        return self._f(at.u, at.v)

    def linearized(self, at: Here, q: Tensor) -> tuple[Tensor, Piece]:
        piece = self._f(at.u, self.matrix.T @ (at.u + q) + self.a)
        return piece.max_value + piece.max_gradient @ q, piece


class Kink:
    """max over |v| <= 1 of v'(u - b), plus |u|^2 / 2: |u - b| + |u|^2 / 2, with a kink at b."""

    def __init__(self, b: Tensor) -> None:
        self.b = b

    def _f(self, u: Tensor, v: Tensor) -> Piece:
        return Piece(v @ (u - self.b), v, u @ u / 2, u)

    def evaluate(self, u: Tensor, near: Here | None) -> Here:
        v = torch.nn.functional.normalize(u - self.b, dim=0)
        return Here(u, (u - self.b).norm() + u @ u / 2, v)

    def piece(self, at: Here) -> Piece:
        return self._f(at.u, at.v)

    def linearized(self, at: Here, q: Tensor) -> tuple[Tensor, Piece]:
        piece = self._f(at.u, torch.nn.functional.normalize(at.u + q - self.b, dim=0))
        value = (at.u + q - self.b).norm() + piece.min_value + piece.min_gradient @ q
        return value, piece


def test_a_saddle_point_is_found() -> None:
    saddle = Saddle()
    here, descent = descend(saddle, torch.ones(4).double(), 500, KiwielOptions(accuracy=1e-12))
    exact = torch.linalg.solve(
        torch.eye(4).double() + saddle.matrix @ saddle.matrix.T, -(saddle.b + saddle.matrix @ saddle.a)
    )
    torch.testing.assert_close(here.u, exact, atol=1e-5, rtol=0)
    torch.testing.assert_close(here.v, saddle.matrix.T @ exact + saddle.a, atol=1e-4, rtol=0)
    assert descent.converged


@pytest.mark.parametrize(("b", "answer"), [([0.3, -0.4], [0.3, -0.4]), ([3.0, -4.0], [0.6, -0.8])])
def test_kiwiel_stops_at_a_kink_where_gradients_never_vanish(b: list[float], answer: list[float]) -> None:
    function = Kink(torch.tensor(b).double())
    here, descent = descend(function, torch.tensor([2.0, 1.0]).double(), 200, KiwielOptions(accuracy=1e-8))
    torch.testing.assert_close(here.u, torch.tensor(answer).double(), atol=1e-3, rtol=0)
    assert all(later <= earlier for earlier, later in zip(descent.history, descent.history[1:], strict=False))


@pytest.mark.parametrize("name", SOLVERS)
def test_a_game_with_a_known_answer(name: str) -> None:
    """Hide a, keep b, both inputs: the filter must look along b alone, where Phi = -1/2."""
    x = torch.randn(400, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = torch.linalg.qr(x - x.mean(0)).Q * math.sqrt(400)  # exactly uncorrelated
    problem = MinimaxProblem(x, [TargetTask(x[:, :1], 1e-9)], [TargetTask(x[:, 1:], 1e-9)], rho=1.0, ridge=0.0)
    start = LinearFilter.of(torch.tensor([[1.0, 0.3]]))
    found = SOLVERS[name](problem, start, 200)
    assert found.history[-1] == pytest.approx(-0.5, abs=1e-4)
    weight = torch.nn.functional.normalize(found.filter.get_parameter("weight")[0].detach(), dim=0)
    assert abs(float(weight[0])) < 0.02


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("kind", ["linear", "sigmoid"])
def test_phi_never_goes_up(name: str, kind: str) -> None:
    torch.manual_seed(0)
    module = LinearFilter(6, 2) if kind == "linear" else SigmoidNetwork(6, 3, 2)
    problem = game()
    found = SOLVERS[name](problem, module, 15)
    assert all(later <= earlier for earlier, later in zip(found.history, found.history[1:], strict=False))
    assert found.history[-1] < found.history[0] - 0.01
    flat = FlatFilter(module)
    again = problem.evaluate(flat, flat.vector())
    assert float(again.value) == pytest.approx(found.history[-1], abs=1e-9)  # the filter handed back is the last one
    assert found.certificate.gradient_norm == pytest.approx(float(problem.gradient(again).norm()), rel=1e-3)


def test_solvers_agree() -> None:
    problem = game(ridge=1e-1, samples=90, inputs=4)
    ends = {}
    for name, solver in SOLVERS.items():
        torch.manual_seed(3)
        ends[name] = solver(problem, LinearFilter(4, 2), 400)
    for found in ends.values():
        assert found.certificate.converged
        assert found.certificate.inner_residual <= 1e-8
    assert ends["kiwiel"].history[-1] == pytest.approx(ends["alternating"].history[-1], abs=2e-3)


def test_linearized_phi_is_the_seeds_equation() -> None:
    """Phi^l(q) = max_v [f_priv + <grad_u f_priv, q>] + rho min_w [...] against scipy on autograd's derivatives."""
    problem = game(ridge=1e-1)
    torch.manual_seed(0)
    flat = FlatFilter(LinearFilter(6, 2).double())
    joint = Joint(problem, flat)
    here = joint.evaluate(flat.vector(), None)
    q = 0.05 * torch.randn(flat.size, dtype=torch.float64)
    answer = joint.linearized(here, q)
    assert answer is not None

    def slow(task_index: int) -> float:
        task = (problem.private + problem.utility)[task_index]
        start = (here.private + here.utility)[task_index].parameters

        def objective(flat_v: object) -> tuple[float, object]:
            v = torch.tensor(flat_v, dtype=torch.float64).view_as(start).requires_grad_()
            u = here.u.clone().requires_grad_()
            value = task.loss(v, flat(u, problem.inputs))
            total = value + (torch.autograd.grad(value, u, create_graph=True)[0] * q).sum()
            return float(total.detach()), torch.autograd.grad(total, v)[0].flatten().numpy()

        solved = minimize(objective, start.flatten().numpy(), jac=True, method="BFGS", options={"gtol": 1e-9})
        return float(solved.fun)

    ridge = problem.ridge / 2 * here.u.square().sum() + problem.ridge * (here.u * q).sum()
    assert float(answer[0]) == pytest.approx(-slow(0) + problem.rho * slow(1) + float(ridge), abs=1e-8)


def test_linearized_phi_touches_phi_and_its_slope() -> None:
    problem = game(ridge=1e-2)
    flat = FlatFilter(LinearFilter(6, 2).double())
    joint = Joint(problem, flat)
    here = joint.evaluate(flat.vector(), None)
    q = torch.randn(flat.size, dtype=torch.float64)
    slope = float((problem.gradient(here) * q).sum())
    for step in (1e-3, 1e-4):
        answer = joint.linearized(here, step * q)
        assert answer is not None
        assert float(answer[0] - here.value) / step == pytest.approx(slope, rel=0.02, abs=0.05)


def test_a_direction_that_is_too_long_is_refused_and_not_answered_wrongly() -> None:
    problem = game(ridge=1e-6)
    flat = FlatFilter(LinearFilter(6, 2).double())
    here = problem.evaluate(flat, flat.vector())
    response = Linearized(problem.private[0], here.private[0], here.features)
    assert response(torch.zeros_like(here.features)) is not None
    assert response(-100 * here.features) is None


def test_step_memory_finds_the_newton_step_of_a_quadratic() -> None:
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(5, 5, generator=generator, dtype=torch.float64)
    hessian = root @ root.T + torch.eye(5)
    u, memory = torch.ones(5).double(), StepMemory(40)
    for _ in range(60):
        gradient = hessian @ u
        direction = memory.direction(gradient)
        length = -(gradient @ direction) / (direction @ hessian @ direction)
        memory.learn(length * direction, hessian @ (length * direction))
        u = u + length * direction
        if u.norm() < 1e-9:
            break
    assert u.norm() < 1e-9
    assert len(memory) <= 8


def test_step_memory_descends_through_negative_curvature() -> None:
    memory = StepMemory()
    gradient = torch.tensor([1.0, -2.0]).double()
    memory.learn(torch.tensor([1.0, 0.0]).double(), torch.tensor([-3.0, 1.0]).double())
    assert float(gradient @ memory.direction(gradient)) < 0


@pytest.mark.parametrize("change", [{"accuracy": 0}, {"enough": 0.5}, {"quality": 1.0}, {"cuts": 0}, {"halvings": 0}])
def test_options_out_of_range_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(ModelError, match="accuracy > 0"):
        KiwielOptions(**change)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SOLVERS)
def test_no_iterations_are_refused(name: str) -> None:
    with pytest.raises(ModelError, match="iterations must be >= 1"):
        SOLVERS[name](game(), LinearFilter(6, 2), 0)


def test_more_inputs_than_labels_are_refused_by_the_solvers_too() -> None:
    x, _, _ = people(10)
    problem = MinimaxProblem(x, [TargetTask(x[:5, :1])], [TargetTask(x[:, :1])])
    with pytest.raises(ModelError, match="5 labels"):
        solve_kiwiel(problem, LinearFilter(6, 2), 1)


class Tilted(torch.nn.Module):
    """A fixed projection and what is learned on top of it, which begins at zero."""

    def __init__(self) -> None:
        super().__init__()
        self.features = 2
        self.register_buffer("fixed", torch.eye(6)[:, :2])
        self.more = torch.nn.Parameter(torch.zeros(6, 2))

    def forward(self, x: Tensor) -> Tensor:
        return x @ (self.fixed + self.more)


def test_a_filter_whose_parameters_begin_at_zero_still_moves() -> None:
    result = solve_alternating(game(), Tilted(), iterations=3)
    assert result.history[-1] < result.history[0] - 1e-3
