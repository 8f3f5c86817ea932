"""Privacy loss distributions: the one door to `dp-accounting`.

A distribution here is always pessimistic: its delta(epsilon) is never below the truth. Own mechanisms enter by
the survival function of a stochastic upper bound Z of their privacy loss, which is enough because
(1 - exp(epsilon - z))+ increases in z and the bound holds whatever happened before. Proof: Lemma 1.6 in
docs/theory/release.md.
"""

import logging
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import dp_accounting
import numpy as np
from dp_accounting import privacy_accountant, rdp
from dp_accounting.pld import common, privacy_loss_distribution
from numpy.typing import NDArray

from ppspeech.privacy.relation import Adjacency

LossDistribution: TypeAlias = Any
"""`dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution`, which has no types."""

Survival = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""t -> an upper bound of P(Z > t), decreasing, for an array of t."""

TAIL = 1e-16  # probability that is moved to an infinite loss, so that a distribution has finitely many buckets


def loss_of_pair(epsilon: float, delta: float, interval: float) -> LossDistribution:
    """The worst mechanism that is (epsilon, delta)-DP."""
    return privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(epsilon, delta), value_discretization_interval=interval
    )


def loss_of_gaussian(
    noise_multiplier: float, interval: float, *, sampling: float = 1.0, adjacency: Adjacency = "add_remove"
) -> LossDistribution:
    """Gaussian noise of `noise_multiplier` times what one unit adds, on a Poisson sample of the units."""
    relation = privacy_accountant.NeighboringRelation
    return privacy_loss_distribution.from_gaussian_mechanism(
        standard_deviation=noise_multiplier,
        value_discretization_interval=interval,
        sampling_prob=sampling,
        neighboring_relation=relation.ADD_OR_REMOVE_ONE if adjacency == "add_remove" else relation.REPLACE_ONE,
    )


def loss_of_laplace(scale: float, interval: float) -> LossDistribution:
    """Laplace noise of scale `scale` times the sensitivity."""
    return privacy_loss_distribution.from_laplace_mechanism(parameter=scale, value_discretization_interval=interval)


def loss_from_survival(
    remove: Survival, add: Survival, *, top: float, bottom: float, interval: float
) -> LossDistribution:
    """A distribution from upper bounds of P(Z > t) in both directions.

    Bucket k holds P((k - 1) h < Z <= k h) at the loss k h, so every loss is rounded up; what lies above `top`
    becomes an infinite loss, what lies below `bottom` is moved up to it. `remove` holds when the unit is present, `add`
    when it is absent.
    """
    first, last = math.floor(bottom / interval), math.ceil(top / interval)
    edges = np.arange(first, last + 1).astype(np.float64) * np.float64(interval)
    masses: list[tuple[dict[int, float], float]] = []
    for survival in (remove, add):
        above = np.clip(survival(edges), 0.0, 1.0)
        above = np.maximum.accumulate(above[::-1])[::-1]  # rounding must not make a mass negative
        buckets = np.concatenate([[1 - above[0]], above[:-1] - above[1:]])
        held = {first + int(k): float(buckets[k]) for k in np.flatnonzero(buckets)}
        masses.append((held or {first: 0.0}, float(above[-1])))
    (mass_remove, infinite_remove), (mass_add, infinite_add) = masses
    return privacy_loss_distribution.PrivacyLossDistribution.create_from_rounded_probability(
        mass_remove, infinite_remove, interval, True, mass_add, infinite_add, symmetric=False
    )


def shifted_loss(loss: LossDistribution, by: float, interval: float) -> LossDistribution:
    """A distribution with every loss larger by `by` >= 0, rounded up to a bucket."""
    bucket = math.ceil(by / interval)
    certain = privacy_loss_distribution.PrivacyLossDistribution.create_from_rounded_probability(
        {bucket: 1.0}, 0.0, interval, True, {bucket: 1.0}, 0.0, symmetric=False
    )
    return loss.compose(certain)


def no_loss(interval: float) -> LossDistribution:
    """The distribution of a mechanism that does not look at the data."""
    return privacy_loss_distribution.identity(value_discretization_interval=interval)


def sampled_gaussian_renyi(sampling: float, noise_multiplier: float, alpha: float) -> float:
    """Renyi divergence of order alpha of one step of DP-SGD with Poisson sampling, add_remove.

    At some orders that are not whole the series of `dp-accounting` does not converge; divergences grow with the order,
    so the next whole one's, a finite sum, is a bound there.
    """
    event = dp_accounting.PoissonSampledDpEvent(sampling, dp_accounting.GaussianDpEvent(noise_multiplier))
    found = math.inf
    for order in (alpha, math.ceil(alpha)):
        if math.isinf(found):
            accountant = rdp.RdpAccountant(orders=[order])
            accountant.compose(event)
            found = float(accountant.rdp[0])
    return found


# What it says where that happens is dealt with above.
logging.getLogger("absl").addFilter(lambda record: not str(record.msg).startswith("_compute_log_a_frac"))
