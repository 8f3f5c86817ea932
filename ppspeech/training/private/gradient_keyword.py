"""Word recognition by gradients from a public start: what `GradientPrivacy` trains."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import pytorch_lightning as lightning
import torch
from torch import Tensor
from torch.nn import functional

from ppspeech.audio import MfccConfig
from ppspeech.data import Batch, SpeechDataModule
from ppspeech.models.hmm import HiddenMarkovModel
from ppspeech.training.confusion import ConfusionCallback
from ppspeech.training.private.keyword import public_bank


class GradientKeywordHmm(lightning.LightningModule):
    """A bank of word models trained to tell the words apart (maximum mutual information), by Adam.

    The start is public speech. Alone it trains without privacy; with the `GradientPrivacy` callback, by DP-SGD. Its
    checkpoints open as a `KeywordHmm`.

    Args:
        states: of each word.
        floor: smallest variance.
        public: corpora to start from; see `public_bank`.
        scale: of the average log-likelihood a frame, before the softmax over words.
        learning_rate: of Adam.
    """

    def __init__(
        self,
        states: int = 8,
        floor: float = 1e-2,
        public: Sequence[str] = ("synthetic",),
        scale: float = 4.0,
        learning_rate: float = 1e-2,
    ) -> None:
        super().__init__()
        self.save_hyperparameters({"states": states, "covariance": "diagonal", "floor": floor})
        self.scale, self.learning_rate = scale, learning_rate
        self.start = partial(public_bank, states=states, corpora=tuple(public), floor=floor)
        self.names: tuple[str, ...] = ()
        self.mfcc = MfccConfig()
        self.bank: HiddenMarkovModel | None = None

    def setup(self, stage: str) -> None:  # noqa: ARG002 (Lightning's signature)
        """Take the words and the front end from the data module, and start from public speech."""
        module = self.trainer.datamodule  # type: ignore[attr-defined]
        if self.bank is None:
            assert isinstance(module, SpeechDataModule)
            self.names, self.mfcc = module.vocabulary["word"], module.config(module.corpus)
            self.bank = self.start(self.names, self.mfcc)

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Log-likelihoods of every utterance under every word, `(batch, words)`."""
        assert self.bank is not None
        scores: Tensor = self.bank(features, lengths)
        return scores

    def losses(self, batch: Batch) -> Tensor:
        """-ln of the posterior of what was said, `(batch,)`."""
        frames = batch["lengths"].clamp_min(1).unsqueeze(-1)
        scores = self.scale * self(batch["features"], batch["lengths"]) / frames
        return functional.cross_entropy(scores, batch["word"], reduction="none")

    def training_step(self, batch: Batch) -> Tensor:
        """The mean loss of a batch."""
        loss = self.losses(batch).mean()
        self.log("train_loss", loss, on_step=False, on_epoch=True, prog_bar=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam on the Gaussians; transitions stay public."""
        assert self.bank is not None
        return torch.optim.Adam(self.bank.emission.parameters(), self.learning_rate)

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
        checkpoint["recognizer"] = {"kind": "keyword_hmm", "names": list(self.names), "mfcc": asdict(self.mfcc)}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """A resumed run has its starting point."""
        if self.bank is None:
            told = checkpoint["recognizer"]
            self.names, self.mfcc = tuple(told["names"]), MfccConfig(**told["mfcc"])
            self.bank = self.start(self.names, self.mfcc)
