"""Sufficient statistics of frames under a mixture: sums that can be added, clipped, noised, encrypted.

The E-step of EM and the first half of MAP adaptation. The split is what privacy needs: what a speaker
contributes is one `MixtureStatistics`, and everything after the sum is post-processing.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn import functional

from ppspeech.errors import ModelError
from ppspeech.models.gaussian.gaussians import Covariance, Gaussians
from ppspeech.models.gaussian.kmeans import check_frames, check_weights
from ppspeech.models.gaussian.mixture import NEGLIGIBLE, GaussianMixture
from ppspeech.models.gaussian.phi import smat

BLOCK_VALUES = 1 << 21  # values of one block of frames: the memory of a pass, however many frames there are


@dataclass(frozen=True)
class MixtureStatistics:
    """Sufficient statistics of frames under a mixture, about the origin, in float64.

    Statistics of two sets of frames add up to the statistics of both. Leading axes are groups of frames
    (speakers, say) and then the batch of the mixture.

    Attributes:
        count: responsibilities summed over the frames, `(..., components)`.
        first: responsibility times x, `(..., components, d)`.
        second: responsibility times xx', in the form of the covariances and no more: `(..., components, d, d)` full,
            `(..., 1, d, d)` tied, `(..., components, d)` diagonal, `(..., components, 1)` spherical.
        frames: the weights of the frames summed, `(...)`.
    """

    count: Tensor
    first: Tensor
    second: Tensor
    log_likelihood: Tensor
    frames: Tensor

    def __add__(self, other: "MixtureStatistics") -> "MixtureStatistics":
        if self.first.shape != other.first.shape or self.second.shape != other.second.shape:
            raise ModelError(
                f"statistics of shapes {tuple(self.first.shape)}, {tuple(self.second.shape)} and "
                f"{tuple(other.first.shape)}, {tuple(other.second.shape)} do not add up: "
                "they come from different mixtures"
            )
        return MixtureStatistics(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def scaled(self, factor: float) -> "MixtureStatistics":
        """Statistics of frames whose weights are `factor` times as large."""
        return MixtureStatistics(*(getattr(self, f.name) * factor for f in fields(self)))

    def pooled(self) -> "MixtureStatistics":
        """The sum over the first axis of groups."""
        return MixtureStatistics(*(getattr(self, f.name).sum(0) for f in fields(self)))


@torch.no_grad()
def mixture_statistics(model: GaussianMixture, x: Tensor, weights: Tensor | None = None) -> MixtureStatistics:
    """The E-step: what the M-step needs to know about frames.

    Two matrix products a block of frames: monomials times coefficients gives the log-densities, and responsibilities
    times the same monomials gives all statistics. Frames are `(*groups, frames, d)`, and every group gets statistics of
    its own, of leading shape `(*groups, *batch)`; a frame of weight 0 may hold anything. Raises ModelError for frames
    of the wrong shape, none at all, or not finite; for negative weights.
    """
    bank = model.gaussians
    origin = bank.origin()
    coefficients = bank.coefficients(model.log_weights(), origin).flatten(0, -2)

    def posterior(monomials: Tensor, _: slice) -> tuple[Tensor, Tensor]:
        joint = coefficients @ monomials
        joint = joint.reshape(*joint.shape[:-2], *bank.shape, -1)
        largest = joint.amax(-2, keepdim=True)
        share = joint.sub_(largest).clamp_min_(NEGLIGIBLE).exp_()
        total = share.sum(-2, keepdim=True)
        return share.div_(total), (largest + total.log()).squeeze(-2)

    return _accumulate(model, x, weights, origin, posterior)


@torch.no_grad()
def hard_statistics(
    model: GaussianMixture, x: Tensor, labels: Tensor, weights: Tensor | None = None
) -> MixtureStatistics:
    """Statistics with every frame given to one component, `labels` `(*batch, frames)`; the log-likelihood is 0."""

    def chosen(monomials: Tensor, block: slice) -> tuple[Tensor, Tensor]:
        share = functional.one_hot(labels[..., block], model.components).mT.to(monomials)
        return share, torch.zeros_like(share[..., 0, :])

    usable = x if weights is None else x[weights > 0]
    return _accumulate(model, x, weights, usable.mean(0), chosen)


def _accumulate(
    model: GaussianMixture,
    x: Tensor,
    weights: Tensor | None,
    origin: Tensor,
    posterior: Callable[[Tensor, slice], tuple[Tensor, Tensor]],
) -> MixtureStatistics:
    """Sum responsibilities times monomials over blocks of frames.

    Within a block in the precision of the model, across blocks in float64. `posterior` maps the monomials
    `(*groups, monomials, block)` and the place of the block to responsibilities
    `(*groups, *batch, components, block)` and log-likelihoods `(*groups, *batch, block)`.
    """
    bank = model.gaussians
    if x.ndim < 2 or x.numel() == 0 or x.shape[-1] != bank.features:
        raise ModelError(
            f"frames must have shape (frames, {bank.features}) with at least one frame, got {tuple(x.shape)}"
        )
    x = x.to(bank.mean.dtype)
    origin = origin.to(x)
    if weights is not None:
        weights = check_weights(x, weights)
        x = torch.where(weights.unsqueeze(-1) > 0, x, origin)
    groups, frames = x.shape[:-2], x.shape[-2]
    rows, width = model.logits.numel(), bank.monomials(origin).shape[-1]
    size = max(1, BLOCK_VALUES // (max(rows, width) * groups.numel()))
    moments = torch.zeros((*groups, rows, width), dtype=torch.float64, device=x.device)
    log_likelihood = torch.zeros((*groups, *model.batch), dtype=torch.float64, device=x.device)
    for start in range(0, frames, size):
        block = slice(start, start + size)
        monomials = monomial_columns(bank, x[..., block, :] - origin)
        share, log_prob = posterior(monomials, block)
        if weights is not None:
            weight = weights[..., block].reshape(*groups, *(1,) * len(model.batch), -1)
            share, log_prob = share * weight.unsqueeze(-2), log_prob * weight
        moments += share.reshape(*groups, rows, -1) @ monomials.mT
        log_likelihood += log_prob.sum(-1, dtype=torch.float64)
    if not bool(log_likelihood.isfinite().all()):
        check_frames(x)
        raise ModelError("the log-likelihood is not finite: the frames are too far from the mixture")
    total = x.new_full(groups, frames, dtype=torch.float64) if weights is None else weights.double().sum(-1)
    total = total.reshape(*groups, *(1,) * len(model.batch), 1).squeeze(-1).expand((*groups, *model.batch))
    moments = moments.reshape(*groups, *bank.shape, width)
    return MixtureStatistics(*_about_zero(bank.kind, moments, origin.double()), log_likelihood, total)


def monomial_columns(bank: Gaussians, x: Tensor) -> Tensor:
    """`bank.monomials` of frames `(..., frames, d)` as columns, `(..., monomials, frames)`, without gradients.

    A row of products is then contiguous in memory and written in place: three times as fast for full
    covariances, where this is a good part of the work.
    """
    x = x.mT.contiguous()
    features = x.shape[-2]
    if bank.kind not in {"full", "tied"}:
        columns = x.new_ones((*x.shape[:-2], 2 * features + 1, x.shape[-1]))
        torch.square(x, out=columns[..., :features, :])
        columns[..., features:-1, :] = x
        return columns
    z = torch.cat([x, torch.ones_like(x[..., :1, :])], dim=-2)
    off_diagonal = math.sqrt(2.0) * z
    columns = x.new_empty((*x.shape[:-2], (features + 1) * (features + 2) // 2, x.shape[-1]))
    place = 0
    for i in range(features + 1):
        row = z[..., i : i + 1, :]
        end = place + features + 1 - i
        torch.mul(row, row, out=columns[..., place : place + 1, :])
        torch.mul(row, off_diagonal[..., i + 1 :, :], out=columns[..., place + 1 : end, :])
        place = end
    return columns


def _about_zero(kind: Covariance, moments: Tensor, origin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """From sums s0, s1, S2 about the origin o to those about zero: s0, s1 + s0 o, and S2 + s1 o' + o s1' + s0 oo'."""
    if kind in {"full", "tied"}:
        blocks = smat(moments)
        count, near, second = blocks[..., -1, -1], blocks[..., :-1, -1], blocks[..., :-1, :-1]
        cross = near.unsqueeze(-1) * origin
        square = origin.unsqueeze(-1) * origin
        second = second + cross + cross.mT + count.unsqueeze(-1).unsqueeze(-1) * square
        if kind == "tied":
            second = second.sum(-3, keepdim=True)
    else:
        features = origin.shape[0]
        second, near, count = moments[..., :features], moments[..., features:-1], moments[..., -1]
        second = second + 2 * near * origin + count.unsqueeze(-1) * origin.square()
        if kind == "spherical":
            second = second.sum(-1, keepdim=True)
    return count, near + count.unsqueeze(-1) * origin, second
