"""The additive mechanisms: laws, calibration, units, and the doors.

Distribution tests have a false-alarm rate of 1e-6 each.
"""

import math
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ppspeech.errors import PrivacyError
from ppspeech.evidence.published.mechanisms import PublishedOutputLaplace, PublishedSharedNoise
from ppspeech.privacy import (
    DiscreteGaussian,
    DiscreteLaplace,
    GammaNorm,
    Gaussian,
    GaussianEvent,
    Laplace,
    Relation,
    gaussian_sigma,
)
from ppspeech.privacy.convex.subspace import gamma_norm_noise, isotropic_normal, subspace_dimension
from ppspeech.privacy.samplers.grid import Grid, dyadic

ALARM = 1e-6
R: Any = {"relation": Relation("utterance", "add_remove")}
MECHANISMS: list[Any] = [
    Laplace(epsilon=0.5, sensitivity=2.0, **R),
    Gaussian.calibrated(epsilon=0.5, delta=1e-6, sensitivity=2.0, **R),
    GammaNorm(epsilon=0.5, sensitivity=2.0, **R),
    DiscreteLaplace(epsilon=0.5, sensitivity=2.0, dimension=12, **R),
    DiscreteGaussian.calibrated(epsilon=0.5, delta=1e-6, sensitivity=2.0, dimension=12, **R),
]


def named(mechanism: object) -> str:
    return type(mechanism).__name__


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=named)
def test_a_release_states_what_it_costs(mechanism: Any) -> None:
    value = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    released = mechanism.release(value)
    assert (released.value.shape, released.value.dtype) == (value.shape, value.dtype)
    assert not torch.equal(released.value, value)
    assert not torch.equal(released.value, mechanism.release(value).value)
    assert (released.guarantee.relation) == (Relation("utterance", "add_remove"))
    assert (released.event.relation) == (Relation("utterance", "add_remove"))
    assert released.guarantee.epsilon == pytest.approx(0.5, rel=1e-5)
    assert released.guarantee.epsilon <= 0.5 * (1 + 1e-9)
    assert released.event.epsilon(released.guarantee.delta) <= released.guarantee.epsilon * (1 + 1e-9)
    assert released.guarantee.float_safe == named(mechanism).startswith("Discrete")
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    with pytest.raises(FrozenInstanceError):
        mechanism.sensitivity = 1.0


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=named)
@pytest.mark.parametrize(
    "change", [{"sensitivity": 0.0}, {"sensitivity": math.inf}, {"relation": None}, {"relation": "person"}]
)
def test_wrong_parameters_are_refused(mechanism: Any, change: dict[str, Any]) -> None:
    with pytest.raises(PrivacyError, match=next(iter(change))):
        _ = replace(mechanism, **change).guarantee


@pytest.mark.parametrize("mechanism", MECHANISMS[3:], ids=named)
def test_discrete_releases_refuse_other_sizes_and_what_is_not_finite(mechanism: Any) -> None:
    with pytest.raises(PrivacyError, match="12 coordinates"):
        mechanism.release(torch.zeros(11))
    with pytest.raises(PrivacyError, match="infinities"):
        mechanism.release(torch.full((12,), math.nan))


def test_laplace_law() -> None:
    noisy = Laplace(epsilon=0.5, sensitivity=2.0, **R).release(torch.zeros(50_000, dtype=torch.float64)).value
    assert stats.kstest(noisy.numpy(), stats.laplace(scale=4.0).cdf).pvalue > ALARM


def test_gaussian_law_and_gold() -> None:
    mechanism = Gaussian.calibrated(epsilon=1.0, delta=1e-5, sensitivity=2.0, **R)
    assert mechanism.sigma == pytest.approx(2 * 3.73063, abs=1e-5)
    noisy = mechanism.release(torch.zeros(50_000, dtype=torch.float64)).value
    assert stats.kstest(noisy.numpy() / mechanism.sigma, stats.norm.cdf).pvalue > ALARM


