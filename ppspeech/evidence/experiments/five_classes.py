"""Five Gaussian classes: error of private large-margin Gaussians against epsilon (Pathak 2010, figure 4.4).

500 points of ten features to train on and 500 to test on, a fifth from each of five Gaussians of unit variance, and
lambda = 0.01, as the paper has it. It does not say where the means are: here class c has 3 in feature c and 0
elsewhere. Points are divided by 6, a public constant, and clipped into the unit ball. The paper's own mechanism has no
minimum as printed there (its objective is unbounded below), so what stands beside ours is the mechanism of Pathak and
Raj 2012.
"""

from collections.abc import Callable
from pathlib import Path

import torch

from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments.breast_cancer import Split, plot_curves
from ppspeech.evidence.published.large_margin import PublishedLargeMargin
from ppspeech.figures import Figure
from ppspeech.intervals import Mean
from ppspeech.models.margin import LargeMarginGaussians, MarginLoss, sum_form
from ppspeech.privacy import Relation
from ppspeech.privacy.convex import ObjectivePerturbation
from ppspeech.training.private import fit_privately

CLASSES, FEATURES, ROWS = 5, 10, 500
SCALE, LAMBDA, WIDTH = 6.0, 0.01, 0.5
DELTA = 1e-5
EPSILONS = (1.0, 3.0, 10.0, 30.0, 100.0)


@EXPERIMENTS.register("five-classes")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Draw data, train and test, many times; save the curves as `five_classes.png` in `folder`.

    Args:
        quick: 3 runs instead of the paper's 100.
        folder: for the picture.
    """
    runs = 3 if quick else 100
    splits = [Split(*_draw(2 * seed), *_draw(2 * seed + 1)) for seed in range(runs)]
    nonprivate = Mean.of([split.error(_plain(split)) for split in splits])
    learners: dict[str, Callable[[Split, float], LargeMarginGaussians]] = {
        "pure": lambda split, epsilon: _private(split, epsilon, 0.0),
        "gaussian": lambda split, epsilon: _private(split, epsilon, DELTA),
        "published": _published,
    }
    curves = {
        name: {at: Mean.of([split.error(learn(split, at)) for split in splits]) for at in EPSILONS}
        for name, learn in learners.items()
    }
    picture = folder / "five_classes.png"
    plot_curves(curves, nonprivate, picture, "Five Gaussian classes, large margin")
    figures = [
        Figure("five_classes.nonprivate.error", nonprivate.value, note=f"+- {nonprivate.half_width:.3f}, {runs} runs")
    ]
    for name, points in curves.items():
        figures += [
            Figure(f"five_classes.{name}.eps{at:g}.error", mean.value, note=f"+- {mean.half_width:.3f}; {picture}")
            for at, mean in points.items()
        ]
    return figures


def _draw(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points in the unit ball, `(500, 10)`, and their classes."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(ROWS) % CLASSES
    x = torch.randn(ROWS, FEATURES, generator=generator, dtype=torch.double)
    x = (x + 3 * torch.eye(FEATURES, dtype=torch.double)[y]) / SCALE
    return x / x.norm(dim=1, keepdim=True).clamp_min(1.0), y


def _untrained() -> LargeMarginGaussians:
    return LargeMarginGaussians(CLASSES, FEATURES, loss=MarginLoss(WIDTH), radius=1.0, dtype=torch.double)


def _plain(split: Split) -> LargeMarginGaussians:
    module = _untrained()
    module.fit(split.x, split.y, quadratic=sum_form(ROWS, LAMBDA).quadratic)
    return module


def _private(split: Split, epsilon: float, delta: float) -> LargeMarginGaussians:
    module = _untrained()
    quadratic = sum_form(ROWS, LAMBDA).quadratic
    hook = ObjectivePerturbation(
        epsilon=epsilon, delta=delta, relation=Relation("record", "add_remove"), regularization=quadratic
    )
    fit_privately(module, split.x, split.y, hook)
    return module


def _published(split: Split, epsilon: float) -> LargeMarginGaussians:
    published = PublishedLargeMargin(epsilon=epsilon, classes=CLASSES, features=FEATURES, lam=LAMBDA, width=WIDTH)
    return published.fit((split.x, split.y))
