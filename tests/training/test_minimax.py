import math
from typing import Any

import pytest
import pytorch_lightning as lightning
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ppspeech.errors import ModelError
from ppspeech.filters import ClassTask, LinearFilter, TemporalConvolution, learn_filter
from ppspeech.training.minimax import AdversarialSolver, MinimaxFilter, reversed_gradient
from ppspeech.training.module import quiet_lightning
from tests.filters.games import people


class Samples(Dataset[dict[str, Tensor]]):
    def __init__(self, **columns: Tensor) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns["features"])

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {name: values[index] for name, values in self.columns.items()}


def train(module: MinimaxFilter, samples: Samples, epochs: int) -> lightning.Trainer:
    quiet_lightning()
    trainer = lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    loader = DataLoader(samples, batch_size=120, shuffle=True, generator=torch.Generator().manual_seed(0))
    trainer.fit(module, loader, DataLoader(samples, batch_size=500))
    return trainer


def accuracy(features: Tensor, labels: Tensor) -> float:
    features = (features - features.mean(0)) / features.std(0)
    task = ClassTask(labels, int(labels.max()) + 1)
    return float(task.accuracy(task.best_response(features).parameters, features.double(), labels))


@pytest.mark.parametrize("mode", ["steps", "reversal"])
def test_steps_come_near_what_exact_solves_find(mode: str) -> None:
    x, subject, task = people(240, inputs=8)
    x = ((x - x.mean(0)) / x.std(0)).float()
    torch.manual_seed(0)
    module = MinimaxFilter(
        LinearFilter(8, 2),
        {"who": 3},
        {"what": 2},
        rho=3.0,
        mode=mode,  # type: ignore[arg-type]
        learning_rate=1e-2,
        opponent_rate=3e-2,
    )
    trainer = train(module, Samples(features=x, who=subject, what=task), 40)
    filtered = module(x).detach()
    exact = learn_filter(x, subject, task, features=2, rho=3.0).filter(x).detach()
    assert accuracy(filtered, task) > accuracy(exact, task) - 0.05
    assert accuracy(filtered, subject) < accuracy(exact, subject) + 0.1
    assert accuracy(x, subject) > 0.8
    assert set(trainer.callback_metrics) >= {"accuracy/who", "accuracy/what"}
    samples = DataLoader(Samples(features=x, who=subject, what=task), batch_size=500)
    assert set(trainer.test(module, samples, verbose=False)[0]) == {"accuracy/who", "accuracy/what"}


def test_a_recipe_may_solve_by_adversarial_training() -> None:
    x, subject, task = people(240, inputs=8)
    solver = AdversarialSolver(learning_rate=1e-2, opponent_rate=3e-2, batch_size=120, hidden=0)
    found, again = (
        learn_filter(x, subject, task, features=2, rho=3.0, start="random", solver=solver, iterations=40)
        for _ in range(2)
    )
    assert torch.equal(found.filter(x), again.filter(x))
    assert found.solver == "adversarial"
    assert found.history[1] < found.history[0]  # Phi, with exact opponents
    exact = learn_filter(x, subject, task, features=2, rho=3.0).filter(x).detach()
    filtered = found.filter(x).detach()
    assert accuracy(filtered, task) > accuracy(exact, task) - 0.05
    assert accuracy(filtered, subject) < accuracy(exact, subject) + 0.1
    with pytest.raises(ModelError, match="one observation a sample"):
        learn_filter(x.view(60, 4, 8), subject[::4], task[::4], features=2, shape="convolution", solver=solver)


@pytest.mark.parametrize("mode", ["steps", pytest.param("reversal", marks=pytest.mark.slow)])
def test_two_processes_play_the_game_of_one(mode: Any) -> None:
    """Batches of odd sizes, so that one process has more of each; epochs that end in a smaller batch."""
    x, subject, task = people(100, inputs=6)
    one, two = (
        learn_filter(
            *(x, subject, task),
            features=2,
            start="random",
            solver=AdversarialSolver(mode=mode, batch_size=33, devices=devices),
            iterations=2,
        )
        for devices in (1, 2)
    )
    torch.testing.assert_close(two.filter(x), one.filter(x), rtol=1e-4, atol=1e-4)
    assert two.history == pytest.approx(one.history, rel=1e-4)
    with pytest.raises(ModelError, match=r"devices must lie in 1\.\.33"):
        AdversarialSolver(batch_size=33, devices=34)


def test_reversed_gradient() -> None:
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    same = reversed_gradient(x)
    torch.testing.assert_close(same, x)
    (same * torch.tensor([3.0, 5.0])).sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    assert x.grad.tolist() == [-3.0, -5.0]


def test_frames_past_the_end_do_not_count() -> None:
    module = MinimaxFilter(TemporalConvolution(3, 4, 2, kernel=1), {"who": 2}, {"what": 2})
    features = torch.randn(4, 6, 3)
    batch = {
        "features": features,
        "lengths": torch.tensor([6, 3, 1, 2]),
        "who": torch.tensor([0, 1, 0, 1]),
        "what": torch.tensor([0, 0, 1, 1]),
    }
    filtered = module(features)
    losses = module.losses(batch, filtered, filtered)
    spoiled = filtered.clone()
    for row, length in enumerate(batch["lengths"].tolist()):
        spoiled[row, length:] = 1e3
    for name, loss in module.losses(batch, spoiled, spoiled).items():
        torch.testing.assert_close(loss, losses[name])
    rows = torch.cat([filtered[row, :length] for row, length in enumerate(batch["lengths"].tolist())])
    labels = batch["who"].repeat_interleave(batch["lengths"])
    slow = torch.nn.functional.cross_entropy(module.opponents["who"](rows), labels)
    torch.testing.assert_close(losses["who"], slow)


def test_an_adversary_that_lags_gives_the_filter_nothing_to_chase() -> None:
    """Where the adversary does worse than guessing, only the task moves the filter."""
    torch.manual_seed(0)
    x, subject, task = people(60)
    batch = {"features": x.float(), "who": subject, "what": task}
    module = MinimaxFilter(LinearFilter(6, 2), {"who": 3}, {"what": 2})
    with torch.no_grad():
        head = module.opponents["who"].layers[-1]  # type: ignore[union-attr, index]
        head.weight.mul_(100)
    filtered = module(batch["features"])
    losses = module.losses(batch, filtered, filtered)
    assert losses["who"] > math.log(3)
    capped = losses["who"].clamp_max(math.log(3))
    assert torch.autograd.grad(capped, module.filter.weight)[0].eq(0).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mode": "exact"}, "mode must be one of"),
        ({"private": {}}, "at least two classes"),
        ({"task": {"what": 1}}, "at least two classes"),
        ({"task": {"who": 2}}, "hidden and kept at once"),
        ({"rho": 0.0}, "rho > 0"),
        ({"opponent_steps": 0}, "opponent_steps >= 1"),
    ],
)
def test_what_is_refused(change: dict[str, object], message: str) -> None:
    arguments = {"module": LinearFilter(3, 2), "private": {"who": 2}, "task": {"what": 2}}
    with pytest.raises(ModelError, match=message):
        MinimaxFilter(**(arguments | change))  # type: ignore[arg-type]


def test_a_missing_label_is_named() -> None:
    module = MinimaxFilter(LinearFilter(3, 2), {"who": 2}, {"what": 2})
    features = torch.zeros(2, 3)
    with pytest.raises(ModelError, match="no label 'who'; they have features"):
        module.losses({"features": features}, module(features), module(features))
