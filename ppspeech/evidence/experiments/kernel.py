"""A Gaussian kernel with differential privacy: breast cancer and spoken digits, beside linear models.

Random Fourier features have norm 1 for every input, and objective perturbation makes the rest private at (epsilon,
1e-5) for one record. Breast cancer: marks divided by 30, width 0.3, 30 pairs of features; 20 random splits into 583 and
100 rows. AudioMNIST: 40 people to train on, 20 never heard; an utterance is nine numbers, the directions in which the
built-in voices, which are public, tell the ten digits apart; width 1, 54 pairs. Linear models get the same inputs and
norm of weights, and the better intercept. Widths, pairs, intercepts and that norm were compared on other splits of the
breast cancer rows, which share rows with these, and on people 29 to 40 of those to train on; a first comparison, which
the kernel lost, was scored on the 20 people of the test, so its figures are somewhat optimistic.

The other way to have a kernel, a dual with noise in its kernel values, releases rows of its training data in clear.

Needs the table breast_cancer and the corpus audiomnist; --quick takes about 40 s.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ppspeech.data import SyntheticCorpus, load_corpus
from ppspeech.data.tables import load_breast_cancer
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments.minimax_audiomnist import utterance_vectors
from ppspeech.evidence.experiments.minimax_emodb import labels
from ppspeech.evidence.published.kernel import PublishedKernelNoise, rows_read
from ppspeech.figures import Figure
from ppspeech.intervals import Mean, clopper_pearson
from ppspeech.models import KernelClassifier, LogisticRegression, SoftmaxRegression
from ppspeech.pictures import save_curves
from ppspeech.privacy import Relation
from ppspeech.privacy.convex import ObjectivePerturbation
from ppspeech.training.private import fit_privately

DELTA = 1e-5
EPSILONS = (0.3, 1.0, 3.0)
NORM = 10.0  # B of the weights
CONSTANT = 0.1  # of the intercept where it has little to say: a norm of 1.005 instead of sqrt(2)
MARKS = 30.0  # 10 sqrt(9)
TEST_ROWS = 100
TRAINED = 40  # people, the first of the corpus
RIDGE = 0.1  # of the public variances within words
NOISE = 0.5  # on kernel values, which are at most 1

Model = LogisticRegression | SoftmaxRegression | KernelClassifier


@dataclass(frozen=True, eq=False)
class Task:
    """Inputs to train on and to test on, and the models that are compared."""

    x: Tensor
    y: Tensor
    test_x: Tensor
    test_y: Tensor
    width: float
    pairs: int
    constant: float  # of the linear model's intercept

    @property
    def classes(self) -> int:
        """How many there are."""
        return int(self.y.max()) + 1

    def untrained(self, kind: str) -> Model:
        """`linear` or `kernel`."""
        features = self.x.shape[1]
        if kind == "kernel":
            sizes = (features, self.classes, self.pairs, self.width, CONSTANT)
            return KernelClassifier(*sizes, dtype=torch.double)
        if self.classes == 2:
            return LogisticRegression(features, radius=1.0, constant=self.constant, dtype=torch.double)
        return SoftmaxRegression(features, self.classes, radius=1.0, constant=self.constant, dtype=torch.double)

    def error(self, kind: str, epsilon: float | None) -> float:
        """Of one model on the test, without privacy where there is no epsilon."""
        model = self.untrained(kind)
        linear = model.linear if isinstance(model, KernelClassifier) else model
        inputs = model.embed(self.x) if isinstance(model, KernelClassifier) else self.x
        if epsilon is None:
            linear.fit(inputs, self.y, quadratic=1.0, tolerance=1e-4)
        else:
            terms = {"epsilon": epsilon, "delta": DELTA, "regularization": 1.0, "norm": NORM}
            fit_privately(
                linear, inputs, self.y, ObjectivePerturbation(relation=Relation("record", "add_remove"), **terms)
            )
        return float((model.predict(self.test_x) != self.test_y).double().mean())


@EXPERIMENTS.register("kernel")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Save `kernel.png` and `kernel_words.png`; `quick`: 8 splits and 3 draws instead of 20 and 10, one epsilon."""
    epsilons = (1.0,) if quick else EPSILONS
    splits = [_marks(seed) for seed in range(8 if quick else 20)]
    words, draws = spoken(), 3 if quick else 10
    figures = _compared("bcw", folder / "kernel.png", epsilons, splits, 1)
    figures += _compared("words", folder / "kernel_words.png", epsilons, [words], draws)
    return [*figures, *_dual(splits[0])]


