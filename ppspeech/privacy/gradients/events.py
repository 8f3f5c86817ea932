"""The event of DP-SGD: Gaussian noise on the sum over a Poisson sample, repeated."""

from dataclasses import dataclass
from functools import lru_cache

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import INTERVAL, Event, UnsupportedAnalysisError, register_event
from ppspeech.privacy.accounting.loss import LossDistribution, loss_of_gaussian, sampled_gaussian_renyi
from ppspeech.privacy.parameters import check_count, check_positive, check_probability
from ppspeech.privacy.relation import Adjacency, Relation


@register_event("sampled_gaussian")
@dataclass(frozen=True, slots=True)
class SampledGaussianEvent(Event):
    """`steps` times: every unit joins independently with probability `sampling`; N(0, (z C)^2) on the clipped sum.

    C is the norm that one unit's contribution is clipped to, z the `noise_multiplier`, under either adjacency (under
    `replace` the sum moves by up to 2C, which the analysis knows). Shuffled batches of fixed size are not Poisson
    samples: book them with sampling = 1.
    """

    noise_multiplier: float
    sampling: float
    steps: int
    relation: Relation

    def __post_init__(self) -> None:
        check_positive("noise_multiplier", self.noise_multiplier)
        check_probability("sampling", self.sampling, one=True)
        check_count("steps", self.steps)

    def delta(self, epsilon: float) -> float:
        """From the loss distribution."""
        return float(self.pld().get_delta_for_epsilon(epsilon))

    def epsilon(self, delta: float) -> float:
        """From the loss distribution."""
        check_probability("delta", delta, zero=True)
        return float(self.pld().get_epsilon_for_delta(delta))

    def rdp(self, alpha: float) -> float:
        """Known for add_remove, and for replace without sampling."""
        rho = self.zcdp()
        if rho is not None:
            return alpha * rho
        if self.relation.adjacency == "replace":
            raise UnsupportedAnalysisError("no Renyi bound for Poisson sampling under replace; use method='pld'")
        return self.steps * _renyi(self.sampling, self.noise_multiplier, alpha)

    def zcdp(self) -> float | None:
        """Only without sampling: amplified losses have no zCDP parameter that shows the gain."""
        if self.sampling < 1:
            return None
        reach = 1.0 if self.relation.adjacency == "add_remove" else 2.0
        return self.steps * (reach / self.noise_multiplier) ** 2 / 2

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """One step's distribution, composed with itself."""
        return _loss(self.noise_multiplier, self.sampling, self.steps, self.relation.adjacency, interval)


@lru_cache(maxsize=64)
def _loss(
    noise_multiplier: float, sampling: float, steps: int, adjacency: Adjacency, interval: float
) -> LossDistribution:
    step = loss_of_gaussian(noise_multiplier, interval, sampling=sampling, adjacency=adjacency)
    return step.self_compose(steps) if steps > 1 else step


@lru_cache(maxsize=4096)
def _renyi(sampling: float, noise_multiplier: float, alpha: float) -> float:
    return sampled_gaussian_renyi(sampling, noise_multiplier, alpha)


def noise_multiplier_for(epsilon: float, delta: float, *, sampling: float, steps: int, relation: Relation) -> float:
    """The smallest noise multiplier (to 0.1 %) that keeps DP-SGD within (epsilon, delta), by loss distributions."""
    check_positive("epsilon", epsilon)
    check_probability("delta", delta)

    def spent(z: float, interval: float = 1e-3) -> float:  # coarse buckets are pessimistic too, and quick
        event = SampledGaussianEvent(z, sampling, steps, relation)
        return float(event.pld(interval).get_epsilon_for_delta(delta))

    low, high = 0.3, 1.0
    while spent(high) > epsilon:
        low, high = high, 2 * high
        if high > 1e5:
            raise PrivacyError(f"no practical noise reaches epsilon={epsilon}, delta={delta} in {steps} steps")
    if spent(low) <= epsilon:
        return low
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if spent(middle) <= epsilon else (middle, high)
    while spent(high, INTERVAL) > epsilon:
        high *= 1.001
    return high
