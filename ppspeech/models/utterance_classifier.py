"""A classifier of whole utterances that carries its own public scale, so that it needs no corpus to be used."""

import math

import torch
from torch import Tensor, nn

from ppspeech.audio import Frames, utterance_statistics
from ppspeech.models.margin.gaussians import LargeMarginGaussians


class UtteranceClassifier(nn.Module):
    """Large-margin Gaussians on the mean, maximum, minimum and deviation of an utterance's features.

    Args:
        model: over `4 * features` values.

    Attributes:
        mean: of the statistics over public speech, `(4 * features,)`.
        std: their standard deviation, > 0, `(4 * features,)`.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, model: LargeMarginGaussians) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("mean", torch.zeros(model.size - 1))
        self.register_buffer("std", torch.ones(model.size - 1))

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Scores of utterances `(batch, frames, features)`, higher is more likely: `(batch, classes)`."""
        centered = utterance_statistics(Frames(features, lengths)) - self.mean
        return self.model.scores(centered / (self.std * math.sqrt(len(self.mean))))
