"""What is told of a recording of several words, by a bundle and by a server alike."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spoken:
    """A word of a recording, with its start and end in seconds."""

    value: str
    start: float
    end: float
