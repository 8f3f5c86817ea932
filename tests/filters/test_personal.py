"""Personal filters: the loss is the paper's, a turn never makes things worse, and people become hard to tell apart."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.filters.personal import (
    Among,
    Filtered,
    PersonalFilter,
    PersonalSettings,
    improve_,
    improve_all_,
    personal_problem,
    weighted_membership,
    weighted_risks,
    worst_risks,
)
from ppspeech.filters.problem import FlatFilter
from tests.filters.personal_crowd import common_filter, crowd

SETTINGS = PersonalSettings(rho=2.0, steps=2)


def joined(filters: list[PersonalFilter], own: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        features = torch.cat([f(x) for f, (x, _) in zip(filters, own, strict=True)])
    return features, torch.cat([torch.full((len(z),), s) for s, (_, z) in enumerate(own)])


@given(own=st.integers(1, 50), others=st.integers(1, 50))
def test_both_sides_weigh_the_same(own: int, others: int) -> None:
    labels, weights = weighted_membership(own, others)
    assert labels.tolist() == [1] * own + [0] * others
    assert math.isclose(float(weights[:own].sum()), float(weights[own:].sum()))
    if others % own == 0:  # S contributors with as many samples each: eq. 7 says S - 1
        assert float(weights[0]) == others / own


def test_the_problem_is_equation_19() -> None:
    """Phi against the losses written out, sample by sample."""
    own, other, third = crowd(3, 60)
    filter = PersonalFilter(common_filter())
    with torch.no_grad():
        others = Filtered(filter(torch.cat([other[0], third[0]])), torch.cat([other[1], third[1]]))
    problem = personal_problem(*own, others, 2, SETTINGS)
    flat = FlatFilter(Among(filter, others.features))
    found = problem.evaluate(flat, flat.vector())
    rows = torch.cat([filter(own[0]).detach(), others.features])
    task = torch.cat([own[1], others.labels])

    def loss(v: Tensor, labels: list[int], weights: list[float], ridge: float) -> float:
        total = 0.0
        for row, label, weight in zip(rows, labels, weights, strict=True):
            scores = [float(head[:-1] @ row + head[-1]) for head in v]
            total += weight * (math.log(sum(map(math.exp, scores))) - scores[label])
        return total / sum(weights) + ridge / 2 * float(v.square().sum())

    private = loss(found.private[0].parameters, [1] * 20 + [0] * 40, [2.0] * 20 + [1.0] * 40, SETTINGS.private_ridge)
    utility = loss(found.utility[0].parameters, task.tolist(), [1.0] * 60, SETTINGS.task_ridge)
    assert float(found.value) == pytest.approx(-private + SETTINGS.rho * utility, abs=1e-9)


@pytest.mark.parametrize("family", ["shift", "affine"])
def test_turns_never_raise_phi_and_people_become_alike(family: str) -> None:
    own = crowd()
    filters = [PersonalFilter(common_filter(), family) for _ in own]  # type: ignore[arg-type]
    before = weighted_risks(*joined(filters, own), *joined(filters, own)).mean()
    history = improve_(
        filters[0], *own[0], Filtered(joined(filters[1:], own[1:])[0], torch.cat([z for _, z in own[1:]])), 2, SETTINGS
    )
    assert list(history) == sorted(history, reverse=True)
    assert history[-1] < history[0]
    for _ in range(4):
        improve_all_(filters, own, 2, SETTINGS)
    after = weighted_risks(*joined(filters, own), *joined(filters, own)).mean()
    assert before > 0.7
    assert after < 0.6


def test_a_shift_moves_and_does_not_turn() -> None:
    own = crowd()
    filters = [PersonalFilter(common_filter()) for _ in own]
    improve_all_(filters, own, 2, SETTINGS)
    for filter in filters:
        assert torch.equal(filter.turn, torch.eye(3, dtype=torch.float64))
        assert filter.shift.abs().max() > 1e-3
        assert torch.equal(filter.common.weight, common_filter().weight)


def test_merged_is_the_same_filter() -> None:
    own = crowd()
    filters = [PersonalFilter(common_filter(), "affine") for _ in own]
    improve_all_(filters, own, 2, SETTINGS)
    for filter, (x, _) in zip(filters, own, strict=True):
        torch.testing.assert_close(filter.merged()(x), filter(x))


def test_the_weighted_risk_is_balanced_accuracy() -> None:
    """Against scikit-learn's own class weights."""
    own = crowd()
    x, owners = joined([PersonalFilter(common_filter()) for _ in own], own)
    train, test = torch.arange(len(x)) % 2 == 0, torch.arange(len(x)) % 2 == 1
    risks = weighted_risks(x[train], owners[train], x[test], owners[test])
    for subject in range(4):
        judge = LogisticRegression(class_weight="balanced", C=10.0).fit(x[train], owners[train] == subject)
        wanted = balanced_accuracy_score(owners[test] == subject, judge.predict(x[test]))
        assert float(risks[subject]) == pytest.approx(wanted, abs=0.03)
    worst, name = worst_risks(x[train], owners[train], x[test], owners[test], ("logistic", "neighbors"))
    assert name in {"logistic", "neighbors"}
    assert worst.mean() >= risks.mean()


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (lambda: weighted_membership(0, 3), "samples of one's own"),
        (lambda: weighted_membership(3, 0), "of others"),
        (lambda: PersonalSettings(rho=0.0), "rho"),
        (lambda: PersonalSettings(steps=0), "steps >= 1"),
        (lambda: PersonalFilter(common_filter(), "twist"), "family must be"),  # type: ignore[arg-type]
        (lambda: Filtered(torch.zeros(3), torch.zeros(3)), "filtered samples are"),
        (lambda: weighted_risks(*[torch.zeros(2, 2), torch.tensor([0, 1])] * 2, "oracle"), "no attacker"),
        (lambda: weighted_risks(torch.eye(2), torch.arange(2), torch.eye(2), torch.zeros(2)), "contributor 1 has no"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(wrong, word: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ModelError, match=word):
        wrong()
