"""Where the components of mixture emissions start: k-means within each state."""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import functional

from ppspeech.models.hmm.emissions import ALIVE, GaussianEmission

ROUNDS = 10
LEAK = 0.1  # the part of a state's frames that all its components share, so that none starts empty or singular

Owned = tuple[Tensor, Tensor, Tensor]
"""Features `(batch, frames, d)`, states' ownership `(batch, frames, states)`, labels `(batch,)`."""


@torch.no_grad()
def start_components_(emission: GaussianEmission, batches: Iterable[Owned], seed: int = 0) -> None:
    """Set each state's components to the clusters of the frames it owns.

    Lloyd's rounds for all states of the bank at once, in units of the state's standard deviations, from means scattered
    around the state's mean. A cluster that loses its frames returns to that mean. The batches hold all training frames
    with their owners; they are gone through a dozen times, so not an iterator.
    """
    count, sums, squares = _sums(emission, batches, 1)
    mean = sums / count.clamp_min(ALIVE)
    variance = (squares / count.clamp_min(ALIVE) - mean.square()).clamp_min(emission.gaussians.floor)
    # Made on the CPU so that a seed means the same on every device.
    noise = torch.randn(emission.components, emission.features, generator=torch.Generator().manual_seed(seed))
    centers = mean + variance.sqrt() * noise.to(mean)

    for _ in range(ROUNDS):
        hard = ((x, _nearest(x, own, labels, centers, variance), labels) for x, own, labels in batches)
        count, sums, _ = _sums(emission, hard, emission.components)
        centers = torch.where(count < ALIVE, mean, sums / count.clamp_min(ALIVE))

    moments = None
    for x, own, labels in batches:
        share = (1 - LEAK) * _nearest(x, own, labels, centers, variance).view(*own.shape, -1)
        share = share + LEAK / emission.components * own.unsqueeze(-1)
        found = emission.moments(x, share.flatten(2))
        total = found.new_zeros(emission.models, *found.shape[1:]).index_add(0, labels, found)
        moments = total if moments is None else moments + total
    assert moments is not None
    emission.maximize_(moments)


def _nearest(x: Tensor, own: Tensor, labels: Tensor, centers: Tensor, variance: Tensor) -> Tensor:
    """Give each frame to the nearest center of the state that owns it, `(batch, frames, states * C)`."""
    components = centers.shape[-2]
    weights = (centers / variance)[labels].flatten(1, 2)
    level = (centers.square() / variance).sum(-1)[labels].flatten(1).unsqueeze(1)
    distance = (level - 2 * x @ weights.mT).view(*own.shape, components)
    chosen = functional.one_hot(distance.argmin(-1), components)
    return (own.unsqueeze(-1) * chosen).flatten(2)


def _sums(emission: GaussianEmission, batches: Iterable[Owned], components: int) -> tuple[Tensor, Tensor, Tensor]:
    """Counts, sums and sums of squares of every model's clusters, `(models, states, C, 1 or d)`."""
    total = None
    for x, own, labels in batches:
        found = own.mT @ torch.cat([torch.ones_like(x[..., :1]), x, x.square()], dim=-1)
        by_model = found.new_zeros(emission.models, *found.shape[1:]).index_add(0, labels, found)
        total = by_model if total is None else total + by_model
    assert total is not None
    by_cluster = total.view(emission.models, emission.states, components, -1)
    count, sums, squares = torch.split(by_cluster, [1, emission.features, emission.features], dim=-1)
    return count, sums, squares
