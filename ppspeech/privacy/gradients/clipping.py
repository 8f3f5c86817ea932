"""Bounds on what one unit contributes, enforced rather than assumed.

A bound is a constant chosen without looking at private data. Scaling by the data's own largest norm is a leak. What is
added up over units is first made whole (`whole_scale`, `whole`): sums of whole numbers are exact and have no order.
"""

import numpy as np
import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.parameters import check_count, check_positive
from ppspeech.privacy.samplers.randomness import random_words

STEPS = 2**40
"""How finely a bounded vector is told: in whole numbers whose l2 norm is at most this."""

MOST_NUMBERS = 2**28
"""As many may a vector have: so far, rounding in its norm stays within the margin below."""

AIM = STEPS * (1 - 2.0**-24)  # the norm of 2^28 numbers is right within 2^-25, in any order; 2^13 steps are rounding's

TOGETHER = 2**12  # units whose whole numbers floats add up exactly

STABILITY = 0.01  # gamma of automatic clipping: vectors much shorter than this keep being short


def clip_norm(x: Tensor, bound: float, *, dims: int = 1) -> Tensor:
    """x min(1, bound / |x|_2) for every vector over the last `dims` axes, all finite: no norm exceeds `bound`."""
    check_positive("bound", bound)
    if not 1 <= dims <= x.dim():
        raise PrivacyError(f"dims must be in 1..{x.dim()} for shape {tuple(x.shape)}, got {dims}")
    if not bool(torch.isfinite(x).all()):
        raise PrivacyError("cannot clip infinities or NaN; remove them before")
    axes = tuple(range(-dims, 0))
    # The largest coordinate is divided out first: squares of large floats overflow, of small ones vanish.
    peak = x.abs().amax(dim=axes, keepdim=True)
    safe = torch.where(peak > 0, peak, torch.ones_like(peak))
    norm = torch.linalg.vector_norm(x / safe, dim=axes, keepdim=True, dtype=torch.float64) * safe
    # Norm and product are rounded: aiming a hair below keeps the exact norm of the result within the bound.
    aim = bound * (1 - 16 * torch.finfo(x.dtype).eps)
    return torch.where(norm > aim, (x * (aim / norm)).to(x.dtype), x)


def whole_scale(norms: Tensor, bound: float, *, automatic: bool = False) -> Tensor:
    """What units whose vectors have these float64 `norms` `(n,)` are multiplied with, for `whole`.

    The product, made whole, has an l2 norm of at most `STEPS`, which stands for `bound`: longer vectors are
    shortened to it, or all are brought near it if `automatic` (Bu, Wang, Zha and Karypis 2023: |x| + gamma in the place
    of max(|x|, bound)).
    """
    check_positive("bound", bound)
    return AIM / (norms + STABILITY if automatic else norms.clamp_min(bound))


def whole(x: Tensor, scale: Tensor) -> Tensor:
    """Vectors `(n, ...)` times `scale` `(n,)` (`whole_scale`), rounded toward zero: int64, never longer than before.

    A unit whose norm is not finite has a scale of NaN or 0, and all its numbers become 0: it adds nothing, which tells
    less than a failure would.
    """
    return _scaled(x, scale).to(torch.int64)


def whole_sum(x: Tensor, scale: Tensor) -> Tensor:
    """The sum over units of their vectors times `scale`, each number rounded to the nearest whole one: int64.

    Exact, and the same in any order: floats add up whole numbers exactly as long as no sum reaches 2^53, which so many
    units at a time cannot. Rounding makes a vector longer by at most sqrt(numbers) / 2, a part of `AIM`'s margin.
    Proof: Theorem 1.13 in docs/theory/release.md.
    """
    parts = zip(torch.split(x, TOGETHER), torch.split(scale, TOGETHER), strict=True)
    # Floats near 1.5 2^52 are whole: adding that number rounds, and is many times quicker than rounding.
    sums = [_scaled(part, own).add_(1.5 * 2**52).sub_(1.5 * 2**52).sum(0).to(torch.int64) for part, own in parts]
    return sums[0] if len(sums) == 1 else torch.stack(sums).sum(0)


def _scaled(x: Tensor, scale: Tensor) -> Tensor:
    """The products in float64, zeros for units that are not finite."""
    column = scale.reshape(-1, *[1] * (x.dim() - 1))
    is_finite = column > 0  # neither NaN nor 0
    if not bool(is_finite.all()):
        x, column = torch.where(is_finite, x.detach(), 0.0), torch.where(is_finite, column, 0.0)
    return x.detach().to(torch.float64, copy=True).mul_(column)


def unit_index(unit_ids: Tensor) -> tuple[Tensor, int]:
    """Ids of any values as 0..units-1, `(records,)`, and how many units there are."""
    if unit_ids.dim() != 1:
        raise PrivacyError(f"unit ids must be one vector, got shape {tuple(unit_ids.shape)}")
    units, index = torch.unique(unit_ids, return_inverse=True)
    return index, len(units)


def unit_sums(values: Tensor, unit_ids: Tensor) -> Tensor:
    """The sum over each unit's records: `(records, ...)` and `(records,)` to `(units, ...)`."""
    index, units = _aligned(values, unit_ids)
    return values.new_zeros((units, *values.shape[1:])).index_add(0, index, values)


def unit_means(values: Tensor, unit_ids: Tensor) -> Tensor:
    """The average over each unit's records: a unit's weight does not grow with its number of records."""
    index, units = _aligned(values, unit_ids)
    counts = torch.bincount(index, minlength=units).to(values.dtype)
    return unit_sums(values, unit_ids) / counts.reshape(-1, *[1] * (values.dim() - 1))


def clipped_unit_sums(values: Tensor, unit_ids: Tensor, bound: float) -> Tensor:
    """Each unit's sum clipped as a whole to l2 norm `bound`: the sensitivity of their total under add_remove."""
    sums = unit_sums(values, unit_ids)
    return clip_norm(sums.reshape(len(sums), -1), bound).reshape(sums.shape)


def contribution_weights(unit_ids: Tensor, most: float, *, dtype: torch.dtype = torch.float64) -> Tensor:
    """min(1, most / n_s) for every record of a unit with n_s records, `(records,)`: a unit's weights sum to <= most."""
    check_positive("most", most)
    index, units = unit_index(unit_ids)
    counts = torch.bincount(index, minlength=units).to(dtype)
    return (most / counts).clamp(max=1.0)[index]


def limit_contributions(unit_ids: Tensor, most: int) -> Tensor:
    """Keep a uniformly random subset of exactly min(most, n_s) records of every unit.

    Which records are kept is drawn from the operating system, independently for every unit, so that one unit's
    records never decide which records of another are kept. Returns the positions of the kept records, ascending.
    """
    check_count("most", most)
    index, _ = unit_index(unit_ids)
    keys = torch.from_numpy((random_words(len(index)) >> np.uint64(1)).astype(np.int64)).to(index.device)
    shuffled = torch.argsort(keys)
    order = shuffled[torch.argsort(index[shuffled], stable=True)]
    ordered = index[order]
    starts = torch.searchsorted(ordered, ordered)  # first position of each record's unit
    rank = torch.arange(len(order), device=order.device) - starts
    return order[rank < most].sort().values


def _aligned(values: Tensor, unit_ids: Tensor) -> tuple[Tensor, int]:
    if values.dim() < 1 or len(values) != len(unit_ids):
        raise PrivacyError(f"{len(unit_ids)} unit ids for values of shape {tuple(values.shape)}")
    return unit_index(unit_ids)
