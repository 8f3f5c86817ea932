"""What recipes for speech share: a model built by its registered kind, and checkpoints that say what they hold."""

import logging
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import pytorch_lightning as lightning
import torch
from pytorch_lightning.strategies import DDPStrategy
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from ppspeech.audio import MfccConfig
from ppspeech.audio.embeddings import EmbeddingConfig
from ppspeech.bundle import BundleConfig, DataTouch, ModelSettings
from ppspeech.data import Batch, Corpus, LengthBuckets, SpeechDataModule, UtteranceDataset, collate
from ppspeech.errors import ModelError
from ppspeech.figures import Figure
from ppspeech.ranks import ONE_RANK, Ranks

if TYPE_CHECKING:
    from ppspeech.training.private.record import PrivacyRecord

FULL = ("32-true", "64-true")
"""Precisions of the Trainer in which sums are what they should be."""

KEY = "model"  # where a checkpoint says what it holds; its weights are those of the state dict that begin with it


@dataclass(frozen=True)
class Trained:
    """A trained model, where its recipe looked at private data outside training, what a private run spent, how well it
    did on the held-out part, and what an audit of the recipe found.
    """

    model: nn.Module
    config: BundleConfig
    touches: tuple[DataTouch, ...] = ()
    record: "PrivacyRecord | None" = None
    measured: tuple[Figure, ...] = ()
    audited: tuple[Figure, ...] = ()


class StatisticsHook(Protocol):
    """What makes EM private: it bounds and adds up what each utterance says, and gives the M-step noisy sums."""

    def add(self, module: "SpeechModule", batch: Batch) -> None:
        """The E-step of a batch."""
        ...

    def maximize_(self, module: "SpeechModule") -> None:
        """A release, then the M-step; after the last batch of an epoch."""
        ...


