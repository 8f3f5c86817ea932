"""Filters to compare with, all fitted by one call: `BASELINES[name](inputs, private, task, features)`. Inputs are
standardized inside, as for `learn_filter`, and the filter that comes back takes raw inputs.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ppspeech.errors import ModelError
from ppspeech.filters.modules import LinearFilter, Scaling
from ppspeech.filters.starts import (
    discriminant_ratio,
    principal_directions,
    private_pls,
    random_directions,
    targets_of,
    without_means,
)
from ppspeech.filters.tasks import ClassTask


def _fit(
    directions: Callable[..., Tensor],
    inputs: Tensor,
    private: Tensor,
    task: Tensor,
    features: int,
    seed: int = 0,
    **options: Any,
) -> nn.Module:
    if inputs.ndim != 2 or not 1 <= features <= inputs.shape[1]:
        raise ModelError(f"need inputs (n, D) and 1 <= features <= D, got {tuple(inputs.shape)} and {features}")
    if not len(inputs) == len(private) == len(task):
        raise ModelError(f"{len(inputs)} inputs, {len(private)} private and {len(task)} task labels do not match")
    scaling = Scaling(inputs)
    sides = (targets_of([ClassTask(labels, max(2, int(labels.max()) + 1))]) for labels in (private, task))
    with torch.no_grad():
        weight = directions(scaling(inputs), *sides, features, seed=seed, **options)
    return scaling.undo(LinearFilter.of(weight), inputs.dtype)


def fit_ddd(
    inputs: Tensor, private: Tensor, task: Tensor, features: int, seed: int = 0, shrink: float = 1e-2
) -> nn.Module:
    """Discriminately decreasing discriminability (Whitehill and Movellan 2012), by projection; binary labels only."""
    classes = [int(labels.max()) + 1 for labels in (private, task)]
    if max(classes) > 2:
        raise ModelError(f"DDD is for binary labels, got {classes[0]} private and {classes[1]} task classes")
    return _fit(discriminant_ratio, inputs, private, task, features, seed=seed, shrink=shrink)


def fit_without_means(inputs: Tensor, private: Tensor, task: Tensor, features: int, seed: int = 0) -> nn.Module:
    """The linear filter in closed form that leaves nobody among the training people a mean of their own: a start of
    ours (`starts.without_means`), which stands here to be compared with.
    """
    return _fit(without_means, inputs, private, task, features, seed=seed)


def no_filter(inputs: Tensor, private: Tensor, task: Tensor, features: int, seed: int = 0) -> nn.Module:  # noqa: ARG001
    """The inputs as they are."""
    return nn.Identity()


BASELINES: dict[str, Callable[..., nn.Module]] = {
    "none": no_filter,
    "random": partial(_fit, random_directions),  # not private, and not DP (rotations can be undone by known samples)
    "pca": partial(_fit, principal_directions),  # not private
    "ppls": partial(_fit, private_pls),
    "ddd": fit_ddd,
}
"""`BASELINES[name](inputs (n, D), private labels (n,), task labels (n,), features, seed=0)` gives an nn.Module."""
