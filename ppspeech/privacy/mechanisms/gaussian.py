"""The Gaussian mechanism with real noise, calibrated analytically (Balle and Wang 2018)."""

from dataclasses import dataclass

from torch import Tensor

from ppspeech.privacy.accounting.events import epsilon_of
from ppspeech.privacy.accounting.hockey_stick import gaussian_sigma
from ppspeech.privacy.accounting.noise_events import GaussianEvent
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.parameters import check_positive, check_probability
from ppspeech.privacy.relation import Relation
from ppspeech.privacy.samplers.randomness import standard_normal


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian:
    """Adds iid N(0, sigma^2) to every coordinate.

    Formal guarantee: (epsilon, delta)-DP with delta = H(epsilon; sensitivity / sigma) for every epsilon, and
    sensitivity^2 / 2 sigma^2 zCDP, under `relation`, if the value moves by at most `sensitivity` in
    l2 between neighbors. Not float-safe: `DiscreteGaussian` is the default for releases.

    Attributes:
        sigma: standard deviation, > 0.
        sensitivity: l2, > 0.
        delta: where the guarantee is stated; the event holds the whole profile.
        relation: what is protected, and what neighboring means.
    """

    sigma: float
    sensitivity: float
    delta: float
    relation: Relation

    def __post_init__(self) -> None:
        check_positive("sigma", self.sigma)
        check_positive("sensitivity", self.sensitivity)
        check_probability("delta", self.delta)

    @classmethod
    def calibrated(cls, *, epsilon: float, delta: float, sensitivity: float, relation: Relation) -> "Gaussian":
        """The least noise that is (epsilon, delta)-DP."""
        check_positive("sensitivity", sensitivity)
        sigma = sensitivity * gaussian_sigma(epsilon, delta)
        return cls(sigma=sigma, sensitivity=sensitivity, delta=delta, relation=relation)

    @property
    def event(self) -> GaussianEvent:
        """What one release costs."""
        return GaussianEvent(self.sigma / self.sensitivity, self.relation)

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""
        return Guarantee(
            kind="approximate",
            relation=self.relation,
            epsilon=epsilon_of(self.event, self.delta),
            delta=self.delta,
            rho=self.event.zcdp(),
            assumptions=(f"l2 sensitivity at most {self.sensitivity:.6g}", "real-valued noise"),
            caveat="noise is a float: low-order bits can leak (Mironov 2012)",
        )

    def release(self, value: Tensor) -> Released[Tensor]:
        """The value of any shape with fresh noise, same shape, dtype and device."""
        noisy = value.detach() + self.sigma * standard_normal(value.shape, like=value)
        return Released(noisy, self.event, self.guarantee)
