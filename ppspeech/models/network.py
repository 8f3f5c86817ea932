"""A small network on frames: windows, activations and pools, then one linear layer.

    h = pool f(W [x_{t s}, x_{t s + d}, …] + b),  layer by layer;      scores = V h + c

An MLP on frames has windows of one, a TDNN dilations, a convolutional network strides and pools. Scores are averaged
over what is left (`FrameNetwork`, a word an utterance), or kept, one every few frames (`SequenceNetwork`). Every frame
is brought within a public radius, and every utterance to a public length, with frames of zeros: so that a server that
computes on shares, where lengths are hidden and values have a range, scores the same.
"""

from collections.abc import Iterable, Sequence
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


def span_of(layers: Sequence[FrameLayer]) -> tuple[int, int]:
    """How many frames one that comes out of all layers looks at, and how many it is after the one before.

    >>> span_of((FrameLayer(8, width=5, stride=2), FrameLayer(8, width=3, dilation=2)))
    (13, 2)
    """
    span, stride = 1, 1
    for layer in layers:
        span += (layer.width - 1) * layer.dilation * stride + (layer.pool_width - 1) * layer.stride * stride
        stride *= layer.stride * layer.pool_width
    return span, stride


class FrameNetwork(nn.Module):
    """Features `(batch, frames, features)` and lengths to scores `(batch, classes)`.

    Raises ModelError for sizes that no frame comes out of.
    """

    def __init__(self, classes: int, features: int, frames: int, radius: float, layers: tuple[FrameLayer, ...]) -> None:
        super().__init__()
        self.frames, self.radius, self.shapes = frames, radius, layers
        left = frames
        for layer in layers:
            left = layer.frames_after(left)
        if not 1 <= frames <= MOST_FRAMES or left < 1 or not 0 < radius <= 1_000:
            raise ModelError(f"of {frames} frames within {radius:g} none comes out of {len(layers)} layers")
        self.left = left
        self.layers, self.head = _built(features, layers, classes)

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Scores of every utterance."""
        return self.frame_scores(features, lengths).mean(dim=-2)

    def frame_scores(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Of every frame that comes out, `(batch, frames left, classes)`."""
        return _scores(self.fitted(features, lengths), self.shapes, self.layers, self.head)

    def fitted(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Utterances of the public length, `(batch, frames, features)`: within the radius, and zero after their end."""
        within = _within(features, lengths, self.radius)
        return functional.pad(within[..., : self.frames, :], (0, 0, 0, max(0, self.frames - features.shape[-2])))


class SequenceNetwork(nn.Module):
    """Features `(batch, frames, features)` and lengths to scores `(batch, ceil(frames / stride), classes)`: every
    `stride` frames, one that looks at `span` of them, the same number on both sides; beyond an utterance are zeros.

    `dropout`: of what comes out of each layer, in training. Raises ModelError for a radius that is none.
    """

    def __init__(
        self, classes: int, features: int, radius: float, layers: tuple[FrameLayer, ...], dropout: float = 0.0
    ) -> None:
        super().__init__()
        if not 0 < radius <= 1_000 or not 0 <= dropout < 1:
            raise ModelError(f"a radius lies in (0, 1000], dropout in [0, 1), got {radius:g} and {dropout:g}")
        self.radius, self.shapes, self.dropout = radius, layers, dropout
        self.span, self.stride = span_of(layers)
        self.layers, self.head = _built(features, layers, classes)

    @property
    def lead(self) -> int:
        """Zeros before the first frame."""
        return (self.span - self.stride) // 2 if self.span > self.stride else 0

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Scores of every stride of frames; those from `lengths_after(lengths)` on are of zeros."""
        within = _within(features, lengths, self.radius)
        frames = self.stride * int(self.lengths_after(torch.tensor(features.shape[-2])))
        after = frames + self.span - self.stride - self.lead - features.shape[-2]
        padded = functional.pad(within, (0, 0, self.lead, after))
        return _scores(padded, self.shapes, self.layers, self.head, self.dropout if self.training else 0.0)

    def lengths_after(self, lengths: Tensor) -> Tensor:
        """How many scores are of an utterance."""
        return -(-lengths // self.stride)


class StateNetwork(nn.Module):
    """Features `(batch, frames, features)` and lengths to scores `(batch, frames, states)` of the states of a graph.

        s (z_i - ln p_i),      as      ln p(x | i) = ln softmax(z)_i - ln p_i + ln p(x)

    for logits z and the priors p of states (Bourlard and Morgan 1994). What is the same for all states of a frame
    changes no path, so neither ln p(x) nor the sum of the softmax is computed: on shares it would cost a lot.

    Args:
        scale: s, what a frame weighs against moves; neighboring frames say the same thing.
    """

    def __init__(
        self, states: int, features: int, radius: float, layers: tuple[FrameLayer, ...], scale: float = 1.0
    ) -> None:
        super().__init__()
        self.network, self.scale = SequenceNetwork(states, features, radius, layers), scale
        self.log_prior = nn.Parameter(torch.zeros(states), requires_grad=False)
        if self.network.stride != 1:
            raise ModelError(f"states have a score every frame: layers stride over 1, got {self.network.stride}")

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Scores of all states; those after an utterance's end are of zeros."""
        logits: Tensor = self.network(features, lengths)
        return self.scale * (logits - self.log_prior)


def greedy_labels(best: Iterable[int]) -> list[tuple[int, int]]:
    """Greedy CTC (Graves et al. 2006, section 3.2): labels where they begin, and where, from the best of every frame.
    0 is the blank, which is none; a label that repeats the frame before is the same one.

    >>> greedy_labels([0, 3, 3, 0, 3, 1])
    [(3, 1), (3, 4), (1, 5)]
    """
    found, before = [], 0
    for at, label in enumerate(best):
        if label not in (0, before):
            found.append((label, at))
        before = label
    return found


def _built(features: int, layers: Sequence[FrameLayer], classes: int) -> tuple[nn.ModuleList, nn.Linear]:
    sizes = [features, *(layer.outputs for layer in layers)]
    windows = nn.ModuleList(
        nn.Conv1d(inputs, layer.outputs, layer.width, layer.stride, dilation=layer.dilation)
        for inputs, layer in zip(sizes, layers, strict=False)
    )
    return windows, nn.Linear(sizes[-1], classes)


def _within(features: Tensor, lengths: Tensor, radius: float) -> Tensor:
    """Frames within the radius, and zero after their end."""
    spoken = torch.arange(features.shape[-2], device=features.device) < lengths.unsqueeze(-1)
    norms = features.square().sum(-1, keepdim=True).sqrt()
    return features * (radius / norms.clamp_min(radius)) * spoken.unsqueeze(-1)


def _scores(
    frames: Tensor, shapes: Sequence[FrameLayer], layers: nn.ModuleList, head: nn.Linear, dropout: float = 0.0
) -> Tensor:
    """Of every frame that comes out, `(batch, frames left, classes)`."""
    values = frames.mT
    for shape, layer in zip(shapes, layers, strict=True):
        values = layer(values)
        if shape.activation == "relu":
            values = values.relu()
        else:
            values = values.sigmoid() if shape.activation == "sigmoid" else functional.gelu(values)
        if shape.pool == "mean":
            values = functional.avg_pool1d(values, shape.pool_width)
        elif shape.pool == "max":
            values = functional.max_pool1d(values, shape.pool_width)
        if dropout:
            values = functional.dropout(values, dropout)
    scores: Tensor = head(values.mT)
    return scores
