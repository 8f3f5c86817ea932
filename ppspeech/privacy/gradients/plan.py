"""DP-SGD as a value: who joins a step, how much each may say, the noise on the sum, and what that costs.

In every step each unit joins independently with probability q; what each contributes is clipped to norm C and rounded
to whole steps; and Gaussian noise of deviation z C, whole steps too, is added to the sum, once, also where nobody
joined. With several ranks every unit belongs to one of them, which tosses its coin: the ranks' batches together are one
Poisson sample. The clipped sums are added over the ranks, and the noise is the first rank's. Proof: Theorems 1.23 and
1.39 in docs/theory/release.md.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import torch
from torch import Tensor
from torch.utils.data import Sampler

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import INTERVAL, Event, UnsupportedAnalysisError, register_event
from ppspeech.privacy.accounting.loss import LossDistribution, loss_of_gaussian, sampled_gaussian_renyi, shifted_loss
from ppspeech.privacy.audit.catalogue import ONE_RECORD, exact_report, line
from ppspeech.privacy.audit.exact import audit_exact
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.gradients.clipping import MOST_NUMBERS, STEPS, limit_contributions, whole_scale, whole_sum
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.mechanisms.unit_sum import ALONE as COMPUTED_ALONE
from ppspeech.privacy.mechanisms.unit_sum import noisy_sum
from ppspeech.privacy.parameters import check_count, check_positive, check_positives, check_probability
from ppspeech.privacy.relation import Adjacency, Relation
from ppspeech.privacy.samplers.grid import dyadic
from ppspeech.privacy.samplers.randomness import coins
from ppspeech.ranks import ONE_RANK, Ranks


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

    def grouped(self, size: int, relation: Relation) -> Event:
        """Of add_remove: somebody of the group joins a step with 1 - (1 - q)^M, and moves its sum by at most M C.

        Given everyone else's coins, the law with the group is a mixture over who of it joins; hockey sticks are convex
        in such mixtures, and grow with the shift.
        """
        if self.zcdp() is not None:
            return Event.grouped(self, size, relation)
        if self.relation.adjacency != "add_remove":
            raise PrivacyError("a sampled sum under replace is not converted to a group: protect the larger unit")
        joins = -math.expm1(size * math.log1p(-self.sampling))
        return SampledGaussianEvent(self.noise_multiplier / size, joins, self.steps, relation)

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """One step's distribution, composed with itself."""
        return _loss(self.noise_multiplier, self.sampling, self.steps, self.relation.adjacency, interval)


@register_event("sampled_discrete_gaussian")
@dataclass(frozen=True, slots=True)
class SampledDiscreteGaussianEvent(Event):
    """`steps` times: every unit joins with probability `sampling`; noise P(k) ~ exp(-k^2 / 2 sigma^2) on the sum.

    What a unit adds are at most `dimension` whole numbers of l2 norm at most `l2`, under either adjacency. With z =
    sigma / l2, the loss of a step is at most that of `SampledGaussianEvent` at z plus eta = sqrt(dimension) r l2 /
    sigma^2, r = 1 (2 for `replace`). Proof: with l(x) = (2 <x, s> - |s|^2) / 2 sigma^2 the loss is ln(1 - q + q
    e^l(x)), or its negative; discrete and continuous noise can be coupled with |l(x) - l(y)| <= |s|_1 / sigma^2 <= eta
    (see `DiscreteGaussianEvent`; for replace the bound holds for both terms of the ratio, each with half of r), and
    1 - q + q e^(l + eta) <= e^eta (1 - q + q e^l). So delta(epsilon) <= delta_G(epsilon - steps eta). Renyi divergences
    of whole orders need no eta: E[e^(j l)] of whole shifts is exactly that of the Gaussian.
    """

    sigma: float
    l2: float
    dimension: int
    sampling: float
    steps: int
    relation: Relation

    def __post_init__(self) -> None:
        check_positives(self, "sigma", "l2")
        check_count("dimension", self.dimension)
        if self.l2 < 1 or self.sigma < 1:
            raise PrivacyError(f"whole noise on whole numbers has l2 and sigma >= 1, got {self.l2} and {self.sigma}")
        _ = self.smooth  # refuses the rest

    @property
    def noise_multiplier(self) -> float:
        """The noise over what one unit adds."""
        return self.sigma / self.l2

    @property
    def smooth(self) -> SampledGaussianEvent:
        """The same with real noise."""
        return SampledGaussianEvent(self.noise_multiplier, self.sampling, self.steps, self.relation)

    @property
    def shift(self) -> float:
        """steps times eta: what the grid costs."""
        reach = 1 if self.relation.adjacency == "add_remove" else 2
        return self.steps * math.sqrt(self.dimension) * reach * self.l2 / self.sigma**2

    @property
    def float_safe(self) -> bool:
        """The noise is exact, and what it is added to is whole."""
        return True

    def delta(self, epsilon: float) -> float:
        """From the loss distribution."""
        return float(self.pld().get_delta_for_epsilon(epsilon))

    def epsilon(self, delta: float) -> float:
        """From the loss distribution."""
        check_probability("delta", delta, zero=True)
        return float(self.pld().get_epsilon_for_delta(delta))

    def rdp(self, alpha: float) -> float:
        """That of real noise at the next whole order."""
        return self.smooth.rdp(float(math.ceil(alpha)))

    def zcdp(self) -> float | None:
        """That of real noise, without sampling."""
        return self.smooth.zcdp()

    def grouped(self, size: int, relation: Relation) -> Event:
        """As for real noise: somebody of the group joins a step with 1 - (1 - q)^M, and moves its sum by M l2."""
        if self.zcdp() is not None:
            return Event.grouped(self, size, relation)
        if self.relation.adjacency != "add_remove":
            raise PrivacyError("a sampled sum under replace is not converted to a group: protect the larger unit")
        joins = -math.expm1(size * math.log1p(-self.sampling))
        return replace(self, l2=size * self.l2, sampling=joins, relation=relation)

    def pld(self, interval: float = INTERVAL) -> LossDistribution:
        """That of real noise, with all losses larger by the shift."""
        return shifted_loss(self.smooth.pld(interval), self.shift, interval)


