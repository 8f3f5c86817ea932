import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.filters import ClassTask, ReconstructionTask, TargetTask, tasks
from ppspeech.filters.tasks import Task, augment
from ppspeech.models import convex
from tests.filters.games import people


def class_loss(v: Tensor, features: Tensor, task: ClassTask) -> float:
    """The definition, one sample at a time."""
    weights = torch.ones(len(features)) if task.weights is None else task.weights
    total = 0.0
    for row, label, weight in zip(features, task.labels, weights, strict=True):
        scores = v[:, :-1] @ row + v[:, -1]
        total += float(weight) * float(scores.logsumexp(0) - scores[label])
    return total / float(weights.sum()) + task.ridge / 2 * float(v.square().sum())


def test_the_loss_is_the_one_defined() -> None:
    x, subject, _ = people(30)
    weights = torch.rand(30, dtype=torch.float64)
    v = torch.randn(3, 7, dtype=torch.float64)
    for task in (ClassTask(subject, 3, 0.1), ClassTask(subject, 3, 0.1, weights)):
        assert float(task.loss(v, x)) == pytest.approx(class_loss(v, x, task))
    targets = torch.randn(30, 2, dtype=torch.float64)
    errors = targets - x @ v[:2, :-1].T - v[:2, -1]
    slow = sum(float(e.square()) for e in errors.flatten()) / 60 / 2 + 0.05 * float(v[:2].square().sum())
    assert float(TargetTask(targets, 0.1).loss(v[:2], x)) == pytest.approx(slow)


def test_best_response_agrees_with_scikit_learn() -> None:
    x, subject, _ = people()
    ridge = 1e-2
    found = ClassTask(subject, 3, ridge).best_response(x)
    # scikit-learn leaves its intercept out of the penalty: a constant column takes its place
    peer = LogisticRegression(C=1 / (ridge * len(x)), fit_intercept=False, tol=1e-10, max_iter=10_000)
    peer.fit(augment(x).numpy(), subject.numpy())
    np.testing.assert_allclose(found.parameters.numpy(), peer.coef_, atol=1e-5)
    assert found.certificate.residual <= 1e-8
    assert float(found.loss) == pytest.approx(float(ClassTask(subject, 3, ridge).loss(found.parameters, x)))


def test_least_squares_agrees_with_scikit_learn() -> None:
    x, _, _ = people()
    targets = torch.randn(len(x), 2, dtype=torch.float64)
    found = TargetTask(targets, 1e-2).best_response(x)
    peer = Ridge(alpha=1e-2 * targets.numel(), fit_intercept=False).fit(augment(x).numpy(), targets.numpy())
    np.testing.assert_allclose(found.parameters.numpy(), peer.coef_, atol=1e-9)


def test_two_classes_are_the_binary_logistic_loss() -> None:
    """Two heads v0, v1 under ridge r are one head v1 - v0 under ridge r / 2."""
    x, _, label = people()
    found = ClassTask(label, 2, 2e-2).best_response(x)
    one = found.parameters[1] - found.parameters[0]
    peer = LogisticRegression(C=1 / (1e-2 * len(x)), fit_intercept=False, tol=1e-10, max_iter=10_000)
    peer.fit(augment(x).numpy(), label.numpy())
    np.testing.assert_allclose(one.numpy(), peer.coef_[0], atol=1e-5)
    signs = 2 * label - 1
    binary = torch.nn.functional.softplus(-signs * (augment(x) @ one)).mean() + 1e-2 / 2 * one.square().sum()
    assert float(found.loss) == pytest.approx(float(binary))


