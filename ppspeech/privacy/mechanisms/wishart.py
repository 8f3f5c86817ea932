r"""Second moments with Wishart noise: k made-up Gaussian rows among the real ones (Sheffet 2019), accounted exactly.

What is released is A'A + W, W the second moments of k rows of N(0, B^2 I): positive definite, unlike with symmetric
Gaussian noise. Its density at W is proportional to det(W)^((k - d - 1) / 2) exp(-tr W / 2 B^2); a row v more moves W
by v v', and both det(W + v v') / det(W) and the trace know v only through |v| and T = |v|^2 / (B^2 v' W^-1 v), which is
chi^2 of m = k - d + 1 degrees. So the pair of laws is that of

    T    and    s + T,        s = |v|^2 / B^2 <= R^2 / B^2,        T ~ chi^2_m,

whose density is log-concave for m >= 2: s as large as may be is the worst, and half lines are what tells them apart.
A row less can always be ruled out where T < s: there is no pure privacy, whatever k is (the mechanism of Jiang, Xie and
Zhang 2016, k = d + 1, claims it; `evidence/published/projections.py`). Proof: Theorem 1.34 in docs/theory/release.md.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from scipy.stats import chi2
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import INTERVAL, Event, UnsupportedAnalysisError, register_event
from ppspeech.privacy.accounting.hockey_stick import SMALLEST, gaussian_sigma, least
from ppspeech.privacy.accounting.loss import TAIL, LossDistribution, loss_from_survival
from ppspeech.privacy.audit.catalogue import ONE_RECORD, exact_report, scored_report
from ppspeech.privacy.audit.exact import audit_exact
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.gradients.clipping import clip_norm
from ppspeech.privacy.guarantee import REAL_NOISE, Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.mechanisms.johnson_lindenstrauss import chi_above, chi_below
from ppspeech.privacy.parameters import check_count, check_positive, check_positives, check_probability
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.rows import OWN_ROWS
from ppspeech.privacy.samplers.randomness import standard_normal

WORK = 20_000  # numbers that could be drawn in the time of one release
MOST_AUDITED = 2_000
MOST_LOSS = 40.0  # beyond it a loss counts as infinite


@register_event("wishart")
@dataclass(frozen=True, slots=True)
class WishartEvent(Event):
    """T against `ratio` + T, T ~ chi^2 of `degrees`: noise of one sign. All its bounds are exact; add_remove only."""

    degrees: int
    ratio: float
    relation: Relation

    def __post_init__(self) -> None:
        check_count("degrees", self.degrees, least=3)
        check_positive("ratio", self.ratio)
        if self.relation.adjacency != "add_remove":
            raise PrivacyError(f"Wishart noise hides one row more or less, not {self.relation.adjacency}")

    def delta(self, epsilon: float) -> float:
        """The larger direction, by the half line where the loss exceeds epsilon."""
        grow = math.exp(min(epsilon, 700.0))
        low = float(self._up_to(epsilon))
        comes = float(chi_below(low, self.degrees)) - grow * float(chi_below(low - self.ratio, self.degrees))
        high = float(self._from(epsilon))
        leaves = float(chi_above(high, self.degrees)) - grow * float(chi_above(high + self.ratio, self.degrees))
        return max(comes, leaves, SMALLEST)

    def rdp(self, alpha: float) -> float:
        """Infinite: with some probability the loss is."""
        raise UnsupportedAnalysisError(f"Wishart noise of one sign has no Renyi divergence of order {alpha}")

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """Exact up to the bucket width, with its mass at infinity."""

        def leaves(t: Any) -> Any:
            return chi_above(self._from(t), self.degrees)

        def comes(t: Any) -> Any:
            return chi_below(self._up_to(t), self.degrees)

        least_t, most_t = chi2.ppf(TAIL, self.degrees), chi2.isf(TAIL, self.degrees)
        power = (self.degrees - 2) / 2
        bottom = self.ratio / 2 - power * math.log1p(self.ratio / max(least_t, 1e-300))
        top = -self.ratio / 2 - power * math.log1p(-self.ratio / max(most_t, 2 * self.ratio))
        # losses of a row that comes reach infinity: beyond `far` its mass is all but that of T < s
        far = max(top, self.ratio, MOST_LOSS)
        return loss_from_survival(leaves, comes, top=far, bottom=max(bottom, -MOST_LOSS), interval=interval)

    def _up_to(self, epsilon: Any) -> Any:
        """T below which a release without the row has a loss above epsilon: -(m/2 - 1) ln(1 - s/T) - s/2 > epsilon."""
        power = np.maximum((2 * np.asarray(epsilon, dtype=np.float64) + self.ratio) / (self.degrees - 2), 1e-300)
        return self.ratio / -np.expm1(-power)

    def _from(self, epsilon: Any) -> Any:
        """T above which a release with the row has one: s/2 - (m/2 - 1) ln(1 + s/T) > epsilon."""
        power = (self.ratio - 2 * np.asarray(epsilon, dtype=np.float64)) / (self.degrees - 2)
        with np.errstate(over="ignore"):
            return np.where(power > 0, self.ratio / np.expm1(np.maximum(power, 1e-300)), np.inf)


@lru_cache(maxsize=256)
def wishart_ratio(epsilon: float, delta: float, degrees: int, relation: Relation) -> float:
    """The largest s that is (epsilon, delta)-DP with so many degrees m."""
    start = gaussian_sigma(epsilon, delta) * math.sqrt(check_count("degrees", degrees, least=3) / 2)
    refusal = f"no practical noise of {degrees} degrees reaches epsilon={epsilon}, delta={delta}"

    def enough(noise: float) -> bool:
        return WishartEvent(degrees, 1 / noise, relation).delta(epsilon) <= delta

    return 1 / least(enough, start, grow=1.1, tolerance=1e-9, refusal=refusal)


@mechanism("wishart", WishartEvent, work=WORK)
@dataclass(frozen=True, slots=True, kw_only=True)
class Wishart:
    """Releases the second moments of rows among made-up ones.

    Formal guarantee: the profile of `WishartEvent` for one row (`record` or `frame`) more or less, of norm at most
    `radius`, enforced. `scale`: B of the made-up rows, of which there are `made_up`, k. Not float-safe.
    """

    made_up: int
    scale: float
    radius: float
    features: int
    delta: float
    relation: Relation

    def __post_init__(self) -> None:
        check_positives(self, "scale", "radius")
        check_count("features", self.features)
        check_count("made_up", self.made_up, least=self.features + 2)
        check_probability("delta", self.delta)
        if self.relation.unit not in OWN_ROWS:
            raise PrivacyError(f"one row is protected, a record or a frame, not a {self.relation.unit}")
        _ = self.event  # refuses the rest

    @classmethod
    def calibrated(
        cls, *, epsilon: float, delta: float, made_up: int, radius: float, features: int, relation: Relation
    ) -> "Wishart":
        """The least scale of so many made-up rows that is (epsilon, delta)-DP."""
        ratio = wishart_ratio(epsilon, delta, made_up - features + 1, relation)
        scale = check_positive("radius", radius) / math.sqrt(ratio)
        return cls(made_up=made_up, scale=scale, radius=radius, features=features, delta=delta, relation=relation)

    @property
    def event(self) -> WishartEvent:
        """What one release costs."""
        return WishartEvent(self.made_up - self.features + 1, (self.radius / self.scale) ** 2, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        assumptions = (f"rows of norm at most {self.radius:.6g}, by clipping", "real-valued noise")
        return Guarantee.of(self.event, self.delta, assumptions=assumptions, caveat=REAL_NOISE)

    def release(self, rows: Tensor) -> Released[Tensor]:
        """A'A + W of rows `(n, features)`, `(features, features)`: positive definite. Rows are clipped."""
        if rows.dim() != 2 or rows.shape[1] != self.features:
            raise PrivacyError(f"calibrated for rows of {self.features} features, got shape {tuple(rows.shape)}")
        if not bool(torch.isfinite(rows).all()):
            raise PrivacyError("the rows hold infinities or NaN; leave such rows out")
        real = clip_norm(rows.detach().to(torch.float64), self.radius)
        noise = self.scale * standard_normal((self.made_up, self.features))
        return Released(real.mT @ real + noise.mT @ noise, self.event, self.guarantee)

    def moments(self, released: Tensor) -> Tensor:
        """A'A without what the made-up rows are expected to add: unbiased, and free."""
        return released - self.made_up * self.scale**2 * torch.eye(self.features, dtype=released.dtype)

    @classmethod
    def losses(cls, event: WishartEvent, runs: int, present: bool) -> Tensor:
        """Of one number; infinite where nobody can have been there."""
        terms: dict[str, Any] = {"features": 1, "delta": 0.5, "relation": Relation("record", "add_remove")}
        one = cls(made_up=event.degrees, scale=1.0, radius=math.sqrt(event.ratio), **terms)
        rows = torch.full((int(present), 1), 1e6, dtype=torch.float64)
        told = torch.stack([one.release(rows).value.reshape(()) for _ in range(runs)])
        power = (event.degrees - 2) / 2
        losses: Tensor = event.ratio / 2 + power * torch.log((1 - event.ratio / told).clamp_min(1e-300))
        return losses

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:
        """By its density in one dimension, and by real releases."""
        terms: dict[str, Any] = {"radius": 1.0, "features": 1, "relation": ONE_RECORD}
        one = cls.calibrated(epsilon=1.0, delta=1e-5, made_up=40, **terms)
        event = one.event
        reach = float(chi2.isf(1e-14, event.degrees)) + event.ratio
        points = torch.linspace(0, reach, 200_001, dtype=torch.float64)[1:]

        def law(told: Tensor, present: int) -> Tensor:
            with np.errstate(divide="ignore"):
                return torch.from_numpy(chi2.logpdf((told - present * event.ratio).numpy(), event.degrees))

        found = audit_exact(law, 1, 0, points, volumes=reach / 200_000)
        few = min(runs, MOST_AUDITED)
        inside, outside = (cls.losses(event, few, present) for present in (True, False))
        sampled = scored_report("wishart", inside, outside, one.guarantee, [(event, 1)])
        return [exact_report("wishart", found, one.guarantee), sampled]
