"""Classifiers that carry the public scale of their inputs, so that they need no corpus and no table to be used."""

import math

import torch
from torch import Tensor, nn

from ppspeech.audio import Frames, utterance_statistics
from ppspeech.models.kernel import KernelClassifier
from ppspeech.models.linear import HuberSvm, LogisticRegression, SoftmaxRegression
from ppspeech.models.margin.gaussians import LargeMarginGaussians

RowModel = LogisticRegression | SoftmaxRegression | HuberSvm | LargeMarginGaussians | KernelClassifier
"""What scores one vector, `(..., d)` to `(..., classes)`."""


class TableClassifier(nn.Module):
    """A model of rows scaled by public constants: `mean` is subtracted, then divided by `std`, `(columns,)`."""

    mean: Tensor
    std: Tensor

    def __init__(self, model: RowModel) -> None:
        super().__init__()
        self.model = model
        if isinstance(model, KernelClassifier):
            columns = model.columns
        else:
            columns = model.size - 1 if isinstance(model, LargeMarginGaussians) else model.weight.shape[1] - 1
        self.register_buffer("mean", torch.zeros(columns))
        self.register_buffer("std", torch.ones(columns))

    def forward(self, rows: Tensor) -> Tensor:
        """Scores of rows `(..., columns)`, higher is more likely: `(..., classes)`."""
        return self.model.scores((rows - self.mean) / self.std)


class UtteranceClassifier(nn.Module):
    """Large-margin Gaussians on utterance statistics, scaled by mean and std of public speech, `(4 * features,)`."""

    mean: Tensor
    std: Tensor

    def __init__(self, model: LargeMarginGaussians) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("mean", torch.zeros(model.size - 1))
        self.register_buffer("std", torch.ones(model.size - 1))

    def embed(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Utterance statistics `(batch, 4 * features)`, scaled so that public speech has norm about 1."""
        centered = utterance_statistics(Frames(features, lengths)) - self.mean
        return centered / (self.std * math.sqrt(len(self.mean)))

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Scores of utterances `(batch, frames, features)`, higher is more likely: `(batch, classes)`."""
        return self.model.scores(self.embed(features, lengths))
