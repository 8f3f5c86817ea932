"""What an attacker is: it learns people from filtered samples, then scores new ones against everyone it knows."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from ppspeech.audio import Frames, length_mask
from ppspeech.errors import ModelError
from ppspeech.registry import Registry


class Clips(NamedTuple):
    """Clips and what was said in them: all the same where that is not known. Sets of clips have one more axis."""

    features: Tensor  # `(clips, features)`, or `(sets, clips, features)`
    words: Tensor  # `(clips,)`, or `(sets, clips)`: 0, 1, …


Seen = TypeVar("Seen")
"""What the attacker is shown: a Tensor `(samples, features)`, Clips, or Frames for those that follow speech."""

Scorer = Callable[[Seen], Tensor]
"""Scores of samples against every known class, `(samples, classes)`; greater means more like it."""

Attacker = Callable[[Seen, Tensor, int, int], Scorer[Seen]]
"""Learns from samples, labels `(samples,)` in 0..classes - 1, the number of classes and a seed."""


VECTOR_ATTACKERS: Registry[Attacker[Tensor]] = Registry(
    "attacker", "ppspeech.filters.attack.attackers.vectors", error=ModelError
)
"""Those that see one vector a sample, `(samples, features)`."""

CLIP_ATTACKERS: Registry[Attacker[Clips]] = Registry(
    "attacker",
    "ppspeech.filters.attack.attackers.gaussians",
    "ppspeech.filters.attack.attackers.densities",
    "ppspeech.filters.attack.attackers.tuned",
    "ppspeech.filters.attack.attackers.networks",
    error=ModelError,
)
"""Those that see one vector a clip and which word it is: they have one model a word, or one that knows the word."""

SetAttacker = Callable[[Clips, Tensor, int, int, int], Scorer[Clips]]
"""Learns as an Attacker does, for sets of so many clips of one person, which its scorer is shown."""

SET_ATTACKERS: Registry[SetAttacker] = Registry("attacker", "ppspeech.filters.attack.attackers.sets", error=ModelError)
"""Those that look at several clips of one person at once."""

SPEECH_ATTACKERS: Registry[Attacker[Frames]] = Registry(
    "attacker",
    "ppspeech.filters.attack.attackers.embedding",
    "ppspeech.filters.attack.attackers.gmm_ubm",
    error=ModelError,
)
"""Those that see frames `(utterances, frames, features)` with their lengths."""

VOICE_ATTACKERS: Registry[Attacker[Frames]] = Registry(
    "attacker", "ppspeech.filters.attack.attackers.voices", error=ModelError
)
"""Those that hear: they see the mel frames that a public voice embedding takes, `(utterances, frames, 40)`."""


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
