"""The median mechanism: 2,000 questions about the census at epsilon = 1, beside Laplace noise and other ways.

Four cells of people: 40 or older, or not; earning more than 50,000 dollars, or not. A question has for each cell a
weight of 0, of 1, or between. All ways have the same epsilon for one record, delta 0, and the same stream of questions:

- median: hard questions are paid for, easy ones follow from them (`ppspeech.privacy.MedianMechanism`);
- weights: the same with multiplicative weights for guesses (Hardt and Rothblum 2010), and as many hard questions; where
  they are used up it stops. Its rate, 0.3, is the best of seven from 0.02 to 1 on these very questions;
- Laplace: every question with noise for a part of epsilon;
- histogram: the four counts once, of which all answers follow. For a universe that is small enough for the median
  mechanism to compute with, this is better than all of them, and known before the first question.

And the mechanism as a survey prints it, with the original's constants: how often its first hard answer leaves no
database.

Needs the table adult; --quick takes about 30 s.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from ppspeech.arrays import Reals
from ppspeech.cluster import sweep
from ppspeech.data.tables import load_adult_raw
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.published.median import PublishedMedian
from ppspeech.figures import Figure
from ppspeech.intervals import SHARE, Mean
from ppspeech.pictures import blank, curve, save
from ppspeech.privacy import DiscreteLaplace, Histogram, MedianMechanism, Relation

EPSILON, CELLS = 1.0, 4
OLD = 40
RATE = 0.3  # of multiplicative weights
RECORD = Relation("record", "replace")
COUNTS, QUICK = (100, 200, 500, 1000, 2000), (500, 2000)
RUNS, QUICK_RUNS = 10, 2
PUBLISHED_RUNS = 200


@EXPERIMENTS.register("median")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Ask streams of questions in all ways; save the errors as `median.png` in `folder`."""
    census = load_adult_raw()
    cells = (census.numbers["age"] >= OLD).long() + 2 * census.labels
    runs, counts = (QUICK_RUNS, QUICK) if quick else (RUNS, COUNTS)
    pairs = [(k, seed) for k in counts for seed in range(runs)]
    told = sweep(partial(_compared, cells), pairs)
    asked = {k: [each for each, (asks, _) in zip(told, pairs, strict=True) if asks == k] for k in counts}
    figures = [each for k, found in asked.items() for each in _figures(k, len(cells), found)]
    picture = folder / "median.png"
    _plot(asked, picture)
    last, most = asked[max(counts)], MedianMechanism(epsilon=EPSILON, cells=CELLS, rows=len(cells), relation=RECORD)
    sizes = f"{len(cells):,} records, {CELLS} cells, epsilon {EPSILON:g}, {runs} runs of {max(counts):,} questions"
    worst, hard = (max(each[name] for each in last) for name in ("median", "median_hard"))
    stated = f"the largest of all runs; stated {most.error:.4g} but with probability 0.1; {sizes}"
    ratio = float(np.mean([each["laplace"] for each in last]) / np.mean([each["median"] for each in last]))
    return [
        Figure("median.hard_queries", hard, note=f"of at most {most.hard}; {sizes}"),
        Figure("median.max_error", worst, note=stated),
        Figure("median.laplace_ratio", ratio, "x", note=f"largest errors, means over runs; {sizes}; {picture}"),
        *figures,
        *_published(cells),
    ]


def stream(questions: int, seed: int) -> Reals:
    """Weights of 0, of 1 and between, `(questions, cells)`."""
    rng = np.random.default_rng(seed)
    kinds, between = rng.integers(0, 3, size=(questions, CELLS)), rng.uniform(size=(questions, CELLS))
    return np.where(kinds == 2, between, kinds)


