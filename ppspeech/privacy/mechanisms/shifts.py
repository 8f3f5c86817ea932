r"""One vector a person, few numbers about many people: clipped, added up, and released with their number.

A person's vector v is clipped to a public norm C, and what enters the sum is

    ( sqrt(1 - theta) v / C,  sqrt(theta) ),

of norm at most 1 whatever the person said, and however much: one more or less moves the sum by at most 1. The last
coordinate is the number of people, which is private too, with a share theta of the budget. Means over people, and
whatever is made of them, are post-processing. Proof: Theorem 1.25 in docs/theory/release.md.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import Event
from ppspeech.privacy.gradients.clipping import clip_norm
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussianEvent
from ppspeech.privacy.mechanisms.unit_sum import UnitSum
from ppspeech.privacy.parameters import check_count, check_positives, check_probability
from ppspeech.privacy.relation import Relation
from ppspeech.ranks import ONE_RANK, Ranks

ONE_SPEAKER = Relation("speaker", "add_remove")
SURE = 2.0  # deviations of the noise on their number that people are believed to be at least: fewer drown in it anyway


@mechanism("shifts", DiscreteGaussianEvent)
@dataclass(frozen=True, slots=True)
class ShiftRelease:
    """How vectors of people are bounded and released: public numbers, chosen without looking at private speech.

    Formal guarantee: `iterations` releases together are (epsilon, delta)-DP under `relation`, for the released bits:
    each person adds whole numbers (see `UnitSum`). A vector that is not finite counts as nobody's. `clip` is C, and
    `counted` theta; `dimension` is that of v. Only for `add_remove`.
    """

    epsilon: float
    delta: float
    dimension: int
    clip: float
    iterations: int = 1
    relation: Relation = ONE_SPEAKER
    counted: float = 0.05

    def __post_init__(self) -> None:
        check_positives(self, "epsilon", "clip")
        check_probability("delta", self.delta)
        check_probability("counted", self.counted)
        check_count("dimension", self.dimension)
        check_count("iterations", self.iterations)
        if self.relation.adjacency != "add_remove":
            raise PrivacyError(f"people are counted, which hides one more or less, not {self.relation.adjacency}")

    @property
    def mechanism(self) -> UnitSum:
        """What releases the sum of one iteration."""
        return _mechanism(self.epsilon, self.delta, self.iterations, self.relation)

    @property
    def event(self) -> DiscreteGaussianEvent:
        """What one iteration costs."""
        return self.mechanism.event

    @property
    def guarantee(self) -> Guarantee:
        """What one iteration promises."""
        return self.mechanism.guarantee

    def bounded(self, vectors: Tensor) -> Tensor:
        """What people with vectors `(n, dimension)` add to the sum, `(n, dimension + 1)`, each of norm at most 1."""
        if vectors.dim() != 2 or vectors.shape[1] != self.dimension:
            raise PrivacyError(f"made for vectors of {self.dimension} numbers, got shape {tuple(vectors.shape)}")
        finite = vectors.isfinite().all(1, keepdim=True)
        heard = torch.where(finite, vectors, 0).to(torch.float64)
        clipped = clip_norm(heard, self.clip) * (math.sqrt(1 - self.counted) / self.clip)
        one = math.sqrt(self.counted) * finite.to(torch.float64)
        return torch.cat([clipped, one], dim=1)

    def release(self, vectors: Tensor, place: Ranks = ONE_RANK) -> Released[Tensor]:
        """The noisy sum over people with vectors `(n, dimension)`, `(dimension + 1,)`; of several ranks each brings its
        own people, and all get the same.
        """
        return self.mechanism.release(self.mechanism.add_up(self.bounded(vectors)), place)

    def means(self, released: Tensor) -> tuple[Tensor, float]:
        """The mean of clipped vectors `(dimension,)` that a release tells, and the variance of its noise.

        Where the number of people may be noise alone it counts as larger: a mean too small is harmless, one that a
        small denominator blew up is not.
        """
        people = max(float(released[-1]), SURE * self.mechanism.sigma) / math.sqrt(self.counted)
        scale = self.clip / (math.sqrt(1 - self.counted) * people)
        return released[:-1] * scale, (self.mechanism.sigma * scale) ** 2

    @classmethod
    def losses(cls, event: Event, runs: int, present: bool) -> Tensor:
        """Of the release of nobody, moved as far as one person is let to move it."""
        delta, rho = 1e-5, event.zcdp()
        assert rho is not None
        one = cls(event.epsilon(delta), delta, runs, 1.0, relation=Relation(event.relation.unit, "add_remove"))
        noise = one.release(torch.zeros(0, runs)).value[:-1]
        moved = float(one.bounded(torch.full((1, runs), 1e6)).norm())
        return ((noise + present * moved) * 2 - 1) * rho


@lru_cache(maxsize=64)
def _mechanism(epsilon: float, delta: float, iterations: int, relation: Relation) -> UnitSum:
    """The noise, remembered: a search, and every release asks."""
    return UnitSum.calibrated(epsilon=epsilon, delta=delta, bound=1.0, relation=relation, releases=iterations)
