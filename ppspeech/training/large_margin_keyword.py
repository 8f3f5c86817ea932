"""Word recognition trained for a margin: Baum-Welch first, then gradient steps on the large-margin loss."""

from dataclasses import asdict
from typing import Any, Literal

import pytorch_lightning as lightning
import torch
from pytorch_lightning.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import MfccConfig
from ppspeech.data import Batch, SpeechDataModule
from ppspeech.errors import ModelError
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel, Prior, baum_welch, flat_start_, left_right
from ppspeech.models.margin import LargeMarginHmm
from ppspeech.training.confusion import ConfusionCallback


class LargeMarginKeyword(lightning.LightningModule):
    """A bank of word models with full covariances, trained for a margin from a maximum-likelihood start.

    Every state's Phi stays positive semidefinite: it is projected after each step.

    Args:
        states: of each word.
        margin: what a wrong frame must cost more, in nats.
        width: of the Huber hinge, in nats.
        level: a margin over wrong `word`s, or over wrong `state` sequences.
        iterations: Baum-Welch iterations of the start.
        prior_covariance: of the start, in frames; see `KeywordHmm`.
        floor: smallest variance of the start.
        learning_rate: of Adam, falling to 0 along a cosine.
    """

    def __init__(
        self,
        states: int = 5,
        margin: float = 1.0,
        width: float = 1.0,
        level: Literal["word", "state"] = "word",
        iterations: int = 10,
        prior_covariance: float = 0.0,
        floor: float = 1e-2,
        learning_rate: float = 1e-3,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.topology = left_right(states)
        self.margin, self.width, self.level, self.learning_rate = margin, width, level, learning_rate
        self.iterations, self.prior, self.floor = iterations, Prior(prior_covariance), floor
        self.names: tuple[str, ...] = ()
        self.mfcc = MfccConfig()
        self.bank: LargeMarginHmm | None = None
        self._started = False

    def build_(self, names: tuple[str, ...], mfcc: MfccConfig) -> None:
        """Make the untrained bank for these words and this front end.

        Raises:
            ModelError: for fewer than two words.
        """
        if len(names) < 2:
            raise ModelError(f"a recognizer needs at least two words to choose from, got {names}")
        self.names, self.mfcc = names, mfcc
        self.bank = LargeMarginHmm(self.topology, len(names), mfcc.features, self.margin, self.width)

    def setup(self, stage: str) -> None:  # noqa: ARG002 (Lightning's signature)
        """Take the words and the front end from the data module."""
        module = self.trainer.datamodule  # type: ignore[attr-defined]
        if self.bank is None:
            assert isinstance(module, SpeechDataModule)
            self.build_(module.vocabulary["word"], module.config(module.corpus))

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Scores of every utterance under every word, `(batch, words)`."""
        assert self.bank is not None
        scores: Tensor = self.bank(features, lengths)
        return scores

    def on_train_start(self) -> None:
        """Train by maximum likelihood and start from there, unless a checkpoint is being resumed."""
        if self._started:
            return
        assert self.bank is not None
        dataset = self.trainer.datamodule.parts["train"]  # type: ignore[attr-defined]
        features = pad_sequence(list(dataset.features), batch_first=True).to(self.device)
        lengths = torch.tensor(dataset.lengths, device=self.device)
        words = torch.stack([item["word"] for item in dataset]).to(self.device)
        emission = GaussianEmission(len(self.names), self.topology.states, self.mfcc.features, floor=self.floor)
        start = HiddenMarkovModel(self.topology, emission).to(self.device)
        flat_start_(start, features, lengths, words, self.prior)
        baum_welch(start, features, lengths, words, self.iterations, self.prior)
        self.bank.load_state_dict(LargeMarginHmm.from_hmm(start, self.margin, self.width).state_dict())
        self._started = True

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        """Adam with a cosine schedule over the whole run."""
        assert self.bank is not None
        optimizer = torch.optim.Adam([self.bank.vector, self.bank.transition_logits], self.learning_rate)
        steps = int(self.trainer.estimated_stepping_batches)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def training_step(self, batch: Batch) -> Tensor:
        """The mean margin loss of a batch."""
        assert self.bank is not None
        loss = self.bank.loss(batch["features"], batch["lengths"], batch["word"], self.level).mean()
        self.log("train_loss", loss, on_step=False, on_epoch=True, prog_bar=True)
        return loss

    def on_train_batch_end(self, *_: Any) -> None:
        """Keep every Phi positive semidefinite."""
        assert self.bank is not None
        self.bank.project_()

    def validation_step(self, batch: Batch) -> Batch:
        """What was said and what is heard."""
        return {"said": batch["word"], "heard": self(batch["features"], batch["lengths"]).argmax(-1)}

    def test_step(self, batch: Batch) -> Batch:
        """As in validation."""
        return self.validation_step(batch)

    def configure_callbacks(self) -> list[lightning.Callback]:
        """Count and draw what is recognized."""
        return [ConfusionCallback()]

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add what is needed to use the model without its corpus; plain values only."""
        told = {"kind": "large_margin_keyword", "names": list(self.names), "mfcc": asdict(self.mfcc)}
        checkpoint["recognizer"] = told

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """A resumed run has its starting point."""
        self._started = True
        if self.bank is None:
            told = checkpoint["recognizer"]
            self.build_(tuple(told["names"]), MfccConfig(**told["mfcc"]))
