"""A head on a public embedding: what is secret about a model is one matrix, and it hears through a network that is not.

    z = (x - m) / (s sqrt(d)),  within a public radius      m, s: of public speech
    scores = W [z, 1]                                        `logistic`: softmax regression
    scores = -u' Phi u,  u = [P z, 1]                        `margin`: large-margin Gaussians on a public projection P

Where the model knows a background, the speech that is none of its words, its score comes first, and `reject` is added
to it: nats by which a word must beat it.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from ppspeech.errors import ModelError
from ppspeech.models.linear import SoftmaxRegression
from ppspeech.models.margin import LargeMarginGaussians, MarginLoss

HeadKind = Literal["logistic", "margin"]
PROJECTED = 24  # directions that large-margin Gaussians are of, where vectors have more: their matrices have squares


class EmbeddingHead(nn.Module):
    """Vectors `(…, features)` to scores `(…, classes)`; `scale_` sets what is public, training the `head`.

    Raises ModelError for sizes that cannot be.
    """

    mean: Tensor
    std: Tensor
    projection: Tensor
    reject: Tensor

    def __init__(
        self, classes: int, features: int, kind: HeadKind = "logistic", radius: float = 2.0, width: float = 0.5
    ) -> None:
        super().__init__()
        if classes < 2 or features < 1 or not radius > 0:
            raise ModelError(f"a head has two classes, features and a radius, got {classes}, {features}, {radius}")
        self.kind, self.radius = kind, radius
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("std", torch.ones(features))
        self.register_buffer("reject", torch.zeros(()))
        if kind == "logistic":
            self.head: SoftmaxRegression | LargeMarginGaussians = SoftmaxRegression(features, classes, radius)
            return
        size = min(PROJECTED, features)
        self.register_buffer("projection", torch.eye(size, features))
        loss = MarginLoss(width=width)
        self.head = LargeMarginGaussians(classes, size, loss=loss, psd="projection", radius=radius)

    @torch.no_grad()
    def scale_(self, vectors: Tensor) -> None:
        """Take mean and spread of public speech's vectors, `(many, features)`, and the directions it varies most in."""
        if vectors.ndim != 2 or len(vectors) < 2 or vectors.shape[1] != len(self.mean):
            raise ModelError(f"a scale is of two vectors or more, of {len(self.mean)} numbers, got {vectors.shape}")
        std, mean = torch.std_mean(vectors.double(), dim=0)
        self.mean.copy_(mean)
        self.std.copy_(std.clamp_min(1e-3 * std.max()))
        if self.kind == "margin":
            z = self.scaled(vectors.to(self.mean)).double()
            directions = torch.linalg.svd(z - z.mean(dim=0), full_matrices=False).Vh
            spread = z.shape[1] ** 0.5 / max(1, len(self.projection)) ** 0.5
            self.projection[: len(directions)].copy_(spread * directions[: len(self.projection)])

    def scaled(self, vectors: Tensor) -> Tensor:
        """Vectors of norm about 1 for public speech, `(…, features)`."""
        return (vectors - self.mean) / (self.std * math.sqrt(len(self.mean)))

    def embed(self, vectors: Tensor) -> Tensor:
        """What the head takes: scaled, and for `margin` projected; the head clips it to the radius."""
        z = self.scaled(vectors)
        return z if self.kind == "logistic" else z @ self.projection.mT

    def forward(self, vectors: Tensor, lengths: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """Scores of utterances: vectors `(batch, features)`, or `(batch, 1, features)` as frames of a batch come."""
        flat = vectors.squeeze(-2) if vectors.ndim == 3 else vectors
        return self.head.scores(self.embed(flat))
