"""Filters: features to features, as nn.Modules with `.features`, the size of what comes out. Any nn.Module that maps
`(n, D)` to `(n, features)`, or frames `(n, frames, D)` to `(n, frames, features)`, can be learned in their place.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn

from ppspeech.errors import ModelError


class LinearFilter(nn.Module):
    """x to weight x + bias: the projection of Hamm 2015 section 5, for vectors and frames alike.

    The bias only carries what standardization shifts; a classifier with an intercept cannot tell, so it is not learned.

    Shape: `(..., D)` to `(..., d)`; with d >= D nothing is lost and everything can be inverted.
    """

    def __init__(self, inputs: int, features: int) -> None:
        super().__init__()
        check_sizes(inputs, features)
        self.inputs, self.features = inputs, features
        self.weight = nn.Parameter(torch.empty(features, inputs))
        self.bias = nn.Parameter(torch.zeros(features), requires_grad=False)
        nn.init.orthogonal_(self.weight)

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None = None) -> "LinearFilter":
        """The filter with this weight `(d, D)` and bias `(d,)`."""
        made = cls(weight.shape[1], weight.shape[0]).to(weight)
        with torch.no_grad():
            made.weight.copy_(weight)
            if bias is not None:
                made.bias.copy_(bias)
        return made

    def extra_repr(self) -> str:
        """Sizes, for `print(module)`."""
        return f"{self.inputs}, {self.features}"

    def forward(self, x: Tensor) -> Tensor:
        """Filter `(..., D)` to `(..., d)`."""
        return nn.functional.linear(x, self.weight, self.bias)


class SigmoidNetwork(nn.Module):
    """Two layers of sigmoids, the non-linear filter of Hamm 2015 section 5.1 (there D x 10 x 10).

    `pretrain_` in `pretraining.py` starts it as a stacked denoising autoencoder, as the paper does.

    Shape: `(..., D)` to `(..., features)`.
    """

    def __init__(self, inputs: int, hidden: int = 10, features: int = 10) -> None:
        super().__init__()
        check_sizes(inputs, hidden, features)
        self.inputs, self.features = inputs, features
        self.first = nn.Linear(inputs, hidden)
        self.second = nn.Linear(hidden, features)

    def forward(self, x: Tensor) -> Tensor:
        """Filter `(..., D)` to `(..., features)`, each number in (0, 1)."""
        return torch.sigmoid(self.second(torch.sigmoid(self.first(x))))


class Mlp(nn.Module):
    """Layers of rectified units with a linear one on top. Shape: `(..., D)` to `(..., features)`."""

    def __init__(self, inputs: int, hidden: Sequence[int], features: int) -> None:
        super().__init__()
        check_sizes(inputs, *hidden, features)
        self.inputs, self.features = inputs, features
        sizes = [inputs, *hidden]
        layers: list[nn.Module] = []
        for before, after in pairwise(sizes):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.Linear(sizes[-1], features))

    def forward(self, x: Tensor) -> Tensor:
        """Filter `(..., D)` to `(..., features)`."""
        return cast(Tensor, self.layers(x))


class TemporalConvolution(nn.Module):
    """A small convolution along time: each frame out sees `2 (kernel - 1) + 1` frames in. Shape: `(batch, frames, D)`
    to `(batch, frames, features)`. Frames past the end count as zeros.
    """

    def __init__(self, inputs: int, hidden: int, features: int, kernel: int = 5) -> None:
        super().__init__()
        check_sizes(inputs, hidden, features)
        if kernel < 1 or kernel % 2 == 0:
            raise ModelError(f"kernel must be odd and >= 1, so that frames stay aligned, got {kernel}")
        self.inputs, self.features = inputs, features
        self.first = nn.Conv1d(inputs, hidden, kernel, padding=kernel // 2)
        self.second = nn.Conv1d(hidden, features, kernel, padding=kernel // 2)

    def forward(self, x: Tensor) -> Tensor:
        """Filter `(batch, frames, D)` to `(batch, frames, features)`."""
        return cast(Tensor, self.second(torch.relu(self.first(x.mT)))).mT


class Standardized(nn.Module):
    """A filter for raw inputs around one that was learned on standardized inputs."""

    def __init__(self, module: nn.Module, scaling: "Scaling") -> None:
        super().__init__()
        self.filter = module
        self.features = cast(int, module.features)
        # Not learned, but part of the filter: they are saved and moved with it.
        self.mean = nn.Parameter(scaling.mean.clone(), requires_grad=False)
        self.scale = nn.Parameter(scaling.scale.clone(), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """Standardize, then filter."""
        return cast(Tensor, self.filter((x - self.mean) / self.scale))


class Scaling:
    """Mean and standard deviation of every input, from training data: `(x - mean) / scale` has 0 and 1.

    Inputs are `(n, ..., D)`, n >= 2. An input that never changes keeps scale 1: it says nothing about anyone. Raises
    ModelError for too few or infinite inputs.
    """

    def __init__(self, inputs: Tensor) -> None:
        if inputs.ndim < 2 or len(inputs) < 2 or not inputs.is_floating_point() or not inputs.isfinite().all():
            raise ModelError(
                f"inputs must be finite real numbers of shape (n >= 2, ..., D), got {inputs.dtype} of "
                f"{tuple(inputs.shape)}"
            )
        rows = inputs.detach().flatten(0, -2).double()
        self.mean = rows.mean(0)
        scale = rows.std(0, correction=0)
        self.scale = torch.where(scale > 1e-12 * (1 + self.mean.abs()), scale, torch.ones_like(scale))

    @classmethod
    def identity(cls, inputs: int) -> "Scaling":
        """Mean 0 and scale 1 for so many inputs; it looks at no values."""
        made = cls.__new__(cls)
        made.mean, made.scale = torch.zeros(inputs).double(), torch.ones(inputs).double()
        return made

    def __call__(self, inputs: Tensor) -> Tensor:
        """The inputs standardized, float64."""
        return (inputs.double() - self.mean) / self.scale

    def undo(self, module: nn.Module, dtype: torch.dtype) -> nn.Module:
        """A filter for raw inputs that equals `module` on standardized ones; a linear one stays linear."""
        if isinstance(module, LinearFilter):
            weight = module.weight.detach().double() / self.scale
            bias = module.bias.detach().double() - weight @ self.mean
            return LinearFilter.of(weight.to(dtype), bias.to(dtype))
        return Standardized(module, self).to(dtype)


def check_sizes(*sizes: int) -> None:
    """Refuse sizes that are not whole numbers >= 1."""
    if any(not isinstance(size, int) or size < 1 for size in sizes):
        raise ModelError(f"sizes must be whole numbers >= 1, got {sizes}")
