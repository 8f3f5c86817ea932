"""What an attacker is: it learns people from filtered samples, then scores new ones against everyone it knows."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from ppspeech.audio import Frames, length_mask
from ppspeech.errors import ModelError
from ppspeech.registry import Registry

Seen = TypeVar("Seen")
"""What the attacker is shown: a Tensor `(samples, features)`, or Frames for those that follow speech over time."""

Scorer = Callable[[Seen], Tensor]
"""Scores of samples against every known class, `(samples, classes)`; greater means more like it."""

Attacker = Callable[[Seen, Tensor, int, int], Scorer[Seen]]
"""Learns from samples, labels `(samples,)` in 0..classes - 1, the number of classes and a seed."""


VECTOR_ATTACKERS: Registry[Attacker[Tensor]] = Registry(
    "attacker", "ppspeech.filters.attack.attackers.vectors", error=ModelError
)
"""Those that see one vector a sample, `(samples, features)`."""

SPEECH_ATTACKERS: Registry[Attacker[Frames]] = Registry(
    "attacker",
    "ppspeech.filters.attack.attackers.embedding",
    "ppspeech.filters.attack.attackers.gmm_ubm",
    error=ModelError,
)
"""Those that see frames `(utterances, frames, features)` with their lengths."""


FLAT = 1e-12  # A feature whose variance is below this share of the largest is constant: it is left at 0


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
