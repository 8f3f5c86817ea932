r"""Differentially private expectation maximization: clipped statistics, one Gaussian release an iteration.

What one unit (a speaker, or one utterance) says about a bank of Gaussians with diagonal covariance, under the model
released so far, is a vector about that model's means mu and deviations s:

    v = (w_0 sum g,  w_1 sum g (x - mu) / s,  w_2 sum g [((x - mu) / s)^2 - 1] pooled over the Gaussians,  w_0 mass)

with the occupancies g scaled so that a unit owns at most one frame's worth in total, however long it spoke. v is
clipped to norm C, the expected transitions xi (only those the topology leaves free) to norm B, and

    ( sqrt(theta_A) xi / B,  sqrt(theta_E) v / C ),      theta_A + theta_E = 1,

has norm at most 1: one unit more or less moves the sum by at most 1. `UnitSum` adds these vectors up as whole numbers
and releases the sum with exact noise in each of T iterations, T fixed in advance; everything after is post-processing.
The start must be public. A recording whose statistics are not finite counts as silence.

Statistics are centered at the released model and clipped as a whole (tighter than the worst case of M frames of norm R,
M sqrt(1 + R^2 + R^4), and true for any input); variances are pooled; transitions are smoothed towards the released
ones; and every estimate is shrunk towards the released model by how much of it is noise. Proof of the bound: Theorem
1.25 in docs/theory/release.md.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import Event
from ppspeech.privacy.gradients.clipping import STEPS, clip_norm
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussianEvent
from ppspeech.privacy.mechanisms.unit_sum import UnitSum
from ppspeech.privacy.parameters import check_count, check_positive, check_positives, check_probability
from ppspeech.privacy.relation import Relation, Unit
from ppspeech.ranks import ONE_RANK, Ranks

ONE_UTTERANCE = Relation("utterance", "add_remove")

PARTS = 2.0**20
"""A speaker's moments are added up in whole parts of 1 / PARTS, so that no order of recordings shows in the sum."""

MOST = 2.0**36  # of a recording's moment: what is larger counts as this, so that sums stay inside 64 bits


@mechanism("statistics", DiscreteGaussianEvent)
@dataclass(frozen=True, slots=True)
class StatisticsRelease:
    """How statistics are bounded and released: public numbers, chosen without looking at private speech.

    `epsilon` and `delta` are of all `iterations` together, T of them, fixed in advance. Above, `transition_share` is
    theta_A (0 leaves transitions public), `emission_norm` C, `transition_norm` B and `weights` w_0, w_1, w_2. The unit
    is one `utterance` or one `speaker`; `replace` doubles the noise.
    """

    epsilon: float
    delta: float = 1e-5
    iterations: int = 3
    relation: Relation = ONE_UTTERANCE
    transition_share: float = 0.1
    emission_norm: float = 1.5
    transition_norm: float = 0.3
    weights: tuple[float, float, float] = (0.5, 1.0, 0.1)

    def __post_init__(self) -> None:
        check_positives(self, "epsilon", "emission_norm", "transition_norm")
        check_probability("delta", self.delta)
        check_count("iterations", self.iterations)
        check_probability("transition_share", self.transition_share, zero=True)
        if len(self.weights) != 3:
            raise PrivacyError(f"weights are for counts, first and second moments: three numbers, got {self.weights}")
        for weight in self.weights:
            check_positive("weight", weight)
        if self.relation.unit not in ("utterance", "speaker"):
            raise PrivacyError(f"statistics are bounded by utterance or by speaker, got unit {self.relation.unit!r}")

    @property
    def mechanism(self) -> UnitSum:
        """What releases the sum of one iteration; `iterations` of them together are (epsilon, delta)-DP."""
        return _mechanism(self.epsilon, self.delta, self.iterations, self.relation)

    @property
    def event(self) -> DiscreteGaussianEvent:
        """What one iteration costs."""
        return self.mechanism.event

    @property
    def guarantee(self) -> Guarantee:
        """What one iteration promises."""
        return self.mechanism.guarantee

    def release(self, total: Tensor, place: Ranks = ONE_RANK) -> Released[Tensor]:
        """One iteration's sum of normalized vectors in whole steps (`UnitSum.add_up`), with noise; float64."""
        return self.mechanism.release(total, place)

    @classmethod
    def losses(cls, event: Event, runs: int, present: bool) -> Tensor:
        """Of one iteration of `UnitSums`: what it releases of silence, moved as far as it lets one unit move it."""
        delta, rho = 1e-5, event.zcdp()
        assert rho is not None
        unit: Unit = "speaker" if event.relation.unit == "speaker" else "utterance"
        one = cls(event.epsilon(delta), delta, 1, Relation(unit, event.relation.adjacency))
        noise = _said(one, 0.0, runs).released().first.flatten().double() * one.scales[1]
        moved = _said(one, 1e6, 1).total()
        if event.relation.adjacency == "replace":
            moved = moved - _said(one, -1e6, 1).total()
        reach = one.mechanism.sensitivity
        losses: Tensor = ((noise + present * moved.norm()) * 2 - reach) * rho / reach
        return losses

    def as_moments(self, vector: Tensor, like: "Moments") -> "Moments":
        """A released vector as moments of one row in their own units, shaped as those of any row of `like`."""
        shapes = [part.shape[1:] for part in like.parts]
        pieces = torch.split(vector.to(like.count), [shape.numel() for shape in shapes])
        scaled = zip(pieces, shapes, self.scales, strict=True)
        return Moments(*((piece / (scale or 1.0)).view(1, *shape) for piece, shape, scale in scaled))

    @property
    def scales(self) -> tuple[float, float, float, float, float]:
        """What multiplies counts, first moments, second moments, mass and transitions in the released vector."""
        emission = math.sqrt(1 - self.transition_share) / self.emission_norm
        count, first, second = (weight * emission for weight in self.weights)
        return count, first, second, count, math.sqrt(self.transition_share) / self.transition_norm


