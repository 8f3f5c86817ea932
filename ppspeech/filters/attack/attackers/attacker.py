"""What an attacker is: it learns people from filtered samples, then scores new ones against everyone it knows."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

from torch import Tensor

from ppspeech.audio import Frames
from ppspeech.errors import ModelError

Seen = TypeVar("Seen")
"""What the attacker is shown: a Tensor `(samples, features)`, or Frames for those that follow speech over time."""

Scorer = Callable[[Seen], Tensor]
"""Scores of samples against every known class, `(samples, classes)`; greater means more like it."""

Attacker = Callable[[Seen, Tensor, int, int], Scorer[Seen]]
"""Learns from samples, labels `(samples,)` in 0..classes - 1, the number of classes and a seed."""


class Attackers(Generic[Seen]):
    """A registry of attackers that look at the same kind of thing, by name; refuses a name twice."""

    def __init__(self) -> None:
        self._known: dict[str, Attacker[Seen]] = {}

    def register(self, name: str) -> Callable[[Attacker[Seen]], Attacker[Seen]]:
        """Add an attacker under a name, as a decorator.

        Raises:
            ModelError: if the name is taken.
        """

        def add(attacker: Attacker[Seen]) -> Attacker[Seen]:
            if name in self._known:
                raise ModelError(f"there is an attacker called {name!r} already: choose another name")
            self._known[name] = attacker
            return attacker

        return add

    @property
    def known(self) -> Mapping[str, Attacker[Seen]]:
        """The attackers by name, in order of registration."""
        return MappingProxyType(self._known)


VECTOR_ATTACKERS: Attackers[Tensor] = Attackers()
"""Those that see one vector a sample, `(samples, features)`."""

SPEECH_ATTACKERS: Attackers[Frames] = Attackers()
"""Those that see frames `(utterances, frames, features)` with their lengths."""