class PoissonBatches(Sampler[list[int]]):
    """Batches that every unit joins independently with probability `sampling`, with all its items; some are empty.

    The coins come from the operating system: no seed repeats them. `units` is the unit of every item, `(items,)`;
    `most` items of a unit are drawn anew for each batch, None for all. Each of several ranks tosses the coins of the
    units that it owns (`Ranks.owns`).
    """

    def __init__(
        self, units: Tensor, sampling: float, steps: int, most: int | None = None, place: Ranks = ONE_RANK
    ) -> None:
        check_probability("sampling", sampling, one=True)
        check_count("steps", steps)
        if len(units) == 0:
            raise PrivacyError("there is no item to sample from")
        names, self.unit = torch.unique(units, return_inverse=True)
        self.units = len(names)
        self.mine = place.owns(torch.arange(self.units))
        self.sampling, self.steps, self.most = sampling, steps, most

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[list[int]]:
        for _ in range(self.steps):
            joins = torch.zeros(self.units, dtype=torch.bool)
            joins[self.mine] = torch.from_numpy(coins(self.sampling, int(self.mine.sum())))
            chosen = joins[self.unit].nonzero().squeeze(-1)
            if self.most is not None and len(chosen):
                chosen = chosen[limit_contributions(self.unit[chosen], self.most)]
            yield chosen.tolist()


