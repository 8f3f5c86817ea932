"""Which word is it? A model of words or classes, used in the clear."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import Mfcc, MfccConfig, Sound, features_of


@dataclass(frozen=True, slots=True)
class Recognized:
    """What was heard in one utterance: a word or class, and by how many nats above the next."""

    value: str
    margin: float


@dataclass(frozen=True, slots=True)
class Recognizer:
    """A model in the clear: features `(batch, frames, features)` and lengths to scores `(batch, words)`."""

    names: tuple[str, ...]
    mfcc: MfccConfig
    scores: Callable[[Tensor, Tensor], Tensor]

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
        return self.scores(pad_sequence(list(features), batch_first=True), lengths)
