import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from scipy.stats import chi2, kstest
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.filters import FeatureNoise, LinearFilter, NoisyFilter
from ppspeech.filters.noisy import COARSE
from ppspeech.privacy import (
    Accountant,
    GammaNorm,
    Gaussian,
    Guarantee,
    NonPrivateEvent,
    Relation,
    gaussian_epsilon,
    gaussian_sigma,
)
from ppspeech.privacy.audit import epsilon_lower_bound
from ppspeech.privacy.gradients import STEPS

FALSE_ALARM = 1e-6  # of every test of a law

ONE = Relation("record", "replace")


def test_laplace_noise_follows_its_law() -> None:
    noise = FeatureNoise(bound=2.0, epsilon=0.5)
    drawn = noise.release(torch.zeros(4000, 3, dtype=torch.float64)).value
    scale = 2 * 2.0 * math.sqrt(3) / 0.5  # two vectors in the ball are up to 2 B sqrt(d) apart in l1
    assert kstest(drawn.flatten().numpy() / scale, "laplace").pvalue > FALSE_ALARM
    assert len(drawn.unique(dim=0)) == 4000  # every sample draws its own


def test_gaussian_noise_follows_its_law() -> None:
    noise = FeatureNoise(bound=2.0, epsilon=0.5, delta=1e-5, law="gaussian")
    drawn = noise.release(torch.zeros(4000, 3, dtype=torch.float64)).value
    sigma = 2 * 2.0 * gaussian_sigma(0.5, 1e-5)
    assert kstest(drawn.flatten().numpy() / sigma, "norm").pvalue > FALSE_ALARM
    assert kstest(drawn.square().sum(-1).numpy() / sigma**2, chi2(3).cdf).pvalue > FALSE_ALARM


def test_features_are_clipped_before_noise() -> None:
    far = torch.full((2000, 4), 1e6)
    noise = FeatureNoise(bound=1.0, epsilon=1e6)
    released = noise.release(far).value
    torch.testing.assert_close(released.norm(dim=-1), torch.ones(2000), atol=1e-3, rtol=0)
    near = torch.full((5, 4), 0.1)
    torch.testing.assert_close(noise.release(near).value, near, atol=1e-3, rtol=0)


def test_two_inputs_are_as_hard_to_tell_apart_as_is_promised() -> None:
    """The likelihood ratio at the released points, for the two inputs that are furthest apart in l1."""
    noise = FeatureNoise(bound=1.0, epsilon=1.0)
    first = torch.full((1, 2), 0.5).sqrt().double()
    out = noise.release(first.expand(5000, 2)).value
    loss = ((out + first).abs() - (out - first).abs()).sum(-1) / (2 * math.sqrt(2) / noise.epsilon)
    assert loss.max() <= noise.epsilon
    assert loss.max() > 0.9 * noise.epsilon  # and no more noise than needed


def possible(released: Tensor, candidate: Tensor) -> Tensor:
    """Whether float32 noise can have led from a candidate to what was released: an adversary's view of last bits.

    The float nearest to the difference, and its neighbors, are all that can have been added.
    """
    noise = released - candidate
    found = candidate + noise == released
    for toward in (math.inf, -math.inf):
        found |= candidate + torch.nextafter(noise, torch.tensor(toward)) == released
    return found.all(-1)


ONE_INPUT, OTHER = torch.full((20,), 0.1), torch.full((20,), -0.07)


def told_apart(release: Callable[[Tensor], Tensor], runs: int = 2000) -> float:
    """A lower bound of epsilon (confidence 1 - 1e-6) by the event that float noise cannot have led from the other."""
    counts = []
    for given in (ONE_INPUT, OTHER):
        released = torch.stack([release(given) for _ in range(runs)]).float()
        counts.append(int((~possible(released, OTHER)).sum()))
    return epsilon_lower_bound(*counts, runs, confidence=1 - FALSE_ALARM, delta=1e-6)


@pytest.mark.parametrize("law", ["gamma_norm", "gaussian"])
def test_the_last_bits_of_float_noise_rule_an_input_out(law: str) -> None:
    """What the attack is worth: stated is epsilon 1. What was given is never ruled out, the other one often."""
    if law == "gamma_norm":
        mechanism: Any = GammaNorm(epsilon=1.0, sensitivity=2.0, relation=ONE)
    else:
        mechanism = Gaussian.calibrated(epsilon=1.0, delta=1e-6, sensitivity=2.0, relation=ONE)
    assert told_apart(lambda x: mechanism.release(x).value) > 2.5


