"""What an attacker is: it learns people from filtered samples, then scores new ones against everyone it knows."""

from collections.abc import Callable
from typing import TypeVar

from torch import Tensor

from ppspeech.audio import Frames
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