class SpeechModule(lightning.LightningModule, ABC):
    """A recipe: `settings` say which kind of model it trains; the labels and the front end come from the data module.

    What privacy needs of a recipe: EM asks `statistics_hook`, if one is set, in the place of adding up and maximizing;
    training by gradients has `losses(batch)`, one an utterance; `public_start` says that the first parameters owe
    nothing to the training data, and `public_speech` which recordings they, and whatever else of public speech the
    model holds, come from; a recipe that cannot be made private says why in `refuses_privacy`. `meanings` tells what a
    metric is where its name does not; `embedding` is the public network that a recipe hears through in the place of
    MFCCs, if it does; `will_be_tested`, that the held-out part is tested on after training, so that what is wrong with
    it can be said before.

    A Trainer with several devices gives each process, a rank, its part of every batch; `ranks` adds up what they find,
    so that all end with the parameters that one process would have, to rounding, and equal ones to the bit. How losses
    become one is `mean_loss`. `half_precision` says that a recipe is no worse in `bf16-mixed`: networks are.
    """

    label: str | None = None
    public_start: bool = False
    meanings: Mapping[str, str] = MappingProxyType({})
    refuses_privacy: str = ""
    half_precision: bool = False

    def __init__(self) -> None:
        super().__init__()
        self.labels: tuple[str, ...] = ()
        self.mfcc = MfccConfig()
        self.embedding: EmbeddingConfig | None = None
        self.normalization: tuple[str, ...] = ()
        self.encoded_by: tuple[str, ...] = ()
        self.model: nn.Module | None = None
        self.statistics_hook: StatisticsHook | None = None
        self.resumed = False
        self.will_be_tested = False

    @abstractmethod
    def settings(self) -> ModelSettings:
        """The public choices of the model, of a registered kind."""

    def touches(self) -> tuple[DataTouch, ...]:
        """Where the recipe looks, or does not look, at private data outside training."""
        return ()

    def public_speech(self) -> tuple[Corpus, ...]:
        """The public corpora that leave a trace in the model: none of their recordings may be private too."""
        return ()

    def build_(self, labels: tuple[str, ...], mfcc: MfccConfig) -> None:
        """Make the untrained model for these labels, at least two if there are any, and this front end."""
        if self.label is not None and len(labels) < 2:
            raise ModelError(
                f"the corpus has {len(labels)} values of {self.label!r}: a model needs at least two to choose from"
            )
        self.labels, self.mfcc = labels, mfcc
        self.model = self.config.build()

    @property
    def config(self) -> BundleConfig:
        """The kind and the public choices of the model."""
        mfcc = self.mfcc if self.embedding is None else None
        return BundleConfig(self.settings(), self.labels, mfcc, embedding=self.embedding)

    def trained(self) -> Trained:
        """The model as it is now. Raises ModelError if nothing was built yet."""
        if self.model is None:
            raise ModelError(f"{type(self).__name__} has no model yet: fit it, or call build_")
        touches = self.touches()
        if self.normalization:
            note = f"by means and deviations over public speech: {', '.join(self.normalization)}"
            touches = (*touches, DataTouch("normalization", "untouched", note))
        if self.encoded_by and not self.normalization:
            note = f"each utterance by its own, then by an encoder of public speech: {', '.join(self.encoded_by)}"
            touches = (*touches, DataTouch("normalization", "untouched", note))
        return Trained(self.model, self.config, touches)

    @property
    def ranks(self) -> Ranks:
        """Which of the Trainer's processes this is."""
        return Ranks.of(self._trainer)

    def setup(self, stage: str) -> None:  # noqa: ARG002 (Lightning's signature)
        """Take the labels and the front end from the data module. Raises ModelError for a precision in which the recipe
        would learn something else, and for processes that cannot share it.
        """
        check_strategy(self.trainer)
        precision = str(self.trainer.precision)
        if not self.half_precision and precision not in FULL:
            raise ModelError(
                f"{type(self).__name__} adds up statistics and solves, which half precision spoils: leave "
                f"trainer.precision at 32-true, got {precision}; networks take bf16-mixed"
            )
        if self.model is None:
            module = self.trainer.datamodule  # type: ignore[attr-defined]
            assert isinstance(module, SpeechDataModule)
            labels = () if self.label is None else module.vocabulary[self.label]
            self.normalization, self.encoded_by = module.normalization, module.encoded_by
            self.build_(labels, module.config(module.corpus))
        # Buffers stay as they were made: ranks need not tell each other before every forward pass.
        self._ddp_params_and_buffers_to_ignore = [name for name, _ in self.named_buffers()]

    def agree_(self) -> None:
        """Every rank takes the parameters and buffers of the first, to the bit."""
        self.ranks.same_([*self.parameters(), *self.buffers()])

    def mean_loss(self, batch: Batch, losses: Callable[[Batch], Tensor]) -> Tensor:
        """The mean of a batch's `losses`, one an utterance, logged. With several ranks the average of what they get is
        the mean over all their parts of the batch, as gradients are averaged; a rank without an utterance gets 0.
        """
        place, lengths = self.ranks, batch["lengths"]
        size = int(place.added(lengths.new_tensor(len(lengths))))
        loss = losses(batch).sum() if len(lengths) else no_loss(self)
        loss = loss * (place.ranks / size)
        told = place.added(loss.detach()) / place.ranks
        self.log("train_loss", told, on_step=False, on_epoch=True, prog_bar=True, batch_size=size)
        return loss

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Scores of every utterance `(batch, frames, features)` for every label, `(batch, labels)`."""
        assert self.model is not None
        scores: Tensor = self.model(features, lengths)
        return scores

    def predict_step(self, batch: Batch) -> Batch:
        """Which utterances these are, and their scores: a column a label, or one where there are no labels."""
        scores = self(batch["features"], batch["lengths"])
        return {"index": batch["index"], "scores": scores.reshape(len(scores), -1)}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Say what the checkpoint holds; plain values only."""
        told = self.trained()
        checkpoint[KEY] = {"config": told.config.to_json(), "touches": [asdict(touch) for touch in told.touches]}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """A resumed run has its starting point."""
        self.resumed = True
        if self.model is None:
            config = BundleConfig.from_json(checkpoint[KEY]["config"])
            self.build_(config.labels, config.mfcc or self.mfcc)

    def training_part(self) -> UtteranceDataset:
        """The utterances of the training part."""
        part: UtteranceDataset = self.trainer.datamodule.parts["train"]  # type: ignore[attr-defined]
        return part

    def training_batches(self, place: Ranks = ONE_RANK) -> "TrainingBatches":
        """The training part, or a rank's share of it, in order of length, to go through as often as needed."""
        return TrainingBatches(self.training_part(), self.label or "", self.device, place=place)

    def last_batch(self) -> bool:
        """Whether this is the last batch of the epoch: the time of an M-step."""
        return bool(self.trainer.is_last_batch)

    def maximize(self) -> None:
        """Run the M-step, as one step of the optimizer; all ranks end where the first does."""
        optimizer = self.optimizers()
        assert not isinstance(optimizer, list)
        optimizer.step()
        self.agree_()


