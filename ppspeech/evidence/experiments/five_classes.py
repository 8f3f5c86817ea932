"""Five Gaussian classes: error of private large-margin Gaussians against epsilon (Pathak 2010, figure 4.4).

500 points of ten features to train on and 500 to test on, a fifth from each of five Gaussians of unit variance, and
lambda = 0.01, as the paper has it. It does not say where the means are: here class c has 3 in feature c and 0
elsewhere. Points are divided by 6, a public constant, and clipped into the unit ball. The paper's own mechanism has no
minimum as printed there (its objective is unbounded below), so what stands beside ours is the mechanism of Pathak and
Raj 2012.

Needs nothing; --quick takes about 10 s.
"""

from functools import partial
from pathlib import Path

import torch

from ppspeech.cluster import sweep
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments.breast_cancer import LEARNERS, Split, nonprivate, plot_curves
from ppspeech.figures import Figure
from ppspeech.intervals import SHARE, Mean

CLASSES, FEATURES, ROWS = 5, 10, 500
SCALE = 6.0
EPSILONS = (1.0, 3.0, 10.0, 30.0, 100.0)


@EXPERIMENTS.register("five-classes")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Draw data, train and test, 100 times (`quick`: 3); save the curves as `five_classes.png` in `folder`."""
    runs = 3 if quick else 100
    splits = [Split(*_draw(2 * seed), *_draw(2 * seed + 1), CLASSES) for seed in range(runs)]
    plain = Mean.of([split.error(nonprivate(split)) for split in splits])
    pairs = [(name, at) for name in LEARNERS for at in EPSILONS]
    errors = dict(zip(pairs, sweep(partial(_point, splits), pairs), strict=True))
    curves = {name: {at: errors[name, at] for at in EPSILONS} for name in LEARNERS}
    picture = folder / "five_classes.png"
    plot_curves(curves, plain, picture, "Five Gaussian classes, large margin")
    note = f"interval over {runs} runs; {picture}"
    figures = [Figure.mean("five_classes.nonprivate.error", plain, note=note, limits=SHARE)]
    for name, points in curves.items():
        figures += [
            Figure.mean(f"five_classes.{name}.eps{at:g}.error", mean, note=note, limits=SHARE)
            for at, mean in points.items()
        ]
    return figures


def _point(splits: list[Split], point: tuple[str, float]) -> Mean:
    """Errors of one learner at one epsilon, over all splits."""
    name, epsilon = point
    return Mean.of([split.error(LEARNERS[name](split, epsilon)) for split in splits])


def _draw(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points in the unit ball, `(500, 10)`, and their classes."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(ROWS) % CLASSES
    x = torch.randn(ROWS, FEATURES, generator=generator, dtype=torch.double)
    x = (x + 3 * torch.eye(FEATURES, dtype=torch.double)[y]) / SCALE
    return x / x.norm(dim=1, keepdim=True).clamp_min(1.0), y
