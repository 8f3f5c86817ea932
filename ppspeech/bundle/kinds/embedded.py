"""Models that hear through a public embedding: words, wake words, classes of utterances."""

from dataclasses import dataclass
from typing import Literal

from ppspeech.bundle.model_types import model_type
from ppspeech.errors import BundleError
from ppspeech.models import EmbeddingHead


@model_type("embedding_head", "recognize", takes="embedding")
@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingHeadSettings:
    """A head on pooled embeddings (`ppspeech.models.EmbeddingHead`).

    Attributes:
        head: `logistic`, or `margin`, large-margin Gaussians.
        background: whether speech that is none of the labels has a class of its own, the first.
        alarms_an_hour: how often the threshold lets other speech through, as calibrated; 0 where it was not.
    """

    label: Literal["word", "emotion", "gender", "speaker", "group"]
    head: Literal["logistic", "margin"]
    radius: float
    width: float
    background: bool
    alarms_an_hour: float

    def __post_init__(self) -> None:
        if not 0 < self.radius <= 1_000 or not self.width > 0 or not self.alarms_an_hour >= 0:
            raise BundleError(f"a head has a radius, a width and a rate of false alarms, got {self}")

    def task(self, labels: tuple[str, ...]) -> str:
        """What it is for."""
        none = " or none of them" if self.background else ""
        by = "a logistic head" if self.head == "logistic" else "large-margin Gaussians"
        return f"Tells which {self.label} of {len(labels)}{none} an utterance has, by {by} on a public embedding."

    def build(self, labels: tuple[str, ...], features: int) -> EmbeddingHead:
        """The head: vectors to scores, `(batch, classes)`, the background's first where there is one."""
        return EmbeddingHead(len(labels) + self.background, features, self.head, self.radius, self.width)
