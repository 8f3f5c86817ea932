"""Noise whose length is gamma distributed: pure privacy for an l2 sensitivity."""

from dataclasses import dataclass

from torch import Tensor

from ppspeech.privacy.accounting.events import PureEvent
from ppspeech.privacy.convex.subspace import gamma_norm_noise
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.parameters import check_positive
from ppspeech.privacy.relation import Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaNorm:
    """Adds noise with density proportional to exp(-kappa |b|_2), kappa = epsilon / sensitivity.

    Formal guarantee: epsilon-DP under `relation`, if the value moves by at most `sensitivity` in l2
    (Frobenius for matrices) between neighbors, inside the subspace that the noise lives in. Not float-safe.

    Attributes:
        epsilon: > 0.
        sensitivity: l2, > 0.
        relation: what is protected, and what neighboring means.
        symmetric: the value is `(*heads, p, p)`, symmetric; noise only there.
        centered: the value's heads sum to a constant that does not depend on the data; noise only there.
    """

    epsilon: float
    sensitivity: float
    relation: Relation
    symmetric: bool = False
    centered: bool = False

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_positive("sensitivity", self.sensitivity)

    @property
    def kappa(self) -> float:
        """Rate of the noise's length."""
        return self.epsilon / self.sensitivity

    @property
    def event(self) -> PureEvent:
        """What one release costs."""
        return PureEvent(self.epsilon, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        where = " inside the noise's subspace" if self.symmetric or self.centered else ""
        return Guarantee(
            kind="pure",
            relation=self.relation,
            epsilon=self.epsilon,
            assumptions=(f"l2 sensitivity at most {self.sensitivity:.6g}{where}", "real-valued noise"),
            caveat="noise is a float: low-order bits can leak (Mironov 2012)",
        )

    def release(self, value: Tensor) -> Released[Tensor]:
        """The value with fresh noise, same shape, dtype and device. Without `symmetric` or `centered`, any shape."""
        shape = value.shape if self.symmetric or self.centered else (value.numel(),)
        noise = gamma_norm_noise(shape, self.kappa, symmetric=self.symmetric, centered=self.centered, like=value)
        return Released(value.detach() + noise.reshape(value.shape), self.event, self.guarantee)