def test_discrete_noise_is_on_its_grid_and_follows_its_law() -> None:
    for mechanism, law in (
        (DiscreteLaplace(epsilon=1.0, sensitivity=1.0, dimension=20_000, **R), stats.laplace),
        (DiscreteGaussian(sigma=2.0, sensitivity=1.0, dimension=20_000, delta=1e-6, **R), stats.norm),
    ):
        noisy = mechanism.release(torch.zeros(20_000, dtype=torch.float64)).value
        steps = noisy / mechanism.grid.step
        assert torch.equal(steps, steps.round())
        scale = float(mechanism.scale) * mechanism.grid.step
        assert stats.kstest(noisy.numpy() / scale, law.cdf).pvalue > ALARM


def test_whole_values_stay_whole_and_cost_no_growth() -> None:
    mechanism = DiscreteLaplace(epsilon=1.0, sensitivity=1.0, dimension=4, integer_valued=True, **R)
    assert (mechanism.grid.step, mechanism.grid.sensitivity, mechanism.scale) == (1.0, 1, 1)
    released = mechanism.release(torch.tensor([1, 5, 0, 7]))
    assert torch.equal(released.value, released.value.round())
    with pytest.raises(PrivacyError, match="whole-valued"):
        DiscreteLaplace(epsilon=1.0, sensitivity=0.5, dimension=4, integer_valued=True, **R).release(torch.zeros(4))


def test_fractions_are_not_whole_numbers() -> None:
    """0.4 and 1.6 are 1.2 apart and two steps: twice what whole numbers of sensitivity 1.5 may be."""
    for mechanism in (
        DiscreteLaplace(epsilon=1.0, sensitivity=1.5, dimension=1, integer_valued=True, **R),
        DiscreteGaussian(sigma=2.0, sensitivity=1.5, dimension=1, delta=1e-6, integer_valued=True, **R),
    ):
        assert mechanism.grid.to_steps(torch.tensor([2.0])) == 2
        for value in (0.4, 1.6):
            with pytest.raises(PrivacyError, match="promises whole numbers"):
                mechanism.release(torch.tensor([value]))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 200), st.floats(1e-6, 1e6), st.integers(0, 2**32 - 1))
def test_rounding_stays_within_the_grown_sensitivity(dimension: int, sensitivity: float, seed: int) -> None:
    generator = np.random.default_rng(seed)
    value = generator.normal(size=dimension) * sensitivity * 10
    for norm in (1, 2):
        grid = Grid.for_values(sensitivity, dimension, norm, integer_valued=False)  # type: ignore[arg-type]
        move = generator.normal(size=dimension) * generator.integers(0, 2, size=dimension)
        length = np.linalg.norm(move, norm)
        move = move / length * sensitivity if length > 0 else move
        steps = grid.to_steps(torch.from_numpy(value + move)) - grid.to_steps(torch.from_numpy(value))
        assert np.linalg.norm(steps.numpy(), norm) <= grid.sensitivity
        assert grid.sensitivity * grid.step <= sensitivity * (1 + 2 / 1024)
        assert math.log2(grid.step).is_integer()


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-3, 1e9))
def test_scales_are_rounded_up_to_short_fractions(scale: float) -> None:
    short = dyadic(scale)
    assert scale <= short <= scale * (1 + 2**-13) + 2**-24
    assert short.numerator <= 2**40


def test_discrete_gaussian_costs_little_more_than_the_continuous_one() -> None:
    for dimension in (1, 10, 1000):
        mechanism = DiscreteGaussian.calibrated(epsilon=1.0, delta=1e-5, sensitivity=1.0, dimension=dimension, **R)
        assert 1 < mechanism.sigma / gaussian_sigma(1.0, 1e-5) < 1.003
        assert mechanism.event.delta(1.0) <= 1e-5


def test_counts_with_discrete_gaussian_noise() -> None:
    mechanism = DiscreteGaussian.calibrated(
        epsilon=1.0, delta=1e-5, sensitivity=1.0, dimension=1, integer_valued=True, **R
    )
    assert 0.98 < mechanism.sigma / gaussian_sigma(1.0, 1e-5) < 1.02
    assert mechanism.event.l1 == mechanism.event.l2 == 1


