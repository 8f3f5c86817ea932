r"""The median mechanism: any number of questions about one table, of which only the hard ones are paid for.

After Roth and Roughgarden 2010, in a form that computes. The answer to a question f, a weight in [0, 1] for each of |X|
cells, is the sum of f over n rows. All histograms whose cells are multiples of 1/m are hypotheses; those that fit what
was answered so far are alive. To a question,

    1. the guess is the median of f over the hypotheses that are alive, which everybody can compute;
    2. the sparse vector technique asks whether |f(D) - guess| reaches T;
    3. if not, the guess is the answer: an easy question, which costs nothing more;
    4. if so, f(D) with fresh noise is the answer: a hard one. Hypotheses further than a_d + a_a from it are dropped.

With the bounds (in fractions of n, each of the noises within its own but with probability beta)

    a_s   of a comparison, the threshold's noise and the query's over k questions,
    a_a   of c = ceil(log2 |H|) answers,
    a_d   = |X| / 4m, from any table to the nearest hypothesis,

T = a_s + 2 a_a + a_d: a hard answer then lies more than a_a + a_d from the median, so that the median's side is
dropped whole: half of what was alive. The nearest hypothesis always stays, so there are at most c hard questions. All
answers are within T + a_s. Privacy does not rest on any of this: it is the sparse vector's and that of c noisy answers.

a_d: rounding to multiples of 1/m by largest remainders r_i raises j = sum r_i cells of |X|, those with the largest r_i.
Errors add up to zero, so no question is off by more than what was raised, sum (1 - r_i) over the raised, at most
j (1 - j / |X|) <= |X| / 4 steps. Theorem 1.29 in docs/theory/release.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from ppspeech.arrays import Reals
from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import ExactPureEvent
from ppspeech.privacy.audit.catalogue import exact_report
from ppspeech.privacy.audit.exact import ExactAudit, audit_exact
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.mechanisms.discrete_laplace import DiscreteLaplace
from ppspeech.privacy.mechanisms.sparse_vector import SparseVector, pattern_log_probabilities
from ppspeech.privacy.parameters import check_count, check_positive, check_probability
from ppspeech.privacy.relation import Relation

MOST_HYPOTHESES = 200_000
"""So many histograms are looked at in some milliseconds a question."""


@dataclass(frozen=True, slots=True)
class Told:
    """An answer, as a part of all rows, and whether it was hard: then it is noisy, else the hypotheses' median."""

    value: float
    hard: bool


