"""Speaker models out of a universal background model (UBM): MAP adaptation and mean supervectors.

A UBM is a GaussianMixture of the pooled speech of many speakers. A speaker's model is the UBM moved towards the
speaker's frames (Reynolds, Quatieri and Dunn 2000), and it needs the frames only through their `MixtureStatistics`.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.models.gaussian.mixture import GaussianMixture
from ppspeech.models.gaussian.statistics import MixtureStatistics

Adapted = Literal["weights", "means", "variances"]


@torch.no_grad()
def map_adapt(
    ubm: GaussianMixture, sums: MixtureStatistics, *, relevance: float = 16.0, adapt: Sequence[Adapted] = ("means",)
) -> GaussianMixture:
    """Speaker models by MAP adaptation (Reynolds et al. 2000, eqs. 11-14), all speakers at once.

    With n_k, E_k[x], E_k[x²] from the statistics and a_k = n_k / (n_k + relevance):

        weights    a_k n_k / T + (1 - a_k) w_k, scaled to sum 1
        means      a_k E_k[x] + (1 - a_k) mu_k
        variances  a_k E_k[xx'] + (1 - a_k) (C_k + mu_k mu_k') - mean mean', floored as in the UBM

    The variances formula assumes that the means are adapted too; where they are not, E_k is taken about the UBM's mean.
    A tied covariance is adapted with the average of a_k under the weights. Returns a mixture of batch shape
    `(*speakers,)`; without frames a component stays the UBM's. Raises ModelError for a UBM with a batch, statistics of
    another mixture, a negative relevance or no part.

    Args:
        sums: statistics under the UBM with leading shape `(*speakers,)`, from `mixture_statistics(ubm, x, mask)`.
        relevance: r >= 0; how many frames a component needs for the data to weigh as much as the UBM.
    """
    bank = ubm.gaussians
    if ubm.batch or sums.count.shape[-1:] != bank.shape or sums.first.shape[-1] != bank.features:
        raise ModelError(
            f"MAP adaptation needs one UBM and its statistics, got a UBM of shape {bank.shape} and counts of "
            f"shape {tuple(sums.count.shape)}"
        )
    if not relevance >= 0 or not adapt or not set(adapt) <= set(get_args(Adapted)):
        raise ModelError(
            f"MAP adaptation needs relevance >= 0 and some of {', '.join(get_args(Adapted))}, "
            f"got {relevance} and {tuple(adapt)}"
        )
    speakers = sums.count.shape[:-1]
    count = sums.count.clamp_min(0)
    data = torch.where(count > 0, count / (count + relevance), 0.0).unsqueeze(-1)
    expected = torch.where(count.unsqueeze(-1) > 0, sums.first / count.unsqueeze(-1), 0.0)

    old_mean, old_weight = bank.mean.double(), ubm.log_weights().double().exp()
    mean = old_mean.expand(sums.first.shape)
    if "means" in adapt:
        mean = data * expected + (1 - data) * old_mean
    weight = old_weight.expand(count.shape)
    if "weights" in adapt:
        share = count / sums.frames.unsqueeze(-1).clamp_min(torch.finfo(torch.float64).tiny)
        weight = data.squeeze(-1) * share + (1 - data.squeeze(-1)) * old_weight
    variances = bank.variances().double().expand(*speakers, *bank.spread.shape)
    if "variances" in adapt:
        variances = _adapted_variances(ubm, sums, data, expected, mean)

    adapted = GaussianMixture(ubm.components, ubm.features, bank.kind, bank.floor, speakers, ubm.logits.dtype).to(
        ubm.logits.device
    )
    adapted.gaussians.set_moments_(mean, variances)
    adapted.logits.copy_(weight.log() - weight.sum(-1, keepdim=True).log())
    return adapted


@torch.no_grad()
def supervectors(ubm: GaussianMixture, models: GaussianMixture) -> Tensor:
    """The means as one vector whose inner products are the KL-divergence kernel (Campbell et al. 2006).

    Component k contributes sqrt(w_k) C_k^-1/2 mu_k with the weights and covariances of the UBM, so that

        <s(a), s(b)> = sum_k w_k mu_k(a)' C_k^-1 mu_k(b),

    and half the squared distance of two supervectors bounds the KL divergence of the two mixtures. Returns `(*speakers,
    components * d)`.
    """
    bank = ubm.gaussians
    if ubm.batch or models.gaussians.shape[-1:] != bank.shape or models.features != ubm.features:
        raise ModelError(
            f"supervectors need models adapted from one UBM of shape {bank.shape}, got {models.gaussians.shape}"
        )
    mean = models.gaussians.mean
    if bank.kind in {"full", "tied"}:
        factor = torch.linalg.cholesky(bank.covariances())
        whitened = torch.linalg.solve_triangular(factor, mean.unsqueeze(-1), upper=False).squeeze(-1)
    else:
        whitened = mean / bank.variances().sqrt()
    vectors: Tensor = (whitened * (ubm.log_weights() / 2).exp().unsqueeze(-1)).flatten(-2)
    return vectors


def _adapted_variances(
    ubm: GaussianMixture, sums: MixtureStatistics, data: Tensor, expected: Tensor, mean: Tensor
) -> Tensor:
    """Second moments, mixed, about adapted means m: E[(x - m)(x - m)'] = E[xx'] - E[x] m' - m E[x]' + mm' for any m."""
    bank = ubm.gaussians
    old_mean, old = bank.mean.double(), bank.variances().double()
    moved = old_mean - mean
    if bank.kind in {"full", "tied"}:
        weight = data.unsqueeze(-1)
        shift = moved.unsqueeze(-1) * moved.unsqueeze(-2)
        cross = expected.unsqueeze(-1) * mean.unsqueeze(-2)
        about = mean.unsqueeze(-1) * mean.unsqueeze(-2) - cross - cross.mT
        count = sums.count.clamp_min(0).unsqueeze(-1).unsqueeze(-1)
        if bank.kind == "tied":
            share = ubm.log_weights().double().exp().unsqueeze(-1).unsqueeze(-1)
            weight = (share * weight).sum(-3, keepdim=True)
            shift = (share * shift).sum(-3, keepdim=True)
            about = (count * about).sum(-3, keepdim=True)
            count = count.sum(-3, keepdim=True)
            second = torch.where(count > 0, (sums.second + about) / count, 0.0)
        else:
            second = torch.where(count > 0, sums.second / count, 0.0) + about
        return weight * second + (1 - weight) * (old + shift)
    count = sums.count.clamp_min(0).unsqueeze(-1)
    about, shift = mean.square() - 2 * expected * mean, moved.square()
    if bank.kind == "spherical":
        second = torch.where(count > 0, sums.second / count, 0.0) + about.sum(-1, keepdim=True)
        second, shift = second / bank.features, shift.mean(-1, keepdim=True)
    else:
        second = torch.where(count > 0, sums.second / count, 0.0) + about
    return data * second + (1 - data) * (old + shift)
