"""The sparse vector technique (named in Prakash and Gujar 2020), as Lyu, Su and Li's algorithm 7 (2017), the sound
variant.

Many questions "is q above T?", of which only the few answered yes are paid for. Unsound variants in the literature
release the noisy query, leave out its noise, do not scale it with the number of positives, or never stop; the
audit's exact pattern probabilities kill each of them.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import PureEvent
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.parameters import check_count, check_finite, check_positive
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.samplers.discrete import sample_discrete_laplace
from ppspeech.privacy.samplers.grid import Grid, dyadic


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a query was above its threshold, and its noisy value if numbers were asked for and it was."""

    above: bool
    value: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector:
    """Answers any number of threshold questions until `positives` were answered yes.

    Formal guarantee: (epsilon_threshold + epsilon_queries + epsilon_answers)-DP under `relation`, if
    every query moves by at most `sensitivity` between neighbors. Queries are rounded to a grid, with one step added
    to the sensitivity, and the noise is exact discrete Laplace, so the guarantee holds for the bits.

    Attributes:
        epsilon_threshold: epsilon_1, for the threshold's noise, drawn once.
        epsilon_queries: epsilon_2, for the comparisons.
        epsilon_answers: epsilon_3, for numeric answers with fresh noise; 0 for none.
        positives: c, after which the run is over.
        sensitivity: of every query, > 0.
        relation: what is protected, and what neighboring means.
        monotone: one more unit moves all queries in the same direction; halves the noise.
    """

    epsilon_threshold: float
    epsilon_queries: float
    positives: int
    sensitivity: float
    relation: Relation
    epsilon_answers: float = 0.0
    monotone: bool = False

    def __post_init__(self) -> None:
        check_positive("epsilon_threshold", self.epsilon_threshold)
        check_positive("epsilon_queries", self.epsilon_queries)
        check_positive("epsilon_answers", self.epsilon_answers, zero=True)
        check_positive("sensitivity", self.sensitivity)
        check_count("positives", self.positives)

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        positives: int,
        sensitivity: float,
        relation: Relation,
        monotone: bool = False,
        answers: float = 0.0,
    ) -> "SparseVector":
        """Split a budget: the part `answers` for numbers, the rest as 1 : (2c)^(2/3), or 1 : c^(2/3) where monotone.

        That ratio makes the variance of the comparison smallest.
        """
        check_positive("epsilon", epsilon)
        check_count("positives", positives)
        if not 0 <= check_finite("answers", answers) < 1:
            raise PrivacyError(f"answers must be in [0, 1), got {answers}")
        ratio = (positives if monotone else 2 * positives) ** (2 / 3)
        comparing = epsilon * (1 - answers)
        return cls(
            epsilon_threshold=comparing / (1 + ratio),
            epsilon_queries=comparing * ratio / (1 + ratio),
            epsilon_answers=epsilon * answers,
            positives=positives,
            sensitivity=sensitivity,
            relation=relation,
            monotone=monotone,
        )

    @property
    def epsilon(self) -> float:
        """The whole budget, spent when the run opens."""
        return self.epsilon_threshold + self.epsilon_queries + self.epsilon_answers

    @property
    def grid(self) -> Grid:
        """The grid that queries and thresholds are rounded to."""
        return Grid.for_values(self.sensitivity, 1, 1, integer_valued=False)

    @property
    def threshold_scale(self) -> Fraction:
        """Scale of the threshold's noise in steps: s / epsilon_1."""
        return dyadic(self.grid.sensitivity / self.epsilon_threshold)

    @property
    def query_scale(self) -> Fraction:
        """Scale of every query's noise in steps: 2 c s / epsilon_2, or c s / epsilon_2 where monotone."""
        factor = self.positives if self.monotone else 2 * self.positives
        return dyadic(factor * self.grid.sensitivity / self.epsilon_queries)

    @property
    def event(self) -> PureEvent:
        """What one run costs, however many questions are asked."""
        return PureEvent(self.epsilon, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one run promises."""
        return Guarantee(
            kind="pure",
            relation=self.relation,
            epsilon=self.epsilon,
            float_safe=True,
            assumptions=(
                f"every query moves by at most {self.sensitivity:.6g}{' in one direction' if self.monotone else ''}",
                "thresholds do not depend on private data",
            ),
        )

    def open(self) -> "SparseVectorRun":
        """Start a run; book `event` once for it."""
        return SparseVectorRun(self)

    def release(self, queries: Tensor, threshold: float) -> Released[tuple[Answer, ...]]:
        """Ask the queries `(count,)` in turn against one threshold, until the run is over."""
        run = self.open()
        answers: list[Answer] = []
        for query in queries.tolist():
            if run.over:
                break
            answers.append(run.ask(query, threshold))
        return Released(tuple(answers), self.event, self.guarantee)


class SparseVectorRun:
    """One run: holds the threshold's noise and the number of positives left. It cannot be copied or pickled."""

    def __init__(self, mechanism: SparseVector) -> None:
        self.mechanism = mechanism
        self.positives_left = mechanism.positives
        self._grid = mechanism.grid
        self._threshold_noise = _noise(mechanism.threshold_scale)

    @property
    def over(self) -> bool:
        """Whether all positives are used up, after which no query may be asked."""
        return self.positives_left == 0

    def ask(self, query: float, threshold: float) -> Answer:
        """Whether `query` is above `threshold`, with noise.

        Raises:
            PrivacyError: when the run is over, before the query is looked at.
        """
        if self.over:
            raise PrivacyError(f"all {self.mechanism.positives} positives are used up: open a new run and book it")
        steps = self._steps("query", query)
        level = self._steps("threshold", threshold) + self._threshold_noise
        if steps + _noise(self.mechanism.query_scale) < level:
            return Answer(above=False)
        self.positives_left -= 1
        if self.mechanism.epsilon_answers == 0:
            return Answer(above=True)
        scale = dyadic(self.mechanism.positives * self._grid.sensitivity / self.mechanism.epsilon_answers)
        return Answer(above=True, value=(steps + _noise(scale)) * self._grid.step)

    def _steps(self, name: str, value: float) -> int:
        if not math.isfinite(value):
            raise PrivacyError(f"{name} must be finite, got {value}")
        return round(value / self._grid.step)

    def __repr__(self) -> str:
        return f"SparseVectorRun(positives_left={self.positives_left})"

    def __reduce__(self) -> str:
        raise PrivacyError("a running sparse vector holds noise and is never copied or stored")


def _noise(scale: Fraction) -> int:
    return int(sample_discrete_laplace(scale, 1)[0])
