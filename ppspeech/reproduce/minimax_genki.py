"""Faces (GENKI): expression kept, gender hidden, by linear minimax filters of d = 50 to 200 (seed 003, figure 2)."""

from pathlib import Path

import torch

from ppspeech.data.tables import load_genki
from ppspeech.figures import Figure
from ppspeech.reproduce.minimax import Experiment, Learning, figures, run_trials, stratified

CHOSEN = "start, rho, iterations, adversary: about 35 settings compared on the published split and draws 100 to 105"


def run(quick: bool, folder: Path) -> list[Figure]:
    """Learn filters, attack them and save the plot as `minimax_genki.png` in `folder`.

    A trial tests on 200 of the 1,940 faces, 50 of each combination of labels, drawn at random; the author tests on one
    fixed draw, which is measured too.

    Args:
        quick: two trials at d = 50 instead of ten at d = 50, 100, 150 and 200.
        folder: for the picture.
    """
    experiment, published = faces((50,) if quick else (50, 100, 150, 200))
    found = run_trials(experiment, 2 if quick else 10)
    made = figures(experiment, found, folder, CHOSEN)
    return [*made, *_published(published)]


def faces(dimensions: tuple[int, ...]) -> tuple[Experiment, Experiment]:
    """The experiment on random draws and the one on the published draw, at some dimensions, 50 among them."""
    table = load_genki()
    female, smile = table.extra["female"], table.extra["smile"]
    is_test, rows = table.is_test, torch.arange(len(table))
    assert is_test is not None

    def experiment(published: bool) -> Experiment:
        return Experiment(
            name="genki",
            title="GENKI: expression against gender",
            inputs=table.features,
            private=female,
            task=smile,
            split=lambda trial: is_test if published else stratified(2 * smile + female, rows, 200 / 1940, trial),
            dimensions=dimensions,
            main=50,
            learning=Learning(rho=10.0, iterations=5, adversary="least squares"),
        )

    return experiment(False), experiment(True)


def _published(experiment: Experiment) -> list[Figure]:
    """The author's own draw, at the main dimension."""
    found = run_trials(experiment, 1)
    key = ("minimax", experiment.main)
    note = "the published split; the author's stored result: expression 0.88, gender 0.49"
    return [
        Figure("minimax.genki.published.task", found.task[key][0], note=note),
        Figure("minimax.genki.published.private", found.private[key][0], note=note),
    ]
