r"""Second moments by a random projection: r rows of N(0, A'A + w^2 I) (Blocki, Blum, Datta and Sheffet 2012).

Accounted exactly. A row v with |v| <= R more gives S + v v', and with q = v' S^-1 v <= R^2 / w^2 the two laws are those
of N(0, 1)^r and N(0, 1 + q)^r: no other direction sees a change, and the pair grows with q. The published analysis
needs w^2 a million times larger and more (`evidence/published/projections.py`).

Several rows of one unit, of squares that sum to at most R^2, are the product of such pairs with q_1 + q_2 + ... <= q,
whose Renyi divergences add. That of order alpha is f(q_i), f(0) = 0, and never above q sup f(t) / t over t <= q: of the
one direction f is convex and the bound f(q) itself.

The projection is drawn for one release and forgotten: two releases by the same one would show the difference of two
data sets without noise. Proof: Theorem 1.32 in docs/theory/release.md.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.special import gammainc, gammaincc
from scipy.stats import chi2
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import INTERVAL, Event, UnsupportedAnalysisError, register_event
from ppspeech.privacy.accounting.hockey_stick import SMALLEST, gaussian_sigma, least
from ppspeech.privacy.accounting.loss import TAIL, LossDistribution, loss_from_survival
from ppspeech.privacy.accounting.renyi import delta_from_renyi
from ppspeech.privacy.audit.catalogue import ONE_RECORD, exact_report, scored_report
from ppspeech.privacy.audit.exact import audit_exact
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.guarantee import REAL_NOISE, Guarantee, Released
from ppspeech.privacy.mechanism import Losses, mechanism
from ppspeech.privacy.parameters import check_count, check_positive, check_positives, check_probability
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.rows import OWN_ROWS, check_rows
from ppspeech.privacy.samplers.randomness import standard_normal

ATTACKED = 256  # features of one release that is attacked: so many independent guesses


@register_event("johnson_lindenstrauss")
@dataclass(frozen=True, slots=True)
class ProjectionEvent(Event):
    """`rows` draws of N(0, S) where one unit makes S larger by at most `ratio` S in one direction.

    With one row a unit its bounds are exact under add_remove. Of `several` rows a unit only the Renyi curve is known.
    Under `replace` one is removed and another added: no loss distribution is known, and delta is that of both steps.
    """

    rows: int
    ratio: float
    several: bool
    relation: Relation

    def __post_init__(self) -> None:
        check_count("rows", self.rows)
        check_positive("ratio", self.ratio)
        if not isinstance(self.several, bool):
            raise PrivacyError(f"several must be true or false, got {self.several!r}")

    def delta(self, epsilon: float) -> float:
        """The larger direction; of several rows by the best Renyi order."""
        if self.several:
            return delta_from_renyi(self.rdp, epsilon)
        if self.relation.adjacency == "replace":
            return self._exchanged(epsilon)
        return max(self._leaves(epsilon), self._comes(epsilon))

    def rdp(self, alpha: float) -> float:
        """r times the larger of both divergences of N(0, 1 + q) and N(0, 1); infinite from 1 + 1/q on."""
        if self.relation.adjacency == "add_remove":
            return max(self._rdp_leaves(alpha), self._rdp_comes(alpha))
        # by way of the data without either (Mironov 2017, proposition 11, p = q = 2)
        first = (alpha - 1 / 2) / (alpha - 1) * self._rdp_leaves(2 * alpha)
        return first + self._rdp_comes(2 * alpha - 1)

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """Exact up to the bucket width: losses -(r/2) ln(1 + q) + (q/2) chi^2 (in), and likewise (out)."""
        if self.several or self.relation.adjacency == "replace":
            raise UnsupportedAnalysisError("a projection has a loss distribution for one row added or removed")
        half, shrunk = self._half, self.ratio / (1 + self.ratio)

        def leaves(t: Any) -> Any:
            return chi_above(2 * (t + half) / self.ratio, self.rows)

        def comes(t: Any) -> Any:
            return chi_below(2 * (half - t) / shrunk, self.rows)

        most = float(chi2.isf(TAIL, self.rows))
        top = max(self.ratio * most / 2 - half, half)
        bottom = -max(half, shrunk * most / 2 - half)
        return loss_from_survival(leaves, comes, top=top, bottom=bottom, interval=interval)

    @property
    def _half(self) -> float:
        """(r/2) ln(1 + q)."""
        return self.rows / 2 * math.log1p(self.ratio)

    def _leaves(self, epsilon: float) -> float:
        """delta of the law with the unit against that without."""
        s = 2 * (1 + self.ratio) / self.ratio * (epsilon + self._half)
        upper, lower = (float(chi_above(at, self.rows)) for at in (s / (1 + self.ratio), s))
        return max(upper - math.exp(min(epsilon, 700.0)) * lower, SMALLEST)

    def _comes(self, epsilon: float) -> float:
        """delta of the law without the unit against that with."""
        s = 2 * (1 + self.ratio) / self.ratio * (self._half - epsilon)
        if s <= 0:
            return 0.0
        upper, lower = (float(chi_below(at, self.rows)) for at in (s, s / (1 + self.ratio)))
        return max(upper - math.exp(epsilon) * lower, SMALLEST)

    def _exchanged(self, epsilon: float) -> float:
        """delta_1(e_1) + exp(e_1) delta_2(epsilon - e_1): any e_1 will do, a good one is looked for."""

        def both(first: float) -> float:
            return self._leaves(first) + math.exp(first) * self._comes(epsilon - first)

        if epsilon == 0:
            return min(1.0, both(0.0))
        best = minimize_scalar(lambda e: math.log(both(e)), bounds=(0.0, epsilon), method="bounded")
        return min(1.0, both(float(best.x)), both(epsilon / 2))

    def _rdp_leaves(self, alpha: float) -> float:
        """Convex in q: several rows have no more than one that is as large."""
        room = 1 - (alpha - 1) * self.ratio
        if room <= 0:
            return math.inf
        return self.rows / 2 * (-math.log1p(self.ratio) - math.log(room) / (alpha - 1))

    def _rdp_comes(self, alpha: float) -> float:
        def one(q: float) -> float:
            return self.rows / 2 * (alpha * math.log1p(q) - math.log1p(alpha * q)) / (alpha - 1)

        if not self.several or self.ratio * math.sqrt(alpha) <= 1:  # convex up to q = 1 / sqrt(alpha)
            return one(self.ratio)
        # f grows like q^2 and then like ln q: f / q has one peak, and is at most its slope there
        peak = minimize_scalar(lambda t: -one(math.exp(t)) / math.exp(t), bounds=(-20.0, math.log(self.ratio)))
        return max(one(self.ratio), self.ratio * -float(peak.fun) * (1 + 1e-6))


@lru_cache(maxsize=256)
def projection_ratio(epsilon: float, delta: float, rows: int, several: bool, relation: Relation) -> float:
    """The largest q that is (epsilon, delta)-DP: what one unit may be of the floor.

    >>> round(1 / projection_ratio(1.0, 1e-6, 100, False, Relation("record", "add_remove")), 2)
    35.54
    """
    check_positive("epsilon", epsilon)
    check_probability("delta", delta)
    start = gaussian_sigma(epsilon, delta) * math.sqrt(check_count("rows", rows) / 2)
    refusal = f"no practical floor reaches epsilon={epsilon}, delta={delta}"

    def enough(floor: float) -> bool:
        return ProjectionEvent(rows, 1 / floor, several, relation).delta(epsilon) <= delta

    return 1 / least(enough, start, grow=1.1, tolerance=1e-9, refusal=refusal)


@mechanism("johnson_lindenstrauss", ProjectionEvent, work=4)
@dataclass(frozen=True, slots=True, kw_only=True)
class JohnsonLindenstrauss:
    """Releases `rows` random combinations of the data: what second moments they have is free.

    Formal guarantee: the profile of `ProjectionEvent` with q = R^2 / w^2, for one row (unit `record` or `frame`), or
    for all rows of a unit together, by unit ids, scaled so that their squares sum to at most R^2. `radius`: R, a public
    constant, enforced; `floor`: w^2; `features`: d. `centered`: rows are taken about their own mean, which moves too: v
    more changes the scatter by no more than one row of norm 2 R, so that q = 4 R^2 / w^2. About a public center,
    subtract it instead. Not float-safe.
    """

    rows: int
    floor: float
    radius: float
    features: int
    delta: float
    relation: Relation
    centered: bool = False

    def __post_init__(self) -> None:
        check_positives(self, "floor", "radius")
        check_count("rows", self.rows)
        check_count("features", self.features)
        check_probability("delta", self.delta)
        if self.centered and self.relation.unit not in OWN_ROWS:
            raise PrivacyError(
                f"the mean of all rows is centered for one record, not for one {self.relation.unit} with several: "
                "subtract a public center"
            )

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float,
        rows: int,
        radius: float,
        features: int,
        relation: Relation,
        centered: bool = False,
    ) -> "JohnsonLindenstrauss":
        """The least floor that is (epsilon, delta)-DP."""
        check_positive("radius", radius)
        q = projection_ratio(epsilon, delta, rows, relation.unit not in OWN_ROWS, relation)
        floor = (2 * radius if centered else radius) ** 2 / q
        terms: dict[str, Any] = {"features": features, "delta": delta, "relation": relation, "centered": centered}
        return cls(rows=rows, floor=floor, radius=radius, **terms)

    @property
    def event(self) -> ProjectionEvent:
        """What one release costs, rows and matrix together."""
        reach = 2 * self.radius if self.centered else self.radius
        several = self.relation.unit not in OWN_ROWS
        return ProjectionEvent(self.rows, reach**2 / self.floor, several, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        assumptions = (f"rows of norm at most {self.radius:.6g}, by clipping", "real-valued noise")
        return Guarantee.of(self.event, self.delta, assumptions=assumptions, caveat=REAL_NOISE)

    def release(self, rows: Tensor, unit_ids: Tensor | None = None) -> Released[Tensor]:
        """The sketch, `(rows, features)`: fresh draws of N(0, A'A + w^2 I).

        `rows` `(n, features)` are clipped; none at all is a data set too. `unit_ids` `(n,)`: whose each row is, for
        every unit but `record` and `frame`. Raises PrivacyError for other lengths, or numbers that are not finite.
        """
        if rows.dim() != 2 or rows.shape[1] != self.features:
            raise PrivacyError(f"calibrated for rows of {self.features} features, got shape {tuple(rows.shape)}")
        if not bool(torch.isfinite(rows).all()):
            raise PrivacyError("the rows hold infinities or NaN; leave such rows out")
        check_rows(self.relation.unit, len(rows), unit_ids)
        root = torch.linalg.cholesky(self.scatter(rows, unit_ids) + self.floor * torch.eye(self.features))
        sketch = standard_normal((self.rows, self.features)) @ root.mT
        return Released(sketch, self.event, self.guarantee)

    def scatter(self, rows: Tensor, unit_ids: Tensor | None = None) -> Tensor:
        """A'A of bounded rows, without noise. Not private: for `release` and for tests."""
        bounded = rows.detach().to(torch.float64)
        own = unit_ids if self.relation.unit not in OWN_ROWS else None
        bounded = bounded * _shrink(bounded, self.radius, own).unsqueeze(1)
        if self.centered and len(bounded):
            bounded = bounded - bounded.mean(0)
        return bounded.mT @ bounded

    def moments(self, sketch: Tensor) -> Tensor:
        """A'A as the sketch has it, without the floor, `(features, features)`; unbiased, and free."""
        return sketch.mT @ sketch / self.rows - self.floor * torch.eye(self.features, dtype=sketch.dtype)

    def variance_along(self, sketch: Tensor, directions: Tensor) -> Tensor:
        """u'A'A u of directions `(k, features)`, `(k,)`: deviation sqrt(2 / r) (u'A'A u + w^2 |u|^2)."""
        along = directions.to(sketch.dtype)
        return (along @ sketch.mT).square().sum(1) / self.rows - self.floor * along.square().sum(1)

    @classmethod
    def losses(cls, event: ProjectionEvent, runs: int, present: bool) -> Tensor:
        """Of as many features as guesses, along each of which one person stands, or nobody."""
        radius, unit = math.sqrt(event.ratio), Relation("record", event.relation.adjacency)
        one = cls(rows=event.rows, floor=1.0, radius=radius, features=ATTACKED, delta=1e-5, relation=unit)
        crowd = 1e6 * torch.eye(ATTACKED, dtype=torch.float64)[: ATTACKED * present]
        found = [one.release(crowd).value.square().sum(0) for _ in range(math.ceil(runs / ATTACKED))]
        return loss_of_square(torch.cat(found)[:runs], event)

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """By the law of a sketch's square, and by real sketches."""
        one = cls.calibrated(epsilon=1.0, delta=1e-5, rows=20, radius=1.0, features=1, relation=ONE_RECORD)
        return projection_audit("johnson_lindenstrauss", one.event, one.guarantee, cls.losses, runs)


def loss_of_square(square: Tensor, event: ProjectionEvent) -> Tensor:
    """The privacy loss of draws along one direction whose square, over the floor, is this."""
    return event.ratio / (1 + event.ratio) * square / 2 - event.rows / 2 * math.log1p(event.ratio)


def projection_audit(
    name: str, event: ProjectionEvent, stated: Guarantee, losses: Losses, runs: int
) -> list[AuditReport]:
    """By the law of the square of what is drawn along one direction, and by the losses of real releases."""
    reach = float(chi2.isf(1e-14, event.rows)) * (1 + event.ratio)
    points = torch.linspace(0, reach, 200_001, dtype=torch.float64)[1:]

    def law(square: Tensor, present: int) -> Tensor:
        scale = 1 + present * event.ratio
        return torch.from_numpy(chi2.logpdf((square / scale).numpy(), event.rows)) - math.log(scale)

    found = audit_exact(law, 1, 0, points, volumes=reach / 200_000)
    inside, outside = (losses(event, runs, present) for present in (True, False))
    return [exact_report(name, found, stated), scored_report(name, inside, outside, stated, [(event, 1)])]


def _shrink(rows: Tensor, radius: float, ids: Tensor | None) -> Tensor:
    """What each row is multiplied by, `(n,)`, so that the squares of a unit's rows sum to at most radius^2."""
    squares = rows.square().sum(1)
    if ids is not None:
        names, owner = torch.unique(ids, return_inverse=True)
        squares = squares.new_zeros(len(names)).index_add_(0, owner, squares)[owner]
    return radius / squares.sqrt().clamp_min(radius)


def chi_above(at: Any, degrees: int) -> Any:
    """P(chi^2 > at), of a number or an array."""
    return gammaincc(degrees / 2, np.maximum(at, 0.0) / 2)


def chi_below(at: Any, degrees: int) -> Any:
    """P(chi^2 < at)."""
    return gammainc(degrees / 2, np.maximum(at, 0.0) / 2)
