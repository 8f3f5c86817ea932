"""The Laplace mechanism with real noise (Prakash and Gujar 2020, section II-E)."""

from dataclasses import dataclass

from torch import Tensor

from ppspeech.privacy.accounting.noise_events import LaplaceEvent
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.parameters import check_positive
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.samplers.randomness import standard_laplace


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace:
    """Adds iid Lap(sensitivity / epsilon) to every coordinate.

    Formal guarantee: epsilon-DP under `relation`, if the value moves by at most `sensitivity` in l1
    between neighbors. The samples are floats, whose low bits can tell (float_safe is False): `DiscreteLaplace` is
    the default for releases.

    Attributes:
        epsilon: > 0.
        sensitivity: l1, > 0.
        relation: what is protected, and what neighboring means.
    """

    epsilon: float
    sensitivity: float
    relation: Relation

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_positive("sensitivity", self.sensitivity)

    @property
    def scale(self) -> float:
        """b of Lap(b)."""
        return self.sensitivity / self.epsilon

    @property
    def event(self) -> LaplaceEvent:
        """What one release costs."""
        return LaplaceEvent(1 / self.epsilon, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        return Guarantee(
            kind="pure",
            relation=self.relation,
            epsilon=self.epsilon,
            assumptions=(f"l1 sensitivity at most {self.sensitivity:.6g}", "real-valued noise"),
            caveat="noise is a float: low-order bits can leak (Mironov 2012)",
        )

    def release(self, value: Tensor) -> Released[Tensor]:
        """The value of any shape with fresh noise, same shape, dtype and device."""
        noisy = value.detach() + self.scale * standard_laplace(value.shape, like=value)
        return Released(noisy, self.event, self.guarantee)
