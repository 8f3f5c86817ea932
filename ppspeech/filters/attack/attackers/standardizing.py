"""Mean 0 and variance 1 over all training frames: what attackers on speech do first."""

import torch
from torch import Tensor

from ppspeech.audio import Frames, length_mask

FLAT = 1e-12
"""A feature whose variance is below this share of the largest is constant: it is left at 0."""


class Standardizing:
    """A scale learned from the training frames and applied to any; padding stays 0."""

    def __init__(self, frames: Frames) -> None:
        pool = frames_inside(frames)
        self.mean = pool.mean(0)
        variance = pool.var(0, correction=0)
        flat = variance <= FLAT * variance.max()
        self.factor = torch.where(flat, 0.0, variance.clamp_min(torch.finfo(pool.dtype).tiny).rsqrt())

    def __call__(self, frames: Frames) -> Frames:
        """The frames on that scale."""
        inside = length_mask(frames.lengths, frames.features.shape[1]).unsqueeze(-1)
        return Frames((frames.features - self.mean) * self.factor * inside, frames.lengths)


def frames_inside(frames: Frames) -> Tensor:
    """The frames without their padding, one after another, `(total, features)`."""
    return frames.features[length_mask(frames.lengths, frames.features.shape[1])]
