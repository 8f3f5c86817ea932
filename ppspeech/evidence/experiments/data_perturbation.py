r"""Records perturbed where they are (Adult, spoken digits), beside noise in one place at the same epsilon.

Adult: six numbers of a person, each in [-1, 1] and over sqrt(6), so that no vector is longer than 1: the fifths of age,
years of school and hours of work, whether married, of which sex, and with capital gains; a choice that everyone knows.
Everybody tells a vector with noise and a class by randomized response, three quarters of epsilon and one quarter. From
what was told: a discriminant of unbiased moments, and logistic, softmax and large-margin models of corrected records.
Five parties that put perturbed records together have what one collector has. Beside them a logistic model of the same
six numbers, noise in its objective, by someone who is trusted with all records.

The theory draws moments from their own law: unbiased, with the variances that follow from the law of the noise, and no
record is perturbed. The split of epsilon was compared by theory on the training rows; the learner was made anew after a
first one had 0.70 on the rows of the test.

AudioMNIST: nine numbers of an utterance in directions of the public built-in voices, ten digits, people never heard; so
few records as 3,200 leave little at epsilon 4. epsilon is shared equally there, as ten classes need more.

Needs the table adult and the corpus audiomnist; --quick takes about 40 s.
"""

import math
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ppspeech.data.tables import load_adult
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments.adult_central import QUESTIONS
from ppspeech.evidence.experiments.kernel import spoken
from ppspeech.figures import Figure
from ppspeech.intervals import SHARE, Mean, clopper_pearson, repeated
from ppspeech.models import HuberSvm, LogisticRegression, SoftmaxRegression
from ppspeech.pictures import save_curves
from ppspeech.privacy import Relation
from ppspeech.privacy.convex import ObjectivePerturbation
from ppspeech.privacy.mechanisms import LocalRecords
from ppspeech.privacy.samplers import standard_normal
from ppspeech.training.private import (
    ClassMoments,
    PerturbedRecords,
    discriminant,
    fit_perturbed,
    fit_privately,
)

EPSILONS = (1.0, 2.0, 4.0, 8.0)
DELTA = 1e-5
VECTOR_SHARE = 0.75  # of epsilon
PARTIES = 5
WIDE = 10.0  # of the hinge: of vectors that say little a narrow one makes the majority
THEORY_DRAWS = 100
MARRIED, GAINS = 0, 1  # the columns that say so, of marital status and capital gain


class Rows:
    """Vectors `(n, d)` of norm at most 1 and classes, to train on and to test on."""

    def __init__(self, x: Tensor, y: Tensor, test_x: Tensor, test_y: Tensor) -> None:
        self.x, self.y, self.test_x, self.test_y = x, y, test_x, test_y
        self.classes = int(y.max()) + 1

    def mechanism(self, epsilon: float, delta: float, share: float) -> LocalRecords:
        """That everybody uses."""
        terms: dict[str, Any] = {
            "epsilon_vector": share * epsilon,
            "epsilon_label": (1 - share) * epsilon,
            "delta": delta,
        }
        return LocalRecords(features=self.x.shape[1], classes=self.classes, radius=1.0, **terms)

    def accuracy(self, model: SoftmaxRegression | LogisticRegression | HuberSvm) -> float:
        """The share of test rows that is right."""
        return float((model.predict(self.test_x) == self.test_y).double().mean())

    def learned(self, mechanism: LocalRecords, kind: str, parties: int = 1) -> float:
        """Perturb, put together, learn, test."""
        parts = zip(self.x.tensor_split(parties), self.y.tensor_split(parties), strict=True)
        told = PerturbedRecords.pooled([PerturbedRecords.told(mechanism, x, y) for x, y in parts])
        if kind == "discriminant":
            return self.accuracy(discriminant(told.moments()))
        features = self.x.shape[1]
        models: dict[str, SoftmaxRegression | LogisticRegression | HuberSvm] = {
            "logistic": LogisticRegression(features, dtype=torch.double),
            "softmax": SoftmaxRegression(features, self.classes, dtype=torch.double),
            "margin": HuberSvm(features, WIDE, dtype=torch.double),
        }
        fit_perturbed(models[kind], told)
        return self.accuracy(models[kind])

    def central(self, epsilon: float, delta: float) -> float:
        """By somebody who is trusted with all records."""
        model = LogisticRegression(self.x.shape[1], radius=1.0, dtype=torch.double)
        relation = Relation("record", "replace")
        hook = ObjectivePerturbation(epsilon=epsilon, delta=delta, relation=relation, regularization=1.0, norm=10.0)
        fit_privately(model, self.x, self.y, hook)
        return self.accuracy(model)


