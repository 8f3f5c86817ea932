"""EM for Gaussian mixtures: an M-step that looks only at sufficient statistics, and the loops around it.

With the variance floor the M-step is still the exact maximizer over the covariances the parametrization
allows (clamping the eigenvalues, or the variances, at the floor solves that problem in closed form), so the
log-likelihood never falls, with the floor active too. Only a revived component (see `update_mixture_`) may lower it.
"""

from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.models.gaussian.gaussians import Covariance
from ppspeech.models.gaussian.kmeans import check_frames, check_weights, kmeans
from ppspeech.models.gaussian.mixture import GaussianMixture
from ppspeech.models.gaussian.statistics import MixtureStatistics, hard_statistics, mixture_statistics

DEAD = 1e-6  # a component with less than this share of the frames is dead
SPLIT = 0.2  # standard deviations between a split component and its old mean, as in HTK


@torch.no_grad()
def update_mixture_(model: GaussianMixture, sums: MixtureStatistics) -> None:
    """The M-step: the weights, means and covariances that the statistics call for.

    Pure post-processing of the statistics. A dead component (count below a millionth of the frames, also negative after
    noise) is revived: the heaviest components are split in two, one for each dead one, each half with half the weight,
    the same covariance, and a mean 0.2 standard deviations to either side. Raises ModelError if the statistics are not
    finite, hold no frames, or come from another kind of mixture.
    """
    bank = model.gaussians
    if sums.count.shape != bank.shape or sums.second.ndim != bank.spread.ndim:
        raise ModelError(
            f"statistics of shape {tuple(sums.count.shape)} do not fit a {bank.kind} mixture of shape {bank.shape}"
        )
    count = sums.count
    total = count.clamp_min(0).sum(-1, keepdim=True)
    finite = sums.first.isfinite().all() & sums.second.isfinite().all()
    if not bool((total > 0).all() & finite):
        raise ModelError("the statistics are not finite or hold no frames: there is nothing to learn from")
    alive = count > DEAD * total
    safe = torch.where(alive, count, 1.0).unsqueeze(-1)
    mean = torch.where(alive.unsqueeze(-1), sums.first, 0.0) / safe
    scatter = sums.second
    if bank.kind == "tied":
        kept = torch.where(alive, count, 0.0)
        outer = torch.einsum("...k,...ki,...kj->...ij", kept, mean, mean).unsqueeze(-3)
        variances = (scatter - outer) / total.unsqueeze(-1).unsqueeze(-1)
    elif bank.kind == "full":
        variances = scatter / safe.unsqueeze(-1) - mean.unsqueeze(-1) * mean.unsqueeze(-2)
    elif bank.kind == "diagonal":
        variances = scatter / safe - mean.square()
    else:
        variances = (scatter / safe - mean.square().sum(-1, keepdim=True)) / bank.features
    weight, mean, variances = _revive(bank.kind, alive, count, mean, variances)
    bank.set_moments_(mean, variances)
    model.logits.copy_(weight.log() - weight.sum(-1, keepdim=True).log())


@dataclass(frozen=True)
class MixtureFit:
    """A fitted mixture, or restarts, and nats a frame at each step; converged if the last gain was small in all."""

    model: GaussianMixture
    log_likelihood: Tensor
    converged: bool

    def best(self) -> GaussianMixture:
        """The restart with the greatest final likelihood; the model itself if there is only one."""
        if not self.model.batch:
            return self.model
        return self.model.select(int(self.log_likelihood[-1].argmax()))