@pytest.mark.parametrize("size", [1, 5, 50])
def test_gamma_norm_length_and_direction(size: int) -> None:
    """|b| ~ Gamma(N, 1/kappa), and the direction is uniform: coordinates have equal variance and no mean."""
    kappa = 2.0
    drawn = torch.stack([gamma_norm_noise((size,), kappa) for _ in range(1500)]).numpy()
    lengths = np.linalg.norm(drawn, axis=1)
    assert stats.kstest(lengths, stats.gamma(size, scale=1 / kappa).cdf).pvalue > ALARM
    assert abs(lengths.mean() - size / kappa) < 6 * math.sqrt(size) / kappa / math.sqrt(1500)
    signs = (drawn > 0).sum(axis=0)
    assert min(stats.binomtest(int(count), 1500).pvalue for count in signs) > ALARM / size


@pytest.mark.parametrize(("heads", "centered"), [((), False), ((2, 1), True), ((3, 2), True), ((2,), False)])
def test_symmetric_noise_lives_in_its_subspace(heads: tuple[int, ...], centered: bool) -> None:
    p, kappa = 3, 0.7
    shape = (*heads, p, p)
    size = subspace_dimension(shape, symmetric=True, centered=centered)
    assert size == (math.prod(heads) - centered) * p * (p + 1) // 2
    drawn = torch.stack([gamma_norm_noise(shape, kappa, symmetric=True, centered=centered) for _ in range(1000)])
    assert torch.equal(drawn, drawn.mT)
    if centered:
        assert drawn.flatten(1, -3).sum(dim=1).abs().max() < 1e-9 * drawn.abs().max() * math.prod(heads)
    lengths = drawn.flatten(1).norm(dim=1).numpy()
    assert stats.kstest(lengths, stats.gamma(size, scale=1 / kappa).cdf).pvalue > ALARM
    wrong = stats.gamma(math.prod(heads) * p * p, scale=1 / kappa)  # the paper's shape p^2 a head
    assert stats.kstest(lengths, wrong.cdf).pvalue < ALARM


def test_symmetric_noise_is_isotropic_in_svec() -> None:
    drawn = isotropic_normal((20_000, 3, 3), symmetric=True)
    diagonal, off = drawn[:, 0, 0].var(), drawn[:, 0, 1].var()
    assert float(diagonal) == pytest.approx(1.0, abs=6 * math.sqrt(2 / 20_000))
    assert float(off) == pytest.approx(0.5, abs=6 * math.sqrt(2 / 20_000) / 2)


@pytest.mark.parametrize(
    ("shape", "symmetric", "centered"),
    [((2, 3), True, False), ((3, 3), True, True), ((), False, False), ((0,), False, False)],
)
def test_wrong_shapes_are_refused(shape: tuple[int, ...], symmetric: bool, centered: bool) -> None:
    with pytest.raises(PrivacyError):
        gamma_norm_noise(shape, 1.0, symmetric=symmetric, centered=centered)


def test_gamma_norm_on_symmetric_matrices() -> None:
    mechanism = GammaNorm(epsilon=1.0, sensitivity=1.0, symmetric=True, centered=True, **R)
    value = torch.zeros(2, 4, 4, dtype=torch.float64)
    noisy = mechanism.release(value).value
    assert torch.allclose(noisy[0], -noisy[1])
    assert torch.equal(noisy, noisy.mT)


def test_published_noise_never_counts() -> None:
    output = PublishedOutputLaplace(epsilon=1.0, records=100, penalty=0.1, dimension=64)
    assert output.scale == pytest.approx(0.2)
    assert output.worst_epsilon == pytest.approx(4.0)
    released = output.release(torch.zeros(64))
    assert released.event.epsilon(1e-5) == math.inf
    assert (released.guarantee.kind, released.guarantee.claimed_epsilon) == ("broken", 1.0)
    assert PublishedOutputLaplace(epsilon=1.0, records=100, penalty=0.1, dimension=4).guarantee.kind == "unproven"
    shared = PublishedSharedNoise(epsilon=1.0, size=3)
    noise = shared.noise(4)
    assert torch.equal(noise[0], noise[3])
    assert shared.guarantee.kind == "broken"
    lengths = [float(shared.noise(1).norm()) for _ in range(1000)]
    assert stats.kstest(lengths, stats.gamma(9).cdf).pvalue > ALARM


def test_the_event_of_noise_is_relative_to_its_sensitivity() -> None:
    mechanism = Gaussian(sigma=6.0, sensitivity=2.0, delta=1e-6, **R)
    assert mechanism.event == GaussianEvent(3.0, **R)