@EXPERIMENTS.register("data-perturbation")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Save `data_perturbation.png`; `quick`: 3 draws instead of 10, epsilon 4 alone."""
    draws, epsilons = (3, (4.0,)) if quick else (10, EPSILONS)
    adult = _adult()
    plain = LogisticRegression(adult.x.shape[1], dtype=torch.double)
    plain.fit(adult.x, adult.y, quadratic=1.0)
    local = {at: adult.mechanism(at, 0.0, VECTOR_SHARE) for at in epsilons}
    curves = {
        "local": {at: repeated(draws, adult.learned, m, "discriminant") for at, m in local.items()},
        "theory": {at: Mean.of(predicted(adult, m)) for at, m in local.items()},
        "central": {at: repeated(draws, adult.central, at, 0.0) for at in epsilons},
    }
    for kind in ("logistic", "softmax", "margin"):
        curves[kind] = {at: repeated(draws, adult.learned, m, kind) for at, m in local.items()}
    gaussian = {at: adult.mechanism(at, DELTA, VECTOR_SHARE) for at in epsilons}
    curves["gaussian"] = {at: repeated(draws, adult.learned, m, "discriminant") for at, m in gaussian.items()}
    picture = folder / "data_perturbation.png"
    level = adult.accuracy(plain)
    save_curves(curves, picture, title="Adult, six numbers", ylabel="test accuracy", nonprivate=level)
    majority = float((adult.test_y == 0).double().mean())
    about = f"{len(adult.y):,} rows to train on, {len(adult.test_y):,} to test on, majority {majority:.4f}; {picture}"
    over = f"{about}; interval over test rows"
    ends = clopper_pearson(level * len(adult.test_y), len(adult.test_y))
    figures = [Figure("local.adult.nonprivate.accuracy", level, note=over).between(*ends)]
    for name, points in curves.items():
        for at, mean in points.items():
            metric = f"local.adult.eps{at:g}.accuracy" if name == "local" else f"local.adult.{name}.eps{at:g}.accuracy"
            theory = curves["theory"][at].value if name == "local" else None
            peer = None if theory is None else "theory"
            note = f"{MEANING[name]}; interval over draws"
            figures.append(Figure.mean(metric, mean, "", peer, theory, note=note, limits=SHARE))
    pooled = repeated(draws, adult.learned, local[4.0], "discriminant", PARTIES)
    note = f"{PARTIES} parties put perturbed records together; interval over draws"
    figures.append(Figure.mean("local.adult.parties.eps4.accuracy", pooled, note=note, limits=SHARE))
    return [*figures, *_words((4.0, 8.0), draws)]


MEANING = {
    "local": "gamma-norm noise, epsilon for one record (replace), discriminant of unbiased moments",
    "theory": f"the same by the law of the noise, {THEORY_DRAWS} draws of moments",
    "central": "one place, noise in the objective of a logistic model, pure epsilon (replace)",
    "logistic": "corrected records, logistic loss",
    "softmax": "corrected records, softmax loss",
    "margin": "calibrated vectors, classes as told, Huber hinge",
    "gaussian": f"exact Gaussian noise, delta {DELTA:g}, discriminant",
}


def predicted(rows: Rows, mechanism: LocalRecords) -> list[float]:
    """Accuracies of discriminants of moments drawn from their own law; no record is perturbed.

    Of n records with x, class y and noise b of variance v a number: shares s of classes have the variances that
    randomized response gives; sums of s x~ the variance E s^2 (x x' + v I) - (E s)^2 x x'; sums of x~ x~' that of
    x b' + b x' + b b'. All are sums of many, and so Gaussian.
    """
    x, hot = rows.x, torch.nn.functional.one_hot(rows.y, rows.classes).double()
    inverse, v, d = mechanism.label.inverse(), mechanism.variance, rows.x.shape[1]
    square = mechanism.label.matrix() @ inverse.square()  # E s^2 by true class
    told, spread = hot @ square, hot @ (square - torch.eye(rows.classes))
    deviation = mechanism.moment_noise(len(x))
    fourth = deviation**2 * len(x)  # E b_j^2 b_k^2
    both = x.square().sum(0)
    sums = hot.mT @ x
    noise = spread.mT @ x.square() + told.mT @ x.new_full(x.shape, v)
    cross = v * (both + both.unsqueeze(1)) + len(x) * fourth
    cross = cross.fill_diagonal_(0) + torch.diag(4 * v * both + len(x) * (3 * fourth - v**2))
    found = []
    for _ in range(THEORY_DRAWS):
        counts = (hot.sum(0) + spread.sum(0).sqrt() * standard_normal((rows.classes,))).clamp_min(1.0)
        means = (sums + noise.sqrt() * standard_normal(sums.shape)) / counts.unsqueeze(1)
        center = x.mean(0) + math.sqrt(v / len(x)) * standard_normal((d,))
        drawn = torch.triu(standard_normal((d, d)))
        drawn = cross.sqrt() * (drawn + torch.triu(drawn, 1).mT)
        total = (x.mT @ x + drawn) / len(x) - center.outer(center)
        found.append(rows.accuracy(discriminant(ClassMoments.of(counts, means, center, total, deviation))))
    return found


def _adult() -> Rows:
    train, test = load_adult().train_test()
    return Rows(*(part for table in (train, test) for part in (six_numbers(table.features), table.labels)))


def six_numbers(rows: Tensor) -> Tensor:
    """a9a `(n, 123)` as six numbers `(n, 6)` of norm at most 1; an answer that is missing is 0."""
    ends = list(accumulate(QUESTIONS.values()))
    columns = dict(zip(QUESTIONS, rows.double().tensor_split(ends[:-1], dim=1), strict=True))
    steps = torch.linspace(-1, 1, 5, dtype=torch.double)
    ordered = [columns[name] @ steps for name in ("age", "education_num", "hours")]
    marked = [(columns["marital_status"], MARRIED), (columns["sex"], 0), (columns["capital_gain"], GAINS)]
    signs = [2 * answers[:, at] - answers.sum(1) for answers, at in marked]
    return torch.stack([*ordered, *signs], dim=1) / math.sqrt(6)


def _words(epsilons: tuple[float, ...], draws: int) -> list[Figure]:
    """Digits of people never heard, from perturbed utterances of others."""
    task = spoken()
    rows = Rows(task.x, task.y, task.test_x, task.test_y)
    figures = []
    for at in epsilons:
        mean = repeated(draws, rows.learned, rows.mechanism(at, 0.0, 0.5), "discriminant")
        note = f"{len(rows.y):,} utterances, ten digits, chance 0.1; interval over draws"
        figures.append(Figure.mean(f"local.words.eps{at:g}.accuracy", mean, note=note, limits=SHARE))
    return figures