@mechanism("median", ExactPureEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class MedianMechanism:
    """Answers questions about a table until the hard ones are used up.

    Formal guarantee: epsilon-DP under `relation`, to the bit, however many questions are asked and however they depend
    on earlier answers. Half the budget is the comparisons', half the answers'. Only for `replace`: the number of rows
    is public.

    `cells`: |X|, in one of which each row is; `rows`: n; `grain`: m, by default the finest whose hypotheses can be
    listed; `questions`: k and `beta`, for which errors are stated, and of which privacy does not depend.
    """

    epsilon: float
    cells: int
    rows: int
    relation: Relation
    questions: int = 2000
    beta: float = 0.05
    grain: int = 0

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_probability("beta", self.beta)
        check_count("cells", self.cells, least=2)
        check_count("rows", self.rows)
        check_count("questions", self.questions)
        check_count("grain", self.grain, least=0)
        if self.relation.adjacency != "replace":
            raise PrivacyError("parts of all rows are asked for, whose number is public: use Relation(…, 'replace')")
        if self.grain == 0:
            object.__setattr__(self, "grain", _finest(self.cells))
        if self.hypotheses > MOST_HYPOTHESES:
            raise PrivacyError(
                f"{self.cells} cells in steps of 1/{self.grain} are {self.hypotheses:,} histograms, and at most "
                f"{MOST_HYPOTHESES:,} are looked at: ask about fewer cells, or in larger steps"
            )

    @property
    def hypotheses(self) -> int:
        """|H|, how many histograms there are at the start."""
        return math.comb(self.grain + self.cells - 1, self.cells - 1)

    @property
    def hard(self) -> int:
        """c, how many questions may be hard."""
        return max(1, (self.hypotheses - 1).bit_length())

    @property
    def comparisons(self) -> SparseVector:
        """What tells hard questions from easy ones, by numbers of rows, of which one unit moves any by at most 1."""
        return SparseVector.calibrated(
            epsilon=self.epsilon / 2, positives=self.hard, sensitivity=1.0, relation=self.relation
        )

    @property
    def answers(self) -> DiscreteLaplace:
        """What answers one hard question: c of them cost half the budget."""
        terms: dict[str, Any] = {"sensitivity": 1.0, "dimension": 1, "relation": self.relation}
        return DiscreteLaplace(epsilon=self.epsilon / 2 / self.hard, **terms)

    @property
    def comparison_error(self) -> float:
        """a_s n: the noise of all comparisons, in rows, but with probability beta."""
        run = self.comparisons
        steps = math.ceil(float(run.query_scale) * math.log(2 * self.questions / self.beta))
        steps += math.ceil(float(run.threshold_scale) * math.log(2 / self.beta))
        return (steps + 1) * run.grid.step  # a step for rounding of gap and threshold

    @property
    def answer_error(self) -> float:
        """a_a n: the noise of all hard answers, in rows, but with probability beta."""
        steps = math.ceil(float(self.answers.scale) * math.log(self.hard / self.beta))
        return (steps + 1) * self.answers.grid.step

    @property
    def grain_error(self) -> float:
        """a_d n: from any table to the nearest hypothesis, in rows."""
        return self.rows * self.cells / (4 * self.grain)

    @property
    def threshold(self) -> float:
        """T n, at which a question is hard: a hair more, as the median itself must be dropped."""
        least = self.comparison_error + 2 * self.answer_error + self.grain_error
        return least + 2 * self.comparisons.grid.step

    @property
    def error(self) -> float:
        """What no answer to the first k questions is off by, as a part of all rows, but with probability 2 beta."""
        return (self.threshold + self.comparison_error) / self.rows

    @property
    def event(self) -> ExactPureEvent:
        """What a session costs, however many questions are asked."""
        return ExactPureEvent(self.comparisons.epsilon + self.hard * self.answers.event.pure(), self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What a session promises."""
        return Guarantee.of(self.event, assumptions=("each unit is in one cell", "the number of units is public"))

    def open(self, cells: Tensor, guesses: "Guesses | None" = None) -> "MedianSession":
        """Start a session about rows in `cells` `(n,)`, whole numbers; book `event` once for it, before.

        `guesses`: another way to guess than by medians. It is told the answers alone, so that the guarantee stays; the
        stated error does not.
        """
        if cells.dim() != 1 or cells.is_floating_point() or len(cells) != self.rows:
            raise PrivacyError(f"made for {self.rows} rows, a cell each, got {cells.dtype} {tuple(cells.shape)}")
        if bool(((cells < 0) | (cells >= self.cells)).any()):
            raise PrivacyError(f"every row is in a cell from 0 to {self.cells - 1}")
        counts = torch.bincount(cells.to(torch.int64), minlength=self.cells).double().numpy()
        return MedianSession(self, counts, Alive(self) if guesses is None else guesses)

    def release(self, cells: Tensor, questions: Tensor) -> Released[tuple[Told, ...]]:
        """Ask questions `(k, cells)` in turn until the session is over."""
        session = self.open(cells)
        told = tuple(session.ask(each) for each in questions if not session.over)
        return Released(told, self.event, self.guarantee)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:  # noqa: ARG003
        """By exact probabilities of the hardest transcript known."""
        one = cls(epsilon=1.0, cells=3, rows=20_000, grain=1, questions=10**6, relation=Relation("record", "replace"))
        return [exact_report("median", median_audit(one), one.guarantee)]


class Guesses(Protocol):
    """What everybody who has heard the answers so far would guess."""

    @property
    def contradicted(self) -> bool:
        """Whether nothing fits the answers."""

    def guess(self, weights: Reals, /) -> float:
        """The part of all rows that a question `(cells,)` is about."""

    def learn(self, weights: Reals, answer: float, /) -> None:
        """Hear the answer to a hard question."""


class MedianSession:
    """What an analyst sees of a table: `ask`, until it is over. It cannot be copied or pickled."""

    def __init__(self, mechanism: MedianMechanism, counts: Reals, guesses: Guesses) -> None:
        self.mechanism = mechanism
        self.asked = 0
        self._counts = counts
        self._answers = mechanism.answers
        self._threshold = mechanism.threshold
        self._run = mechanism.comparisons.open()
        self._guesses = guesses

    @property
    def hard_left(self) -> int:
        """How many questions may still be hard."""
        return self._run.positives_left

    @property
    def over(self) -> bool:
        """Whether the hard questions are used up, or the answers contradict each other: nothing may be asked then."""
        return self._run.over or self._guesses.contradicted

    def ask(self, question: Tensor | Sequence[float]) -> Told:
        """The part of all rows that a question `(cells,)` is about, as weights in [0, 1]; a predicate is 0 and 1.

        A session that is over refuses before it looks at anything.
        """
        if self.over:
            raise PrivacyError(
                f"the session is over: {self.mechanism.hard - self.hard_left} of {self.mechanism.hard} hard questions "
                "were answered; open a new one and book it"
            )
        weights = check_question(question, self.mechanism.cells)
        self.asked += 1
        rows = self.mechanism.rows
        guess = self._guesses.guess(weights)
        truth = float(weights @ self._counts)
        if not self._run.ask(abs(truth - guess * rows), self._threshold).above:
            return Told(guess, hard=False)
        noisy = float(self._answers.release(torch.tensor([truth], dtype=torch.float64)).value) / rows
        told = Told(min(max(noisy, 0.0), 1.0), hard=True)
        self._guesses.learn(weights, told.value)
        return told

    def __repr__(self) -> str:
        return f"MedianSession(asked={self.asked}, hard_left={self.hard_left})"

    def __reduce__(self) -> str:
        raise PrivacyError("a session holds private counts and noise, and is never copied or stored")


class Alive:
    """The hypotheses that fit all hard answers: what everybody who has heard the answers knows."""

    def __init__(self, mechanism: MedianMechanism) -> None:
        self._histograms = histograms(mechanism.cells, mechanism.grain) / mechanism.grain
        self._reach = (mechanism.grain_error + mechanism.answer_error) / mechanism.rows

    @property
    def count(self) -> int:
        """How many."""
        return len(self._histograms)

    @property
    def contradicted(self) -> bool:
        """Whether none is left."""
        return not self.count

    def guess(self, weights: Reals) -> float:
        """Their (lower) median of a question."""
        values = self._histograms @ weights
        middle = (len(values) - 1) // 2
        return float(np.partition(values, middle)[middle])

    def learn(self, weights: Reals, answer: float) -> None:
        """Drop those that a hard answer rules out."""
        self._histograms = self._histograms[np.abs(self._histograms @ weights - answer) <= self._reach]


def check_question(question: Tensor | Sequence[float], cells: int) -> Reals:
    """Refuse what is not a weight in [0, 1] for every cell."""
    weights = torch.as_tensor(question).to(torch.float64)
    if weights.shape != (cells,) or not bool(((weights >= 0) & (weights <= 1)).all()):
        raise PrivacyError(f"a question is a weight from 0 to 1 for each of {cells} cells, got {question!r:.80}")
    return weights.numpy()


@lru_cache(maxsize=4)
def histograms(cells: int, grain: int) -> Reals:
    """Every way to put `grain` rows into `cells`: `(count, cells)`."""
    bars = np.array(list(combinations(range(grain + cells - 1), cells - 1)), dtype=np.int64)
    bars = bars.reshape(-1, cells - 1)
    edges = np.pad(bars, ((0, 0), (1, 1)), constant_values=-1)
    edges[:, -1] = grain + cells - 1
    found: Reals = (np.diff(edges, axis=1) - 1).astype(np.float64)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=64)
def _finest(cells: int) -> int:
    """The largest m whose histograms can be listed."""
    grain = 1
    while math.comb(grain + cells, cells - 1) <= MOST_HYPOTHESES:
        grain += 1
    return grain


def transcript_log_probability(
    mechanism: MedianMechanism, counts: Reals, questions: Sequence[Reals], noisy: Sequence[float | None]
) -> float:
    """ln P(a session about a table of these `counts` `(cells,)` answers so): None is an easy answer, and a number, in
    whole steps of the answers' grid, a hard one.

    Guesses follow from the answers before, so that gaps are known; the pattern of easy and hard has the probability of
    the sparse vector, and the noise of each hard answer its own.
    """
    alive, gaps, total = Alive(mechanism), [], 0.0
    answers, grid = mechanism.answers, mechanism.answers.grid
    for weights, said in zip(questions, noisy, strict=True):
        truth = float(weights @ counts)
        gaps.append(abs(truth - alive.guess(weights) * mechanism.rows))
        if said is not None:
            point, value = torch.tensor([[int(said)]]), torch.tensor([truth], dtype=torch.float64)
            total += float(answers.log_density(point, value))
            alive.learn(weights, said * grid.step / mechanism.rows)
    pattern = [said is not None for said in noisy]
    return total + float(pattern_log_probabilities(mechanism.comparisons, gaps, mechanism.threshold, [pattern])[0])


def median_audit(mechanism: MedianMechanism, easy: int = 300) -> ExactAudit:
    """Three cells and hypotheses that all rows are in one: guesses are 0. A row moves from the first to the second.

    Many questions about the second, whose gap is near the threshold and rises, are easy; then about the first, whose
    gap is far below and falls, all are hard, and told to be larger than they are.
    """
    about = np.eye(mechanism.cells)
    questions = [about[1]] * easy + [about[0]] * mechanism.hard
    spread = float(mechanism.comparisons.query_scale) * mechanism.comparisons.grid.step

    def log_density(levels: Tensor, moved: bool) -> Tensor:
        found = []
        for level in levels.tolist():
            second = round(mechanism.threshold + level * spread)
            counts = np.array([mechanism.rows - second, second, 0.0])
            told = round((counts[0] + 5) / mechanism.answers.grid.step)
            counts += np.array([-1.0, 1.0, 0.0]) * moved
            noisy: list[float | None] = [None] * easy + [float(told)] * mechanism.hard
            found.append(transcript_log_probability(mechanism, counts, questions, noisy))
        return torch.tensor(found, dtype=torch.float64)

    return audit_exact(log_density, False, True, torch.tensor([-2.0, 0.0, 2.0]))
