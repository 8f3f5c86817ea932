"""Frames: what waveforms become, and the masks that keep padding out of every result."""

from typing import NamedTuple

import torch
from torch import Tensor

from ppspeech.errors import AudioError


class Frames(NamedTuple):
    """A padded batch of feature sequences."""

    features: Tensor  # `(batch, frames, features)`; zero from each utterance's length on
    lengths: Tensor  # `(batch,)`, in frames


def length_mask(lengths: Tensor, frames: int) -> Tensor:
    """True where a frame belongs to its utterance: `(batch, frames)`.

    >>> length_mask(torch.tensor([1, 3]), 3).int().tolist()
    [[1, 0, 0], [1, 1, 1]]
    """
    return torch.arange(frames, device=lengths.device) < lengths.unsqueeze(-1)


def extend_last(features: Tensor, lengths: Tensor) -> Tensor:
    """Repeat each utterance's last frame through its padding, `(batch, frames, features)`."""
    time = torch.arange(features.shape[1], device=features.device)
    index = torch.minimum(time, (lengths - 1).clamp_min(0).unsqueeze(-1))
    return features.gather(1, index.unsqueeze(-1).expand_as(features))


def compact(frames: Frames, keep: Tensor) -> Frames:
    """Drop the frames where `keep` `(batch, frames)` is false, moving the rest to the front in order."""
    keep = keep & length_mask(frames.lengths, keep.shape[1])
    order = torch.argsort((~keep).to(torch.uint8), dim=1, stable=True)
    moved = frames.features.gather(1, order.unsqueeze(-1).expand_as(frames.features))
    lengths = keep.sum(1)
    return Frames(moved * length_mask(lengths, keep.shape[1]).unsqueeze(-1), lengths)


def utterance_statistics(frames: Frames) -> Tensor:
    """Mean, maximum, minimum and standard deviation over time (Hamm 2015 section 5.2).

    With the 13 coefficients of `MfccConfig.hamm2015()` this is the paper's 52-dimensional vector. The standard
    deviation is the population's (divided by the number of frames). Returns `(batch, 4 d)`: all means, all maxima, all
    minima, all standard deviations. Raises AudioError if an utterance has no frame.
    """
    features, lengths = frames
    if not torch.compiler.is_compiling() and (lengths < 1).any():
        raise AudioError("an utterance without frames has no statistics: leave it out")
    inside = length_mask(lengths, features.shape[1]).unsqueeze(-1)
    total = lengths.view(-1, 1).to(features.dtype)
    mean = (features * inside).sum(1) / total
    largest = features.masked_fill(~inside, -torch.inf).amax(1)
    smallest = features.masked_fill(~inside, torch.inf).amin(1)
    centered = (features - mean.unsqueeze(1)) * inside
    # sqrt has no derivative at 0: a constant feature gets a tiny positive variance.
    deviation = (centered.square().sum(1) / total).clamp_min(torch.finfo(features.dtype).tiny).sqrt()
    return torch.cat([mean, largest, smallest, deviation], dim=-1)
