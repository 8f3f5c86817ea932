"""Word recognition: one hidden Markov model a word, trained by Baum-Welch under a Trainer."""

from dataclasses import asdict
from functools import partial
from typing import Any

import pytorch_lightning as lightning
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import MfccConfig
from ppspeech.data import Batch, SpeechDataModule
from ppspeech.errors import ModelError
from ppspeech.models.gaussian import Covariance
from ppspeech.models.hmm import (
    GaussianEmission,
    HiddenMarkovModel,
    HmmStatistics,
    Prior,
    flat_start_,
    left_right,
    maximize_,
    statistics,
)
from ppspeech.training.confusion import ConfusionCallback
from ppspeech.training.em import MaximizationStep


class KeywordHmm(lightning.LightningModule):
    """A bank of word models trained by Baum-Welch; an epoch is an iteration.

    The words and the front end come from the data module, so one recipe serves any corpus. The starting point cuts
    every utterance into equal parts, one a state.

    Args:
        states: of each word.
        components: Gaussians in the mixture of a state.
        covariance: `full`, `diagonal`, `spherical` or `tied`.
        floor: smallest variance in any direction; features have variance 1.
        skips: how many states a move may leap over.
        must_finish: whether a word has to end in its last state.
        prior_covariance: weight, in frames, of the covariance pooled over all states: what keeps full covariances
            of little data usable on people who were not heard in training.
        prior_counts: added to every expected count.
    """

    def __init__(
        self,
        states: int = 5,
        components: int = 1,
        covariance: Covariance = "full",
        floor: float = 1e-2,
        skips: int = 0,
        must_finish: bool = False,
        prior_covariance: float = 0.0,
        prior_counts: float = 0.0,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.prior = Prior(prior_covariance, prior_counts)
        self.topology = left_right(states, skips, must_finish)
        self.emission = partial(
            GaussianEmission, states=states, components=components, covariance=covariance, floor=floor
        )
        self.names: tuple[str, ...] = ()
        self.mfcc = MfccConfig()
        self.bank: HiddenMarkovModel | None = None
        self._started = False
        self._total: HmmStatistics | None = None
        self._frames: Tensor | int = 0

    def build_(self, words: tuple[str, ...], mfcc: MfccConfig) -> None:
        """Make the untrained bank for these words and this front end.

        Raises:
            ModelError: for fewer than two words.
        """
        if len(words) < 2:
            raise ModelError(f"a recognizer needs at least two words to choose from, got {words}")
        self.names, self.mfcc = words, mfcc
        self.bank = HiddenMarkovModel(self.topology, self.emission(models=len(words), features=mfcc.features))

    def setup(self, stage: str) -> None:  # noqa: ARG002 (Lightning's signature)
        """Take the words and the front end from the data module."""
        module = self.trainer.datamodule  # type: ignore[attr-defined]
        if self.bank is None:
            assert isinstance(module, SpeechDataModule)
            self.build_(module.vocabulary["word"], module.config(module.corpus))

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Log-likelihoods of every utterance under every word, `(batch, words)`."""
        assert self.bank is not None
        scores: Tensor = self.bank(features, lengths)
        return scores

    def configure_optimizers(self) -> MaximizationStep:
        """The M-step."""
        return MaximizationStep(self.parameters(), self._maximize)

    def on_train_start(self) -> None:
        """Cut every training utterance into equal parts, unless a checkpoint is being resumed."""
        if self._started:
            return
        assert self.bank is not None
        dataset = self.trainer.datamodule.parts["train"]  # type: ignore[attr-defined]
        features = pad_sequence(list(dataset.features), batch_first=True).to(self.device)
        lengths = torch.tensor(dataset.lengths, device=self.device)
        words = torch.stack([item["word"] for item in dataset]).to(self.device)
        flat_start_(self.bank, features, lengths, words, self.prior)
        self._started = True

    def training_step(self, batch: Batch) -> None:
        """The E-step of a batch, added up; after the last batch of the epoch, the M-step.

        Logs the log-likelihood a frame before the M-step.
        """
        assert self.bank is not None
        found = statistics(self.bank, batch["features"], batch["lengths"], batch["word"])
        self._total = found if self._total is None else self._total + found
        self._frames = self._frames + batch["lengths"].sum()
        if self.trainer.is_last_batch:
            likelihood = self._total.log_likelihood.sum() / self._frames
            self.log("train_log_likelihood", likelihood, on_step=False, on_epoch=True, prog_bar=True)
            optimizer = self.optimizers()
            assert not isinstance(optimizer, list)
            optimizer.step()
            self._total, self._frames = None, 0

    def _maximize(self) -> None:
        assert self.bank is not None
        assert self._total is not None
        maximize_(self.bank, self._total, self.prior)

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
        self._started = True
        if self.bank is None:
            told = checkpoint["recognizer"]
            self.build_(tuple(told["names"]), MfccConfig(**told["mfcc"]))
