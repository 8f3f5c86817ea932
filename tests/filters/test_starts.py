import numpy as np
import pytest
import scipy.linalg
import torch
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from torch import Tensor, nn

from ppspeech.errors import ModelError
from ppspeech.filters import BASELINES, STARTS, ClassTask, LinearFilter, Scaling, TargetTask
from ppspeech.filters.starts import (
    discriminant_ratio,
    principal_directions,
    private_pls,
    random_directions,
    targets_of,
    without_means,
)
from tests.filters.games import people

Array = NDArray[np.float64]


def same_direction(found: Tensor, expected: Array, tolerance: float = 1e-6) -> None:
    """Rows that are equal but for their length and sign."""
    assert len(found) == len(expected)
    for ours, theirs in zip(found.numpy(), expected, strict=True):
        cosine = ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs)
        assert abs(cosine) == pytest.approx(1, abs=tolerance)


@pytest.fixture
def data() -> tuple[Tensor, Tensor, Tensor]:
    x, subject, task = people(300, inputs=8)
    return x - x.mean(0), targets_of([ClassTask(subject, 3)]), targets_of([ClassTask(task, 2)])


def test_principal_directions_against_scikit_learn(data: tuple[Tensor, Tensor, Tensor]) -> None:
    same_direction(principal_directions(*data, 3), PCA(3).fit(data[0].numpy()).components_)


def test_random_directions_are_orthonormal_and_seeded(data: tuple[Tensor, Tensor, Tensor]) -> None:
    first, again, other = (random_directions(*data, 3, seed) for seed in (1, 1, 2))
    torch.testing.assert_close(first @ first.T, torch.eye(3).double())
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


def slow_private_pls(x: Array, private: Array, task: Array, balance: float) -> Array:
    """The first directions, by a dense eigenproblem in the whole space and deflation of both covariances."""
    size = x.shape[1]
    keep, found = np.eye(size), []
    while True:
        to_task = keep @ (x.T @ (task - task.mean(0)) / len(x))
        to_private = keep @ (x.T @ (private - private.mean(0)) / len(x))
        values, vectors = np.linalg.eigh(to_task @ to_task.T - balance * to_private @ to_private.T)
        if values[-1] < 1e-9 or len(found) == size:
            return np.array(found)
        found.append(vectors[:, -1])
        loadings = x.T @ (x @ np.array(found).T)
        keep = np.eye(size) - loadings @ np.linalg.pinv(loadings)


@pytest.mark.parametrize("balance", [0.1, 1.0])
def test_private_pls_against_a_dense_loop(data: tuple[Tensor, Tensor, Tensor], balance: float) -> None:
    x, private, task = data
    expected = slow_private_pls(x.numpy(), private.numpy(), task.numpy(), balance)
    found = private_pls(x, private, task, 8, balance=balance)
    same_direction(found[: len(expected)], expected[: len(found)], 1e-5)


def test_private_pls_fills_up_with_directions_that_miss_the_secret(data: tuple[Tensor, Tensor, Tensor]) -> None:
    x, private, task = data
    found = private_pls(x, private, task, 6)
    assert found.shape == (6, 8)
    first = len(slow_private_pls(x.numpy(), private.numpy(), task.numpy(), 1.0))
    assert first < 6
    covariance = (x @ found.T).T @ (private - private.mean(0)) / len(x)
    assert covariance[first:].abs().max() < 1e-9
    scores = x @ found.T
    assert (scores[:, first:].T @ scores[:, :first]).abs().max() / len(x) < 1e-8  # orthogonal to earlier loadings


def between(x: Array, labels: Array) -> Array:
    scatter = np.zeros((x.shape[1], x.shape[1]))
    for label in np.unique(labels):
        mean = x[labels == label].mean(0) - x.mean(0)
        scatter += (labels == label).mean() * np.outer(mean, mean)
    return scatter


def test_discriminant_ratio_against_scipy() -> None:
    x, subject, task = people(300, inputs=8)
    x = x - x.mean(0)
    sides = [targets_of([ClassTask(subject, 3)]), targets_of([ClassTask(task, 2)])]
    total = np.cov(x.numpy().T, bias=True)
    total += 1e-2 * np.diag(total).mean() * np.eye(8)
    top = between(x.numpy(), task.numpy()) + 0.05 * total
    bottom = between(x.numpy(), subject.numpy()) + 0.05 * total
    vectors = scipy.linalg.eigh(top, bottom)[1][:, ::-1]
    same_direction(discriminant_ratio(x, *sides, 1, shrink=0.05), vectors[:, :1].T)
    ours = discriminant_ratio(x, *sides, 8, shrink=0.05).numpy()
    ratio = np.einsum("ki,ij,kj->k", ours, top, ours) / np.einsum("ki,ij,kj->k", ours, bottom, ours)
    np.testing.assert_allclose(ratio, scipy.linalg.eigh(top, bottom)[0][::-1], rtol=1e-9)


