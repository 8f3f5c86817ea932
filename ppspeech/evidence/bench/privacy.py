"""Privacy: what a guarantee costs in time, objective perturbation beside plain training of the same module.

Both sides solve the same module on the same rows at the same Lambda. The private side also draws its noise, certifies
the minimum to a tolerance fixed beforehand, and blurs it. Calibrating Gaussian noise looks at no data and its result is
remembered; it is measured apart.

Needs nothing.
"""

import time
from collections.abc import Callable

import torch
from torch import Tensor

from ppspeech.evidence.bench import BENCHES
from ppspeech.evidence.bench.clock import best_seconds, threads
from ppspeech.figures import Figure
from ppspeech.models import HuberSvm, LogisticRegression, SoftmaxRegression
from ppspeech.models.margin import LargeMarginGaussians
from ppspeech.privacy import Relation
from ppspeech.privacy.convex import ObjectivePerturbation, large_margin_head
from ppspeech.training.private import ConvexModule, fit_privately

ALLOWED = 1.5  # times the time of plain training


@BENCHES.register("privacy")
def run(quick: bool) -> list[Figure]:
    """Measure each module, on one thread; `quick` uses fewer rows and repeats."""
    rows, repeats = (2_000, 3) if quick else (10_000, 7)
    with threads(1):  # the ratio is the same, and other programs disturb it less
        figures = [
            _compare(name, make(features, classes), *_examples(rows, features, classes), delta, repeats)
            for name, make, features, classes in MODULES
            for delta in (0.0, 1e-5)
        ]
    worst = max(figures, key=lambda figure: figure.value)
    return [
        Figure("privacy.objective.overhead", worst.value, "x", note=f"the worst of all: {worst.metric}"),
        *figures,
        Figure("privacy.objective.calibration_s", _calibration_seconds(), "s", note="large-margin, 3 classes; once"),
    ]


MODULES: tuple[tuple[str, Callable[[int, int], ConvexModule], int, int], ...] = (
    ("logistic", lambda d, _: LogisticRegression(d, radius=1.0, dtype=torch.double), 60, 2),
    ("softmax", lambda d, classes: SoftmaxRegression(d, classes, radius=1.0, dtype=torch.double), 40, 5),
    ("huber_svm", lambda d, _: HuberSvm(d, radius=1.0, dtype=torch.double), 60, 2),
    ("large_margin", lambda d, classes: LargeMarginGaussians(classes, d, radius=1.0, dtype=torch.double), 10, 3),
)


def _examples(rows: int, features: int, classes: int) -> tuple[Tensor, Tensor]:
    """Overlapping clouds in the unit ball; the same in every run."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(rows) % classes
    centers = torch.randn(classes, features, generator=generator, dtype=torch.double)
    x = centers[y] + 1.5 * torch.randn(rows, features, generator=generator, dtype=torch.double)
    return x / (2.5 * features**0.5), y


def _hook(delta: float, regularization: float) -> ObjectivePerturbation:
    return ObjectivePerturbation(
        epsilon=1.0, delta=delta, relation=Relation("record", "add_remove"), regularization=regularization
    )


def _compare(name: str, module: ConvexModule, x: Tensor, y: Tensor, delta: float, repeats: int) -> Figure:
    hook = _hook(delta, len(x) / 100)
    quadratic = fit_privately(module, x, y, hook).plan.regularization
    plain = best_seconds(lambda: module.fit(x, y, quadratic=quadratic), repeats)
    private = best_seconds(lambda: fit_privately(module, x, y, hook), repeats)
    kind = "pure" if delta == 0 else "gaussian"
    note = f"{private:.3f} s against {plain:.3f} s, {len(x):,} rows x {x.shape[1]}; at most {ALLOWED} is wanted"
    return Figure(f"privacy.objective.{name}.{kind}.overhead", private / plain, "x", note=note)


def _calibration_seconds() -> float:
    """Of Gaussian noise for numbers that were not seen before."""
    radius = 1 + time.time() % 1 / 100
    start = time.perf_counter()
    plan = _hook(1e-5, 100.0).for_head(large_margin_head(3, 1, 0.5), radius, (3, 66))
    assert plan.scale > 0
    return time.perf_counter() - start
