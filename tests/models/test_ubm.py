from typing import get_args

import pytest
import torch

from ppspeech.errors import ModelError
from ppspeech.models.gaussian.gaussians import Covariance
from ppspeech.models.gaussian.statistics import mixture_statistics
from ppspeech.models.gaussian.ubm import map_adapt, supervectors
from tests.models.test_mixture import mixture

KINDS = get_args(Covariance)


def speech(speakers: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(11)
    return torch.randn(speakers, 30, 2, generator=generator, dtype=torch.float64) + 1


@pytest.mark.parametrize("kind", KINDS)
def test_means_move_by_reynolds_formula(kind: Covariance) -> None:
    ubm, x = mixture(kind), speech()
    adapted = map_adapt(ubm, mixture_statistics(ubm, x), relevance=16)
    for speaker in range(3):
        share = ubm.responsibilities(x[speaker]).detach()
        for k in range(3):
            count = share[:, k].sum()
            expected = (share[:, k].unsqueeze(-1) * x[speaker]).sum(0) / count
            weight = count / (count + 16)
            mean = weight * expected + (1 - weight) * ubm.gaussians.mean[k].detach()
            torch.testing.assert_close(adapted.gaussians.mean[speaker, k].detach(), mean)
    torch.testing.assert_close(adapted.log_weights(), ubm.log_weights().expand(3, -1))
    torch.testing.assert_close(adapted.gaussians.covariances(), ubm.gaussians.covariances().expand(3, -1, -1, -1))


def test_weights_and_variances_move_by_reynolds_formula() -> None:
    ubm, x = mixture("diagonal"), speech()
    adapted = map_adapt(ubm, mixture_statistics(ubm, x), relevance=8, adapt=("weights", "means", "variances"))
    mean, variance = ubm.gaussians.mean.detach(), ubm.gaussians.variances().detach()
    for speaker in range(3):
        share = ubm.responsibilities(x[speaker]).detach()
        count = share.sum(0)
        data = (count / (count + 8)).unsqueeze(-1)
        first = share.mT @ x[speaker] / count.unsqueeze(-1)
        second = share.mT @ x[speaker].square() / count.unsqueeze(-1)
        new_mean = data * first + (1 - data) * mean
        new_variance = data * second + (1 - data) * (variance + mean.square()) - new_mean.square()
        weight = data.squeeze(-1) * count / 30 + (1 - data.squeeze(-1)) * ubm.log_weights().exp().detach()
        torch.testing.assert_close(adapted.gaussians.variances()[speaker].detach(), new_variance.clamp_min(0.01))
        torch.testing.assert_close(adapted.log_weights()[speaker].exp().detach(), weight / weight.sum())


@pytest.mark.parametrize("kind", KINDS)
def test_full_adaptation_without_relevance_is_an_em_step(kind: Covariance) -> None:
    """With r = 0 every alpha is 1 and the formulas become those of maximum likelihood."""
    from ppspeech.models.gaussian.em import update_mixture_

    ubm, x = mixture(kind), speech(1)
    sums = mixture_statistics(ubm, x)
    adapted = map_adapt(ubm, sums, relevance=0, adapt=("weights", "means", "variances")).select(0)
    update_mixture_(ubm, sums.pooled())
    torch.testing.assert_close(adapted.gaussians.mean, ubm.gaussians.mean)
    torch.testing.assert_close(adapted.gaussians.covariances(), ubm.gaussians.covariances())
    torch.testing.assert_close(adapted.log_weights(), ubm.log_weights())


@pytest.mark.parametrize("kind", KINDS)
def test_variances_alone_are_about_the_old_means(kind: Covariance) -> None:
    ubm, x = mixture(kind), speech(1)
    adapted = map_adapt(ubm, mixture_statistics(ubm, x), relevance=0, adapt=("variances",)).select(0)
    torch.testing.assert_close(adapted.gaussians.mean, ubm.gaussians.mean)
    share = ubm.responsibilities(x[0]).detach()
    away = x[0].unsqueeze(1) - ubm.gaussians.mean.detach()
    scatter = torch.einsum("nk,nki,nkj->kij", share, away, away)
    covariance = scatter / share.sum(0).reshape(-1, 1, 1)
    if kind == "tied":
        covariance = (scatter.sum(0) / 30).expand(3, -1, -1)
    elif kind == "diagonal":
        covariance = torch.diag_embed(covariance.diagonal(dim1=-2, dim2=-1))
    elif kind == "spherical":
        covariance = torch.diag_embed(covariance.diagonal(dim1=-2, dim2=-1).mean(-1, keepdim=True).expand(-1, 2))
    torch.testing.assert_close(adapted.gaussians.covariances().detach(), covariance)


def test_without_frames_a_speaker_is_the_ubm() -> None:
    ubm, x = mixture(), speech(2)
    mask = torch.ones(2, 30)
    mask[1] = 0
    adapted = map_adapt(ubm, mixture_statistics(ubm, x, mask), adapt=("weights", "means", "variances"))
    for mine, reference in zip(adapted.select(1).parameters(), ubm.parameters(), strict=True):
        torch.testing.assert_close(mine.softmax(-1), reference.softmax(-1))
    torch.testing.assert_close(adapted.select(1).gaussians.mean, ubm.gaussians.mean)


@pytest.mark.parametrize("kind", KINDS)
def test_inner_products_of_supervectors_are_the_kernel(kind: Covariance) -> None:
    ubm, x = mixture(kind), speech()
    adapted = map_adapt(ubm, mixture_statistics(ubm, x))
    vectors = supervectors(ubm, adapted)
    assert vectors.shape == (3, 6)
    weights, inverse = ubm.log_weights().exp().detach(), torch.linalg.inv(ubm.gaussians.covariances()).detach()
    mean = adapted.gaussians.mean.detach()
    kernel = torch.einsum("k,aki,kij,bkj->ab", weights, mean, inverse, mean)
    torch.testing.assert_close(vectors @ vectors.mT, kernel)
    assert supervectors(ubm, ubm).shape == (6,)


def test_half_the_squared_distance_bounds_the_kl_divergence() -> None:
    ubm, x = mixture("full"), speech(2)
    adapted = map_adapt(ubm, mixture_statistics(ubm, x), relevance=1)
    drawn = adapted.select(0).sample(50_000, torch.Generator().manual_seed(1))
    with torch.no_grad():
        divergence = (adapted.select(0).log_prob(drawn) - adapted.select(1).log_prob(drawn)).mean()
    a, b = supervectors(ubm, adapted)
    assert 0 < float(divergence) < float((a - b).square().sum() / 2) + 0.01


def test_refusals() -> None:
    ubm, x = mixture(), speech()
    sums = mixture_statistics(ubm, x)
    with pytest.raises(ModelError, match="one UBM and its statistics"):
        map_adapt(mixture(batch=(2,)), sums)
    with pytest.raises(ModelError, match="relevance >= 0"):
        map_adapt(ubm, sums, relevance=-1)
    with pytest.raises(ModelError, match="relevance >= 0"):
        map_adapt(ubm, sums, relevance=float("nan"))
    with pytest.raises(ModelError, match="some of weights, means, variances"):
        map_adapt(ubm, sums, adapt=())
    with pytest.raises(ModelError, match="one UBM"):
        supervectors(mixture(batch=(2,)), ubm)
