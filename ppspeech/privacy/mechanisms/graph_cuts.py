r"""Cuts of a graph by a random projection of its Laplacian (Blocki, Blum, Datta and Sheffet 2012), accounted exactly.

Every pair of the n nodes gets the weight w/n + (1 - w/n) a_uv, so that L = (w/n) L_K + (1 - w/n) L_G is at least w in
all directions that sum to zero, and r rows of N(0, L) are released. One weight that changes by at most 1 changes L by
at most (1 - w/n) (e_u - e_v)(e_u - e_v)', which is

    q = 2 (1 - w/n) / w,        so that w = 2 / (q + 2/n),

of the floor; the rest is the event of `johnson_lindenstrauss.py`. w < n always. The published w is 35 to 90 times as
large, and where it reaches n there is no release at all. A pair is protected, not a node with all its pairs. Proof:
Theorem 1.32 in docs/theory/release.md.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.audit.catalogue import ONE_RECORD
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.guarantee import REAL_NOISE, Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.mechanisms.johnson_lindenstrauss import (
    ProjectionEvent,
    loss_of_square,
    projection_audit,
    projection_ratio,
)
from ppspeech.privacy.parameters import check_count, check_positive, check_probability
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.samplers.randomness import standard_normal

MOST_AUDITED = 1_000  # graphs, each drawn alone


def sketched_laplacian(weights: Tensor, rows: int) -> Tensor:
    """`rows` fresh draws of N(0, L), `(rows, n)`, for the Laplacian of positive symmetric weights `(n, n)`.

    All but the last node by Cholesky's factor; the last is minus their sum, as L 1 = 0.
    """
    inner = torch.diag(weights.sum(1))[:-1, :-1] - weights[:-1, :-1]
    drawn = standard_normal((rows, len(inner))) @ torch.linalg.cholesky(inner).mT
    return torch.cat([drawn, -drawn.sum(1, keepdim=True)], dim=1)


@mechanism("graph_cuts", ProjectionEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCuts:
    """Releases a sketch of a graph: how much weight lies between any two parts of its nodes is free.

    Formal guarantee: the profile of `ProjectionEvent` with q = 2 (1 - w/n) / w for the weight of one pair of nodes, in
    [0, 1] and enforced, under add_remove (the weight rises or falls by up to 1). `nodes`: n, public; `floor`: w.
    Not float-safe.
    """

    nodes: int
    rows: int
    floor: float
    delta: float
    relation: Relation = ONE_RECORD

    def __post_init__(self) -> None:
        check_count("nodes", self.nodes, least=2)
        check_count("rows", self.rows)
        check_positive("floor", self.floor)
        check_probability("delta", self.delta)
        if self.floor >= self.nodes:
            raise PrivacyError(f"a floor of {self.floor:.6g} leaves nothing of a graph of {self.nodes} nodes: w < n")
        if self.relation != ONE_RECORD:
            raise PrivacyError(f"one pair of nodes is protected, a record (add_remove), not {self.relation}")

    @classmethod
    def calibrated(cls, *, epsilon: float, delta: float, nodes: int, rows: int) -> "GraphCuts":
        """The least floor that is (epsilon, delta)-DP."""
        q = projection_ratio(epsilon, delta, rows, False, ONE_RECORD)
        return cls(nodes=nodes, rows=rows, floor=2 / (q + 2 / check_count("nodes", nodes, least=2)), delta=delta)

    @property
    def event(self) -> ProjectionEvent:
        """What one release costs."""
        ratio = 2 * (1 - self.floor / self.nodes) / self.floor
        return ProjectionEvent(self.rows, ratio, False, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        assumptions = ("weights in [0, 1], by clamping", "the nodes are public", "real-valued noise")
        caveat = f"{REAL_NOISE}; one pair is protected, not all pairs of a node"
        return Guarantee.of(self.event, self.delta, assumptions=assumptions, caveat=caveat)

    def release(self, weights: Tensor) -> Released[Tensor]:
        """The sketch `(rows, nodes)` of symmetric weights `(nodes, nodes)`, clamped to [0, 1]; loops count nothing."""
        if weights.shape != (self.nodes, self.nodes):
            raise PrivacyError(f"calibrated for {self.nodes} nodes, got weights of shape {tuple(weights.shape)}")
        if not bool(torch.isfinite(weights).all()) or not torch.equal(weights, weights.mT):
            raise PrivacyError("weights between nodes are finite and symmetric")
        share = self.floor / self.nodes
        mixed = share + (1 - share) * weights.detach().to(torch.float64).clamp(0, 1)
        return Released(sketched_laplacian(mixed.fill_diagonal_(0), self.rows), self.event, self.guarantee)

    def cuts(self, sketch: Tensor, members: Tensor) -> Tensor:
        """The weight between each set of nodes, bool `(k, nodes)`, and the rest, `(k,)`; unbiased.

        Its deviation is sqrt(2 / r) (cut + w s (n - s) / (n - w)) for s members.
        """
        inside = members.to(sketch.dtype)
        size = inside.sum(1)
        mixed = (inside @ sketch.mT).square().sum(1) / self.rows
        share = self.floor / self.nodes
        return (mixed - share * size * (self.nodes - size)) / (1 - share)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """Of two nodes, with the one weight there is and without."""
        one = cls.calibrated(epsilon=1.0, delta=1e-5, nodes=2, rows=20)
        return projection_audit("graph_cuts", one.event, one.guarantee, pair_losses, min(runs, MOST_AUDITED))


def pair_losses(event: ProjectionEvent, runs: int, present: bool) -> Tensor:
    """Privacy losses of sketches of two nodes, drawn one by one."""
    one = GraphCuts(nodes=2, rows=event.rows, floor=2 / (event.ratio + 1), delta=1e-5)
    weights = torch.zeros(2, 2, dtype=torch.float64) + float(present)
    squares = torch.stack([one.release(weights).value[:, 0].square().sum() for _ in range(runs)])
    return loss_of_square(squares / (one.floor / 2), event)