def check_strategy(trainer: lightning.Trainer) -> None:
    """Refuse several processes other than those that hold the whole model and live as long as the run (`ddp`).

    Processes that are gone after training take what a private run spent with them, and those that hold a part of the
    model cannot bound what somebody adds to all of it. Raises ModelError.
    """
    strategy = trainer.strategy
    whole = isinstance(strategy, DDPStrategy) and strategy._start_method == "popen"
    if trainer.world_size > 1 and not whole:
        raise ModelError(
            f"several processes each need the whole model, from the beginning to the end: set trainer.strategy to ddp, "
            f"got {getattr(strategy, '_start_method', '')} {type(strategy).__name__}".replace("  ", " ")
        )


def no_loss(module: nn.Module) -> Tensor:
    """0, of which every trained parameter has a gradient of zeros: several ranks wait for one from each."""
    return torch.cat([parameter.flatten()[:0] for parameter in module.parameters() if parameter.requires_grad]).sum()


class TrainingBatches:
    """Batches `(features, lengths, labels)` of a part, on a device: only one of them is held at a time."""

    def __init__(
        self,
        part: UtteranceDataset,
        label: str,
        target: torch.device,
        batch_size: int = 256,
        place: Ranks = ONE_RANK,
    ) -> None:
        buckets = LengthBuckets(part.sizes, batch_size, shuffle=False, place=place)
        self._loader: DataLoader[Batch] = DataLoader(part, batch_sampler=buckets, collate_fn=collate)
        self._names, self._device = ("features", "lengths", label), target

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        for batch in self._loader:
            features, lengths, labels = (batch[name].to(self._device) for name in self._names)
            yield features, lengths, labels


class MaximizationStep(Optimizer):
    """The M-step in the place of a gradient step.

    Lightning counts, logs, checkpoints and resumes by optimizer steps; with this, EM gets all of that: a module
    adds up statistics in `training_step` and calls `self.optimizers().step()` after the epoch's last batch.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], maximize: Callable[[], None]) -> None:
        super().__init__(list(parameters), {})
        self._maximize = maximize

    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Run the closure, if any, then the M-step."""
        if closure is not None:
            closure()
        self._maximize()


def quiet_lightning() -> None:
    """Silence advertisements and warnings about choices that are made on purpose; real warnings stay."""
    for name in ("pytorch_lightning.utilities.rank_zero", "lightning.pytorch.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in (
        ".*does not have many workers.*",  # features come from memory
        ".*Total length of `list` across ranks is zero.*",  # a recipe without a validation part
        ".*`val_dataloader` but have no `validation_step`.*",  # a background model has nothing to validate
        ".*`validation_step` but have no `val_dataloader`.*",  # a game is judged when it is over
        ".*number of training batches.*smaller than the logging interval.*",  # EM logs once an epoch
        ".*`isinstance\\(treespec, LeafSpec\\)` is deprecated.*",  # inside Lightning
        ".*The dirpath has changed from.*",  # a resumed run keeps its checkpoints in a folder of its own
        ".*Checkpoint directory .* exists and is not empty.*",
        ".*custom batch sampler `LengthBuckets` for prediction.*",  # without shuffling it returns all of them
        ".*use `self.log\\(.*sync_dist=True\\).*",  # what is logged is of all ranks already
        ".*args parameter is intended to run from within Python.*",  # `ppspeech train` hands its arguments on
    ):
        warnings.filterwarnings("ignore", message=message)
