from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from ppspeech.errors import ModelError
from ppspeech.models.gaussian.gaussians import Covariance, Gaussians
from ppspeech.models.gaussian.phi import cost

KINDS = get_args(Covariance)


def bank(
    kind: Covariance, shape: tuple[int, ...] = (2, 3), features: int = 4, dtype: torch.dtype = torch.float64
) -> Gaussians:
    gaussians = Gaussians(shape, features, kind, floor=0.05, dtype=dtype)
    generator = torch.Generator().manual_seed(7)
    mean = torch.randn(gaussians.mean.shape, generator=generator, dtype=dtype)
    spread = torch.randn(gaussians.spread.shape, generator=generator, dtype=dtype)
    variances = spread @ spread.mT + torch.eye(features) if kind in {"full", "tied"} else spread.exp() + 0.1
    gaussians.set_moments_(mean, variances)
    return gaussians


@pytest.mark.parametrize("kind", KINDS)
def test_log_density_is_scipys(kind: Covariance) -> None:
    gaussians = bank(kind)
    x = torch.randn(5, 6, 4, dtype=torch.float64)
    log_weight = torch.randn(2, 3, dtype=torch.float64)
    density = gaussians.log_density(x, log_weight).detach().numpy()
    assert density.shape == (5, 6, 2, 3)
    covariances = gaussians.covariances().detach().numpy()
    for which in np.ndindex(2, 3):
        reference = multivariate_normal(gaussians.mean[which].detach().numpy(), covariances[which])
        expected = reference.logpdf(x.numpy()) + float(log_weight[which])
        np.testing.assert_allclose(density[(..., *which)], expected, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_log_density_is_minus_the_cost_of_phi(kind: Covariance) -> None:
    gaussians = bank(kind)
    x = torch.randn(9, 4, dtype=torch.float64)
    torch.testing.assert_close(gaussians.log_density(x, -0.5), -cost(x, gaussians.phi(-0.5)))


@pytest.mark.parametrize("kind", KINDS)
def test_float32_is_exact_enough_far_from_zero(kind: Covariance) -> None:
    near = bank(kind)
    far = bank(kind, dtype=torch.float32)
    with torch.no_grad():
        near.mean += 500
        far.mean.copy_(near.mean)
        far.spread.copy_(near.spread)
        near.mean.copy_(far.mean)
    x = (torch.randn(50, 4) + 500).double()
    torch.testing.assert_close(
        far.log_density(x.float()).double(), near.log_density(x.float().double()), rtol=1e-3, atol=1e-2
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_set_moments_round_trip(kind: Covariance, dtype: torch.dtype) -> None:
    gaussians = bank(kind, dtype=dtype)
    mean, variances = gaussians.mean.detach() + 1, gaussians.variances().detach() * 2
    gaussians.set_moments_(mean, variances)
    torch.testing.assert_close(gaussians.mean, mean)
    torch.testing.assert_close(gaussians.variances(), variances)
    assert gaussians.variances().dtype == dtype


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_bank_is_standard_normal(kind: Covariance) -> None:
    gaussians = Gaussians((2,), 3, kind)
    torch.testing.assert_close(gaussians.covariances(), torch.eye(3).expand(2, 3, 3))
    assert not gaussians.mean.any()
    assert not list(gaussians.buffers())


@pytest.mark.parametrize("kind", KINDS)
def test_no_variance_is_below_the_floor(kind: Covariance) -> None:
    gaussians = bank(kind)
    variances = torch.zeros_like(gaussians.variances())
    if kind in {"full", "tied"}:
        variances += torch.diag(torch.tensor([4.0, 1.0, 0.01, -3.0], dtype=torch.float64))
    gaussians.set_moments_(gaussians.mean, variances)
    found = torch.linalg.eigvalsh(gaussians.covariances())
    assert (found >= 0.05 * (1 - 1e-9)).all()
    if kind in {"full", "tied"}:
        expected = torch.tensor([0.05, 0.05, 1.0, 4.0], dtype=torch.float64)
        torch.testing.assert_close(found, expected.expand(2, 3, 4))
    assert gaussians.log_density(torch.zeros(4, dtype=torch.float64)).isfinite().all()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31), scale=st.floats(0, 30))
def test_no_gradient_step_can_leave_the_floor(seed: int, scale: float) -> None:
    for kind in KINDS:
        gaussians = Gaussians((2,), 3, kind, floor=0.05, dtype=torch.float64)
        with torch.no_grad():
            step = torch.randn(gaussians.spread.shape, generator=torch.Generator().manual_seed(seed))
            gaussians.spread -= scale * step
        assert (torch.linalg.eigvalsh(gaussians.covariances()) >= 0.05 * (1 - 1e-6)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_the_density(kind: Covariance) -> None:
    gaussians = bank(kind, shape=(2,), features=3)
    x = torch.randn(2, 3, dtype=torch.float64)

    def density(mean: torch.Tensor, spread: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(gaussians, {"mean": mean, "spread": spread}, (x,))

    gaussians.forward = gaussians.log_density  # type: ignore[method-assign]
    # The detached origin moves with the mean in finite differences; the value does not depend on it.
    assert torch.autograd.gradcheck(
        density, (gaussians.mean.clone().requires_grad_(), gaussians.spread.clone().requires_grad_())
    )


def test_tied_shares_one_covariance_along_the_last_axis() -> None:
    gaussians = bank("tied")
    assert gaussians.spread.shape == (2, 1, 4, 4)
    covariances = gaussians.covariances()
    torch.testing.assert_close(covariances[:, 0], covariances[:, 2])
    assert not torch.allclose(covariances[0], covariances[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((), 2), "positive shape"),
        (((0,), 2), "positive shape"),
        (((1,), 0), "positive shape"),
        (((1,), 2, "banded"), "covariance must be one of"),
        (((1,), 2, "full", 0.0), "floor must be > 0, got 0.0"),
        (((1,), 2, "full", float("nan")), "floor"),
    ],
)
def test_bad_arguments_are_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Gaussians(*arguments)  # type: ignore[arg-type]


def test_frames_of_another_length_are_refused() -> None:
    with pytest.raises(ModelError, match="frames have 3 features, the Gaussians 4"):
        bank("full").log_density(torch.zeros(2, 3, dtype=torch.float64))
