"""Adversaries with several clips of one person, and the worst of a family of adversaries."""

import pytest
import torch
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.filters import (
    ClassTask,
    Learning,
    LinearFilter,
    MinimaxProblem,
    SetTask,
    draw_sets,
    learn_filter,
    set_family,
    solve_alternating,
    solve_kiwiel,
)
from ppspeech.filters.problem import FlatFilter
from tests.filters.games import people

RIDGE = 1e-1


def adversary(labels: Tensor) -> ClassTask:
    return ClassTask(labels, 3, RIDGE)


def family_game(sharpness: float | None = 5.0) -> tuple[MinimaxProblem, Tensor]:
    x, subject, task = people(90, inputs=4)
    x = (x - x.mean(0)) / x.std(0)
    family = set_family(subject, task, 3, adversary)
    return MinimaxProblem(x, family, [ClassTask(task, 2, RIDGE)], 10.0, RIDGE, sharpness), x


def test_sets_are_of_one_person_and_no_sample_is_in_two() -> None:
    labels = torch.arange(50) % 3
    sets, owners = draw_sets(labels, 4, seed=1)
    assert sets.shape == (12, 4)  # 17, 17 and 16 samples
    assert len(sets.unique()) == sets.numel()
    assert torch.equal(labels[sets], owners.unsqueeze(-1).expand(-1, 4))
    only = torch.arange(50) < 20
    assert int(draw_sets(labels, 2, only=only)[0].max()) < 20
    assert not torch.equal(sets, draw_sets(labels, 4, seed=2)[0])


def test_a_set_is_seen_as_its_mean_and_slopes_go_back_to_its_samples() -> None:
    """Against autograd, with a sample in two sets and one in none."""
    features = torch.randn(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    task = SetTask(ClassTask(torch.tensor([0, 1, 1]), 2, RIDGE), torch.tensor([[0, 1], [2, 3], [3, 4]]), 6)
    means = torch.stack([(features[a] + features[b]) / 2 for a, b in ((0, 1), (2, 3), (3, 4))])
    found, plain = task.best_response(features), task.of.best_response(means)
    torch.testing.assert_close(found.parameters, plain.parameters)
    slopes = torch.autograd.grad(task.loss(found.parameters, features), features)[0]
    by_means = torch.autograd.grad(task.of.loss(found.parameters, leaf := means.detach().requires_grad_()), leaf)[0]
    torch.testing.assert_close(task.sent_back(by_means), slopes)
    assert slopes[5].abs().max() == 0


@pytest.mark.parametrize("sharpness", [None, 0.5, 5.0, 500.0])
def test_the_slope_of_phi_is_exact_with_sets_and_shares(sharpness: float | None) -> None:
    problem, _ = family_game(sharpness)
    flat = FlatFilter(LinearFilter(4, 2).double())
    u = flat.vector()
    gradient = problem.gradient(problem.evaluate(flat, u))
    for direction in torch.randn(3, len(u), dtype=torch.float64, generator=torch.Generator().manual_seed(1)):
        ends = [problem.evaluate(flat, u + step * direction, tolerance=1e-11).value for step in (1e-5, -1e-5)]
        assert float((ends[0] - ends[1]) / 2e-5) == pytest.approx(float(gradient @ direction), rel=1e-4, abs=1e-6)


def test_sharp_shares_are_the_worst_adversary() -> None:
    losses = [torch.tensor(value) for value in (1.0, 0.2, 0.9, 0.8)]
    problem, x = family_game(1000.0)
    assert problem.shares(losses).argmax() == 1
    assert float(problem.found(losses, problem.shares(losses))) == pytest.approx(-0.2, abs=1e-3)
    soft = MinimaxProblem(x, problem.private, problem.utility, sharpness=2.0)
    value = float(soft.found(losses, soft.shares(losses)))
    assert value == pytest.approx(float(torch.logsumexp(-2 * torch.stack(losses), 0)) / 2)


@pytest.mark.parametrize("sharpness", [None, 5.0])
def test_kiwiel_agrees_with_alternating_against_sets(sharpness: float | None) -> None:
    """Both end where the other does, and Phi never goes up on the way."""
    problem, _ = family_game(sharpness)
    torch.manual_seed(0)
    start = LinearFilter(4, 2).weight.detach().double()
    found = [
        solve_kiwiel(problem, LinearFilter.of(start), 200),
        solve_alternating(problem, LinearFilter.of(start), 200),
    ]
    for result in found:
        assert result.certificate.converged
        assert all(after <= before for before, after in zip(result.history, result.history[1:], strict=False))
        assert result.history[-1] < result.history[0] - 0.1
    assert found[0].history[-1] == pytest.approx(found[1].history[-1], abs=2e-3)


def test_a_filter_learned_against_sets_leaves_less_to_whoever_adds_up() -> None:
    """The exact best response on means of ten clips, behind filters learned against one clip and against the family."""
    x, subject, task = people(300, inputs=8)
    sets, owners = draw_sets(subject, 10)
    watcher, losses = SetTask(adversary(owners), sets, 300), []
    for clips in (1, 10):
        learning = Learning(rho=0.3, iterations=10, private_ridge=RIDGE, start="random", clips=clips)
        filter = learning.fit(x, subject, task, 2, seed=0).filter
        features = filter(x).detach()
        losses.append(float(watcher.best_response(features / features.std(0)).loss))
    assert losses[1] >= losses[0] - 1e-3


def test_sets_that_do_not_fit_are_refused() -> None:
    labels = torch.arange(6) % 2
    with pytest.raises(ModelError, match="ask for fewer clips"):
        draw_sets(labels, 4)
    with pytest.raises(ModelError, match="for each of 6 labels"):
        SetTask(ClassTask(labels, 2), torch.zeros(3, 2).long(), 6)
    with pytest.raises(ModelError, match=r"0\.\.4"):
        SetTask(ClassTask(labels, 2), torch.arange(6).unsqueeze(-1), 5)
    only = SetTask(ClassTask(labels, 2), torch.arange(6).unsqueeze(-1), 6)
    with pytest.raises(ModelError, match="look at sets"):
        learn_filter(torch.randn(6, 3), only, labels, features=1)
    with pytest.raises(ModelError, match="sharpness"):
        MinimaxProblem(torch.randn(6, 3), [only], [only], sharpness=0.0)
