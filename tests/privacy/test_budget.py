"""A budget that stops: nothing is released that does not fit, whatever was released before."""

from typing import Any

import pytest
import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy import (
    Budget,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    GaussianEvent,
    PermuteAndFlip,
    Relation,
    Released,
    SampledGaussianEvent,
)
from ppspeech.privacy.accounting.renyi import epsilon_from_zcdp

ONE = Relation("record", "add_remove")


class Watched:
    """A mechanism that says how often it was asked to look at the data."""

    def __init__(self, epsilon: float) -> None:
        self.inside, self.looked = DiscreteLaplace(epsilon=epsilon, sensitivity=1.0, dimension=1, relation=ONE), 0
        self.event = self.inside.event

    def release(self, *value: Tensor) -> Released[Tensor]:
        self.looked += 1
        return self.inside.release(*value)


def test_what_does_not_fit_is_refused_before_the_data_is_looked_at() -> None:
    budget, mechanism = Budget(ONE, epsilon=1.0), Watched(0.4)
    for _ in range(2):
        budget.release(mechanism, torch.zeros(1))
    with pytest.raises(PrivacyError, match="nothing was released"):
        budget.release(mechanism, torch.zeros(1))
    assert mechanism.looked == 2
    assert budget.account.epsilon(0.0) == pytest.approx(0.8, rel=1e-3)
    budget.release(Watched(0.19), torch.zeros(1))  # what is left may still be spent
    assert budget.guarantee().epsilon == 1.0
    assert budget.guarantee().float_safe


def test_ten_tenths_are_one() -> None:
    budget = Budget(ONE, epsilon=1.0)
    for _ in range(10):
        budget.spend(PermuteAndFlip(epsilon=0.1, sensitivity=1.0, relation=ONE).event)
    assert budget.left == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(PrivacyError, match="would exceed it"):
        budget.spend(PermuteAndFlip(epsilon=1e-6, sensitivity=1.0, relation=ONE).event)


def test_with_a_delta_the_zcdp_of_all_releases_stays_within_the_budget() -> None:
    """Releases chosen one by one: the sum of rho is what a filter may count, and not the tighter profile."""
    budget = Budget(ONE, epsilon=2.0, delta=1e-5)

    def spend_all() -> None:
        for step in range(1, 1000):
            one = DiscreteGaussian(sigma=10.0 + step % 3, sensitivity=1.0, dimension=3, delta=1e-5, relation=ONE)
            budget.release(one, torch.zeros(3))

    with pytest.raises(PrivacyError, match="would exceed it"):
        spend_all()
    rho = sum(count * (event.zcdp() or 0.0) for event, count in budget.account.events)
    assert epsilon_from_zcdp(rho, 1e-5) <= 2.0
    assert epsilon_from_zcdp(rho + 1 / (2 * 10.0**2), 1e-5) > 2.0
    assert budget.account.epsilon(1e-5) <= budget.guarantee().epsilon == 2.0


@pytest.mark.parametrize(
    ("delta", "event", "message"),
    [
        (0.0, GaussianEvent(10.0, ONE), "has no epsilon by itself"),
        (1e-5, SampledGaussianEvent(10.0, 0.1, 5, ONE), "has no rho by itself"),
        (1e-5, GaussianEvent(100.0, Relation("speaker", "add_remove")), "Convert it first"),
    ],
)
def test_what_a_budget_cannot_count_is_refused_and_costs_nothing(delta: float, event: Any, message: str) -> None:
    budget = Budget(ONE, epsilon=1.0, delta=delta)
    left = budget.left
    with pytest.raises(PrivacyError, match=message):
        budget.spend(event)
    assert (budget.left, budget.account.events) == (left, ())


def test_a_mechanism_that_fails_has_spent() -> None:
    budget = Budget(ONE, epsilon=1.0, delta=1e-5)
    noise = Gaussian(sigma=5.0, sensitivity=1.0, delta=1e-5, relation=ONE)
    with pytest.raises(AttributeError):
        budget.release(noise, "no tensor")
    assert budget.left < Budget(ONE, epsilon=1.0, delta=1e-5).left
