import math

import numpy as np
import pytest
import torch
from scipy.stats import chi2, gamma, kstest

from ppspeech.errors import PrivacyError
from ppspeech.filters import FeatureNoise, LinearFilter, NoisyFilter
from ppspeech.privacy import Accountant, Guarantee, NonPrivateEvent, Relation, gaussian_sigma

FALSE_ALARM = 1e-6  # of every test of a law


def test_gamma_norm_lengths_and_directions_follow_their_law() -> None:
    noise = FeatureNoise(bound=2.0, epsilon=0.5)
    drawn = noise.release(torch.zeros(4000, 3, dtype=torch.float64)).value
    lengths = drawn.norm(dim=-1).numpy()
    assert kstest(lengths, gamma(3, scale=2 * 2.0 / 0.5).cdf).pvalue > FALSE_ALARM
    # a coordinate of a uniform direction in three dimensions is uniform in [-1, 1]
    assert kstest((drawn[:, 0].numpy() / lengths + 1) / 2, "uniform").pvalue > FALSE_ALARM
    assert abs(np.corrcoef(lengths[:-1], lengths[1:])[0, 1]) < 5 / math.sqrt(4000)  # every sample draws its own


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
    """The likelihood ratio at the released points, for the two inputs that are furthest apart."""
    noise = FeatureNoise(bound=1.0, epsilon=1.0)
    first, second = torch.tensor([[1.0, 0.0]]).double(), torch.tensor([[-1.0, 0.0]]).double()
    out = noise.release(first.expand(5000, 2)).value
    loss = noise.epsilon / 2 * ((out - second).norm(dim=-1) - (out - first).norm(dim=-1))
    assert loss.max() <= noise.epsilon
    assert loss.max() > 0.9 * noise.epsilon  # and no more noise than needed


def test_one_sample_and_many() -> None:
    pure = FeatureNoise(bound=3.0, epsilon=0.25)
    stated = pure.guarantee
    assert (stated.kind, stated.epsilon, stated.delta) == ("pure", 0.25, 0.0)
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
    direct = Accountant(Relation("speaker", "replace"))
    event = FeatureNoise(bound=6.0, epsilon=0.25, delta=1e-6, law="gaussian", unit="speaker")
    sigma = 2 * 3.0 * gaussian_sigma(0.25, 1e-6)
    direct.compose(type(event.event)(sigma / (2 * 3.0 * 2), Relation("speaker", "replace")))  # type: ignore[call-arg]
    assert four.epsilon == pytest.approx(direct.epsilon(1e-6), rel=1e-6)
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


def test_features_that_are_not_finite_and_no_samples_are_refused() -> None:
    noise = FeatureNoise(bound=1.0, epsilon=1.0)
    with pytest.raises(PrivacyError, match="infinities or NaN"):
        noise.release(torch.full((2, 2), math.nan))
    with pytest.raises(PrivacyError, match="samples"):
        noise.guarantee_for(0)
