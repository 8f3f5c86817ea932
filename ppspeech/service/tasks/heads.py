"""Which word is it, by a head on a public embedding? The terms on which heads are asked."""

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

from ppspeech.audio.embeddings import EmbeddingConfig
from ppspeech.errors import BundleError
from ppspeech.network.channel import canonical
from ppspeech.protocols.scores import WordShape
from ppspeech.protocols.words import Told, most_steps, why_not_garbled
from ppspeech.service.offer import TASKS
from ppspeech.service.tasks.words import LARGEST_BATCH, MOST_BATCHES

LARGEST = 1e6
"""No mean, spread or weight of a public scale comes near it."""


@dataclass(frozen=True, slots=True)
class HeadScale:
    """How a client turns an embedding into a head's input, by public numbers alone.

    Less `mean`, over `std` times the root of how many there are; then, where there is a `projection`, row by row, its
    product with it. What is longer than the shape's radius is brought to it.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    projection: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std) or not self.std or min(self.std) <= 0:
            raise BundleError("a scale has as many deviations as means, all > 0")
        if not max(map(abs, (*self.mean, *self.std, *self.projection))) <= LARGEST:
            raise BundleError(f"numbers of a scale are within ±{LARGEST:g}")
        if len(self.projection) % len(self.mean):
            raise BundleError(f"rows of a projection have {len(self.mean)} numbers, got {len(self.projection)} in all")

    @property
    def size(self) -> int:
        """Numbers of the head's input."""
        return len(self.projection) // len(self.mean) or len(self.mean)


@TASKS.register("heads")
@dataclass(frozen=True, slots=True)
class Heads:
    """One head. The labels are not told; how many there are is. The front end is told by the hash of its weights, and
    a client that knows others refuses.

    Attributes:
        outcome: who learns the word; a client agrees, or does not ask.
        batches: how many utterances may run in lock step, where the client is told, ascending; one may always run.
        ahead: windows that are prepared at once, and paid for, by a client that listens; 0 for a head on whole
            utterances.

    Raises BundleError for parts that do not fit each other, or more than a client is ready to compute.
    """

    TASK: ClassVar[str] = "heads"

    type: str
    shape: WordShape
    embedding: EmbeddingConfig
    scale: HeadScale
    outcome: Told
    batches: tuple[int, ...]
    ahead: int

    def __post_init__(self) -> None:
        if self.embedding.name != "speech":
            raise BundleError(f"words are heard through speech embeddings, got {self.embedding.name}")
        if len(self.scale.mean) != self.embedding.features or self.shape.dimensions != self.scale.size:
            raise BundleError(
                f"the head takes {self.shape.dimensions} numbers, of {self.scale.size} and {len(self.scale.mean)} that "
                f"the scale has, and the front end gives {self.embedding.features}"
            )
        if self.shape.frames != 1 or self.shape.radius is None:
            raise BundleError("a head takes one vector an utterance, within a radius")
        if self.batches[:1] != (1,) or sorted(set(self.batches)) != list(self.batches):
            raise BundleError(f"batches are ascending and begin with 1, got {self.batches}")
        if self.batches[-1] > LARGEST_BATCH or len(self.batches) > MOST_BATCHES:
            raise BundleError(f"there are at most {MOST_BATCHES} batches of up to {LARGEST_BATCH} utterances")
        most = most_steps(self.shape, self.outcome)
        if not (1 if self.listens else 0) <= self.ahead <= (most if self.listens else 0):
            raise BundleError(f"up to {most} windows are prepared at once, got {self.ahead}")

    @property
    def front_end(self) -> EmbeddingConfig:
        """What a client computes."""
        return self.embedding

    @property
    def listens(self) -> bool:
        """Whether it tells windows of speech that goes on."""
        return self.embedding.pooling.over == "window"

    @property
    def garbles(self) -> bool:
        """Whether it can be asked in a circuit, over slow links: two round trips."""
        return self.outcome == "client" and why_not_garbled(self.shape) is None

    @property
    def asked(self) -> str:
        """How it is asked from the command line."""
        return "recognize {} clip.wav" + " --outcome server" * (self.outcome == "server")

    @property
    def takes(self) -> str:
        """What is listened to, and who is told."""
        what = "the last seconds of speech that goes on" if self.listens else "an utterance of up to 30 s"
        return f"{what}; {'the server alone' if self.outcome == 'server' else 'the client alone'} learns the word"

    def agreement(self, fingerprint: str) -> dict[str, Any]:
        """Public parameters of a session: both parties mean this head in this shape, and who is told."""
        shape = hashlib.sha256(canonical(self.shape.to_params())).hexdigest()
        return {"model": fingerprint, "shape": shape, "outcome": self.outcome}
