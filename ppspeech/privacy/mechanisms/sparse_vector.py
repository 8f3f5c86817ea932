"""The sparse vector technique (named in Prakash and Gujar 2020), as Lyu, Su and Li's algorithm 7 (2017), the sound
variant.

Many questions "is q above T?", of which only the few answered yes are paid for. Unsound variants in the literature
release the noisy query, leave out its noise, do not scale it with the number of positives, or never stop; the
audit's exact pattern probabilities kill each of them. Theorem 1.28 in docs/theory/release.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import logsumexp
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import ExactPureEvent
from ppspeech.privacy.audit.catalogue import ONE_RECORD, exact_report
from ppspeech.privacy.audit.exact import ExactAudit, audit_exact
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.parameters import check_count, check_finite, check_positive, check_positives
from ppspeech.privacy.relation import Relation, check_monotone
from ppspeech.privacy.samplers.discrete import sample_discrete_laplace
from ppspeech.privacy.samplers.grid import Grid, dyadic


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a query was above its threshold, and its noisy value if numbers were asked for and it was."""

    above: bool
    value: float | None = None


@mechanism("sparse_vector", ExactPureEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector:
    """Answers any number of threshold questions until `positives` were answered yes.

    Formal guarantee: (epsilon_threshold + epsilon_queries + epsilon_answers)-DP under `relation`, if
    every query moves by at most `sensitivity` between neighbors. Queries are rounded to a grid, with one step added
    to the sensitivity, and the noise is exact discrete Laplace, so the guarantee holds for the bits.

    Epsilon_1 is for the threshold's noise, drawn once, epsilon_2 for the comparisons, and epsilon_3 for numeric answers
    with fresh noise, 0 for none. After c = `positives` the run is over. `monotone`: one more unit moves all queries in
    the same direction, which halves the noise; not under `replace`, where one may rise and another fall.
    """

    epsilon_threshold: float
    epsilon_queries: float
    positives: int
    sensitivity: float
    relation: Relation
    epsilon_answers: float = 0.0
    monotone: bool = False

    def __post_init__(self) -> None:
        check_positives(self, "epsilon_threshold", "epsilon_queries", "sensitivity")
        check_positive("epsilon_answers", self.epsilon_answers, zero=True)
        check_count("positives", self.positives)
        check_monotone(self.monotone, self.relation)

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
        split = {"epsilon_threshold": comparing / (1 + ratio), "epsilon_queries": comparing * ratio / (1 + ratio)}
        terms: dict[str, Any] = {"positives": positives, "sensitivity": sensitivity, "relation": relation}
        return cls(**split, epsilon_answers=epsilon * answers, **terms, monotone=monotone)

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
    def event(self) -> ExactPureEvent:
        """What one run costs, however many questions are asked."""
        return ExactPureEvent(self.epsilon, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one run promises."""
        alike = " in one direction" if self.monotone else ""
        moves = f"every query moves by at most {self.sensitivity:.6g}{alike}"
        assumptions = (moves, "thresholds do not depend on private data")
        return Guarantee.of(self.event, assumptions=assumptions)

    def open(self) -> "SparseVectorRun":
        """Start a run; book `event` once for it."""
        return SparseVectorRun(self)

    def release(self, queries: Tensor, threshold: float) -> Released[tuple[Answer, ...]]:
        """Ask the queries `(count,)` in turn against one threshold, until the run is over."""
        run = self.open()
        answers = tuple(run.ask(query, threshold) for query in queries.tolist() if not run.over)
        return Released(answers, self.event, self.guarantee)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:  # noqa: ARG003
        """By exact probabilities of the hardest answer patterns."""
        one = cls.calibrated(epsilon=1.0, positives=2, sensitivity=1.0, relation=ONE_RECORD)
        return [exact_report("sparse_vector", sparse_vector_audit(one), one.guarantee)]


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
        """Whether `query` is above `threshold`, with noise; an ended run refuses before it looks at the query."""
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


def sparse_vector_audit(mechanism: SparseVector, below: int = 300) -> ExactAudit:
    """The hardest patterns known: many answers "below" and then all the positives, each against its odds.

    Queries answered "below" rise by the sensitivity on the neighbor, those answered "above" fall (monotone ones
    cannot, and stay) from far below the threshold; many of the former make its noise yield a whole sensitivity.
    """
    move = mechanism.sensitivity
    far = 30.0 * move * mechanism.positives / mechanism.epsilon_queries
    pattern = (False,) * below + (True,) * mechanism.positives

    def log_density(levels: Tensor, moved: bool) -> Tensor:
        found = []
        for level in levels.tolist():
            high = [level + move * moved] * below
            fall = 0.0 if mechanism.monotone else move * moved
            low = [-far - fall] * mechanism.positives
            found.append(pattern_log_probabilities(mechanism, high + low, 0.0, [pattern])[0])
        return torch.tensor(found, dtype=torch.float64)

    spread = float(mechanism.query_scale) * mechanism.grid.step
    return audit_exact(log_density, False, True, torch.tensor([-2.0, 0.0, 2.0]) * spread)


def pattern_log_probabilities(
    mechanism: SparseVector, queries: Sequence[float], threshold: float, patterns: Sequence[Sequence[bool]]
) -> NDArray[np.float64]:
    """ln P(the run answers a pattern to `queries`) for each pattern, numeric answers left aside.

    Given the threshold's noise the answers are independent, so each probability is one sum over that noise of a product
    of discrete Laplace tails. A pattern may be shorter than `queries` (the run ended at its last positive).
    """
    grid = mechanism.grid
    outer, inner = float(mechanism.threshold_scale), float(mechanism.query_scale)
    reach = math.ceil(40 * outer)
    noise = np.arange(-reach, reach + 1, dtype=np.float64)
    law = math.log(math.tanh(1 / (2 * outer))) - np.abs(noise) / outer
    level = round(threshold / grid.step)
    tails: dict[float, dict[bool, NDArray[np.float64]]] = {}
    for query in set(queries):
        gap = level + noise - round(query / grid.step)  # above iff the query's noise reaches it
        tails[query] = {True: _log_at_least(gap, inner), False: _log_at_least(1 - gap, inner)}
    found = []
    for pattern in patterns:
        total = law.copy()
        for query, above in zip(queries, pattern, strict=False):
            total += tails[query][above]
        found.append(float(logsumexp(total)))
    return np.array(found)


def possible_patterns(mechanism: SparseVector, count: int) -> list[tuple[bool, ...]]:
    """Every pattern that a run over `count` queries can answer: it ends with the last positive allowed."""
    found: dict[tuple[bool, ...], None] = {}
    for answers in product((False, True), repeat=count):
        ends = [end for end in range(count) if sum(answers[:end]) == mechanism.positives]
        found[answers[: min(ends, default=count)]] = None
    return list(found)


def _log_at_least(k: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """ln P(noise >= k) of the discrete Laplace law: q^k / (1 + q) for k >= 1, 1 - q^(1-k) / (1 + q) below."""
    log_norm = math.log1p(math.exp(-1 / scale))
    positive = -np.maximum(k, 1) / scale - log_norm
    negative = np.log1p(-np.exp(-(1 - np.minimum(k, 0)) / scale - log_norm))
    tail: NDArray[np.float64] = np.where(k >= 1, positive, negative)
    return tail
