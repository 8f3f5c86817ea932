"""Principal directions with differential privacy: Gaussian noise on the second moments (Analyze Gauss, Dwork 2014).

A row a with |a| <= R adds a a' to the sum of second moments: Frobenius norm at most R^2, and two rows exchanged move
it by at most sqrt(2) R^2, since the inner product of two such matrices is never negative. The noise is isotropic in
that norm: variance sigma^2 on the diagonal, sigma^2 / 2 off it (the original has sigma^2 everywhere, twice what is
needed). The sum is not divided by the number of rows, which is private. Eigenvectors, and whatever else is computed
from the noisy matrix, cost nothing more; centering does too, with rows (a, 1) and R^2 + 1. Proof: Theorem 1.31 in
docs/theory/release.md.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.gradients.clipping import clip_norm, clipped_unit_sums
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussian, DiscreteGaussianEvent
from ppspeech.privacy.parameters import check_count, check_positive
from ppspeech.privacy.relation import Adjacency, Relation
from ppspeech.privacy.rows import check_rows


@mechanism("analyze_gauss", DiscreteGaussianEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzeGauss:
    """Releases the second moments of rows with noise; what may be computed from them is free.

    Formal guarantee: that of `DiscreteGaussian` with l2 sensitivity R^2 (add_remove) or sqrt(2) R^2 (replace), for one
    row (unit `record` or `frame`) or for all rows of a unit together, by unit ids. Norms are enforced by clipping, and
    the released bits themselves obey it. `sigma`: of the noise on the diagonal, > 0; `radius`: R, a public constant;
    longer rows are clipped; `features`: d, length of a row.
    """

    sigma: float
    radius: float
    features: int
    delta: float
    relation: Relation

    def __post_init__(self) -> None:
        check_positive("radius", self.radius)
        check_count("features", self.features)
        _ = self.mechanism  # refuses the rest

    @classmethod
    def calibrated(
        cls, *, epsilon: float, delta: float, radius: float, features: int, relation: Relation
    ) -> "AnalyzeGauss":
        """The least noise that is shown to be (epsilon, delta)-DP.

        >>> AnalyzeGauss.calibrated(
        ...     epsilon=1.0, delta=1e-6, radius=2.0, features=5, relation=Relation("record", "add_remove")
        ... ).sigma > 4 * 4.2
        True
        """
        check_positive("radius", radius)
        check_count("features", features)
        bounds = _bounds(radius, features, relation)
        found = DiscreteGaussian.calibrated(epsilon=epsilon, delta=delta, **bounds)
        return cls(sigma=found.sigma, radius=radius, features=features, delta=delta, relation=relation)

    @property
    def mechanism(self) -> DiscreteGaussian:
        """What adds the noise, to the distinct entries scaled so that lengths are Frobenius norms."""
        bounds = _bounds(self.radius, self.features, self.relation)
        return DiscreteGaussian(sigma=self.sigma, delta=self.delta, **bounds)

    @property
    def event(self) -> DiscreteGaussianEvent:
        """What one release costs."""
        return self.mechanism.event

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        return self.mechanism.guarantee

    @classmethod
    def losses(cls, event: DiscreteGaussianEvent, runs: int, present: bool) -> Tensor:
        """Of the moments of nobody, moved as far as one row, or two exchanged, can move them."""
        relation = Relation("record", event.relation.adjacency)
        reach = moment_sensitivity(1.0, relation.adjacency)
        sigma, features = reach / math.sqrt(2 * event.zcdp()), math.ceil(math.sqrt(2 * runs))
        one = cls(sigma=sigma, radius=1.0, features=features, delta=1e-5, relation=relation)
        noise = pack_symmetric(one.release(torch.zeros(0, features)).value)[:runs]
        rows = 1e6 * torch.eye(2, features, dtype=torch.float64)
        moved = one.moments(rows[:1])
        if relation.adjacency == "replace":
            moved = moved - one.moments(rows[1:])
        losses: Tensor = ((noise + present * moved.norm()) * 2 * reach - reach**2) / (2 * sigma**2)
        return losses

    def release(self, rows: Tensor, unit_ids: Tensor | None = None) -> Released[Tensor]:
        """The noisy sum of a a', symmetric, `(features, features)`, in float64.

        `rows`: `(rows, features)`; each is clipped to the radius. No rows at all is a data set too; `unit_ids`: whose
        each row is, `(rows,)`, where a unit has several: the sum over a unit is then clipped as a whole, to a Frobenius
        norm of R^2. Raises PrivacyError for rows of another length, or not finite; or, for any unit but `record` and
        `frame`, without ids, which alone say which rows belong together.
        """
        if rows.dim() != 2 or rows.shape[1] != self.features:
            raise PrivacyError(f"calibrated for rows of {self.features} features, got shape {tuple(rows.shape)}")
        check_rows(self.relation.unit, len(rows), unit_ids)
        released = self.mechanism.release(pack_symmetric(self.moments(rows, unit_ids)))
        return Released(unpack_symmetric(released.value, self.features), released.event, released.guarantee)

    def moments(self, rows: Tensor, unit_ids: Tensor | None = None) -> Tensor:
        """The sum without noise, rows and units bounded. Not private: for `release` and for audits."""
        clipped = clip_norm(rows.detach().to(torch.float64), self.radius)
        if unit_ids is None:
            return clipped.mT @ clipped
        each = clipped.unsqueeze(2) * clipped.unsqueeze(1)
        return clipped_unit_sums(each, unit_ids, self.radius**2).sum(0)


def moment_sensitivity(radius: float, adjacency: Adjacency) -> float:
    """How far one unit moves the sum of second moments, in the Frobenius norm."""
    return radius**2 if adjacency == "add_remove" else math.sqrt(2.0) * radius**2


def pack_symmetric(matrix: Tensor) -> Tensor:
    """The distinct entries `(d (d + 1) / 2,)`, off-diagonal ones times sqrt(2): its length is the Frobenius norm."""
    rows, columns = torch.triu_indices(*matrix.shape, device=matrix.device)
    return matrix[rows, columns] * _weights(rows, columns, matrix)


def unpack_symmetric(packed: Tensor, features: int) -> Tensor:
    """The symmetric matrix that `pack_symmetric` packed."""
    rows, columns = torch.triu_indices(features, features, device=packed.device)
    entries = packed / _weights(rows, columns, packed)
    matrix = packed.new_zeros((features, features))
    matrix[rows, columns] = entries
    matrix[columns, rows] = entries
    return matrix


def principal_directions(moments: Tensor, count: int) -> Tensor:
    """The first unit eigenvectors of a symmetric matrix, as rows `(count, features)`: post-processing."""
    check_count("count", count)
    if count > len(moments):
        raise PrivacyError(f"a matrix of {len(moments)} features has no {count} directions")
    vectors: Tensor = torch.linalg.eigh(moments).eigenvectors
    return vectors.flip(1)[:, :count].mT


def without_negative(moments: Tensor) -> Tensor:
    """The nearest symmetric matrix without negative eigenvalues: post-processing, and what `eigenvector` takes."""
    values, vectors = torch.linalg.eigh(moments)
    kept: Tensor = (vectors * values.clamp_min(0.0)) @ vectors.mT
    return kept


def _bounds(radius: float, features: int, relation: Relation) -> dict[str, Any]:
    """How far the distinct entries move, and how many there are."""
    sensitivity = moment_sensitivity(radius, relation.adjacency)
    return {"sensitivity": sensitivity, "dimension": features * (features + 1) // 2, "relation": relation}


def _weights(rows: Tensor, columns: Tensor, like: Tensor) -> Tensor:
    """1 on the diagonal, sqrt(2) off it, in the precision of `like`."""
    return torch.where(rows == columns, like.new_ones(()), like.new_full((), math.sqrt(2.0)))
