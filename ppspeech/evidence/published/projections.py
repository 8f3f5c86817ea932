"""Random projections and Wishart noise as printed: constants, a factor, a condition and a claim that do not hold.

- Blocki, Blum, Datta and Sheffet 2012, as the survey of Prakash and Gujar 2020 prints them: no violation is known, but
  w is 35 to 90 times (graphs) and w^2 10^6 to 10^8 times (covariances) what the exact law needs; the published relation
  of covariances is another one, a row of any size that changes by a vector of norm 1. The graph's output has a factor
  1/2 that must be 1/r, and is not defined where w reaches the number of nodes.
- Sheffet 2017: a constant that is proved, and 20 times what is needed.
- Jiang, Xie and Zhang 2016: Wishart noise of d + 1 degrees is claimed to be epsilon-DP. It only ever adds, so that what
  lies below the true matrix cannot have come from it: with probability 1 - exp(-epsilon / 3) one row is ruled out.

Corrections 1.33 and 1.35 in docs/theory/release.md.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy import Guarantee, Relation, Released, check_count, check_positive, check_probability, mechanism
from ppspeech.privacy.accounting import NonPrivateEvent
from ppspeech.privacy.audit import CONFIDENCE, AuditReport, audit_leak_identity
from ppspeech.privacy.mechanisms import sketched_laplacian
from ppspeech.privacy.samplers import standard_normal

SINGULAR = 1e-9  # an eigenvalue below which a matrix counts as not positive: rounding
AUDITED = 400


def covariance_floor(rows: int, epsilon: float, delta: float) -> float:
    """w^2 of covariances as the survey prints it: w = 16 sqrt(r ln(2/delta)) ln(16 r / delta) / epsilon.

    >>> f"{covariance_floor(10, 1.0, 1e-6):.1e}"
    '1.3e+07'
    """
    return (16 * math.sqrt(rows * math.log(2 / delta)) / epsilon * math.log(16 * rows / delta)) ** 2


def sheffet_floor(rows: int, epsilon: float, delta: float) -> float:
    """w^2 of covariances of rows of norm 1 (Sheffet 2017): 8 (sqrt(2 r ln(8/delta)) + 2 ln(8/delta)) / epsilon.

    >>> round(sheffet_floor(100, 1.0, 1e-6))
    705
    """
    log = math.log(8 / delta)
    return 8 * (math.sqrt(2 * rows * log) + 2 * log) / epsilon


def graph_floor(rows: int, epsilon: float, delta: float) -> float:
    """w of graphs as the survey prints it: sqrt(32 r ln(2/delta)) ln(4 r / delta) / epsilon.

    >>> round(graph_floor(100, 1.0, 1e-6))
    4268
    """
    return math.sqrt(32 * rows * math.log(2 / delta)) / epsilon * math.log(4 * rows / delta)


@mechanism("published_graph_cuts")
@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedGraphCuts:
    """Blocki et al. 2012 as the survey prints it: the printed w, and one half of the sketch's square.

    `epsilon`, `delta`: as stated; `nodes`: n, which must exceed w.
    """

    epsilon: float
    delta: float
    nodes: int
    rows: int

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_probability("delta", self.delta)
        check_count("rows", self.rows)
        if self.floor >= check_count("nodes", self.nodes, least=2):
            raise PrivacyError(f"the published w = {self.floor:.4g} needs more than {self.nodes} nodes: n > w")

    @property
    def relation(self) -> Relation:
        """The weight of one pair."""
        return Relation("record", "add_remove")

    @property
    def floor(self) -> float:
        """w."""
        return graph_floor(self.rows, self.epsilon, self.delta)

    @property
    def event(self) -> NonPrivateEvent:
        """Not booked: use `GraphCuts`, whose account is exact."""
        return NonPrivateEvent("cuts of a graph with constants as published", self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """Unproven here."""
        caveat = (
            "the printed proof has errata; its floor is larger than the exact law asks for, its factor 1/2 is wrong"
        )
        return Guarantee(kind="unproven", relation=self.relation, claimed_epsilon=self.epsilon, caveat=caveat)

    def release(self, weights: Tensor) -> Released[Tensor]:
        """The sketch `(rows, nodes)` of symmetric weights in [0, 1]."""
        share = self.floor / self.nodes
        mixed = share + (1 - share) * weights.to(torch.float64).clamp(0, 1)
        return Released(sketched_laplacian(mixed.fill_diagonal_(0), self.rows), self.event, self.guarantee)

    def cuts(self, sketch: Tensor, members: Tensor, *, factor: float | None = None) -> Tensor:
        """Cuts of each set of nodes `(k, nodes)`: with the printed factor 1/2, unless another is given."""
        inside = members.to(sketch.dtype)
        mixed = (inside @ sketch.mT).square().sum(1) * (0.5 if factor is None else factor)
        share, size = self.floor / self.nodes, inside.sum(1)
        return (mixed - share * size * (self.nodes - size)) / (1 - share)


@mechanism("published_wishart")
@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedWishart:
    """Jiang, Xie and Zhang 2016 in sum form: A'A + W, W of d + 1 degrees and scale matrix 3 / (2 epsilon) I.

    `epsilon`: as stated, for rows of norm at most 1.
    """

    epsilon: float
    features: int

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_count("features", self.features)

    @property
    def relation(self) -> Relation:
        """One row exchanged for another, as in the paper."""
        return Relation("record", "replace")

    @property
    def ruled_out(self) -> float:
        """The probability that a release without a row of norm 1 could not have come from it: 1 - exp(-epsilon / 3)."""
        return -math.expm1(-self.epsilon / 3)

    @property
    def event(self) -> NonPrivateEvent:
        """Infinite epsilon: noise of one sign."""
        return NonPrivateEvent("second moments with Wishart noise as published", self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """Broken."""
        caveat = f"noise of one sign: a row is ruled out with probability {self.ruled_out:.3g}"
        return Guarantee(kind="broken", relation=self.relation, claimed_epsilon=self.epsilon, caveat=caveat)

    def release(self, rows: Tensor) -> Released[Tensor]:
        """The second moments of rows `(n, features)` with the paper's noise."""
        noise = math.sqrt(3 / (2 * self.epsilon)) * standard_normal((self.features + 1, self.features))
        real = rows.to(torch.float64)
        return Released(real.mT @ real + noise.mT @ noise, self.event, self.guarantee)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:  # noqa: ARG003
        """What is not above the moments of a data set cannot be of it."""
        one = cls(epsilon=1.0, features=3)
        real, other = torch.eye(1, 3, dtype=torch.float64), torch.zeros(1, 3, dtype=torch.float64)

        def below(released: Tensor, rows: Tensor) -> float:
            return max(0.0, SINGULAR - float(torch.linalg.eigvalsh(released - rows.mT @ rows)[0]))

        return [
            audit_leak_identity(
                lambda rows: one.release(rows).value,
                real,
                other,
                below,
                AUDITED,
                tolerance=2 * SINGULAR,
                name="published_wishart",
                stated=one.guarantee,
                confidence=CONFIDENCE,
            )
        ]