@mechanism("sampled_gaussian", SampledDiscreteGaussianEvent, SampledGaussianEvent)
@dataclass(frozen=True, slots=True, kw_only=True)
class GradientPlan:
    """A step of DP-SGD: public numbers, chosen without looking at private data.

    Formal guarantee: after n steps, that of `after(n)`, for every unit under `relation`, if in each step units join by
    `batches` and nothing but what `release` returns is used. It holds for the released bits (see `UnitSum`).

    A unit joins a step with probability q = `sampling` in (0, 1], with a gradient of norm at most C = `clip` and `most`
    items (None for all); z is `noise_multiplier`. The sum moves by C under `add_remove`. `automatic` brings all
    gradients near the norm C, short ones too (Bu, Wang, Zha and Karypis 2023), so that C only scales the steps.
    """

    relation: Relation
    noise_multiplier: float
    sampling: float
    clip: float
    delta: float = 1e-5
    most: int | None = None
    automatic: bool = False

    def __post_init__(self) -> None:
        check_positives(self, "noise_multiplier", "clip")
        check_probability("sampling", self.sampling, one=True)
        check_probability("delta", self.delta)
        if self.most is not None:
            check_count("most", self.most)

    @property
    def steps_per_epoch(self) -> int:
        """Steps in which a unit is expected to join once."""
        return math.ceil(1 / self.sampling)

    @property
    def event(self) -> SampledDiscreteGaussianEvent:
        """What one step costs."""
        return self.after(1)

    def after(self, steps: int) -> SampledDiscreteGaussianEvent:
        """What so many steps cost."""
        return _event(self.noise_multiplier, self.sampling, steps, self.relation)

    @property
    def scale(self) -> Fraction:
        """z C in steps of C / 2^40, rounded up."""
        return dyadic(self.noise_multiplier * STEPS)

    @property
    def guarantee(self) -> Guarantee:
        """What one step promises."""
        return Guarantee.of(self.event, self.delta, assumptions=self.assumptions)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold outside the mechanism."""
        unit = self.relation.unit
        return (
            f"gradients of one {unit} are clipped to {self.clip:.6g}",
            f"every {unit} joins a step independently with probability {self.sampling:.6g}",
            COMPUTED_ALONE.format(unit=unit),
        )

    def batches(self, units: Tensor, place: Ranks = ONE_RANK) -> PoissonBatches:
        """An epoch's batches of items that belong to `units` `(items,)`: this rank's part of each Poisson sample."""
        return PoissonBatches(units, self.sampling, self.steps_per_epoch, self.most, place)

    def clipped_sums(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """What `clipped_steps` adds up, in the gradients' own units, float64. Not private: for tests and audits."""
        return [total.to(torch.float64) * (self.clip / STEPS) for total in self.clipped_steps(gradients)]

    def clipped_steps(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """The sum over units of their gradients `(units, *shape)`, one tensor a parameter, clipped as one vector.

        In whole steps of C / 2^40, int64: exact, whatever the order. A unit with a gradient that is not finite adds
        zeros.
        """
        if sum(math.prod(g.shape[1:]) for g in gradients) > MOST_NUMBERS:
            raise PrivacyError(f"private gradients have at most {MOST_NUMBERS} numbers: train fewer parameters")
        norms = [torch.linalg.vector_norm(g.flatten(1), dim=1, dtype=torch.float64) for g in gradients]
        scale = whole_scale(torch.stack(norms).norm(dim=0), self.clip, automatic=self.automatic)
        return [whole_sum(gradient, scale) for gradient in gradients]

    def release(self, gradients: Sequence[Tensor], place: Ranks = ONE_RANK) -> Released[list[Tensor]]:
        """The noisy sums of gradients `(units, *shape)` of who joined, if any; all ranks call and get the same."""
        sums = self.clipped_steps(gradients)
        flat = noisy_sum(torch.cat([total.flatten() for total in sums]), self.scale, place)
        noisy = torch.split(flat.to(torch.float64) * (self.clip / STEPS), [total.numel() for total in sums])
        values = [part.reshape(g.shape[1:]).to(g.dtype) for part, g in zip(noisy, gradients, strict=True)]
        return Released(values, self.event, self.guarantee)

    @classmethod
    def losses(cls, event: SampledDiscreteGaussianEvent | SampledGaussianEvent, runs: int, present: bool) -> Tensor:
        """Of `steps` releases where the unit's gradient is as large as clipping lets it be and all others are zero.

        Under `replace` the unit's other self has the opposite gradient.
        """
        z, q = event.noise_multiplier, event.sampling
        replaces = event.relation.adjacency == "replace"
        plan = cls(relation=event.relation, noise_multiplier=z, sampling=q, clip=1.0)
        loud = float(plan.clipped_sums([torch.full((1, 1), 1e6, dtype=torch.float64)])[0])
        gradient = loud if present else (-loud if replaces else 0.0)
        total = torch.zeros(runs, dtype=torch.float64)

        def likelihood(x: Tensor) -> Tensor:
            return torch.log1p(q * torch.expm1((2 * x - 1) / (2 * z**2)))

        for _ in range(event.steps):
            x = gradient * _joins(plan, runs) + plan.release([torch.zeros(0, runs, dtype=torch.float64)]).value[0]
            total += likelihood(x) - (likelihood(-x) if replaces else 0.0)
        return total

    @classmethod
    def audit(cls, runs: int) -> list[AuditReport]:  # noqa: ARG003
        """One step by its density, where the unit's gradient has the largest norm and all others are zero."""
        one = cls(relation=ONE_RECORD, noise_multiplier=1.0, sampling=0.1, clip=1.0)

        def log_density(points: Tensor, present: bool) -> Tensor:
            absent = -points.square() / 2 - math.log(2 * math.pi) / 2
            joined = -(points - 1).square() / 2 - math.log(2 * math.pi) / 2
            if not present:
                return absent
            return torch.logaddexp(math.log1p(-one.sampling) + absent, math.log(one.sampling) + joined)

        points, step = line(20.0)
        found = audit_exact(log_density, True, False, points.squeeze(1), volumes=step)
        return [exact_report("sampled_gaussian", found, one.guarantee, "one step")]


def _event(noise_multiplier: float, sampling: float, steps: int, relation: Relation) -> SampledDiscreteGaussianEvent:
    """What so many steps cost, of vectors as long as any may be."""
    sigma = float(dyadic(noise_multiplier * STEPS))
    return SampledDiscreteGaussianEvent(sigma, float(STEPS), MOST_NUMBERS, sampling, steps, relation)


def _joins(plan: GradientPlan, units: int) -> Tensor:
    """Who of so many units joins one step, `(units,)` of 0 and 1."""
    batches = plan.batches(torch.arange(units))
    joined = torch.zeros(units, dtype=torch.float64)
    joined[next(iter(batches))] = 1.0
    return joined


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
        event = _event(z, sampling, steps, relation)
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