def test_weighted_binary_loss_is_repetition_and_balances_chance() -> None:
    """Hamm 2015 eq. (7): with S - 1 for the subject's own samples, guessing costs ln 2 and is right half the time."""
    x, subject, _ = people(60)
    own = (subject == 0).long()
    weights = torch.where(own == 1, 2.0, 1.0).double()
    weighted = ClassTask(own, 2, 1e-3, weights)
    repeated = torch.cat([torch.arange(60), torch.nonzero(own).squeeze(-1)])
    found, slow = weighted.best_response(x), ClassTask(own[repeated], 2, 1e-3).best_response(x[repeated])
    torch.testing.assert_close(found.parameters, slow.parameters, atol=1e-7, rtol=0)
    blind = weighted.best_response(torch.zeros(60, 1, dtype=torch.float64))
    assert float(blind.loss) == pytest.approx(math.log(2), abs=1e-6)
    always = torch.tensor([[0.0, 1.0], [0.0, 0.0]], dtype=torch.float64)
    assert float(weighted.accuracy(always, torch.zeros(60, 1).double(), own, weights)) == pytest.approx(0.5)
    assert float(weighted.accuracy(always, torch.zeros(60, 1).double(), own)) == pytest.approx(2 / 3)


@pytest.mark.parametrize("kind", ["classes", "targets"])
def test_a_start_changes_the_work_and_not_the_answer(kind: str) -> None:
    x, subject, _ = people()
    task: Task = ClassTask(subject, 3, 1e-4) if kind == "classes" else TargetTask(x[:, :2].sin(), 1e-4)
    cold = task.best_response(x)
    warm = task.best_response(x, cold.parameters + 1e-3)
    torch.testing.assert_close(cold.parameters, warm.parameters, atol=1e-5, rtol=0)
    assert warm.certificate.iterations <= cold.certificate.iterations


@pytest.mark.parametrize("kind", ["classes", "targets"])
def test_newton_solves_with_the_hessian(kind: str) -> None:
    x, subject, _ = people(40)
    task: Task = ClassTask(subject, 3, 1e-2) if kind == "classes" else TargetTask(x[:, :3].sin(), 1e-2)
    v = torch.randn(3, 7, dtype=torch.float64)
    hessian = torch.autograd.functional.hessian(lambda flat: task.loss(flat.view(3, 7), x), v.flatten())
    right = torch.randn(3, 7, dtype=torch.float64)
    slow = torch.linalg.solve(hessian, right.flatten()).view(3, 7)
    torch.testing.assert_close(task.newton(v, x)(right), slow)


@pytest.mark.parametrize("moved", [1e-3, 1e-1, 10.0])
def test_a_borrowed_hessian_gives_the_same_response(moved: float) -> None:
    """However far the features move: where the old Hessian is of no use a new one is made."""
    x, subject, _ = people()
    task = ClassTask(subject, 3, 1e-5)
    near = task.best_response(x)
    there = x + moved * torch.randn(x.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    borrowed, cold = task.best_response(there, near, 1e-9), task.best_response(there, tolerance=1e-9)
    torch.testing.assert_close(borrowed.parameters, cold.parameters, atol=2e-4, rtol=0)  # 2 x 1e-9 / ridge
    assert float(borrowed.loss) == pytest.approx(float(cold.loss), abs=1e-12)
    assert borrowed.certificate.residual <= 1e-9
    assert moved > 0.1 or borrowed.certificate.iterations < cold.certificate.iterations
    assert (borrowed.newton is near.newton) == (moved < 0.1)


def test_a_large_hessian_is_never_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    x, subject, _ = people(60)
    small = ClassTask(subject, 3, 1e-2).best_response(x)
    monkeypatch.setattr(tasks, "LARGEST_EXPLICIT", 5)
    monkeypatch.setattr(convex, "LARGEST_EXPLICIT", 5)
    monkeypatch.setattr(tasks, "softmax_hessian", None)
    large = ClassTask(subject, 3, 1e-2).best_response(x, small)
    torch.testing.assert_close(large.parameters, small.parameters, atol=1e-6, rtol=0)
    assert large.newton is None


@given(st.integers(1, 40), st.integers(1, 4), st.integers(2, 5), st.integers(1, 1 << 10))
def test_the_hessian_is_that_of_autograd_however_it_is_cut(rows: int, width: int, classes: int, chunk: int) -> None:
    generator = torch.Generator().manual_seed(rows)
    x = torch.randn(rows, width, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, classes, (rows,), generator=generator)
    task = ClassTask(labels, classes, 0.1, torch.rand(rows, generator=generator, dtype=torch.float64) + 0.1)
    v = torch.randn(classes, width + 1, generator=generator, dtype=torch.float64)
    slow = torch.autograd.functional.hessian(lambda flat: task.loss(flat.view_as(v), x), v.flatten())
    objective = task.objective(x)
    assert objective.weights is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "CHUNK", chunk)
        shares = (objective.features @ v.mT).softmax(-1)
        fast = tasks.softmax_hessian(objective.features, shares, objective.weights, 0.1)
    torch.testing.assert_close(fast, slow)


