"""Noise in kernel values, as Pathak 2010 (section 5.1.2) hoped for: the dual that is released is a list of people.

A kernel machine's decision is sum a_i k(x_i, x) + b over the rows with a_i != 0, its support vectors, which whoever
uses it must have. Noise on k(x_i, x_j) while it is trained changes which rows these are and what a_i is, not that they
are rows of the training data, in clear. (Nor could it be calibrated: one record is in n kernel values.) Proposition
1.36 in docs/theory/release.md.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppspeech.privacy import Guarantee, Relation, Released, check_positive, mechanism
from ppspeech.privacy.accounting import NonPrivateEvent
from ppspeech.privacy.audit import CONFIDENCE, AuditReport, audit_leak_identity
from ppspeech.privacy.samplers import standard_normal

Rows = NDArray[np.float64]
SMALL = 1e-9  # a distance at which two rows are the same
AUDITED = 150


@dataclass(frozen=True, slots=True)
class Dual:
    """What is released: support vectors `(s, d)`, their weights `(s,)` and an offset."""

    rows: Rows
    weights: Rows
    offset: float

    def scores(self, x: Rows, width: float) -> Rows:
        """The decision for rows `(n, d)`, `(n,)`."""
        scores: Rows = gaussian_kernel(x, self.rows, width) @ self.weights + self.offset
        return scores


@mechanism("published_kernel_noise")
@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedKernelNoise:
    """A support vector machine whose kernel values got Gaussian noise of standard deviation `sigma`; C = 1."""

    sigma: float
    width: float

    def __post_init__(self) -> None:
        check_positive("sigma", self.sigma)
        check_positive("width", self.width)

    @property
    def relation(self) -> Relation:
        """One record more or less."""
        return Relation("record", "add_remove")

    @property
    def event(self) -> NonPrivateEvent:
        """Infinite epsilon: records are released."""
        return NonPrivateEvent("a kernel machine's dual with noise in kernel values", self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """Broken."""
        return Guarantee(
            kind="broken", relation=self.relation, caveat="support vectors are rows of the data, and are released"
        )

    def release(self, data: tuple[Rows, NDArray[np.int64]]) -> Released[Dual]:
        """Train on rows `(n, d)` with classes `(n,)`, 0 or 1."""
        from sklearn.svm import SVC

        x, y = data
        noise = standard_normal((len(x), len(x))).numpy() * self.sigma
        noisy = gaussian_kernel(x, x, self.width) + (noise + noise.T) / np.sqrt(2)
        values, vectors = np.linalg.eigh(noisy)
        machine = SVC(kernel="precomputed", C=1.0).fit((vectors * values.clip(0)) @ vectors.T, y)
        dual = Dual(x[machine.support_], machine.dual_coef_[0], float(machine.intercept_[0]))
        return Released(dual, self.event, self.guarantee)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:  # noqa: ARG003
        """One row that its classes disagree about, which a margin cannot do without: is it in what was released?"""
        one = cls(sigma=0.1, width=1.0)
        generator = np.random.default_rng(0)
        x, y = generator.normal(size=(21, 2)), np.arange(21) % 2
        x[20] = (5.0, 5.0)  # far from everybody: nobody else speaks for it

        def apart(dual: Dual, row: int) -> float:
            del row
            return float(np.abs(dual.rows - x[20]).max(1).min())

        released = audit_leak_identity(
            lambda rows: one.release((x[:rows], y[:rows])).value,
            21,
            20,
            apart,
            AUDITED,
            tolerance=SMALL,
            name="published_kernel_noise",
            stated=Guarantee(
                kind="broken",
                relation=one.relation,
                claimed_epsilon=1.0,
                caveat=one.guarantee.caveat,
            ),
            confidence=CONFIDENCE,
        )
        return [released]


def gaussian_kernel(x: Rows, y: Rows, width: float) -> Rows:
    """exp(-|x - y|^2 / 2 width^2) of all pairs, `(n, m)`."""
    square = (x**2).sum(1)[:, None] + (y**2).sum(1) - 2 * x @ y.T
    kernel: Rows = np.exp(-square.clip(0) / (2 * width**2))
    return kernel


def rows_read(dual: Dual, rows: Rows) -> NDArray[np.bool_]:
    """Which of some people's rows `(n, d)` stand in what was released, `(n,)`: nothing but a look at the file."""
    nearest = np.abs(rows[:, None] - dual.rows).max(2).min(1)
    found: NDArray[np.bool_] = nearest <= SMALL
    return found
