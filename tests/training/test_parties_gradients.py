"""Parties whose data differ in kind: sums of gradients reach what averages miss, within their budget."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.evidence.experiments.parties_bounds import PENALTY, descended, minimizer, two_kinds
from ppspeech.evidence.published.parties_bounds import AggregateBounds
from ppspeech.models.linear import HuberSvm, LogisticRegression, SoftmaxRegression
from ppspeech.protocols.sums.joint import JointSum, PlainSum
from ppspeech.training.together.descent import JointDescent, clipped_gradient, descend_jointly_, personalize
from tests.training.joint_parties import examples, together


def test_averages_of_two_kinds_stay_wrong_and_sums_of_gradients_do_not() -> None:
    for records in (50, 500, 5000):
        parts = two_kinds(records)
        pooled = minimizer(torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts]))
        average = torch.stack([minimizer(x, y) for x, y in parts]).mean(0)
        bounds = AggregateBounds(parties=2, smallest=records, penalty=PENALTY, dimension=2)
        assert float((average - pooled).norm()) > max(2.9, bounds.claimed_distance)
        for x, y in parts:
            assert float((minimizer(x, y) - pooled).norm()) <= bounds.distance(0.5)
        assert float((descended(parts) - pooled).norm()) < 1e-6


def test_a_descent_through_the_curator_reaches_the_minimizer_of_all_rows() -> None:
    parts = two_kinds(40)
    pooled = minimizer(torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts]))
    terms = JointDescent(rounds=150, step=2 / 80, clip=1.0, regularization=2 * 80 * PENALTY)

    def program(x: Tensor, y: Tensor) -> Callable[[Any], Tensor]:
        def run(add_up: Any) -> Tensor:
            module = LogisticRegression(2, constant=0.0, dtype=torch.double)
            descend_jointly_(module, PlainSum(add_up, 2.0**-30), x, y, terms)
            return module.weight.detach()[0, :-1]

        return run

    found = together([program(*part) for part in parts], [3] * terms.rounds)
    assert torch.equal(found[0], found[1])
    assert float((found[0] - pooled).norm()) < 1e-3


def test_a_private_descent_keeps_its_budget() -> None:
    parts = two_kinds(4000)
    pooled = minimizer(torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts]))
    module = LogisticRegression(2, constant=0.0, dtype=torch.double)
    terms = JointDescent(rounds=30, step=4 / 8000, clip=1.0, regularization=2 * 8000 * PENALTY, momentum=0.5)
    shares = terms.shares(module, epsilon=1.0, delta=1e-5, parties=2)
    x, y = torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])
    joint = JointSum(lambda steps: steps + shares.share(), shares)  # the other party's share
    descend_jointly_(module, joint, x, y, terms)
    assert 0.9 < joint.guarantee(1e-5).epsilon <= 1.0
    assert float((module.weight.detach()[0, :-1] - pooled).norm()) < 1.0  # the average is 2.9 away
    with pytest.raises(PrivacyError, match="too long"):
        descend_jointly_(module, lambda g: g * math.inf, x, y, terms)


@pytest.mark.parametrize("kind", ["logistic", "softmax", "huber_svm"])
@pytest.mark.parametrize("clip", [0.3, 10.0])
def test_clipped_gradients_against_autograd_one_record_at_a_time(kind: str, clip: float) -> None:
    module: Any = {
        "logistic": LogisticRegression(3, radius=2.0, dtype=torch.double),
        "softmax": SoftmaxRegression(3, 4, dtype=torch.double),
        "huber_svm": HuberSvm(3, dtype=torch.double),
    }[kind]
    x, y = examples(9, classes=4 if kind == "softmax" else 2)
    x = 3 * x
    module.weight.data.normal_(generator=torch.Generator().manual_seed(1))
    expected = torch.zeros_like(module.weight)
    for row in range(9):
        (gradient,) = torch.autograd.grad(module.loss(x[row : row + 1], y[row : row + 1]).sum(), module.weight)
        expected += gradient * min(1.0, clip / max(float(gradient.norm()), 1e-300))
    torch.testing.assert_close(clipped_gradient(module, x, y, clip), expected)


def test_a_speaker_of_many_rows_moves_the_sum_by_no_more_than_the_clip() -> None:
    """Fifty rows that pull one way: clipped one by one they move it fifty times too far, averaged first they do not."""
    module = LogisticRegression(2, dtype=torch.double)
    x, y = torch.tensor([[3.0, 4.0]]).expand(50, 2), torch.ones(50, dtype=torch.int64)
    assert float(clipped_gradient(module, x, y, 0.5).norm()) == pytest.approx(25.0)
    assert float(clipped_gradient(module, x, y, 0.5, torch.zeros(50)).norm()) <= 0.5
    terms = JointDescent(rounds=1, step=0.1, clip=0.5, regularization=1.0, unit="speaker")
    with pytest.raises(PrivacyError, match="give groups, the speaker of every row"):
        descend_jointly_(module, lambda gradient: gradient, x, y, terms)
    seen = []
    descend_jointly_(module, lambda gradient: seen.append(gradient) or gradient, x, y, terms, torch.zeros(50))  # type: ignore[func-returns-value]
    assert float(seen[0].norm()) <= 0.5
    with pytest.raises(PrivacyError, match="one utterance has up to 50 rows"):
        descend_jointly_(module, lambda g: g, x, y, replace(terms, unit="utterance"), torch.zeros(50))


def test_noise_of_other_terms_is_refused() -> None:
    module = LogisticRegression(2, dtype=torch.double)
    x, y = examples(9, classes=2)[0][:, :2], torch.zeros(9, dtype=torch.int64)
    terms = JointDescent(rounds=1, step=0.1, clip=1.0, regularization=1.0)
    for other in (replace(terms, clip=0.5), replace(terms, unit="utterance")):
        shares = other.shares(module, epsilon=1.0, delta=1e-5, parties=2)
        assert shares.relation.unit == other.unit
        with pytest.raises(PrivacyError, match="take the shares that its own terms give"):
            descend_jointly_(module, JointSum(lambda steps: steps, shares), x, y, terms)


def test_a_personal_model_fits_its_own_data_and_stays_near_the_common_one() -> None:
    (x, y), _ = two_kinds(40)
    common = SoftmaxRegression(2, 2, dtype=torch.double)
    common.weight.data.fill_(0.5)
    loose, tight = (personalize(common, x, y, strength) for strength in (0.1, 1e6))
    assert float((tight.weight - common.weight).detach().norm()) < 1e-3
    assert loose.loss(x, y).sum() < common.loss(x, y).sum() / 10
    assert torch.equal(common.weight.detach(), torch.full((2, 3), 0.5, dtype=torch.double))
    for other in (HuberSvm(2, dtype=torch.double), LogisticRegression(2, dtype=torch.double)):
        assert type(personalize(other, x, y, 1.0)) is type(other)


def test_the_last_iterates_are_averaged() -> None:
    (x, y), _ = two_kinds(40)

    def end(rounds: int, averaged: int) -> Tensor:
        module = LogisticRegression(2, constant=0.0, dtype=torch.double)
        terms = JointDescent(rounds=rounds, step=0.02, clip=0.4, regularization=1.0, averaged=averaged)
        descend_jointly_(module, lambda gradient: gradient, x, y, terms)
        return module.weight.detach().clone()

    iterates = [end(rounds, 1) for rounds in (5, 6, 7)]
    torch.testing.assert_close(end(7, 3), torch.stack(iterates).mean(0))
    assert not torch.allclose(end(7, 3), iterates[-1])


@pytest.mark.parametrize(
    "change", [{"rounds": 0}, {"step": -1.0}, {"clip": 0.0}, {"momentum": 1.0}, {"averaged": 0}, {"averaged": 4}]
)
def test_descents_that_cannot_be_are_refused(change: dict[str, Any]) -> None:
    terms: dict[str, Any] = {"rounds": 3, "step": 0.1, "clip": 1.0, "regularization": 1.0}
    with pytest.raises(PrivacyError):
        JointDescent(**(terms | change))


def test_the_seeds_bounds() -> None:
    """Equations 3 and 4 of Pathak, Rane and Raj 2010 are special cases of theorem 4.3."""
    bounds = AggregateBounds(parties=5, smallest=100, penalty=0.5, dimension=7, failure=0.1)
    assert bounds.claimed_excess(1e12) == pytest.approx(16 * 1.5 / (2 * 100**2 * 0.25))
    alone = AggregateBounds(parties=1, smallest=100, penalty=0.5, dimension=7, failure=0.1)
    assert alone.claimed_excess(0.3) == pytest.approx(2 * 49 * 1.5 / (1e4 * 0.09 * 0.25) * math.log(70) ** 2)
    assert alone.claimed_distance == 0
    assert bounds.claimed_true_excess(1.0, 500) > 2 * bounds.claimed_excess(1.0)
    with pytest.raises(PrivacyError):
        AggregateBounds(parties=5, smallest=0, penalty=0.5, dimension=7)