def run_em(
    model: GaussianMixture, x: Tensor, weights: Tensor | None = None, *, iterations: int = 50, tolerance: float = 1e-4
) -> MixtureFit:
    """EM on frames `(frames, d)` from where the model stands, all its restarts at once; changes the model in place.

    At most `iterations` M-steps; it stops when no restart gains more nats a frame than `tolerance`. Raises ModelError
    for frames that are not finite or do not fit the model, and for bad counts.
    """
    if iterations < 0 or len(model.batch) > 1:
        raise ModelError(
            f"EM needs iterations >= 0 and at most one axis of restarts, got {iterations} and {model.batch}"
        )
    history: list[Tensor] = []
    converged = False
    for step in range(iterations + 1):
        found = mixture_statistics(model, x, weights)
        history.append(found.log_likelihood / found.frames)
        converged = step > 0 and bool((history[-1] - history[-2] < tolerance).all())
        if converged or step == iterations:
            break
        update_mixture_(model, found)
    return MixtureFit(model, torch.stack(history), converged)


@torch.no_grad()
def start_mixture_(
    model: GaussianMixture,
    x: Tensor,
    weights: Tensor | None = None,
    *,
    lloyd: int = 5,
    generator: torch.Generator | None = None,
) -> None:
    """Start every restart at its own k-means clusters of `(frames, d)`; a frame of weight 0 may hold anything."""
    if len(model.batch) > 1:
        raise ModelError(f"a start needs at most one axis of restarts, got batch {model.batch}")
    restarts = model.logits.numel() // model.components
    found = kmeans(x, model.components, restarts=restarts, iterations=lloyd, weights=weights, generator=generator)
    labels = found.labels.reshape(*model.batch, -1)
    update_mixture_(model, hard_statistics(model, x, labels, weights))


def fit_mixture(
    x: Tensor | NDArray[Any],
    components: int,
    covariance: Covariance = "diagonal",
    *,
    weights: Tensor | None = None,
    floor: float = 1e-3,
    restarts: int = 1,
    iterations: int = 50,
    tolerance: float = 1e-4,
    seed: int = 0,
) -> GaussianMixture:
    """A mixture fitted to frames `(frames, d)` from k-means starts: the best of `restarts`.

    Defined for any finite frames: with fewer distinct frames than components the surplus components share or split
    clusters and stand on the variance floor.
    """
    x = torch.as_tensor(x)
    if weights is not None:
        weights = check_weights(x, weights)
        x = torch.where(weights.unsqueeze(-1) > 0, x, 0)
    check_frames(x)
    model = GaussianMixture(components, x.shape[-1], covariance, floor, (restarts,), x.dtype).to(x.device)
    start_mixture_(model, x, weights, generator=torch.Generator().manual_seed(seed))
    return run_em(model, x, weights, iterations=iterations, tolerance=tolerance).best()


def _revive(
    kind: Covariance, alive: Tensor, count: Tensor, mean: Tensor, variances: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Replace the dead components by halves of the heaviest ones; without a Python loop over either."""
    components = count.shape[-1]
    weight = torch.where(alive, count, 0.0)
    order = weight.argsort(dim=-1, descending=True, stable=True)
    survivors = alive.sum(-1, keepdim=True)
    rank = torch.empty_like(order).scatter_(-1, order, torch.arange(components, device=order.device).expand_as(order))
    # The dead hold the last ranks; the i-th of them copies the i-th heaviest survivor, round and round.
    place = torch.where(alive, rank, (rank - survivors) % survivors)
    lap = torch.where(alive, 0, (rank - survivors) // survivors + 1)
    donor = order.gather(-1, place)
    copies = torch.zeros_like(order).scatter_add_(-1, donor, torch.ones_like(order))
    weight = (weight / copies.clamp_min(1)).gather(-1, donor)
    mean = mean.gather(-2, donor.unsqueeze(-1).expand_as(mean))
    if kind == "full":
        variances = variances.gather(-3, donor.unsqueeze(-1).unsqueeze(-1).expand_as(variances))
    elif kind != "tied":
        variances = variances.gather(-2, donor.unsqueeze(-1).expand_as(variances))
    spread = variances.diagonal(dim1=-2, dim2=-1) if kind in {"full", "tied"} else variances
    split = copies.gather(-1, donor) > 1
    side = torch.where(alive, torch.where(split, -1, 0), lap).unsqueeze(-1)
    return weight, mean + SPLIT * side * spread.clamp_min(0).sqrt(), variances
