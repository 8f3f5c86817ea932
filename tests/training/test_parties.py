"""Parties who train together: sensitivities that hold, models near the central ones, and what averaging cannot do."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from ppspeech.bundle import load_bundle
from ppspeech.errors import ModelError, PpspeechError, PrivacyError, RangeError
from ppspeech.privacy import Accountant, Relation
from ppspeech.training.together.average import JointTraining, local_minimizer, train_jointly
from ppspeech.training.together.group import as_plain, observed, terms_of, write_plain
from tests.training.joint_parties import PRIVATE, PUBLIC, SIZES, examples, together


@pytest.mark.parametrize("model", ["logistic", "softmax", "huber_svm", "large_margin"])
@pytest.mark.parametrize("terms", [PUBLIC, PRIVATE])
def test_no_record_moves_the_average_by_more_than_is_stated(model: Any, terms: dict[str, Any]) -> None:
    """Unequal sizes; the record of each party in turn is replaced (or removed) by the worst of several others."""
    classes = 2 if model in ("logistic", "huber_svm") else 3
    training = JointTraining(**(terms | {"model": model, "classes": classes}))
    largest = 0.0
    for place, size in enumerate(SIZES):
        # Rows that agree leave the objective as flat as it gets, so that one record moves it furthest.
        x, y = torch.zeros(size, 3, dtype=torch.double), torch.arange(size) % classes
        x[0], y[0] = torch.tensor([1.0, 0.0, 0.0]), 1
        before = training.weight(place) * local_minimizer(training, x, y, place)
        for other in range(2 * classes):
            changed, labels = x.clone(), y.clone()
            changed[0] = torch.tensor([(-1.0) ** other, 0.0, 0.0])
            labels[0] = other // 2
            if training.adjacency == "add_remove":
                changed, labels = changed[1:], labels[1:]
            after = training.weight(place) * local_minimizer(training, changed, labels, place)
            largest = max(largest, float((before - after).norm()))
    assert largest <= training.sensitivity
    assert largest > 0.2 * training.sensitivity  # a bound too loose by far, or a missing weight, would show


def test_public_sizes_cost_what_central_training_costs() -> None:
    uneven = JointTraining(**PUBLIC)
    even = JointTraining(**(PUBLIC | {"sizes": (60, 65)}))
    assert uneven.sensitivity == pytest.approx(even.sensitivity)
    gradient = math.sqrt(2)  # of radius 1 and constant 1
    assert uneven.sensitivity == pytest.approx(gradient / (sum(SIZES) * 0.05), rel=1e-5)
    assert (uneven.adjacency, JointTraining(**PRIVATE).adjacency) == ("replace", "add_remove")


@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_all_parties_hold_the_same_private_model(delta: float) -> None:
    training = JointTraining(**(PUBLIC | {"epsilon": 5.0, "delta": delta}))
    rows = [examples(size, seed=place) for place, size in enumerate(SIZES)]
    fits = together(
        [
            lambda add_up, place=place, own=own: train_jointly(training, add_up, *own, place)
            for place, own in enumerate(rows)
        ],
        [training.dimension],
    )
    average = sum(training.weight(place) * local_minimizer(training, *own, place) for place, own in enumerate(rows))
    for found in fits:
        assert torch.equal(found.theta, fits[0].theta)
        assert torch.equal(found.module.weight.detach(), found.theta)
        assert found.guarantee.epsilon <= 5.0
        assert found.guarantee.kind == ("approximate" if delta else "pure")
        assert found.guarantee.float_safe
        assert found.account.epsilon(delta) == pytest.approx(found.guarantee.epsilon)
    distance = float((fits[0].theta - average).abs().max())
    assert 0 < distance < 40 * training.sensitivity


def test_speakers_count_once_however_much_they_say() -> None:
    training = JointTraining(**(PUBLIC | {"unit": "speaker", "sizes": (2, 3, 2)}))
    x, y = examples(30)
    groups = torch.tensor([0] * 29 + [1])
    theta = local_minimizer(training, x, y, 0, groups)
    doubled = torch.cat([x[:29], x[:29], x[29:]]), torch.cat([y[:29], y[:29], y[29:]])
    again = local_minimizer(training, *doubled, 0, torch.tensor([0] * 58 + [1]))
    torch.testing.assert_close(theta, again, rtol=1e-4, atol=1e-6)
    with pytest.raises(PrivacyError, match="groups"):
        local_minimizer(training, x, y, 0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sizes": None}, "give sizes, and maybe a penalty"),
        ({"regularization": 1.0}, "penalty belongs"),
        ({"parties": 3, "regularization": 1.0}, "and not both"),
        ({"sizes": (3, 0)}, "size"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"radius": -1.0}, "radius"),
        ({"classes": 3}, "two classes"),
        ({"model": "forest"}, "model must be"),
        ({"unit": "party"}, "unit"),
        ({"penalty": -0.1}, "penalty"),
    ],
)
def test_terms_that_cannot_hold_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises((PrivacyError, ModelError), match=said):
        JointTraining(**(PUBLIC | change))


def test_a_party_cannot_lie_about_its_size() -> None:
    training = JointTraining(**PUBLIC)
    with pytest.raises(PrivacyError, match="the terms say 20 units for party 0, but there are 21"):
        local_minimizer(training, *examples(21), 0)
    with pytest.raises(PrivacyError, match="numbered from 0"):
        local_minimizer(training, *examples(20), 3)


def test_terms_of_a_group() -> None:
    plain = PUBLIC | {"sizes": list(SIZES)}
    assert terms_of("train_average", plain) == JointTraining(**PUBLIC)
    with pytest.raises(PpspeechError, match="color"):
        terms_of("train_average", plain | {"color": 1})
    with pytest.raises(PrivacyError, match="for 2 parties, the group has 3"):
        terms_of("train_average", plain | {"sizes": [1, 2]}).check(3)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[1.0, 2.0, 0.0]], "3 finite numbers and a whole class"),
        ([[1.0, 2.0, float("nan"), 0.0]], "finite"),
        ([[1.0, 2.0, 3.0, 0.5]], "0 to 1"),
        ([[1.0, 2.0, 3.0, 2.0]], "0 to 1"),
        ([], "finite numbers"),
    ],
)
def test_rows_that_are_none_are_refused(rows: Any, said: str) -> None:
    with pytest.raises(RangeError, match=said):
        JointTraining(**PUBLIC).read(rows)


@pytest.mark.parametrize(
    ("change", "said"),
    [({"columns": ["a"]}, "3 columns need as many names"), ({"labels": ["a"]}, "2 labels"), ({"scale": 0.0}, "scale")],
)
def test_terms_about_rows_that_do_not_fit_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(PrivacyError, match=said):
        JointTraining(**(PUBLIC | change))


@pytest.mark.parametrize("model", ["logistic", "softmax", "huber_svm", "large_margin"])
def test_every_model_becomes_a_bundle_that_scores_rows_as_they_come(model: Any, tmp_path: Path) -> None:
    training = JointTraining(**(PUBLIC | {"model": model, "scale": 4.0}))
    rows = [examples(size, seed=size) for size in SIZES]
    programs = [
        lambda add_up, place=place, xy=xy: train_jointly(training, add_up, *xy, place) for place, xy in enumerate(rows)
    ]
    fit = together(programs, [training.dimension])[0]
    x, _ = rows[0]
    wanted = fit.module.scores(x)
    bundle = write_plain(tmp_path / "model", training, as_plain(training, fit))
    assert bundle.statement.guarantee == fit.guarantee
    stated = {touch.topic: touch.status for touch in bundle.statement.touches}
    assert {topic for topic, status in stated.items() if status == "untouched"} == {
        "early_stopping", "threshold", "initialization"
    }  # fmt: skip
    assert "one utterance" not in " ".join(bundle.statement.caveats)
    found = load_bundle(tmp_path / "model").model((4 * x).float())
    torch.testing.assert_close(found, wanted.float(), rtol=1e-4, atol=1e-4)


def test_what_terms_do_not_show_is_not_covered() -> None:
    """The terms may have been tuned on the rows they protect, their sizes are known, and a run may end early."""
    terms = JointTraining(**PUBLIC)
    account = Accountant(Relation("record", "replace"))
    account.compose(terms.shares().event, 2)
    said = {touch.topic: touch for touch in observed(terms, account)}
    assert {touch.status for topic, touch in said.items() if topic not in {"threshold", "initialization"}} == {
        "not_covered"
    }
    assert "2 sums were released, the terms say 1" in said["early_stopping"].note
    assert "number of records is public" in said["counts"].note
    hidden = JointTraining(**PRIVATE)
    alone = Accountant(Relation("record", "add_remove"))
    alone.compose(hidden.shares().event)
    found = {touch.topic: touch.status for touch in observed(hidden, alone)}
    assert (found["counts"], found["early_stopping"], found["tuning"]) == ("untouched", "untouched", "not_covered")


def test_rows_of_an_utterance_are_tied_to_it_or_refused() -> None:
    training = JointTraining(**(PUBLIC | {"unit": "utterance"}))
    x, y = examples(20)
    with pytest.raises(PrivacyError, match="give groups, the utterance of every row"):
        local_minimizer(training, x, y, 0)
    with pytest.raises(PrivacyError, match="one utterance has up to 2 rows"):
        local_minimizer(training, x, y, 0, torch.arange(20) // 2)
    rows = torch.cat([x, y.unsqueeze(1)], dim=1).tolist()
    with pytest.raises(PrivacyError, match="give groups"):
        training.examine(0, rows)
    training.examine(0, rows, list(range(20)))
    torch.testing.assert_close(
        local_minimizer(training, x, y, 0, torch.arange(20)), local_minimizer(JointTraining(**PUBLIC), x, y, 0)
    )
