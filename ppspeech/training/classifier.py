"""Utterances to classes: large-margin Gaussians on utterance statistics, by the convex solver or by gradients."""

import math
from dataclasses import asdict
from typing import Any, Literal

import pytorch_lightning as lightning
import torch
from torch import Tensor

from ppspeech.audio import Frames, MfccConfig, utterance_statistics
from ppspeech.data import Batch, SpeechDataModule, public_scale
from ppspeech.errors import ModelError
from ppspeech.models.margin import LargeMarginGaussians, MarginLoss
from ppspeech.training.confusion import ConfusionCallback
from ppspeech.training.em import MaximizationStep
from ppspeech.training.private.convex import ConvexHook, PrivateFit, fit_privately


class LargeMarginClassifier(lightning.LightningModule):
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

    `privacy` is set by the callback `ObjectivePrivacy`: the solver then trains to its guarantee, and `private_fit` says
    what was done.
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
        self.label, self.solver, self.radius, self.learning_rate = label, solver, radius, learning_rate
        self.quadratic, self.trace, self.width = quadratic, trace, width
        self.names: tuple[str, ...] = ()
        self.mfcc = MfccConfig.hamm2015()
        self.model: LargeMarginGaussians | None = None
        self.privacy: ConvexHook | None = None
        self.private_fit: PrivateFit | None = None
        self._seen: list[tuple[Tensor, Tensor, Tensor]] = []

    def build_(self, names: tuple[str, ...], mfcc: MfccConfig) -> None:
        """Make the untrained classifier for these classes and this front end.

        Raises:
            ModelError: for fewer than two classes.
        """
        if len(names) < 2:
            raise ModelError(f"the corpus has {len(names)} values of {self.label!r}: nothing to tell apart")
        self.names, self.mfcc = names, mfcc
        self.model = LargeMarginGaussians(
            len(names), 4 * mfcc.features, loss=MarginLoss(width=self.width), psd="projection", radius=self.radius
        )

    def setup(self, stage: str) -> None:  # noqa: ARG002 (Lightning's signature)
        """Take the classes and the front end from the data module."""
        module = self.trainer.datamodule  # type: ignore[attr-defined]
        if self.model is None:
            assert isinstance(module, SpeechDataModule)
            self.build_(module.vocabulary[self.label], module.config(module.corpus))

    def embed(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Utterance statistics `(batch, 4 * features)`, scaled: the built-in voices have norm about 1."""
        mean, std = public_scale(self.mfcc)
        centered = utterance_statistics(Frames(features, lengths)) - mean.to(features)
        return centered / (std.to(features) * math.sqrt(len(mean)))

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Scores of every utterance for every class, higher is more likely, `(batch, classes)`."""
        assert self.model is not None
        costs: Tensor = self.model(self.embed(features, lengths))
        return -costs.amin(-1)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """The certified minimum, or Adam."""
        if self.solver == "newton":
            return MaximizationStep(self.parameters(), self._solve)
        return torch.optim.Adam(self.parameters(), self.learning_rate)

    def training_step(self, batch: Batch) -> Tensor | None:
        """Collect examples for the solver, or give the loss of a mini-batch."""
        assert self.model is not None
        x, y = self.embed(batch["features"], batch["lengths"]), batch[self.label]
        if self.solver == "newton":
            self._seen.append((x, y, batch["speaker"]))
            if self.trainer.is_last_batch:
                optimizer = self.optimizers()
                assert not isinstance(optimizer, list)
                optimizer.step()
                self._seen = []
            return None
        examples = len(self.trainer.datamodule.parts["train"])  # type: ignore[attr-defined]
        loss = self.model.loss(x, y).mean() + self.model.regularization(self.quadratic, self.trace) / examples
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def on_train_batch_end(self, *_: Any) -> None:
        """Keep every Phi positive semidefinite after a gradient step."""
        if self.solver == "adam" and self.model is not None:
            self.model.project_()

    def _solve(self) -> None:
        assert self.model is not None
        x, y, speaker = (torch.cat(parts) for parts in zip(*self._seen, strict=True))
        if self.privacy is not None:
            # the objective's value stays unlogged: it is as private as the data
            groups = speaker if self.privacy.relation.unit == "speaker" else None
            self.private_fit = fit_privately(self.model, x, y, self.privacy, groups, gamma=self.trace)
            return
        solution = self.model.fit(x, y, quadratic=self.quadratic, gamma=self.trace, tolerance=1e-3, post_hoc=True)
        self.log("train_objective", solution.certificate.objective / len(x), prog_bar=True)

    def validation_step(self, batch: Batch) -> Batch:
        """What it was and what it is taken for."""
        return {"said": batch[self.label], "heard": self(batch["features"], batch["lengths"]).argmax(-1)}

    def test_step(self, batch: Batch) -> Batch:
        """As in validation."""
        return self.validation_step(batch)

    def configure_callbacks(self) -> list[lightning.Callback]:
        """Count and draw what is recognized."""
        return [ConfusionCallback()]

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add what is needed to use the model without its corpus; plain values only."""
        told = {"kind": "large_margin_classifier", "names": list(self.names), "mfcc": asdict(self.mfcc)}
        checkpoint["recognizer"] = told

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Build for the classes of the checkpoint."""
        if self.model is None:
            told = checkpoint["recognizer"]
            self.build_(tuple(told["names"]), MfccConfig(**told["mfcc"]))