@pytest.mark.parametrize("law", [{}, {"delta": 1e-6, "law": "gaussian"}])
def test_the_last_bits_of_exact_noise_tell_nothing(law: Any) -> None:
    """The attack stays within the epsilon stated; what is released lies on one grid, whatever was given."""
    noise = FeatureNoise(bound=1.0, epsilon=1.00, **law)
    assert told_apart(lambda x: noise.release(x).value) <= 1.0
    for given in (ONE_INPUT, OTHER):
        steps = noise.release(given.double().expand(100, 20)).value * (STEPS if law else COARSE)
        assert torch.equal(steps, steps.round())


def test_one_sample_and_many() -> None:
    pure = FeatureNoise(bound=3.0, epsilon=0.25)
    stated = pure.guarantee
    assert (stated.kind, stated.delta, stated.float_safe) == ("pure", 0.0, True)
    assert stated.epsilon == 0.25
    assert (stated.relation) == (Relation("record", "replace"))
    assert any("public data" in line for line in stated.assumptions)
    many = pure.guarantee_for(8)
    assert many.epsilon == pytest.approx(8 * 0.25)
    assert (many.unit, many.kind) == ("speaker", "pure")
    assert any("at most 8 samples" in line for line in many.assumptions)
    rounded = FeatureNoise(bound=3.0, epsilon=0.25, delta=1e-6, law="gaussian")
    assert rounded.guarantee.epsilon == pytest.approx(0.25, rel=1e-6)
    assert rounded.guarantee.delta == 1e-6
    # T Gaussian releases, each 2 B apart, are one at distance 2 B sqrt(T)
    four = rounded.guarantee_for(4)
    assert four.float_safe
    assert four.epsilon == pytest.approx(gaussian_epsilon(1e-6, 2 / gaussian_sigma(0.25, 1e-6)), rel=1e-5)
    assert 0.25 < four.epsilon < 4 * 0.25


def test_the_event_enters_an_account() -> None:
    noise = FeatureNoise(bound=1.0, epsilon=0.5, unit="utterance")
    released = noise.release(torch.zeros(2, 3))
    account = Accountant(Relation("utterance", "replace"))
    account.compose(released.event, 2)
    assert account.epsilon(0.0) == pytest.approx(1.0)
    assert released.value.dtype == torch.float32


def test_a_noisy_filter_filters_then_releases() -> None:
    filter = LinearFilter.of(torch.tensor([[1.0, 0.0, 0.0]]))
    noisy = NoisyFilter(filter, FeatureNoise(bound=10.0, epsilon=1e9))
    inputs = torch.tensor([[1.0, 5.0, 5.0], [-2.0, 5.0, 5.0]])
    torch.testing.assert_close(noisy(inputs), torch.tensor([[1.0], [-2.0]]), atol=1e-4, rtol=0)
    assert noisy.features == 1
    assert noisy.guarantee.kind == "pure"
    assert not noisy.release(inputs).value.requires_grad
    frames = noisy(torch.randn(2, 4, 3))
    assert frames.shape == (2, 4, 1)


def test_without_noise_nothing_is_promised() -> None:
    bare = NoisyFilter(LinearFilter(3, 1), None, unit="utterance")
    inputs = torch.randn(4, 3)
    released = bare.release(inputs)
    torch.testing.assert_close(released.value, bare.filter(inputs).detach())
    assert isinstance(released.guarantee, Guarantee)
    assert released.guarantee.kind == "none"
    assert math.isinf(released.guarantee.epsilon)
    assert "attacks" in released.guarantee.caveat
    assert isinstance(released.event, NonPrivateEvent)
    assert released.event.relation.unit == "utterance"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bound": 0.0, "epsilon": 1.0}, "bound"),
        ({"bound": math.inf, "epsilon": 1.0}, "bound"),
        ({"bound": 1.0, "epsilon": -1.0}, "epsilon"),
        ({"bound": 1.0, "epsilon": 1.0, "delta": 1e-5}, "use law='gaussian'"),
        ({"bound": 1.0, "epsilon": 1.0, "law": "gaussian"}, "delta"),
        ({"bound": 1.0, "epsilon": 1.0, "law": "uniform"}, "law must be one of"),
        ({"bound": 1.0, "epsilon": 1.0, "unit": "person"}, "unit must be one of"),
    ],
)
def test_what_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(PrivacyError, match=message):
        FeatureNoise(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("law", [{}, {"delta": 1e-6, "law": "gaussian"}])
def test_a_sample_that_is_not_finite_is_released_as_noise(law: Any) -> None:
    """An error, or NaN in the file, would tell which recording it was."""
    noise = FeatureNoise(bound=1.0, epsilon=1.0, **law)
    assert bool(noise.release(torch.tensor([[math.nan, 0.0], [math.inf, 1.0]])).value.isfinite().all())
    with pytest.raises(PrivacyError, match="too small for 2 features"):
        FeatureNoise(bound=1.0, epsilon=1e-9).release(torch.zeros(4, 2))
    with pytest.raises(PrivacyError, match="samples"):
        noise.guarantee_for(0)