def spoken() -> Task:
    """AudioMNIST in the directions in which the built-in voices tell digits apart, of mean square 1 for these."""
    corpus, voices = load_corpus("audiomnist"), SyntheticCorpus(speakers=24, takes=4).build()
    public, real = (utterance_vectors(each).double() for each in (voices, corpus))
    center, directions = word_directions(public, labels(voices, "word"))
    size = ((public - center) @ directions).square().sum(1).mean().sqrt()
    x, y, trained = (real - center) @ directions / size, labels(corpus, "word"), labels(corpus, "speaker") < TRAINED
    return Task(x[trained], y[trained], x[~trained], y[~trained], width=1.0, pairs=54, constant=CONSTANT)


def word_directions(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The mean `(d,)` and `(d, classes - 1)` directions in which classes differ most for their own variance."""
    classes, center = int(y.max()) + 1, x.mean(0)
    means = torch.stack([x[y == each].mean(0) for each in range(classes)])
    within = (x - means[y]).mT @ (x - means[y]) / len(x)
    root = torch.linalg.cholesky(within + RIDGE * within.diagonal().diag())
    between = torch.linalg.solve_triangular(root, (means - center).mT, upper=False).mT
    kept = torch.linalg.svd(between, full_matrices=False).Vh[: classes - 1]
    return center, torch.linalg.solve_triangular(root.mT, kept.mT, upper=True)


def _marks(seed: int) -> Task:
    table = load_breast_cancer()
    train, test = table.split_by_row(TEST_ROWS / len(table), seed=seed)
    parts = (train.features.double() / MARKS, train.labels, test.features.double() / MARKS, test.labels)
    return Task(*parts, width=0.3, pairs=30, constant=1.0)


def _compared(name: str, picture: Path, epsilons: tuple[float, ...], tasks: list[Task], draws: int) -> list[Figure]:
    """Errors of both kinds of model, each with an interval: over splits or draws, else over the inputs to test on."""

    def mean(kind: str, epsilon: float | None) -> Mean:
        found = [task.error(kind, epsilon) for task in tasks for _ in range(draws if epsilon else 1)]
        return Mean.of(found) if len(found) > 1 else Mean(found[0], 0.0)

    def ends(found: Mean, alone: bool) -> tuple[float, float]:
        tested = len(tasks[0].test_y)
        return clopper_pearson(found.value * tested, tested) if alone else (max(found.low, 0.0), min(found.high, 1.0))

    plain = {kind: mean(kind, None) for kind in ("kernel", "linear")}
    curves = {kind: {at: mean(kind, at) for at in epsilons} for kind in ("kernel", "linear")}
    save_curves(curves, picture, title=f"{name}: Gaussian kernel", ylabel="error", nonprivate=plain["kernel"].value)
    about = f"{len(tasks[0].y):,} to train on, {len(tasks[0].test_y):,} to test on; {picture}"
    less = Figure.less
    alone = len(tasks) == 1
    about += f"; interval over {'inputs to test on' if alone else 'splits, which share rows'}"
    first = less(f"kernel.{name}.nonprivate.error", plain["kernel"].value, "", "linear", plain["linear"].value, about)
    figures = [first.between(*ends(plain["kernel"], alone))]
    for at in epsilons:
        ours, theirs = curves["kernel"][at], curves["linear"][at]
        note = (
            f"({at:g}, {DELTA:g}) for one record; interval over {'draws' if alone else 'splits'}, linear "
            f"{theirs.low:.4f} to {theirs.high:.4f}"
        )
        made = less(f"kernel.{name}.eps{at:g}.error", ours.value, "", "linear", theirs.value, note=note)
        figures.append(made.between(*ends(ours, False)))
    return figures


def _dual(task: Task) -> list[Figure]:
    """How many people of the training data stand in a dual that got noise in its kernel values."""
    released = PublishedKernelNoise(sigma=NOISE, width=task.width).release((task.x.numpy(), task.y.numpy())).value
    found = float(rows_read(released, task.x.numpy()).mean())
    others = float(rows_read(released, task.test_x.numpy()).mean())
    wrong = ((released.scores(task.test_x.numpy(), task.width) > 0) != task.test_y.numpy().astype(bool)).mean()
    note = f"noise of deviation {NOISE:g} on kernel values; error {wrong:.3f}; of the test's rows {others:.3f} (twins)"
    return [
        Figure("kernel.dual.rows_read", found, note=f"share of 583 people whose marks are released in clear; {note}")
    ]
