"""The filter of the faces experiment on made-up data: against an outside solver, and how its settings are chosen."""

import numpy as np
import pytest
import torch
from scipy.optimize import LinearConstraint, minimize
from torch import Tensor

from ppspeech.evidence.experiments.minimax_genki import Smooth, choose, chosen_ddd, smooth_filter, smooth_start
from ppspeech.filters.modules import LinearFilter, Scaling


def made_up(samples: int = 400) -> tuple[Tensor, Tensor, Tensor]:
    """Twelve mixed inputs; four tell the task, four the secret, and two of these tell both."""
    generator = torch.Generator().manual_seed(3)
    private, task = torch.arange(samples) % 2, torch.arange(samples) // 2 % 2
    x = torch.randn(samples, 12, generator=generator)
    x[:, :4] += 0.8 * task.unsqueeze(-1)
    x[:, 2:6] += 0.8 * private.unsqueeze(-1)
    return x @ torch.randn(12, 12, generator=generator), private, task


def difference(x: Tensor, labels: Tensor) -> Tensor:
    return x[labels == 1].mean(0) - x[labels == 0].mean(0)


def test_the_first_feature_solves_the_constrained_problem() -> None:
    inputs, private, task = made_up()
    x = Scaling(inputs)(inputs)
    smooth = (x.mT @ x / len(x) + 0.1 * torch.eye(12)).numpy()
    wanted, hidden = difference(x, task).numpy(), difference(x, private).numpy()
    found = minimize(
        lambda w: w @ smooth @ w / 2 - w @ wanted, np.zeros(12), jac=lambda w: smooth @ w - wanted, method="SLSQP",
        constraints=LinearConstraint(hidden[None], 0, 0), options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert found.success
    direction = smooth_start(x, private, task, 0.1, 1)[0].numpy()
    cosine = direction @ found.x / np.linalg.norm(direction) / np.linalg.norm(found.x)
    assert cosine == pytest.approx(1, abs=1e-6)


def test_no_feature_tells_the_secret_and_further_ones_change_nothing_for_the_task() -> None:
    inputs, private, task = made_up()
    x = Scaling(inputs)(inputs)
    weight = smooth_start(x, private, task, 0.1, 6)
    features = x @ weight.mT
    assert features.std(0, correction=0) == pytest.approx(1, abs=1e-6)
    assert difference(features, private).abs().max() < 1e-9
    assert torch.linalg.matrix_rank(weight) == 6
    assert difference(features, task)[0] > 0.5
    assert (features[:, 1:].mT @ features[:, 0]).abs().max() / len(x) < 1e-9


@pytest.mark.parametrize("iterations", [0, 2])
def test_a_filter_takes_raw_inputs(iterations: int) -> None:
    inputs, private, task = made_up()
    filter = smooth_filter(inputs, private, task, Smooth(0.1, iterations), 3)
    assert isinstance(filter, LinearFilter)
    with torch.no_grad():
        features = filter(inputs)
    assert features.shape == (400, 3)
    assert features.dtype == inputs.dtype
    # The solver gives up a little of what it hides for the task; the inputs tell either equally well.
    assert difference(features, private).norm() < difference(features, task).norm() / 4


def test_the_better_setting_is_chosen_on_the_training_part_and_of_equals_the_first() -> None:
    inputs, private, task = made_up()

    def learn(inputs: Tensor, private: Tensor, task: Tensor, setting: str) -> LinearFilter:
        wanted = {"task": task, "task again": task, "secret": private}[setting]
        return LinearFilter.of(difference(inputs, wanted).unsqueeze(0))

    assert choose(learn, ["secret", "task", "task again"], inputs, private, task, seed=0) == "task"


def test_the_baseline_may_choose_its_dimension() -> None:
    inputs, private, task = made_up()
    filter = chosen_ddd(inputs, private, task, 4, 0)
    assert isinstance(filter, LinearFilter)
    assert filter.features in {1, 4}