def test_a_tolerance_that_rounding_forbids_is_refused() -> None:
    x, subject, _ = people(60)
    with pytest.raises(ModelError, match="gradient norm"):
        ClassTask(subject, 3, 1e-3).best_response(x, tolerance=1e-30)
    with pytest.raises(ModelError, match="tolerance must be > 0"):
        ClassTask(subject, 3, 1e-3).best_response(x, tolerance=0.0)


def test_features_that_drown_the_ridge_are_refused() -> None:
    x, subject, _ = people(60)
    with pytest.raises(ModelError, match="scale the features"):
        ClassTask(subject, 3, 1e-9).best_response(1e9 * x)


def test_accuracy_of_targets_is_the_explained_variance() -> None:
    x, _, _ = people()
    task = TargetTask(x[:, :2], 1e-9)
    found = task.best_response(x[:, :3])
    assert float(task.accuracy(found.parameters, x[:, :3], x[:, :2])) == pytest.approx(1, abs=1e-6)
    mean = torch.cat([torch.zeros(2, 3).double(), x[:, :2].mean(0).unsqueeze(-1)], dim=1)
    assert float(task.accuracy(mean, x[:, :3], x[:, :2])) == pytest.approx(0, abs=1e-12)


def test_reconstruction_is_the_inputs_themselves() -> None:
    x, _, _ = people()
    whole = ReconstructionTask(1e-9).bound(x).best_response(x)
    part = ReconstructionTask(1e-9).bound(x).best_response(x[:, :5])
    assert float(whole.loss) < 1e-6 < float(part.loss)
    assert ReconstructionTask().bound(torch.zeros(4, 5, 3)).rows == 20


def test_losses_compile_without_leaving_the_device() -> None:
    x, subject, _ = people(40)
    v = torch.zeros(3, 7, dtype=torch.float64)
    task = ClassTask(subject, 3, weights=torch.ones(40))
    compiled = torch.compile(task.loss, fullgraph=True, backend="eager")(v, x)
    assert float(compiled) == pytest.approx(math.log(3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ClassTask(torch.tensor([0, 3]), 3), "0..3 and 3 classes"),
        (lambda: ClassTask(torch.tensor([0, -1]), 3), "-1..0"),
        (lambda: ClassTask(torch.tensor([0.0, 1.0]), 2), "integers"),
        (lambda: ClassTask(torch.tensor([], dtype=torch.int64), 2), "n >= 1"),
        (lambda: ClassTask(torch.tensor([0, 0]), 1), "1 classes"),
        (lambda: ClassTask(torch.tensor([0, 1]), 2, ridge=0), "ridge"),
        (lambda: ClassTask(torch.tensor([0, 1]), 2, weights=torch.tensor([1.0, -1.0])), "weights"),
        (lambda: ClassTask(torch.tensor([0, 1]), 2, weights=torch.zeros(2)), "weights"),
        (lambda: ClassTask(torch.tensor([0, 1]), 2, importance=0), "importance"),
        (lambda: TargetTask(torch.zeros(3)), "shape"),
        (lambda: TargetTask(torch.zeros(3, 1, dtype=torch.int64)), "real numbers"),
        (lambda: TargetTask(torch.full((3, 1), math.nan)), "finite"),
        (lambda: ClassTask(torch.tensor([0, 1]), 2).best_response(torch.full((2, 1), math.inf)), "finite"),
    ],
)
def test_what_is_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ModelError, match=message):
        make()
