"""Words, and sentences of them, by a small network on frames, by gradients."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytorch_lightning as lightning
import torch
from pytorch_lightning.utilities.types import OptimizerLRScheduler
from torch import Tensor
from torch.nn import functional

from ppspeech.bundle import CtcNetworkSettings, CtcTranscriber, DataTouch, KeywordNetworkSettings
from ppspeech.data import Batch
from ppspeech.errors import ModelError
from ppspeech.models import FrameLayer, SequenceNetwork
from ppspeech.training.confusion import ConfusionCallback
from ppspeech.training.module import SpeechModule
from ppspeech.training.sentences import WritesDown

LAYERS: tuple[dict[str, Any], ...] = (
    {"outputs": 48, "width": 5, "stride": 2},
    {"outputs": 48, "width": 3, "dilation": 2},
)

SPANNING: tuple[dict[str, Any], ...] = (
    {"outputs": 64, "width": 5, "stride": 2},
    {"outputs": 64, "width": 3, "dilation": 2},
    {"outputs": 64, "width": 3, "dilation": 3},
)
WARM_UP = 0.3
"""The part of a run in which the learning rate rises."""


class WordNetwork(SpeechModule):
    """A network on frames that says which word was spoken; see `ppspeech.models.FrameNetwork`.

    The words and the front end come from the data module. The start is random and owes nothing to the data.

    Args:
        layers: all but the last, each a mapping of `outputs`, `width`, `stride`, `dilation`, `activation` (`relu`,
            `sigmoid`, `gelu`), `pool` (`none`, `mean`, `max`) and `pool_width`.
        frames: what every utterance is brought to: padded with zeros, or its end left away.
        radius: what frames are shortened to; features have variance 1.
        learning_rate: of Adam; it falls to 0 along a cosine.
        weight_decay: of Adam; small weights keep the ranges of shares small too.
    """

    label = "word"
    public_start = True

    def __init__(
        self,
        layers: Sequence[Mapping[str, Any]] = LAYERS,
        frames: int = 100,
        radius: float = 12.0,
        learning_rate: float = 3e-3,
        weight_decay: float = 0.1,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.frames, self.radius = frames, float(radius)
        self.shapes = _layers(layers)
        self.learning_rate, self.weight_decay = learning_rate, weight_decay

    def settings(self) -> KeywordNetworkSettings:
        """Of a network on frames."""
        return KeywordNetworkSettings(frames=self.frames, radius=self.radius, layers=self.shapes)

    def touches(self) -> tuple[DataTouch, ...]:
        """The decision needs no threshold."""
        return (DataTouch("threshold", "untouched", "the model has none: the highest score wins"),)

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """Adam, with a cosine schedule over the whole run."""
        optimizer = torch.optim.AdamW(self.parameters(), self.learning_rate, weight_decay=self.weight_decay)
        steps = max(int(self.trainer.estimated_stepping_batches), 1)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def losses(self, batch: Batch) -> Tensor:
        """The loss of every utterance, `(batch,)`, of its own utterance only."""
        scores = self(batch["features"], batch["lengths"])
        return functional.cross_entropy(scores, batch["word"], reduction="none")

    def training_step(self, batch: Batch) -> Tensor:
        """The mean loss of a batch."""
        loss = self.losses(batch).mean()
        self.log("train_loss", loss, on_step=False, on_epoch=True, prog_bar=True)
        return loss

    def validation_step(self, batch: Batch) -> Batch:
        """What was said and what is heard."""
        return {"said": batch["word"], "heard": self(batch["features"], batch["lengths"]).argmax(-1)}

    test_step = validation_step

    def configure_callbacks(self) -> list[lightning.Callback]:
        """Count and draw what is recognized."""
        return [ConfusionCallback()]


class CtcNetwork(WritesDown):
    """A network that says every few frames which word begins, or none (`ppspeech.models.SequenceNetwork`), by the
    probability of all ways to say the words of a sentence in their order (CTC: Graves et al. 2006); read greedily.

    For `SentenceDataModule` with `whole: true`. When words are said is not looked at.

    Args:
        layers: as of `WordNetwork`; together they stride over 1, 2, 4, … or 32 frames.
        radius: what frames are shortened to; features have variance 1.
        dropout: of what comes out of each layer.
        learning_rate: of Adam, where it is highest; it rises first, and falls to 0.
        weight_decay: of Adam; small weights keep the ranges of shares small too.
    """

    label = "word"
    whole = True

    def __init__(
        self,
        layers: Sequence[Mapping[str, Any]] = SPANNING,
        radius: float = 12.0,
        dropout: float = 0.1,
        learning_rate: float = 1e-2,
        weight_decay: float = 0.1,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.radius, self.dropout, self.shapes = float(radius), float(dropout), _layers(layers)
        self.learning_rate, self.weight_decay = learning_rate, weight_decay

    def settings(self) -> CtcNetworkSettings:
        """Of a network that is read greedily."""
        return CtcNetworkSettings(radius=self.radius, layers=self.shapes)

    @property
    def network(self) -> SequenceNetwork:
        """The network."""
        assert isinstance(self.model, SequenceNetwork)
        return self.model

    def on_train_start(self) -> None:
        """Dropout is of training alone: no bundle says it."""
        self.network.dropout = self.dropout

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """Adam, with one cycle of the learning rate over the whole run."""
        return _one_cycle(self, self.learning_rate, self.weight_decay)

    def losses(self, batch: Batch) -> Tensor:
        """-ln of the probability of every sentence's words, a word, `(batch,)`."""
        scores = self.network(batch["features"], batch["lengths"])
        said = batch["said"] + 1  # the blank is 0; what is filled up was -1
        words = (said > 0).sum(-1)
        frames = self.network.lengths_after(batch["lengths"])
        logs = scores.log_softmax(-1).transpose(0, 1)
        found = functional.ctc_loss(logs, said, frames, words, reduction="none", zero_infinity=True)
        return found / words.clamp_min(1)

    def training_step(self, batch: Batch) -> Tensor:
        """The mean loss of a batch."""
        loss = self.losses(batch).mean()
        self.log("train_loss", loss, on_step=False, on_epoch=True, prog_bar=True)
        return loss

    def transcriber(self) -> CtcTranscriber:
        """The network, read greedily."""
        return CtcTranscriber(self.labels, self.mfcc, self.network)


def _layers(layers: Sequence[Mapping[str, Any]]) -> tuple[FrameLayer, ...]:
    try:
        return tuple(FrameLayer(**dict(each)) for each in layers)
    except TypeError as error:
        raise ModelError(f"a layer is a mapping of sizes: {error}") from None


def _one_cycle(module: SpeechModule, rate: float, decay: float) -> OptimizerLRScheduler:
    optimizer = torch.optim.AdamW(module.parameters(), rate, weight_decay=decay)
    steps = max(int(module.trainer.estimated_stepping_batches), 1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=WARM_UP)
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}
