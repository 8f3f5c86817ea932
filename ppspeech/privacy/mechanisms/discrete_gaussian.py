"""The Gaussian mechanism on a grid, sampled exactly: the default for releases with a delta."""

import math
from dataclasses import dataclass
from fractions import Fraction

from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import epsilon_of
from ppspeech.privacy.accounting.hockey_stick import gaussian_sigma
from ppspeech.privacy.accounting.noise_events import DiscreteGaussianEvent
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.parameters import check_count, check_positive, check_probability
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.samplers.discrete import sample_discrete_gaussian
from ppspeech.privacy.samplers.grid import Grid, dyadic


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian:
    """Rounds to a grid and adds whole noise with P(k) proportional to exp(-k^2 g^2 / 2 sigma^2).

    Formal guarantee: the profile of `DiscreteGaussianEvent` (zCDP, and the Gaussian's delta with a small shift), under
    `relation`, if the value moves by at most `sensitivity` in l2 between neighbors. It holds for
    the released bits: rounding is inside the sensitivity (s2 = l2/g + sqrt(d) steps), and the sampler uses whole
    numbers only.

    Attributes:
        sigma: of the noise in the value's own units, > 0; rounded up by at most one part in 2^23.
        sensitivity: l2, > 0.
        dimension: number of coordinates of what is released.
        delta: where the guarantee is stated; the event holds the whole profile.
        relation: what is protected, and what neighboring means.
        integer_valued: the value is a vector of whole numbers (counts): step 1, no growth.
    """

    sigma: float
    sensitivity: float
    dimension: int
    delta: float
    relation: Relation
    integer_valued: bool = False

    def __post_init__(self) -> None:
        check_positive("sigma", self.sigma)
        check_positive("sensitivity", self.sensitivity)
        check_count("dimension", self.dimension)
        check_probability("delta", self.delta)

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float,
        sensitivity: float,
        dimension: int,
        relation: Relation,
        integer_valued: bool = False,
    ) -> "DiscreteGaussian":
        """The least noise (to 1e-6) that this analysis shows to be (epsilon, delta)-DP."""
        check_positive("sensitivity", sensitivity)
        check_count("dimension", dimension)

        def at(sigma: float) -> DiscreteGaussian:
            return cls(
                sigma=sigma,
                sensitivity=sensitivity,
                dimension=dimension,
                delta=delta,
                relation=relation,
                integer_valued=integer_valued,
            )

        low = high = sensitivity * gaussian_sigma(epsilon, delta)
        while at(low).event.delta(epsilon) <= delta:
            low /= 1.01
        while at(high).event.delta(epsilon) > delta:
            high *= 1.01
            if high > 1e12 * sensitivity:
                raise PrivacyError(f"no practical noise reaches epsilon={epsilon}, delta={delta}")
        while high - low > 1e-6 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if at(middle).event.delta(epsilon) <= delta else (middle, high)
        return at(high)

    @property
    def grid(self) -> Grid:
        """The grid and the sensitivity on it."""
        return Grid.for_values(self.sensitivity, self.dimension, 2, integer_valued=self.integer_valued)

    @property
    def scale(self) -> Fraction:
        """sigma in steps of the grid, rounded up to a short fraction."""
        return dyadic(self.sigma / self.grid.step)

    @property
    def event(self) -> DiscreteGaussianEvent:
        """What one release costs."""
        l2 = self.grid.sensitivity
        l1 = min(math.sqrt(self.dimension) * l2, l2**2) if self.integer_valued else math.sqrt(self.dimension) * l2
        return DiscreteGaussianEvent(float(self.scale), l2, l1, self.dimension, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        event = self.event
        return Guarantee(
            kind="approximate",
            relation=self.relation,
            epsilon=epsilon_of(event, self.delta),
            delta=self.delta,
            rho=event.zcdp(),
            float_safe=True,
            assumptions=(f"l2 sensitivity at most {self.sensitivity:.6g}",),
        )

    def release(self, value: Tensor) -> Released[Tensor]:
        """The value of any shape with `dimension` coordinates, rounded and with fresh noise."""
        noise = sample_discrete_gaussian(self.scale, self.dimension)
        return Released(self.grid.add(value, noise), self.event, self.guarantee)