def compare(cells: torch.Tensor, questions: int, seed: int, grain: int = 0, beta: float = 0.05) -> dict[str, float]:
    """The largest error of every way, as a part of all rows; of sessions, how many were answered, and hard."""
    rows, asked = len(cells), stream(questions, seed)
    parts = np.bincount(cells.numpy(), minlength=CELLS) / rows
    truths = asked @ parts
    mechanism = MedianMechanism(
        epsilon=EPSILON, cells=CELLS, rows=rows, relation=RECORD, questions=questions, grain=grain, beta=beta
    )
    found: dict[str, float] = {"stated": mechanism.error}
    ways: dict[str, Callable[[], Weights | None]] = {"median": lambda: None, "weights": lambda: Weights(mechanism)}
    for name, guesses in ways.items():
        session = mechanism.open(cells, guesses())
        told = [session.ask(torch.from_numpy(question)) for question in asked if not session.over]
        values = np.array([each.value for each in told])
        found[name] = float(np.abs(values - truths[: len(values)]).max())
        found[f"{name}_hard"], found[f"{name}_answered"] = sum(each.hard for each in told), len(told)
    laplace = DiscreteLaplace(
        epsilon=EPSILON, sensitivity=float(questions), dimension=questions, relation=RECORD
    ).release(torch.from_numpy(truths * rows))
    found["laplace"] = float(np.abs(np.clip(laplace.value.numpy() / rows, 0, 1) - truths).max())
    counts = Histogram(bins=CELLS, epsilon=EPSILON, relation=RECORD).release(cells).value.numpy() / rows
    found["histogram"] = float(np.abs(asked @ counts - truths).max())
    return found


def _compared(cells: torch.Tensor, run: tuple[int, int]) -> dict[str, float]:
    return compare(cells, *run)


class Weights:
    """Multiplicative weights: a histogram that leans toward each hard answer."""

    contradicted = False

    def __init__(self, mechanism: MedianMechanism) -> None:
        self._parts = np.full(mechanism.cells, 1 / mechanism.cells)

    def guess(self, weights: Reals) -> float:
        """Its own answer."""
        return float(self._parts @ weights)

    def learn(self, weights: Reals, answer: float) -> None:
        """A step up or down in the cells that the question is about."""
        step = np.exp(np.sign(answer - self.guess(weights)) * RATE * weights)
        self._parts = self._parts * step / float(self._parts @ step)


def _figures(questions: int, rows: int, found: list[dict[str, float]]) -> list[Figure]:
    note = f"largest error, mean of {len(found)} runs, {rows:,} records; interval over runs"
    laplace = float(np.mean([each["laplace"] for each in found]))
    figures = []
    for name in ("median", "weights", "histogram"):
        mean, metric = Mean.of([each[name] for each in found]), f"median.k{questions}.{name}_error"
        ratio = laplace / mean.value
        figures.append(Figure.mean(metric, mean, "", "Laplace", laplace, ratio, note, limits=SHARE))
    note = f"of {questions:,}, before the session was over, the fewest of all runs"
    return figures + [
        Figure(f"median.k{questions}.{name}_answered", min(each[f"{name}_answered"] for each in found), note=note)
        for name in ("median", "weights")
    ]


def _published(cells: torch.Tensor) -> list[Figure]:
    """How often figure 1 ends with its first hard answer."""
    rows = len(cells)
    parts = np.bincount(cells.numpy(), minlength=CELLS) / rows
    terms = {"rows": rows, "questions": 2000, "cells": CELLS, "grain": 40}
    printed = PublishedMedian(alpha=EPSILON, accuracy=0.1, **terms)
    ended = sum(not printed.run(parts, list(stream(20, seed)))[1] for seed in range(PUBLISHED_RUNS))
    note = f"no database is left; runs of 20 questions; grain 40 where the original has {printed.stated_grain:.2g}"
    return [
        Figure.share("median.published.ended", ended, PUBLISHED_RUNS, "runs", note=note),
        Figure("median.published.rows_needed", printed.rows_needed(), note="for hard answers that are near enough"),
        Figure(
            "median.published.epsilon",
            printed.epsilon_at(rows),
            note=f"of all hard answers that step (f) allows, noise chosen to be near enough; claimed {EPSILON:g}",
        ),
    ]


def _plot(asked: dict[int, list[dict[str, float]]], path: Path) -> None:
    picture = blank(7, 4.5)
    axes = picture.subplots()
    for name, label in (
        ("laplace", "Laplace"),
        ("median", "median"),
        ("weights", "multiplicative weights"),
        ("histogram", "histogram"),
    ):
        curve(axes, {k: Mean.of([each[name] for each in found]) for k, found in asked.items()}, label)
    axes.plot(list(asked), [found[0]["stated"] for found in asked.values()], "k--", label="median, stated")
    axes.set(xscale="log", yscale="log", xlabel="questions", ylabel="largest error, as a part of all records")
    axes.set_title(f"Census, {CELLS} cells, epsilon {EPSILON:g} for one record")
    axes.legend(fontsize="small")
    save(picture, path)
