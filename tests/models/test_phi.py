import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from ppspeech.models.gaussian.phi import (
    BLOCK,
    assemble_phi,
    augment,
    cost,
    moments_from_phi,
    phi_from_moments,
    quadratic_features,
    quadratic_forms,
    smat,
    svec,
)

TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-11}


def gaussian(
    seed: int, features: int, *shape: int, dtype: torch.dtype = torch.float64
) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    mean = torch.randn(*shape, features, generator=generator, dtype=dtype)
    root = torch.randn(*shape, features, features, generator=generator, dtype=dtype)
    return mean, root @ root.mT + 0.5 * torch.eye(features, dtype=dtype)


@pytest.mark.parametrize("features", [1, 2, 7])
def test_cost_is_minus_scipys_weighted_log_density(features: int) -> None:
    mean, covariance = gaussian(features, features)
    x = torch.randn(20, features, dtype=torch.float64)
    expected = multivariate_normal(mean.numpy(), covariance.numpy()).logpdf(x.numpy()) + np.log(0.3)
    phi = phi_from_moments(mean, covariance, float(np.log(0.3)))
    np.testing.assert_allclose(-cost(x, phi).numpy(), np.atleast_1d(expected), rtol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cost_is_the_quadratic_form_of_every_frame_and_gaussian(dtype: torch.dtype) -> None:
    mean, covariance = gaussian(1, 3, 2, 4, dtype=dtype)
    phi = phi_from_moments(mean, covariance)
    x = torch.randn(5, 6, 3, dtype=dtype)
    costs = cost(x, phi)
    assert costs.shape == (5, 6, 2, 4)
    assert costs.dtype == dtype
    for frame in np.ndindex(5, 6):
        z = torch.cat([x[frame], x.new_ones(1)])
        for which in np.ndindex(2, 4):
            slow = z @ phi[which] @ z
            torch.testing.assert_close(costs[frame + which], slow, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), features=st.integers(1, 6), log_weight=st.floats(-20, 20))
def test_moments_survive_the_way_to_phi_and_back(seed: int, features: int, log_weight: float) -> None:
    mean, covariance = gaussian(seed, features, 3)
    phi = phi_from_moments(mean, covariance, torch.full((3,), log_weight, dtype=torch.float64))
    torch.testing.assert_close(phi, phi.mT)
    back_mean, back_covariance, back_weight = moments_from_phi(phi)
    torch.testing.assert_close(back_mean, mean, rtol=1e-7, atol=1e-8)
    torch.testing.assert_close(back_covariance, covariance, rtol=1e-7, atol=1e-8)
    torch.testing.assert_close(back_weight, torch.full((3,), log_weight, dtype=torch.float64), rtol=1e-7, atol=1e-7)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), size=st.integers(1, 8))
def test_svec_is_an_isometry_with_inverse_smat(seed: int, size: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    a, b = torch.randn(2, 3, size, size, generator=generator, dtype=torch.float64)
    a, b = a + a.mT, b + b.mT
    torch.testing.assert_close((svec(a) * svec(b)).sum(-1), (a * b).sum((-1, -2)))
    torch.testing.assert_close(smat(svec(a)), a)


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (0, 4)])
def test_quadratic_features_are_svec_of_the_outer_product(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, dtype=torch.float64)
    z = augment(x)
    torch.testing.assert_close(quadratic_features(x), svec(z.unsqueeze(-1) * z.unsqueeze(-2)))


def test_gradients_reach_frames_and_moments() -> None:
    mean, covariance = gaussian(3, 3)
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)

    def total(x: torch.Tensor, mean: torch.Tensor, root: torch.Tensor) -> torch.Tensor:
        return cost(x, phi_from_moments(mean, root @ root.mT, -1.0))

    root = torch.linalg.cholesky(covariance).requires_grad_()
    assert torch.autograd.gradcheck(total, (x, mean.requires_grad_(), root))


def test_a_covariance_that_is_not_positive_definite_is_refused() -> None:
    with pytest.raises(torch.linalg.LinAlgError):
        phi_from_moments(torch.zeros(2), -torch.eye(2))
    phi = assemble_phi(-torch.eye(2), torch.zeros(2), torch.zeros(()))
    with pytest.raises(torch.linalg.LinAlgError):
        moments_from_phi(phi)


@pytest.mark.parametrize("frames", [(1,), (3, 5), (BLOCK,), (BLOCK + 1,), (2, BLOCK + 3), (0,)], ids=str)
def test_forms_in_blocks_are_forms_at_once(frames: tuple[int, ...]) -> None:
    """Without a gradient frames go block by block: the same numbers, whatever shape they have."""
    torch.manual_seed(3)
    x, vectors = torch.randn(*frames, 3, dtype=torch.float64), torch.randn(2, 4, 10, dtype=torch.float64)
    at_once = quadratic_forms(x, vectors)
    with torch.no_grad():
        in_blocks = quadratic_forms(x, vectors)
    assert in_blocks.shape == (*frames, 2, 4)
    torch.testing.assert_close(in_blocks, at_once)
