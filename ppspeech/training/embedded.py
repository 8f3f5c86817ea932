"""Utterances to words, or other classes, on a public embedding: a head by one convex solve, with privacy or without."""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal

import pytorch_lightning as lightning
import torch
from torch import Tensor

from ppspeech.arrays import Reals
from ppspeech.audio import MfccConfig
from ppspeech.audio.embeddings import EmbeddingConfig, Pooling
from ppspeech.bundle import DataTouch, EmbeddingHeadSettings
from ppspeech.data import Batch, Corpus, FeatureStore, scale_corpus
from ppspeech.errors import PrivacyError
from ppspeech.models import EmbeddingHead, LargeMarginGaussians
from ppspeech.training.confusion import ConfusionCallback
from ppspeech.training.module import MaximizationStep, SpeechModule
from ppspeech.training.private.objective import ConvexHook, PrivateFit, fit_privately

HeadName = Literal["logistic", "margin"]
QUADRATIC: Mapping[str, float] = MappingProxyType({"logistic": 0.1, "margin": 30.0})
"""Chosen on FSDD's digits, five clips of each by half of its people, tried on the others. Large-margin Gaussians of so
few clips are worse than a logistic head there, the more so the less they are held back."""
RADIUS, WIDTH = 2.0, 0.5
TOLERANCE = 1e-3
"""Of the gradient's norm, where nothing is promised: far below what changes an answer."""


class EmbeddedWords(SpeechModule):
    """A head on the public speech embedding: what is learned of anybody's voice is one matrix.

    Vectors are scaled by those of the built-in voices, which are public, and clipped to a public radius, so that the
    privacy layer can bound what one utterance does; then both heads are solved to their certified minimum in one epoch.

    Args:
        label: what to tell apart: `word`, `emotion`, `gender` or `speaker`.
        head: `logistic`, softmax regression; or `margin`, large-margin Gaussians on a public projection.
        parts: of an utterance, each averaged: the more, the more of the order of sounds is left.
        quadratic: Lambda, the weight of the squared norm of the head's parameters, in sum form; the head's own unless
            given.

    `privacy` is set by a `PrivacyHook`: the solver then trains to its guarantee, and `private_fit` says what was done.
    """

    def __init__(
        self,
        label: Literal["word", "emotion", "gender", "speaker"] = "word",
        head: HeadName = "logistic",
        parts: int = 4,
        quadratic: float | None = None,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.label: Literal["word", "emotion", "gender", "speaker"] = label
        self.embedding = EmbeddingConfig("speech", pooling=Pooling("utterance", parts))
        self.head_name, self.quadratic = head, QUADRATIC[head] if quadratic is None else quadratic
        self.privacy: ConvexHook | None = None
        self.private_fit: PrivateFit | None = None
        self._seen: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []

    def settings(self) -> EmbeddingHeadSettings:
        """Of a head without a background."""
        return EmbeddingHeadSettings(
            label=self.label,
            head=self.head_name,
            radius=RADIUS,
            width=WIDTH,
            background=False,
            alarms_an_hour=0.0,
        )

    def touches(self) -> tuple[DataTouch, ...]:
        """The scale is public, and the decision needs no threshold."""
        return (
            DataTouch("normalization", "untouched", "vectors are scaled by statistics of the built-in, public voices"),
            DataTouch("threshold", "untouched", "the model has none: the highest score wins"),
        )

    def public_speech(self) -> tuple[Corpus, ...]:
        """What the scale is of."""
        assert self.embedding is not None
        return (scale_corpus(self.embedding.sample_rate),)

    def build_(self, labels: tuple[str, ...], mfcc: MfccConfig) -> None:
        """Make the untrained head, with the scale of the built-in voices."""
        super().build_(labels, mfcc)
        assert self.embedding is not None
        self.embedding_head.scale_(torch.from_numpy(public_vectors(self.embedding)).float())

    @property
    def embedding_head(self) -> EmbeddingHead:
        """The head with its scale."""
        assert isinstance(self.model, EmbeddingHead)
        return self.model

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """The certified minimum."""
        return MaximizationStep(self.parameters(), self._solve)

    def training_step(self, batch: Batch) -> None:
        """Collect vectors for the solver."""
        if len(batch["lengths"]):
            self._seen.append((batch["features"].squeeze(1), batch[self.label], batch["speaker"], batch["index"]))
        if self.last_batch():
            self.maximize()
            self._seen = []

    def _solve(self) -> None:
        """The first of several ranks solves for all, and draws the noise: one release."""
        seen = (self.ranks.rows(torch.cat(parts)) for parts in zip(*self._seen, strict=True))
        vectors, classes, speaker, utterance = seen
        units = speaker if self.privacy is not None and self.privacy.relation.unit == "speaker" else utterance
        terms: dict[str, Any] = {"quadratic": self.quadratic, "privacy": self.privacy, "units": units}
        self.private_fit = self.ranks.once(lambda: fit_head(self.embedding_head, vectors, classes, **terms))

    def validation_step(self, batch: Batch) -> Batch:
        """What it was and what it is taken for."""
        return {"said": batch[self.label], "heard": self(batch["features"], batch["lengths"]).argmax(-1)}

    test_step = validation_step

    def configure_callbacks(self) -> list[lightning.Callback]:
        """Count and draw what is recognized."""
        return [ConfusionCallback()]


def fit_head(
    head: EmbeddingHead,
    vectors: Tensor,
    labels: Tensor,
    *,
    quadratic: float,
    weights: Tensor | None = None,
    privacy: ConvexHook | None = None,
    units: Tensor | None = None,
) -> PrivateFit | None:
    """Train a head, whose scale is set, on vectors `(n, features)` of classes `(n,)` to its certified minimum.

    Formal guarantee: with `privacy` the head's weights are what `fit_privately` promises under its relation, if the
    scale (`EmbeddingHead.scale_`), the hook's regularization and the radius are public; `units` `(n,)` tell whose each
    vector is. Vectors of public speech may be among them: each is a unit of its own, to which the same is promised.
    `weights` `(n,)` are for training without privacy; with it each unit counts once, and they are refused.
    """
    x = head.embed(vectors.to(head.mean))
    if privacy is not None:
        if weights is not None:
            raise PrivacyError("each unit counts once in private training: leave weights out")
        return fit_privately(head.head, x, labels, privacy, units)
    if isinstance(head.head, LargeMarginGaussians):
        head.head.fit(x, labels, quadratic=quadratic, weights=weights, tolerance=TOLERANCE, post_hoc=True)
    else:
        head.head.fit(x, labels, quadratic=quadratic, weights=weights, tolerance=TOLERANCE)
    return None


@lru_cache(maxsize=8)
def public_vectors(embedding: EmbeddingConfig) -> Reals:
    """Vectors of the built-in voices, which are nobody's, `(many, features)`: what scales a head without background."""
    heard = FeatureStore(embedding).load(scale_corpus(embedding.sample_rate).utterances)
    return torch.cat(heard).double().numpy()
