import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from ppspeech.errors import ModelError
from ppspeech.filters import (
    BASELINES,
    STARTS,
    ClassTask,
    LinearFilter,
    ReconstructionTask,
    Result,
    Standardized,
    learn_filter,
)
from tests.filters.games import people


def score(filter: nn.Module, inputs: Tensor, labels: Tensor) -> float:
    """What a fresh logistic attacker finds on standardized features it was trained on."""
    features = filter(inputs).detach().flatten(0, -2).double()
    features = (features - features.mean(0)) / features.std(0)
    task = ClassTask(labels, int(labels.max()) + 1)
    return float(task.accuracy(task.best_response(features).parameters, features, labels))


@pytest.mark.parametrize("solver", ["alternating", "kiwiel"])
@pytest.mark.parametrize("start", STARTS)
def test_the_task_is_kept_and_the_person_lost(solver: str, start: str) -> None:
    x, subject, task = people(300, inputs=8)
    raw = (x * torch.logspace(-2, 2, 8) + 5).float()
    found = learn_filter(raw, subject, task, features=2, solver=solver, start=start, iterations=60, ridge=1e-4)
    assert isinstance(found, Result)
    assert isinstance(found.filter, LinearFilter)
    assert found.filter.weight.dtype == torch.float32
    assert found.solver == solver
    assert found.history[-1] < found.history[0]
    pca = BASELINES["pca"](raw, subject, task, 2)
    kept, lost = score(found.filter, raw, task), score(found.filter, raw, subject)
    assert kept - lost > score(pca, raw, task) - score(pca, raw, subject) + 0.1
    assert kept > 0.85


@pytest.mark.parametrize("kind", ["sigmoid", "mlp"])
def test_non_linear_filters_are_learned_by_name(kind: str) -> None:
    x, subject, task = people(200)
    found = learn_filter(x, subject, task, features=3, shape=kind, iterations=15, ridge=1e-3)
    assert isinstance(found.filter, Standardized)
    assert found.history[-1] < found.history[0]
    assert score(found.filter, x, task) > 0.85
    again = learn_filter(x, subject, task, features=3, shape=kind, iterations=15, ridge=1e-3)
    assert again.history == pytest.approx(found.history)


def test_frames_share_the_labels_of_their_utterance() -> None:
    x, subject, task = people(30)
    frames = x.unsqueeze(1) + 0.3 * torch.randn(30, 4, 6, generator=torch.Generator().manual_seed(0))
    found = learn_filter(frames, subject, task, features=2, shape="convolution", iterations=5, ridge=1e-2)
    assert found.filter(frames).shape == (30, 4, 2)
    linear = learn_filter(frames, subject, task, features=2, iterations=5, ridge=1e-2)
    assert linear.filter(frames).shape == (30, 4, 2)
    assert linear.history[-1] < linear.history[0]


def test_several_secrets_and_several_tasks() -> None:
    x, subject, task = people(200, inputs=10)
    second = (x[:, 0] > x[:, 0].median()).long()
    tasks = [ClassTask(task, 2, 1e-3), ReconstructionTask(1e-3, importance=0.01)]
    secrets = [ClassTask(subject, 3, 1e-3), ClassTask(second, 2, 1e-3)]
    both, one = (learn_filter(x, hide, tasks, features=3, iterations=40).filter for hide in (secrets, secrets[:1]))
    assert score(both, x, second) < score(one, x, second)
    assert score(both, x, second) < 0.65 < score(BASELINES["pca"](x, subject, task, 3), x, second)
    assert score(both, x, task) > 0.8


def test_a_module_of_your_own() -> None:
    class Squares(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = 2
            self.mix = nn.Linear(6, 2)

        def forward(self, x: Tensor) -> Tensor:
            mixed: Tensor = self.mix(x)
            return mixed + mixed.square()

    x, subject, task = people(120)
    torch.manual_seed(0)
    found = learn_filter(x, subject, task, features=2, shape=Squares(), iterations=5, ridge=1e-2)
    assert found.history[-1] < found.history[0]
    with pytest.raises(ModelError, match="gives 2 features, asked for 3"):
        learn_filter(x, subject, task, features=3, shape=Squares())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"solver": "adam"}, "solver must be one of"),
        ({"start": "zero"}, "start must be one of"),
        ({"shape": "cubic"}, "shape must be linear"),
        ({"features": 7}, "1 to 6 features, got 7"),
        ({"features": 0}, "got 0"),
        ({"rho": -1.0}, "rho must be > 0"),
        ({"private": torch.zeros(3, dtype=torch.int64)}, "30 inputs but 3 private"),
        ({"task": torch.zeros(30)}, "give a TargetTask"),
        ({"inputs": torch.full((30, 6), math.nan)}, "finite"),
        ({"iterations": 0}, "iterations"),
    ],
)
def test_what_is_refused(change: dict[str, object], message: str) -> None:
    x, subject, task = people(30)
    arguments = {"inputs": x, "private": subject, "task": task, "features": 2}
    with pytest.raises(ModelError, match=message):
        learn_filter(**(arguments | change))  # type: ignore[arg-type]


def test_motion_keeps_the_activity_and_loses_the_subject(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hamm 2015 section 5.3 on eight subjects, by an attacker that is retrained and scored on other recordings."""
    from ppspeech.data.tables import load_har

    monkeypatch.setenv("PPSPEECH_DATA", str(data))
    table = load_har()
    assert table.groups is not None
    train, test = table.select(table.groups <= 8).split_by_group(0.5, by="recording")
    assert train.groups is not None
    assert test.groups is not None
    found = learn_filter(train.features, train.groups - 1, train.labels, features=10, iterations=10).filter

    def held_out(filter: nn.Module, labels: Tensor, other: Tensor) -> float:
        features, unseen = filter(train.features).detach(), filter(test.features).detach()
        mean, scale = features.mean(0), features.std(0)
        task = ClassTask(labels, int(labels.max()) + 1)
        answer = task.best_response((features - mean) / scale)
        return float(task.accuracy(answer.parameters, (unseen - mean) / scale, other))

    assert held_out(found, train.labels, test.labels) > 0.88
    assert held_out(found, train.groups - 1, test.groups - 1) < 0.2
    pca = BASELINES["pca"](train.features, train.groups - 1, train.labels, 10)
    assert held_out(pca, train.groups - 1, test.groups - 1) > 0.3
