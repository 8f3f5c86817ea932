"""Which word is it? A head on a public embedding, used in the clear."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from ppspeech.arrays import Reals
from ppspeech.audio import Sound
from ppspeech.audio.embeddings import EmbeddingConfig, LiveVectors, WordVectors
from ppspeech.bundle.config import BundleConfig
from ppspeech.bundle.recognizer import GARBAGE, Recognized, Recognizer
from ppspeech.errors import ModelError
from ppspeech.models import EmbeddingHead


@dataclass(frozen=True)
class EmbeddedRecognizer:
    """A head with the front end it listens through. "None of them" is the answer where the background's score, and what
    is added to it so that false alarms are rare, is above every word's; never where the model knows no background.
    """

    names: tuple[str, ...]
    embedding: EmbeddingConfig
    model: EmbeddingHead
    has_background: bool

    @classmethod
    def of(cls, model: nn.Module, config: BundleConfig) -> "EmbeddedRecognizer":
        """A model with what its bundle, or checkpoint, says about it. Raises ModelError for another kind."""
        if config.embedding is None or not isinstance(model, EmbeddingHead):
            raise ModelError(f"a {config.type} is no head on a public embedding")
        return cls(config.labels, config.embedding, model, len(config.labels) < model.head.classes)

    @property
    def front_end(self) -> EmbeddingConfig:
        """What it listens through."""
        return self.embedding

    @cached_property
    def vectors(self) -> WordVectors:
        """The front end. Raises MissingPackageError where its weights are not installed."""
        return WordVectors(self.embedding)

    def recognize_all(
        self, sounds: Sequence[Sound], rate: int | None = None, *, reject: bool = False, garbage: float = GARBAGE
    ) -> list[Recognized]:
        """The words of many utterances: waveforms `(samples,)` with one rate in Hz, or sound files. Raises AudioError
        for sound that cannot be used; ModelError for `reject` where the model knows no background, and for `garbage`,
        which a threshold that was calibrated leaves no place for.
        """
        if garbage != GARBAGE:
            raise ModelError("what a word must beat was calibrated when the model was made: there is no garbage model")
        if reject and not self.has_background:
            raise ModelError("the model was trained without a background: it has nothing to reject with")
        return self.decide(np.stack([self.vectors.of(sound, rate) for sound in sounds]))

    def live(self) -> LiveVectors:
        """The front end of speech that is still being spoken."""
        return LiveVectors(self.vectors)

    def decide(self, vectors: Reals) -> list[Recognized]:
        """As `recognize_all`, from vectors `(utterances, features)`."""
        scores = self.scores(vectors)
        best = scores.topk(min(2, scores.shape[-1]))
        sure, names = scores.softmax(-1), ((None, *self.names) if self.has_background else self.names)
        return [
            Recognized(names[place], margin, float(row[place]))
            for place, margin, row in zip(
                best.indices[:, 0].tolist(), (best.values[:, 0] - best.values[:, -1]).tolist(), sure, strict=True
            )
        ]

    @torch.no_grad()
    def scores(self, vectors: Reals) -> Tensor:
        """Of every class, `(utterances, classes)`; the background's, if any, is first, with `reject` added."""
        scores: Tensor = self.model(torch.from_numpy(vectors).float()).double()
        if self.has_background:
            scores[:, 0] += self.model.reject.double()
        return scores


def recognizer_of(model: nn.Module, config: BundleConfig) -> Recognizer | EmbeddedRecognizer:
    """A model of words or classes with what it listens through."""
    return (Recognizer if config.embedding is None else EmbeddedRecognizer).of(model, config)
