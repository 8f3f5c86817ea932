"""What a private run shows of itself: who watched it, where it started, what it read. Nothing is claimed unseen."""

from collections.abc import Sequence

import pytorch_lightning as lightning
from pytorch_lightning.callbacks import (
    DeviceStatsMonitor,
    EarlyStopping,
    LearningRateMonitor,
    ModelCheckpoint,
    ModelSummary,
    ProgressBar,
)
from pytorch_lightning.cli import SaveConfigCallback
from torch import Tensor, nn
from torch._dynamo import OptimizedModule

from ppspeech.bundle import DataTouch
from ppspeech.data import SpeechDataModule, check_disjoint, normalizing
from ppspeech.errors import PrivacyError
from ppspeech.training.confusion import ConfusionCallback
from ppspeech.training.module import FULL, SpeechModule

ONLY_SHOW: tuple[type[lightning.Callback], ...] = (
    ConfusionCallback,
    DeviceStatsMonitor,
    LearningRateMonitor,
    ModelSummary,
    ProgressBar,
    SaveConfigCallback,  # of every recipe: writes its settings down before anything is seen
)
"""Callbacks that neither end a run nor change what it leaves."""

TUNING = DataTouch("tuning", "not_covered", "what was tried on private data before, a run cannot show")


def check_public(trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
    """Refuse a start, scale or cohort from speech that is in the private corpus. Raises CorpusError with what is."""
    data = getattr(trainer, "datamodule", None)
    if not isinstance(module, SpeechModule) or not isinstance(data, SpeechDataModule) or data.invented:
        return
    spoken = [*module.public_speech(), *normalizing(data.normalization)]
    if data.packed is not None and spoken:
        raise PrivacyError(
            f"{data.packed.name} holds packed features, which do not show whether public recordings are among them: "
            "train on the recordings themselves"
        )
    check_disjoint(data.corpus, spoken)


def check_exact(trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
    """Refuse half precision and compiled modules: what one unit adds then hangs on who is computed beside it.

    Gradients would be scaled by what the batch holds, and kernels chosen by its shape, before anything is clipped.
    Raises PrivacyError.
    """
    if str(trainer.precision) not in FULL:
        raise PrivacyError(
            f"private training computes in full precision, where what one unit adds does not depend on others: leave "
            f"trainer.precision at 32-true, got {trainer.precision}"
        )
    if any(is_compiled(part) for part in module.modules()):
        raise PrivacyError(
            f"private training computes as {type(module).__name__} is written, where what one unit adds does not "
            "depend on others: leave out torch.compile"
        )


def check_whole(heard: Tensor) -> None:
    """Refuse an epoch that heard some utterance not once, of how often each was heard `(utterances,)` by all processes.

    Raises PrivacyError.
    """
    once = int((heard == 1).sum())
    if once < len(heard):
        raise PrivacyError(
            f"cannot train privately: a release is of every utterance, once, and of {len(heard)} this epoch heard "
            f"{once} so: leave out trainer.limit_train_batches, and go on from a checkpoint of a whole epoch"
        )


def is_compiled(module: nn.Module) -> bool:
    """Whether torch.compile has been at it: as a wrapper, in place, or by Lightning."""
    compiled = isinstance(module, OptimizedModule) or module._compiled_call_impl is not None
    return compiled or getattr(module, "_compiler_ctx", None) is not None


def watchers(trainer: lightning.Trainer, own: lightning.Callback) -> list[str]:
    """Whatever may have ended the run, chosen its result or changed its course by what it saw, in a few words each."""
    found = []
    for callback in trainer.callbacks:  # type: ignore[attr-defined]
        name = type(callback).__name__
        if isinstance(callback, EarlyStopping):
            found.append(f"{name} watched {callback.monitor}")
        elif isinstance(callback, ModelCheckpoint):
            found += [] if callback.monitor is None else [f"{name} kept the best by {callback.monitor}"]
        elif callback is not own and not isinstance(callback, ONLY_SHOW):
            found.append(f"{name} watched the run")
    for schedule in trainer.lr_scheduler_configs:
        found += [f"the learning rate followed {schedule.monitor}"] if schedule.reduce_on_plateau else []
    return found


def stopping(watched: Sequence[str], spent: int, planned: int) -> DataTouch:
    """Whether what was released was fixed in advance: nobody watched, and all planned releases were made."""
    if watched:
        return DataTouch("early_stopping", "not_covered", "; ".join(watched))
    if spent != planned:
        return DataTouch("early_stopping", "not_covered", f"the run left off after {spent} of {planned} releases")
    return DataTouch(
        "early_stopping", "untouched", f"{planned} releases, fixed in advance; no callback chose among them"
    )


def beginnings(module: lightning.LightningModule, *, convex: bool, said: str | None = None) -> tuple[DataTouch, ...]:
    """Where the first parameters and the labels came from; `said`: what whoever trains says about the former."""
    if convex:
        start = DataTouch("initialization", "untouched", "a certified minimum does not depend on where it is sought")
    elif isinstance(module, SpeechModule) and module.public_start:
        names = ", ".join(dict.fromkeys(corpus.name for corpus in module.public_speech()))
        note = f"found in public speech ({names}), of which no recording is in the private corpus"
        start = DataTouch("initialization", "untouched", note)
    else:
        word = "where the parameters began is the word of who trained them" + (f": {said}" if said else "")
        start = DataTouch("initialization", "not_covered", word)
    if not isinstance(module, SpeechModule):
        return (start,)
    read = DataTouch("labels", "not_covered", "the vocabulary was read from the private corpus")
    none = DataTouch("labels", "untouched", "the model has none")
    return start, none if module.label is None else read
