"""Utterances to classes: large-margin Gaussians on utterance statistics, by the convex solver or by gradients."""

from typing import Any, Literal

import pytorch_lightning as lightning
import torch
from torch import Tensor

from ppspeech.audio import GivenFeatures, MfccConfig
from ppspeech.bundle import DataTouch, LargeMarginClassifierSettings
from ppspeech.data import Batch, Corpus, public_scale, scale_corpus
from ppspeech.models import UtteranceClassifier
from ppspeech.models.margin import LargeMarginGaussians
from ppspeech.training.confusion import ConfusionCallback
from ppspeech.training.module import MaximizationStep, SpeechModule
from ppspeech.training.private.objective import ConvexHook, PrivateFit, fit_privately


class LargeMarginClassifier(SpeechModule):
    """Large-margin Gaussians (Pathak and Raj 2012) on the mean, maximum, minimum and deviation of an utterance's
    features.

    Features are scaled by the statistics of the built-in voices, which are public, and clipped to a public radius, so
    that the privacy layer can bound what one utterance does.

    Args:
        label: what to tell apart: `emotion`, `gender`, `word` or `speaker`.
        solver: `newton`, the certified minimum of the convex objective in one epoch, then projected on the positive
            semidefinite cone; or `adam`, mini-batches.
        quadratic: Lambda, the weight of the squared Frobenius norms, in sum form.
        trace: weight of the traces.
        width: h of the Huber hinge.
        radius: clip of the scaled features' norm.
        learning_rate: of `adam`.

    `privacy` is set by a `PrivacyHook`: the solver then trains to its guarantee, and `private_fit` says what was done.
    """

    def __init__(
        self,
        label: Literal["emotion", "gender", "word", "speaker"] = "word",
        solver: Literal["newton", "adam"] = "newton",
        quadratic: float = 10.0,
        trace: float = 0.0,
        width: float = 0.5,
        radius: float = 2.0,
        learning_rate: float = 1e-2,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = solver == "adam"
        self.label: Literal["emotion", "gender", "word", "speaker"] = label
        self.solver, self.radius, self.learning_rate = solver, radius, learning_rate
        self.quadratic, self.trace, self.width = quadratic, trace, width
        self.privacy: ConvexHook | None = None
        self.private_fit: PrivateFit | None = None
        self._seen: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []

    def settings(self) -> LargeMarginClassifierSettings:
        """Of large-margin Gaussians on utterance statistics."""
        return LargeMarginClassifierSettings(label=self.label, width=float(self.width), radius=float(self.radius))

    def touches(self) -> tuple[DataTouch, ...]:
        """The scale is public, and the decision needs no threshold."""
        return (
            DataTouch("normalization", "untouched", "features are scaled by statistics of the built-in, public voices"),
            DataTouch("threshold", "untouched", "the model has none: the highest score wins"),
        )

    def public_speech(self) -> tuple[Corpus, ...]:
        """What the scale is of."""
        return () if isinstance(self.mfcc, GivenFeatures) else (scale_corpus(self.mfcc.sample_rate),)

    def build_(self, labels: tuple[str, ...], mfcc: MfccConfig) -> None:
        """Make the untrained classifier, with the scale of the built-in voices."""
        super().build_(labels, mfcc)
        with torch.no_grad():
            for ours, public in zip((self.classifier.mean, self.classifier.std), public_scale(mfcc), strict=True):
                ours.copy_(public)

    @property
    def classifier(self) -> UtteranceClassifier:
        """The classifier with its scale."""
        assert isinstance(self.model, UtteranceClassifier)
        return self.model

    @property
    def gaussians(self) -> LargeMarginGaussians:
        """The large-margin Gaussians inside."""
        return self.classifier.model

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """The certified minimum, or Adam."""
        if self.solver == "newton":
            return MaximizationStep(self.parameters(), self._solve)
        return torch.optim.Adam(self.parameters(), self.learning_rate)

    def training_step(self, batch: Batch) -> Tensor | None:
        """Collect examples for the solver, or give the loss of a mini-batch."""
        if self.solver == "newton":
            if len(batch["lengths"]):
                x = self.classifier.embed(batch["features"], batch["lengths"])
                self._seen.append((x, batch[self.label], batch["speaker"], batch["index"]))
            if self.last_batch():
                self.maximize()
                self._seen = []
            return None
        regularization = self.gaussians.regularization(self.quadratic, self.trace) / len(self.training_part())
        return self.mean_loss(batch, self._losses) + regularization

    def _losses(self, batch: Batch) -> Tensor:
        return self.gaussians.loss(self.classifier.embed(batch["features"], batch["lengths"]), batch[self.label])

    def on_train_batch_end(self, *_: Any) -> None:
        """Keep every Phi positive semidefinite after a gradient step."""
        if self.solver == "adam":
            self.gaussians.project_()

    def _solve(self) -> None:
        """The first of several ranks solves for all, and draws the noise: one release."""
        x, y, speaker, utterance = (self.ranks.rows(torch.cat(parts)) for parts in zip(*self._seen, strict=True))
        if self.privacy is not None:
            # the objective's value stays unlogged: it is as private as the data
            privacy, groups = self.privacy, speaker if self.privacy.relation.unit == "speaker" else utterance
            self.private_fit = self.ranks.once(
                lambda: fit_privately(self.gaussians, x, y, privacy, groups, gamma=self.trace)
            )
            return
        terms: dict[str, Any] = {"quadratic": self.quadratic, "gamma": self.trace, "post_hoc": True}
        solution = self.ranks.once(lambda: self.gaussians.fit(x, y, tolerance=1e-3, **terms))
        self.log("train_objective", solution.certificate.objective / len(x), prog_bar=True)

    def validation_step(self, batch: Batch) -> Batch:
        """What it was and what it is taken for."""
        return {"said": batch[self.label], "heard": self(batch["features"], batch["lengths"]).argmax(-1)}

    test_step = validation_step

    def configure_callbacks(self) -> list[lightning.Callback]:
        """Count and draw what is recognized."""
        return [ConfusionCallback()]
