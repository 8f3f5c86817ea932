"""The Laplace mechanism on a grid, sampled exactly: the default for pure releases."""

from dataclasses import dataclass
from fractions import Fraction

from torch import Tensor

from ppspeech.privacy.accounting.noise_events import DiscreteLaplaceEvent
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.parameters import check_count, check_positive
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.samplers.discrete import sample_discrete_laplace
from ppspeech.privacy.samplers.grid import Grid, dyadic


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace:
    """Rounds to a grid and adds whole noise with P(k) proportional to exp(-|k| epsilon / s1).

    Formal guarantee: epsilon-DP under `relation`, if the value moves by at most `sensitivity` in l1
    between neighbors. It holds for the released bits: rounding is inside the sensitivity (s1 = l1/g + d steps), and
    the sampler uses whole numbers only.

    Attributes:
        epsilon: > 0.
        sensitivity: l1, > 0.
        dimension: number of coordinates of what is released.
        relation: what is protected, and what neighboring means.
        integer_valued: the value is a vector of whole numbers (counts): step 1, no growth.
    """

    epsilon: float
    sensitivity: float
    dimension: int
    relation: Relation
    integer_valued: bool = False

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_positive("sensitivity", self.sensitivity)
        check_count("dimension", self.dimension)

    @property
    def grid(self) -> Grid:
        """The grid and the sensitivity on it."""
        return Grid.for_values(self.sensitivity, self.dimension, 1, integer_valued=self.integer_valued)

    @property
    def scale(self) -> Fraction:
        """Scale of the noise in steps of the grid: at least s1 / epsilon, rounded up to a short fraction."""
        return dyadic(self.grid.sensitivity / self.epsilon)

    @property
    def event(self) -> DiscreteLaplaceEvent:
        """What one release costs."""
        return DiscreteLaplaceEvent(float(self.scale), int(self.grid.sensitivity), self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        return Guarantee(
            kind="pure",
            relation=self.relation,
            epsilon=self.event.pure(),
            float_safe=True,
            assumptions=(f"l1 sensitivity at most {self.sensitivity:.6g}",),
        )

    def release(self, value: Tensor) -> Released[Tensor]:
        """The value of any shape with `dimension` coordinates, rounded and with fresh noise."""
        noise = sample_discrete_laplace(self.scale, self.dimension)
        return Released(self.grid.add(value, noise), self.event, self.guarantee)