@lru_cache(maxsize=256)
def _mechanism(epsilon: float, delta: float, iterations: int, relation: Relation) -> UnitSum:
    """The noise, remembered: a search, and every M-step asks."""
    return UnitSum.calibrated(epsilon=epsilon, delta=delta, bound=1.0, relation=relation, releases=iterations)


@dataclass(frozen=True, slots=True)
class Moments:
    """Statistics of Gaussians `(models, cells)` about a released model, one leading axis `n` of records or units.

    Attributes:
        count: occupancies, `(n, models, cells)`.
        first: whitened first moments, `(n, models, cells, d)`.
        second: whitened second moments less their expectation, pooled, `(n, d)`.
        mass: all occupancies together, `(n, 1)`: what the counts sum to, with the noise of one coordinate.
        transitions: expected free transitions, `(n, models, free)`.
    """

    count: Tensor
    first: Tensor
    second: Tensor
    mass: Tensor
    transitions: Tensor

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The tensors, in the order of the released vector."""
        return self.count, self.first, self.second, self.mass, self.transitions

    def flat(self) -> tuple[Tensor, Tensor]:
        """Emission parts and transition parts as vectors, `(n, ...)` each, unscaled."""
        emissions = [self.count.flatten(1), self.first.flatten(1), self.second, self.mass]
        return torch.cat(emissions, dim=1), self.transitions.flatten(1)


def normalized(moments: Moments, frames: Tensor, release: StatisticsRelease) -> Tensor:
    """One vector a unit, of l2 norm at most 1 whatever its finite moments are; divided by its `frames` `(n,)`."""
    share = 1 / frames.clamp_min(1.0).to(moments.count)
    scaled = Moments(*(part * scale for part, scale in zip(moments.parts, release.scales, strict=True)))
    emission, transition = (part * share.unsqueeze(-1) for part in scaled.flat())
    emission = clip_norm(emission, math.sqrt(1 - release.transition_share))
    if release.transition_share == 0 or transition.shape[1] == 0:
        return torch.cat([emission, torch.zeros_like(transition)], dim=1)
    return torch.cat([emission, clip_norm(transition, math.sqrt(release.transition_share))], dim=1)


class UnitSums:
    """Adds up what units contribute, batch by batch, and bounds each; speakers are 0..speakers - 1."""

    def __init__(self, release: StatisticsRelease, speakers: int) -> None:
        self.release = release
        self.speakers = speakers
        self._total: Tensor | None = None
        self._gathered: list[Tensor] | None = None
        self._like: Moments | None = None

    @torch.no_grad()
    def add(self, moments: Moments, frames: Tensor, speakers: Tensor) -> None:
        """Add utterances: their moments, and how many frames `(n,)` and which speaker `(n,)` each has."""
        self._like = moments
        moments, frames = _finite(moments, frames)
        if self.release.relation.unit == "utterance":
            found = self.release.mechanism.add_up(normalized(moments, frames, self.release))
            self._total = found if self._total is None else self._total + found
            return
        bounded = (part.to(torch.float64).clamp(-MOST, MOST) for part in (*moments.parts, frames))
        parts = [(part * PARTS).to(torch.int64) for part in bounded]
        if self._gathered is None:
            self._gathered = [part.new_zeros((self.speakers, *part.shape[1:])) for part in parts]
        for all_parts, part in zip(self._gathered, parts, strict=True):
            all_parts.index_add_(0, speakers, part)

    def steps(self) -> Tensor:
        """The sum of the units' normalized vectors, in whole steps. Not private: for `released` and for tests."""
        if self._gathered is not None:
            assert self._like is not None
            *sums, frames = (part.to(torch.float64) / PARTS for part in self._gathered)
            each = normalized(Moments(*sums), frames, self.release)
            return self.release.mechanism.add_up(each)
        if self._total is None:
            raise PrivacyError("no utterance was added: there is nothing to release")
        return self._total

    def total(self) -> Tensor:
        """The same in the vectors' own units, float64: for a sum with others, and for tests."""
        return self.steps().to(torch.float64) / STEPS

    def with_release(self, release: StatisticsRelease) -> "UnitSums":
        """The same sums with another epsilon; PrivacyError if more differs, as the bounds were already applied."""
        if replace(release, epsilon=self.release.epsilon) != self.release:
            raise PrivacyError("these sums were bounded for another release: only epsilon may differ")
        other = UnitSums(release, self.speakers)
        other._total, other._gathered, other._like = self._total, self._gathered, self._like
        return other

    def released(self, place: Ranks = ONE_RANK) -> Moments:
        """The noisy sums as moments of one row, in their own units: one release, to be booked as one event.

        Of several ranks each has added its own units; PrivacyError where a speaker is heard by two of them, for what
        each adds would be bounded by itself.
        """
        if self._gathered is not None and bool((place.added((self._gathered[-1] > 0).to(torch.int64)) > 1).any()):
            raise PrivacyError("what one speaker says is on several processes: leave batches to SpeechDataModule")
        noisy = self.release.release(self.steps(), place).value
        assert self._like is not None
        return self.release.as_moments(noisy, self._like)


def _said(release: StatisticsRelease, loudness: float, features: int) -> UnitSums:
    """One utterance of one frame whose moments and transitions are so large: what an audit hears."""
    sums = UnitSums(release, speakers=1)
    first, moves = torch.full((1, 1, 1, features), loudness), torch.full((1, 1, 1), loudness)
    sums.add(Moments(0 * moves, first, 0 * first[0, 0], 0 * moves[0], moves), torch.ones(1), torch.zeros(1).long())
    return sums


def _finite(moments: Moments, frames: Tensor) -> tuple[Moments, Tensor]:
    """The same, with utterances that have a moment which is not finite as ones of no frames."""
    finite = torch.stack([torch.isfinite(part.flatten(1).sum(1, dtype=torch.float64)) for part in moments.parts]).all(0)
    if bool(finite.all()):
        return moments, frames
    parts = (torch.where(finite.view(-1, *[1] * (part.dim() - 1)), part, 0.0) for part in moments.parts)
    return Moments(*parts), torch.where(finite, frames, torch.zeros_like(frames))