def test_targets_stand_side_by_side() -> None:
    columns = targets_of([ClassTask(torch.tensor([0, 2]), 3), TargetTask(torch.tensor([[5.0], [6.0]]))])
    assert columns.tolist() == [[1, 0, 0, 5], [0, 0, 1, 6]]


@pytest.mark.parametrize("name", [name for name in BASELINES if name != "none"])
def test_baselines_take_raw_inputs_and_give_features(name: str) -> None:
    x, subject, task = people(200)
    raw = (100 * x + 7).float()
    binary = (subject > 0).long()
    module = BASELINES[name](raw, binary, task, 2)
    assert isinstance(module, LinearFilter)
    assert module.features == 2
    features = module(raw)
    assert features.dtype == torch.float32
    torch.testing.assert_close(features.mean(0), torch.zeros(2), atol=1e-3, rtol=0)
    units = torch.tensor([1, 10, 100, 1, 1, 1.0])
    scaled = BASELINES[name](raw * units, binary, task, 2)(raw * units)
    # the first only: DDD has many second directions that are equally good
    torch.testing.assert_close(scaled[:, 0].abs(), features[:, 0].abs(), atol=1e-2, rtol=0)


def test_no_filter_is_the_identity() -> None:
    x, subject, task = people(10)
    assert isinstance(BASELINES["none"](x, subject, task, 2), nn.Identity)


def test_private_baselines_lose_the_secret_that_pca_keeps() -> None:
    x, secret, task = people(600, inputs=12, subjects=2, seed=2)

    def accuracy(name: str, labels: Tensor) -> float:
        features = BASELINES[name](x, secret, task, 2)(x).detach()
        asked = ClassTask(labels, 2)
        return float(asked.accuracy(asked.best_response(features).parameters, features, labels))

    for name in ("ppls", "ddd"):
        assert accuracy(name, secret) < accuracy("pca", secret) - 0.1
        assert accuracy(name, task) > 0.8


def test_what_is_refused() -> None:
    x, subject, task = people(30)
    with pytest.raises(ModelError, match="binary labels, got 3 private"):
        BASELINES["ddd"](x, subject, task, 2)
    with pytest.raises(ModelError, match="1 <= features <= D"):
        BASELINES["pca"](x, subject, task, 7)
    with pytest.raises(ModelError, match="do not match"):
        BASELINES["pca"](x, subject[:5], task, 2)
    with pytest.raises(ModelError, match="shrink must be > 0"):
        STARTS["plda"](x, x, x, 2, shrink=0)


@pytest.mark.parametrize("start", ["means", "means_by_class"])
def test_nobody_has_a_mean_of_their_own_behind_a_filter_without_means(start: str) -> None:
    """W (mean_p - mean) = 0, and of each class, to 1e-6 of the features' deviation; the task is still there."""
    x, subject, task = people(300, inputs=12, subjects=5)
    raw = x * torch.logspace(-2, 2, 12) + 5  # and people who said little
    raw, subject, task = raw[20:], subject[20:], task[20:]
    scaling = Scaling(raw)
    sides = (targets_of([ClassTask(labels, int(labels.max()) + 1)]) for labels in (subject, task))
    weight = STARTS[start](scaling(raw), *sides, 2)
    out = scaling.undo(LinearFilter.of(weight), raw.dtype)(raw).detach()
    out = out / out.std(0)
    for label in range(2):
        chosen = (task == label) if start == "means_by_class" else torch.ones_like(task, dtype=torch.bool)
        for person in range(5):
            mean = out[chosen & (subject == person)].mean(0) - out[chosen].mean(0)
            assert float(mean.abs().max()) < 1e-6
    apart = (out[task == 1].mean(0) - out[task == 0].mean(0)).abs().max()
    assert apart > 0.5
    with pytest.raises(ModelError, match="directions are left"):
        without_means(scaling(raw), *(targets_of([ClassTask(subject, 5)]), targets_of([ClassTask(task, 2)])), 10)
