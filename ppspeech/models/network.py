"""A small network on frames: windows, activations and pools, then one linear layer, averaged over what is left.

    h = pool f(W [x_{t s}, x_{t s + d}, …] + b),  layer by layer;      scores = mean over frames of V h + c

An MLP on frames has windows of one, a TDNN dilations, a convolutional network strides and pools. Every utterance is
brought to one public length, with frames of zeros or by leaving its end away, and every frame within a public radius:
so that a server that computes on shares, where lengths are hidden and values have a range, scores the same.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from ppspeech.errors import ModelError

MOST_FRAMES, MOST_OUTPUTS, MOST_SPAN = 2_000, 4_096, 100


@dataclass(frozen=True, slots=True)
class FrameLayer:
    """One layer: `width` frames, `dilation` apart, every `stride` frames; `pool_width` 1 for no pool."""

    outputs: int
    width: int = 1
    stride: int = 1
    dilation: int = 1
    activation: Literal["relu", "sigmoid", "gelu"] = "relu"
    pool: Literal["none", "mean", "max"] = "none"
    pool_width: int = 1

    def __post_init__(self) -> None:
        spans = self.width, self.stride, self.dilation
        if not 1 <= self.outputs <= MOST_OUTPUTS or not all(1 <= span <= MOST_SPAN for span in spans):
            raise ModelError(f"a layer has 1 to {MOST_OUTPUTS} outputs, and spans of 1 to {MOST_SPAN}, got {self}")
        if not 1 <= self.pool_width <= MOST_FRAMES or (self.pool == "none") != (self.pool_width == 1):
            raise ModelError(f"a pool has two frames or more, none has one, got {self.pool} of {self.pool_width}")

    def frames_after(self, frames: int) -> int:
        """How many frames come out."""
        return ((frames - 1 - (self.width - 1) * self.dilation) // self.stride + 1) // self.pool_width


class FrameNetwork(nn.Module):
    """Features `(batch, frames, features)` and lengths to scores `(batch, classes)`.

    Raises ModelError for sizes that no frame comes out of.
    """

    def __init__(self, classes: int, features: int, frames: int, radius: float, layers: tuple[FrameLayer, ...]) -> None:
        super().__init__()
        self.frames, self.radius, self.shapes = frames, radius, layers
        left, sizes = frames, [features]
        for layer in layers:
            left = layer.frames_after(left)
            sizes.append(layer.outputs)
        if not 1 <= frames <= MOST_FRAMES or left < 1 or not 0 < radius <= 1_000:
            raise ModelError(f"of {frames} frames within {radius:g} none comes out of {len(layers)} layers")
        self.left = left
        self.layers = nn.ModuleList(
            nn.Conv1d(inputs, layer.outputs, layer.width, layer.stride, dilation=layer.dilation)
            for inputs, layer in zip(sizes, layers, strict=False)
        )
        self.head = nn.Linear(sizes[-1], classes)

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Scores of every utterance."""
        return self.frame_scores(features, lengths).mean(dim=-2)

    def frame_scores(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Of every frame that comes out, `(batch, frames left, classes)`."""
        values = self.fitted(features, lengths).mT
        for shape, layer in zip(self.shapes, self.layers, strict=True):
            values = layer(values)
            if shape.activation == "relu":
                values = values.relu()
            else:
                values = values.sigmoid() if shape.activation == "sigmoid" else functional.gelu(values)
            if shape.pool == "mean":
                values = functional.avg_pool1d(values, shape.pool_width)
            elif shape.pool == "max":
                values = functional.max_pool1d(values, shape.pool_width)
        scores: Tensor = self.head(values.mT)
        return scores

    def fitted(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Utterances of the public length, `(batch, frames, features)`: within the radius, and zero after their end."""
        spoken = torch.arange(features.shape[-2], device=features.device) < lengths.unsqueeze(-1)
        norms = features.square().sum(-1, keepdim=True).sqrt()
        within = features * (self.radius / norms.clamp_min(self.radius)) * spoken.unsqueeze(-1)
        return functional.pad(within[..., : self.frames, :], (0, 0, 0, max(0, self.frames - features.shape[-2])))
