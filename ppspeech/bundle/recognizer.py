"""Which word is it? A model of words or classes, used in the clear."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import Mfcc, MfccConfig, Sound, features_of, usual_range
from ppspeech.bundle.config import BundleConfig
from ppspeech.models import UtteranceClassifier
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel

LIMIT = 8.0  # spreads from its center that a feature is clipped to, unless a model's states lie further out
INSIDE = 2.0  # standard deviations of every state that the limit leaves room for


@dataclass(frozen=True, slots=True)
class Recognized:
    """What was heard in one utterance: a word or class, and by how many nats above the next."""

    value: str
    margin: float


@dataclass(frozen=True, slots=True)
class Recognizer:
    """A model in the clear: features `(batch, frames, features)` and lengths to scores `(batch, words)`.

    Frames are clipped to `limit` spreads, as `feature_limit` says; None leaves them, where the model takes one vector
    an utterance.
    """

    names: tuple[str, ...]
    mfcc: MfccConfig
    model: nn.Module
    limit: float | None

    @classmethod
    def of(cls, model: nn.Module, config: BundleConfig) -> "Recognizer":
        """A model with what its bundle, or checkpoint, says about it."""
        return cls(config.labels, config.front_end, model, feature_limit(model, config.front_end))

    def recognize_all(self, sounds: Sequence[Sound], rate: int | None = None) -> list[Recognized]:
        """The words of many utterances: waveforms `(samples,)` with one rate in Hz, or sound files that can be used."""
        best = self.score(features_of(sounds, Mfcc(self.mfcc), rate)).topk(min(2, len(self.names)))
        margins = (best.values[:, 0] - best.values[:, -1]).tolist()
        words = best.indices[:, 0].tolist()
        return [Recognized(self.names[word], margin) for word, margin in zip(words, margins, strict=True)]

    @torch.no_grad()
    def score(self, features: Sequence[Tensor]) -> Tensor:
        """Scores of utterances, each `(frames, features)`: `(utterances, words)`."""
        lengths = torch.tensor([len(frames) for frames in features])
        padded = pad_sequence(list(features), batch_first=True)
        if self.limit is not None:
            center, spread = (part.to(padded) for part in usual_range(self.mfcc))
            padded = padded.clamp(center - self.limit * spread, center + self.limit * spread)
        scores: Tensor = self.model(padded, lengths)
        return scores


@torch.no_grad()
def feature_limit(model: nn.Module, mfcc: MfccConfig) -> float | None:
    """How many spreads (`usual_range`) a feature may lie from its center: clipped there, in the clear and encrypted.

    `LIMIT`, doubled until every state's mean and two deviations lie within: a client that is told it learns about the
    model how often. None for a model of whole utterances, whose vectors have a public radius instead.
    """
    if isinstance(model, UtteranceClassifier):
        return None
    limit = LIMIT
    if isinstance(model, HiddenMarkovModel) and isinstance(model.emission, GaussianEmission):
        gaussians = model.emission.gaussians
        center, spread = usual_range(mfcc)
        deviations = gaussians.covariances().diagonal(dim1=-2, dim2=-1).double().sqrt()
        reach = float((((gaussians.mean.double() - center).abs() + INSIDE * deviations) / spread).max())
        while limit < reach:
            limit *= 2
    return limit
