import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from ppspeech.errors import ModelError
from ppspeech.filters import (
    ClassTask,
    LinearFilter,
    MinimaxProblem,
    Mlp,
    ReconstructionTask,
    SigmoidNetwork,
    TargetTask,
    TemporalConvolution,
)
from ppspeech.filters.problem import FlatFilter
from tests.filters.games import game, people


def slope_along(problem: MinimaxProblem, flat: FlatFilter, u: Tensor, q: Tensor, step: float = 1e-4) -> float:
    ahead, behind = (problem.evaluate(flat, u + sign * step * q, tolerance=1e-10).value for sign in (1, -1))
    return float((ahead - behind) / (2 * step))


FILTERS: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: LinearFilter(6, 2),
    "sigmoid": lambda: SigmoidNetwork(6, 3, 2),
    "mlp": lambda: Mlp(6, [4], 2),
}


@pytest.mark.parametrize("name", FILTERS)
def test_gradient_of_phi_against_finite_differences(name: str) -> None:
    torch.manual_seed(0)  # rectified units have no slope at 0: other draws may come too near
    x, subject, task = people(90)
    problem = MinimaxProblem(
        x,
        [ClassTask(subject, 3, 1e-2, torch.rand(90), importance=0.5), TargetTask(x[:, :1].sin(), 1e-2)],
        [ClassTask(task, 2, 1e-2), ReconstructionTask(1e-2, importance=2.0)],
        rho=3.0,
        ridge=0.1,
    )
    flat = FlatFilter(FILTERS[name]().double())
    u = flat.vector()
    gradient = problem.gradient(problem.evaluate(flat, u, tolerance=1e-10))
    for _ in range(3):
        q = torch.randn_like(u)
        assert float((gradient * q).sum()) == pytest.approx(slope_along(problem, flat, u, q), rel=1e-4, abs=1e-6)


def test_gradient_of_a_filter_on_frames() -> None:
    torch.manual_seed(0)
    x = torch.randn(12, 5, 4, dtype=torch.float64)
    subject, task = torch.arange(12) % 3, torch.arange(12) % 2
    private = ClassTask(subject.repeat_interleave(5), 3, 1e-2)
    problem = MinimaxProblem(x, [private], [ClassTask(task.repeat_interleave(5), 2, 1e-2)])
    flat = FlatFilter(TemporalConvolution(4, 3, 2, kernel=3).double())
    u = flat.vector()
    q = torch.randn_like(u)
    gradient = problem.gradient(problem.evaluate(flat, u, tolerance=1e-10))
    assert float((gradient * q).sum()) == pytest.approx(slope_along(problem, flat, u, q), rel=1e-4)


def test_signs_are_those_of_the_seed() -> None:
    """Phi = -(adversary's least loss) + rho (aggregator's least loss), with the ridge on u beside it."""
    problem = game(rho=3.0, ridge=1e-3)
    flat = FlatFilter(LinearFilter(6, 2).double())
    at = problem.evaluate(flat, flat.vector())
    private = problem.private[0].best_response(at.features).loss
    utility = problem.utility[0].best_response(at.features).loss
    assert float(at.value) == pytest.approx(float(-private + 3 * utility + 1e-3 / 2 * at.u.square().sum()))


def test_a_filter_that_drops_the_secret_is_better_and_a_constant_one_is_not() -> None:
    x = torch.randn(200, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    problem = MinimaxProblem(x, [ClassTask((x[:, 0] > 0).long(), 2)], [ClassTask((x[:, 1] > 0).long(), 2)], rho=1.0)
    flat = FlatFilter(LinearFilter(2, 1).double())
    keeps_task, keeps_secret, constant = (
        float(problem.evaluate(flat, torch.tensor(u, dtype=torch.float64)).value)
        for u in ([0.0, 1.0], [1.0, 0.0], [0.0, 0.0])
    )
    assert keeps_task < constant < keeps_secret
    assert constant == pytest.approx(0, abs=1e-2)  # -ln 2 + rho ln 2, but for how unbalanced the labels are
    assert keeps_task == pytest.approx(-math.log(2), abs=0.05)


def test_rho_and_importance_weigh_the_task() -> None:
    flat = FlatFilter(LinearFilter(6, 2).double())
    u = flat.vector()
    x, subject, task = people()
    double = MinimaxProblem(x, [ClassTask(subject, 3)], [ClassTask(task, 2, importance=2.0)], rho=3.0)
    plain = MinimaxProblem(x, [ClassTask(subject, 3)], [ClassTask(task, 2)], rho=6.0)
    assert float(double.evaluate(flat, u).value) == pytest.approx(float(plain.evaluate(flat, u).value))


def test_starting_near_changes_nothing_but_the_work() -> None:
    problem = game()
    flat = FlatFilter(LinearFilter(6, 2).double())
    u = flat.vector()
    near = problem.evaluate(flat, u + 1e-3)
    cold, warm = problem.evaluate(flat, u), problem.evaluate(flat, u, near)
    assert float(cold.value) == pytest.approx(float(warm.value), abs=1e-12)
    assert warm.private[0].certificate.iterations < cold.private[0].certificate.iterations
    assert warm.residual <= 1e-8


def test_frozen_parameters_stay() -> None:
    module = LinearFilter(6, 2)
    flat = FlatFilter(module)
    assert flat.size == 12
    flat.load_(torch.ones(12))
    assert module.weight.eq(1).all()
    assert module.bias.eq(0).all()
    with pytest.raises(ModelError, match="nothing to learn"):
        FlatFilter(nn.Identity())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"private": []}, "at least one private"),
        ({"utility": []}, "constant filter"),
        ({"rho": 0.0}, "rho"),
        ({"ridge": -1.0}, "ridge"),
        ({"inputs": torch.full((2, 2), math.nan)}, "finite"),
        ({"inputs": torch.zeros(3)}, "shape"),
    ],
)
def test_what_is_refused(change: dict[str, object], message: str) -> None:
    tasks = [ClassTask(torch.tensor([0, 1]), 2)]
    arguments = {"inputs": torch.zeros(2, 2), "private": tasks, "utility": tasks, "rho": 1.0, "ridge": 0.0}
    with pytest.raises(ModelError, match=message):
        MinimaxProblem(**(arguments | change))  # type: ignore[arg-type]


def test_labels_for_another_number_of_samples_are_refused() -> None:
    x, subject, task = people(12)
    problem = MinimaxProblem(x, [ClassTask(subject[:9], 3, name="who")], [ClassTask(task, 2)])
    flat = FlatFilter(LinearFilter(6, 2).double())
    with pytest.raises(ModelError, match="'who' has 9 labels, the filter gives 12"):
        problem.evaluate(flat, flat.vector())
