"""The median mechanism as a survey prints it (Prakash and Gujar 2020, figure 1, after Roth and Roughgarden 2010).

The figure leaves out what r, m, alpha' and gamma are. With the original's

    r_i = mean over S of exp(-|f_i(D) - f_i(S)| / eps),    alpha' = alpha / (720 m ln |X|),
    gamma = 4 ln(2 k / alpha) / (alpha' eps n),            m = 160000 ln k ln(1 / eps) / eps^2

it is sound for its (alpha, delta), and not for use: 4 cells and an accuracy of 0.1 are 4^(2.8 * 10^8) databases. With
an m that can be listed, step (e) keeps databases within eps / 50 of an answer with noise Lap(1 / (n alpha')): unless

    n >= 50 * 720 m ln|X| ln(1 / b) / (alpha eps)     (noise within eps / 50 but with probability b)

it drops them all, at the first hard question, and r_{i+1} is a mean over nothing. Choosing alpha' so that it does not,
and not by the formula, costs what `epsilon_at` says: step (f) lets 20 m ln|X| hard questions through. Correction 1.30
in docs/theory/release.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.privacy import Guarantee, Relation, check_count, check_positive, check_probability
from ppspeech.privacy.accounting import NonPrivateEvent
from ppspeech.privacy.mechanisms import histograms
from ppspeech.privacy.samplers import standard_laplace, uniform

RECORD = Relation("record", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedMedian:
    """Figure 1 with the original's constants, but for `grain`, m, which must be small enough to list all databases.

    `alpha`: privacy, as claimed; `accuracy`: epsilon of the paper; `rows`: n; `questions`: k; `cells`: |X|.
    """

    alpha: float
    accuracy: float
    rows: int
    questions: int
    cells: int
    grain: int

    def __post_init__(self) -> None:
        check_positive("alpha", self.alpha)
        check_probability("accuracy", self.accuracy)
        for name in ("rows", "questions", "cells", "grain"):
            check_count(name, getattr(self, name))

    @property
    def stated_grain(self) -> float:
        """m of the original."""
        return 160_000 * math.log(self.questions) * math.log(1 / self.accuracy) / self.accuracy**2

    @property
    def alpha_each(self) -> float:
        """alpha'."""
        return self.alpha / (720 * self.grain * math.log(self.cells))

    @property
    def gamma(self) -> float:
        """The step of thresholds; more than all of r's range where n is small."""
        return 4 * math.log(2 * self.questions / self.alpha) / (self.alpha_each * self.accuracy * self.rows)

    @property
    def most_hard(self) -> int:
        """After so many hard questions it fails: step (f)."""
        return math.floor(20 * self.grain * math.log(self.cells))

    def rows_needed(self, missed: float = 0.05) -> int:
        """n at which a hard answer keeps the databases that it should, but with this probability."""
        return math.ceil(50 * math.log(1 / missed) / (self.alpha_each * self.accuracy))

    def epsilon_at(self, rows: int, missed: float = 0.05) -> float:
        """What all hard answers cost if alpha' is instead chosen for that to be so with `rows`: alpha' each."""
        return self.most_hard * 50 * math.log(1 / missed) / (self.accuracy * rows)

    @property
    def event(self) -> NonPrivateEvent:
        """Nothing that an account may hold: the figure has no constants to prove it with."""
        return NonPrivateEvent("the median mechanism as printed in a survey", RECORD)

    @property
    def guarantee(self) -> Guarantee:
        """Unproven as printed."""
        return Guarantee(
            kind="unproven",
            relation=RECORD,
            claimed_epsilon=self.alpha,
            caveat="r, m, alpha' and gamma are not printed; with the original's it answers nothing below "
            f"{self.rows_needed():,} rows, and chosen to answer it can cost {self.epsilon_at(self.rows):.3g}",
        )

    def run(self, parts: Reals, questions: Sequence[Reals]) -> tuple[list[float], bool]:
        """Ask questions `(cells,)` about a table with `parts` `(cells,)`: answers, and whether any database is left.

        It ends where there is none, which the figure does not speak of, or at step (f).
        """
        alive, answers, hard = histograms(self.cells, self.grain) / self.grain, list[float](), 0
        for weights in questions:
            truth, values = float(weights @ parts), alive @ weights
            r = float(np.exp(-np.abs(truth - values) / self.accuracy).mean())
            noisy = r + _laplace(2 / (self.accuracy * self.rows * self.alpha_each))  # step (a)
            threshold = 0.75 + self._level() * self.gamma  # step (b)
            if noisy >= threshold:
                answers.append(float(np.median(values)))  # step (c)
                continue
            hard += 1
            answers.append(truth + _laplace(1 / (self.rows * self.alpha_each)))  # step (d)
            alive = alive[np.abs(values - answers[-1]) <= self.accuracy / 50]  # step (e)
            if not len(alive) or hard > self.most_hard:  # step (f)
                return answers, bool(len(alive))
        return answers, True

    def _level(self) -> int:
        """j, with a probability proportional to 2^-j, up to 3 / 20 gamma."""
        most = math.floor(3 / (20 * self.gamma))
        while True:
            level = math.floor(-math.log2(float(uniform(1)[0])))
            if level <= most:
                return level


def _laplace(scale: float) -> float:
    return scale * float(standard_laplace((1,)))
