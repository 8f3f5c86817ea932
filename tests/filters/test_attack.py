"""Attackers on vectors: they find what is there, and nothing where nothing is."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.filters.attack.attack import attack
from ppspeech.filters.attack.attackers import VECTOR_ATTACKERS
from ppspeech.filters.attack.attackers.vectors import RIDGE
from ppspeech.filters.attack.report import UNKNOWN
from ppspeech.intervals import clopper_pearson
from ppspeech.models.measures import equal_error_rate

NAMES = tuple(VECTOR_ATTACKERS)


def people(separation: float, samples: int = 60, classes: int = 4, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Samples of people whose means lie `separation` apart."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(samples * classes) % classes
    noise = torch.randn(len(labels), 5, generator=generator)
    return noise + separation * torch.eye(classes, 5)[labels], labels


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.99))
def test_clopper_pearson_is_the_exact_binomial_interval(counts: tuple[int, int], confidence: float) -> None:
    right, trials = counts
    reference = binomtest(right, trials).proportion_ci(confidence, method="exact")
    assert clopper_pearson(right, trials, confidence) == pytest.approx((reference.low, reference.high), abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_every_attacker_finds_people_who_stand_apart(name: str) -> None:
    report = attack(*people(6.0), *people(6.0, seed=1), [name])
    assert report.worst.accuracy > 0.95
    assert report.worst.eer < 0.1
    assert report.worst.linkability.value > 0.8


@pytest.mark.parametrize("name", NAMES)
def test_no_attacker_finds_people_who_are_not_there(name: str) -> None:
    # 240 test samples at chance 1/4: 0.36 is four standard deviations up, less than 1 in 10,000.
    report = attack(*people(0.0), *people(0.0, seed=1), [name])
    assert report.worst.accuracy < 0.36
    assert report.chance == pytest.approx(0.25)


def test_people_told_by_their_spread_alone_escape_the_linear_attacker_only() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(600) % 2
    x = torch.randn(600, 3, generator=generator) * torch.tensor([0.3, 3.0])[labels].unsqueeze(-1)
    report = attack(x[:300], labels[:300], x[300:], labels[300:], ["logistic", "lda", "svm", "neighbors", "spread"])
    assert report["logistic"].accuracy < 0.65
    assert report["spread"].accuracy > 0.9
    assert report.worst.accuracy > 0.9
    assert report.worst.attacker != "logistic"
    assert report.worst.attacker in str(report)


def test_a_filter_hides_nobody_by_making_features_small() -> None:
    x, y = people(2.0)
    z, w = people(2.0, seed=1)
    scale = torch.tensor([1.0, 1e-6, 1e3, 1e-3, 1.0])
    plain, scaled = attack(x, y, z, w, ["logistic", "svm"]), attack(x * scale, y, z * scale, w, ["logistic", "svm"])
    for before, after in zip(plain.findings, scaled.findings, strict=True):
        assert after.accuracy == pytest.approx(before.accuracy, abs=0.02)


def test_the_logistic_attacker_is_scikit_learns() -> None:
    x, y = people(1.0)
    z, w = people(1.0, seed=1)
    mean, deviation = x.mean(0), x.std(0, correction=0)
    reference = LogisticRegression(C=1 / (RIDGE * len(y)), max_iter=1_000)
    reference.fit(((x - mean) / deviation).numpy(), y.numpy())
    assert attack(x, y, z, w, ["logistic"]).worst.accuracy == pytest.approx(
        reference.score(((z - mean) / deviation).numpy(), w.numpy()), abs=1 / len(w) + 1e-9
    )


def test_accuracy_and_verification_are_those_of_a_slow_loop_over_trials() -> None:
    x, y = people(1.5)
    z, w = people(1.5, seed=1)
    w[::5] = UNKNOWN
    report = attack(x, y, z, w, ["neighbors"])
    scores = VECTOR_ATTACKERS["neighbors"](x, y, 4, 0)(z)
    named, trials, targets = [], [], []
    for row, who in zip(scores, w.tolist(), strict=True):
        if who != UNKNOWN:
            named.append(int(row.argmax()) == who)
        for person in range(4):
            trials.append(float(row[person]))
            targets.append(person == who)
    assert report.samples == len(named)
    assert report.worst.accuracy == pytest.approx(np.mean(named))
    rate = equal_error_rate(torch.tensor(trials, dtype=torch.float64), torch.tensor(targets))
    assert report.worst.eer == pytest.approx(rate)


@pytest.mark.parametrize("name", NAMES)
def test_someone_without_training_samples_is_never_named(name: str) -> None:
    x, y = people(3.0)
    scores = VECTOR_ATTACKERS[name](x[y != 2], y[y != 2], 4, 0)(x)
    assert not (scores.argmax(-1) == 2).any()
    assert scores.shape == (len(x), 4)


def test_the_same_seed_gives_the_same_report() -> None:
    parts = (*people(1.0), *people(1.0, seed=1))
    assert attack(*parts, ["mlp", "trees"], seed=3) == attack(*parts, ["mlp", "trees"], seed=3)


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ModelError, match="'svm' is registered already"):
        VECTOR_ATTACKERS.register("svm")(VECTOR_ATTACKERS["svm"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attackers": ["oracle"]}, "called .*'oracle'"),
        ({"attackers": ["gmm_ubm"]}, "no attacker on vectors"),
        ({"attackers": []}, "known are"),
        ({"confidence": 1.0}, "confidence"),
        ({"train_features": torch.full((8, 5), torch.nan)}, "not finite"),
        ({"train_features": torch.zeros(8, 2, 5)}, "2 axes"),
        ({"test_features": torch.zeros(8, 4)}, "5 features, test samples 4"),
        ({"train_labels": torch.zeros(8, dtype=torch.long)}, "at least two"),
        ({"train_labels": torch.arange(8) - 1}, "0 to classes - 1"),
        ({"test_labels": torch.full((8,), 7)}, "test labels"),
        ({"test_labels": torch.full((8,), UNKNOWN)}, "not all of them unknown"),
        ({"test_labels": torch.zeros(7, dtype=torch.long)}, "one label each"),
    ],
)
def test_bad_input_is_refused(change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {
        "train_features": torch.randn(8, 5),
        "train_labels": torch.arange(8) % 2,
        "test_features": torch.randn(8, 5),
        "test_labels": torch.arange(8) % 2,
        "attackers": ["neighbors"],
    }
    with pytest.raises(ModelError, match=message):
        attack(**(arguments | change))  # type: ignore[arg-type]


def test_asking_for_an_attacker_who_was_not_there() -> None:
    with pytest.raises(KeyError, match="svm"):
        attack(*people(1.0), *people(1.0), ["neighbors"])["svm"]
