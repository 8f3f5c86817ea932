"""How much of a sample comes back from a linear filter: the attack that needs no labels and no training of classifiers.

A linear filter y = W x + b of rank r tells its reader r linear measurements of x exactly. What the reader can say about
the rest depends on what is known of such samples in general: their mean and covariance.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.errors import ModelError


@dataclass(frozen=True)
class Reconstruction:
    """What two readers of a linear filter's output make of the samples.

    An error is relative: the squared error, summed over samples and features, over that of the no-information guess
    (the mean of the reader's own samples). 0 is the sample itself, 1 is no better than the mean.
    """

    minimum_norm: float  # knows the filter and the mean: x = mean + W+ (y - W mean - b)
    regularized: float  # knows the covariance C too: x = mean + C W' (W C W')^+ (y - W mean - b), the best linear guess
    predicted: float  # what `regularized` would be if the samples had exactly that covariance
    exposed: float  # share of the samples' variance in the row space of W, which goes through as it is
    rank: int  # of W; so many numbers about each sample are known exactly


def reconstruct(weight: Tensor, bias: Tensor | None, filtered: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """Both guesses at the samples behind `filtered`: minimum-norm and regularized, `(samples, D)` each.

    From W `(d, D)`, b `(d,)` or None, what was published `(samples, d)`, and samples of the reader's own, unfiltered,
    `(others, D)`: mean and covariance come from them. Raises ModelError if the shapes do not fit, or there are fewer
    than two known samples.
    """
    _check(weight, filtered, known)
    weight, known = weight.detach().double(), known.detach().double()
    mean = known.mean(0)
    offset = weight @ mean + (0.0 if bias is None else bias.detach().double())
    told = filtered.detach().double() - offset
    return mean + told @ torch.linalg.pinv(weight).mT, mean + told @ _gain(weight, known).mT


def reconstruction_attack(weight: Tensor, bias: Tensor | None, samples: Tensor, known: Tensor) -> Reconstruction:
    """Filter held-out samples and try to get them back.

    The reader knows W `(d, D)`, b `(d,)` or None, and samples of its own `(others, D)`, none of them in `samples`.
    Raises ModelError as `reconstruct`; also if the samples do not vary at all.
    """
    weight, samples, known = weight.detach().double(), samples.detach().double(), known.detach().double()
    filtered = samples @ weight.mT + (0.0 if bias is None else bias.detach().double())
    plain, best = reconstruct(weight, bias, filtered, known)
    mean, covariance = known.mean(0), known.mT.cov()
    nothing = (samples - mean).square().sum()
    if not bool(nothing > 0):
        raise ModelError("every sample equals the mean of the known ones: there is nothing to reconstruct")
    rank = int(torch.linalg.matrix_rank(weight))
    inside = torch.linalg.pinv(weight) @ weight
    gain = _gain(weight, known)
    left = torch.eye(len(mean), dtype=mean.dtype, device=mean.device) - gain @ weight
    return Reconstruction(
        minimum_norm=float((plain - samples).square().sum() / nothing),
        regularized=float((best - samples).square().sum() / nothing),
        predicted=float((left @ covariance @ left.mT).trace() / covariance.trace()),
        exposed=float(((samples - mean) @ inside.mT).square().sum() / nothing),
        rank=rank,
    )


def _gain(weight: Tensor, known: Tensor) -> Tensor:
    """C W' (W C W')^+, `(D, d)`; the pseudo-inverse forgives directions that do not vary."""
    covariance = known.mT.cov()
    passed = weight @ covariance @ weight.mT
    gain: Tensor = covariance @ weight.mT @ torch.linalg.pinv(passed, rtol=1e-10, hermitian=True)
    return gain


def _check(weight: Tensor, filtered: Tensor, known: Tensor) -> None:
    if weight.ndim != 2 or filtered.ndim != 2 or known.ndim != 2:
        raise ModelError(
            f"a linear filter (d, D), filtered (samples, d) and known samples (others, D) are needed, got "
            f"{tuple(weight.shape)}, {tuple(filtered.shape)} and {tuple(known.shape)}"
        )
    if filtered.shape[1] != weight.shape[0] or known.shape[1] != weight.shape[1]:
        raise ModelError(
            f"a filter of shape {tuple(weight.shape)} does not fit samples of {filtered.shape[1]} filtered and "
            f"{known.shape[1]} known features"
        )
    if len(known) < 2:
        raise ModelError(f"a covariance needs at least two known samples, got {len(known)}")
