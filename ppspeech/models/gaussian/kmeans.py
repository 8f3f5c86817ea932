"""k-means with k-means++ seeding, several restarts at once: where mixtures start."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.errors import ModelError

SEEDING_FRAMES = 100  # for each cluster: k-means++ looks at that many frames, not at the whole corpus
BLOCK = 8192


@dataclass(frozen=True)
class KMeans:
    """Clusters found by `kmeans`.

    Attributes:
        centers: `(restarts, clusters, d)`.
        inertia: weighted sum of squared distances to the nearest center, `(restarts,)`, float64.
    """

    centers: Tensor
    labels: Tensor
    inertia: Tensor


@torch.no_grad()
def kmeans(
    x: Tensor,
    clusters: int,
    *,
    restarts: int = 1,
    iterations: int = 10,
    weights: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> KMeans:
    """Lloyd's algorithm on `(frames, d)` from k-means++ centers (Arthur and Vassilvitskii 2007), all restarts at once.

    With fewer distinct frames than clusters some centers coincide; ties go to the first center, and a cluster without
    frames keeps its center. Seeding looks at no more than 100 frames a cluster, drawn without regard to their weights
    but only among frames of positive weight. A frame of weight 0 may hold anything; a CPU generator gives the same
    seeds on every device. Raises ModelError for frames that are not finite or none of positive weight, or a bad count.
    """
    if weights is not None:
        weights = check_weights(x, weights)
        x = torch.where(weights.unsqueeze(-1) > 0, x, 0)
    check_frames(x)
    if clusters < 1 or restarts < 1 or iterations < 0:
        raise ModelError(
            "k-means needs clusters >= 1, restarts >= 1 and iterations >= 0, "
            f"got {clusters}, {restarts} and {iterations}"
        )
    weights = x.new_ones(len(x)) if weights is None else weights
    middle = x.mean(0)
    x = x - middle  # squared distances by expansion lose digits far from zero
    centers = _seed(x, clusters, restarts, weights, generator)
    labels, inertia = _assign(x, centers, weights)
    for _ in range(iterations):
        centers = _move(x, centers, labels, weights)
        labels, inertia = _assign(x, centers, weights)
    return KMeans(centers + middle, labels, inertia)


def check_frames(x: Tensor) -> None:
    """Refuse what cannot be a set of frames `(..., frames, d)`: wrong shape, no frame, NaN or infinity."""
    if x.ndim < 2 or not x.is_floating_point():
        raise ModelError(f"frames must be floating point of shape (frames, features), got {x.dtype} {tuple(x.shape)}")
    if x.numel() == 0:
        raise ModelError(f"there are no frames to learn from: shape {tuple(x.shape)}")
    if not bool(x.isfinite().all()):
        bad = int((~x.isfinite()).any(-1).sum())
        raise ModelError(f"{bad} of {x[..., 0].numel()} frames are not finite: remove or repair them first")


def check_weights(x: Tensor, weights: Tensor) -> Tensor:
    """Weights of frames `(..., frames, d)` in their type; negative or all-zero ones are refused."""
    if weights.shape != x.shape[:-1]:
        raise ModelError(f"weights of shape {tuple(weights.shape)} do not fit frames of shape {tuple(x.shape)}")
    weights = weights.to(x)
    if not bool(((weights >= 0) & weights.isfinite()).all()) or not bool((weights > 0).any()):
        raise ModelError("weights of frames must be finite and >= 0, with at least one > 0")
    return weights


def _seed(x: Tensor, clusters: int, restarts: int, weights: Tensor, generator: torch.Generator | None) -> Tensor:
    """k-means++: each next center is a frame drawn with probability proportional to weight times distance²."""
    usable = weights.nonzero().squeeze(-1)
    device = generator.device if generator is not None else x.device
    if len(usable) > SEEDING_FRAMES * clusters:
        order = torch.randperm(len(usable), generator=generator, device=device).to(x.device)
        usable = usable[order[: SEEDING_FRAMES * clusters]]
    x, weights = x[usable], weights[usable].double()
    uniform = torch.rand(clusters, restarts, 1, generator=generator, device=device, dtype=torch.float64)
    uniform = uniform.to(x.device)
    squares = x.square().sum(-1)
    distance = torch.full((restarts, len(x)), torch.inf, dtype=x.dtype, device=x.device)
    mass = weights.expand(restarts, -1)
    centers = []
    for step in range(clusters):
        cumulated = mass.cumsum(-1)
        drawn = torch.searchsorted(cumulated, uniform[step] * cumulated[:, -1:], right=True)
        center = x[drawn.squeeze(-1).clamp_max(len(x) - 1)]
        centers.append(center)
        to_center = squares - 2 * (center @ x.mT) + center.square().sum(-1, keepdim=True)
        distance = torch.minimum(distance, to_center.clamp_min(0))
        mass = weights * distance
        # Every frame is a center already: any frame will do.
        mass = torch.where(mass.sum(-1, keepdim=True) > 0, mass, weights)
    return torch.stack(centers, dim=1)


def _assign(x: Tensor, centers: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest center of every frame `(restarts, frames)` and the inertia, in blocks of frames."""
    offset = centers.square().sum(-1).unsqueeze(1)
    labels = []
    inertia = torch.zeros(len(centers), dtype=torch.float64, device=x.device)
    for frames, weight in zip(torch.split(x, BLOCK), torch.split(weights, BLOCK), strict=True):
        nearest = (offset - 2 * frames @ centers.mT).min(-1)
        labels.append(nearest.indices)
        squares = (nearest.values + frames.square().sum(-1)).clamp_min(0)
        inertia += (squares * weight).sum(-1, dtype=torch.float64)
    return torch.cat(labels, dim=-1), inertia


def _move(x: Tensor, centers: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Every center to the weighted mean of its frames."""
    restarts, clusters, features = centers.shape
    offset = clusters * torch.arange(restarts, device=x.device).unsqueeze(-1)
    blocks = torch.split(labels + offset, BLOCK, -1)
    count = torch.zeros(restarts * clusters, dtype=torch.float64, device=x.device)
    total = torch.zeros(restarts * clusters, features, dtype=torch.float64, device=x.device)
    for rows, frames, weight in zip(blocks, torch.split(x, BLOCK), torch.split(weights, BLOCK), strict=True):
        weight64 = weight.double()
        count.index_add_(0, rows.reshape(-1), weight64.repeat(restarts))
        total.index_add_(0, rows.reshape(-1), (frames * weight64.unsqueeze(-1)).repeat(restarts, 1))
    mean = (total / count.unsqueeze(-1)).to(centers).reshape(centers.shape)
    return torch.where(count.reshape(restarts, clusters, 1) > 0, mean, centers)
