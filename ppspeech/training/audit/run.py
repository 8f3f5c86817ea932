"""One run of a recipe with canaries, and the bounds that an attacker's scores of them give."""

import copy
from dataclasses import dataclass

import numpy as np
import pytorch_lightning as lightning
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ppspeech.data import Batch
from ppspeech.errors import PrivacyError
from ppspeech.models.gaussian import GaussianMixture
from ppspeech.privacy import Guarantee
from ppspeech.privacy.accounting import Accountant
from ppspeech.privacy.audit import CONFIDENCE, AuditReport, coins, guessed, separated
from ppspeech.training.audit.canaries import SAID, Canaries, CanaryData
from ppspeech.training.module import SpeechModule, quiet_lightning
from ppspeech.training.private import PrivacyHook

LEAST_CANARIES = 20


@dataclass(frozen=True)
class CanaryRun:
    """What one run gave an attacker: scores `(canaries,)`, higher for who looks to have been in, and who was.

    `white` sees every release, `black` the final model alone; None where a recipe makes no release but the model.
    """

    included: NDArray[np.bool_]
    white: NDArray[np.float64] | None
    black: NDArray[np.float64]
    guarantee: Guarantee
    account: Accountant

    def reports(self, name: str, confidence: float = CONFIDENCE) -> list[AuditReport]:
        """By guesses, and by how far the scores lie apart, of each attacker; all hold with `confidence` together."""
        guesses = 2 * (len(self.included) // 10)  # fixed in advance
        boxes = [(box, scores) for box, scores in (("white", self.white), ("black", self.black)) if scores is not None]
        methods = 1 if self.guarantee.delta == 0 else 2
        each = 1 - (1 - confidence) / (methods * len(boxes))
        found = []
        for box, scores in boxes:
            note = f"{box} box, {len(scores)} canaries, one run"
            found.append(
                guessed(
                    scores,
                    self.included,
                    guesses,
                    name=f"{name}.{box}",
                    stated=self.guarantee,
                    confidence=each,
                    note=note,
                )
            )
            if methods == 2:
                found.append(
                    separated(
                        scores, self.included, name=f"{name}.{box}", stated=self.guarantee, confidence=each, note=note
                    )
                )
        return found


def run_with_canaries(module: SpeechModule, hook: PrivacyHook, epochs: int, canaries: int) -> CanaryRun:
    """Train a recipe's module under its hook on canaries, each in by a fair coin, and score them all.

    `module` and `hook` are new: built for their labels and front end (`build_`), never fitted. Nothing but canaries and
    public speech is heard, so what is found costs nobody anything.
    """
    if canaries < LEAST_CANARIES:
        raise PrivacyError(f"an audit needs at least {LEAST_CANARIES} canaries, got {canaries}")
    quiet_lightning()
    module.on_train_start()  # the public start, which the run will find again
    assert module.model is not None
    start = copy.deepcopy(module.model)
    said = SAID if hook.relation.unit == "speaker" else 1
    chosen = Canaries.around(start, module.labels, canaries, said)
    included = coins(canaries)
    watcher = _Watcher(hook, chosen.batch(module.label), chosen.owners)
    trainer = lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        callbacks=[hook, watcher],
    )
    trainer.fit(module, datamodule=CanaryData(chosen, included, module.label, module.mfcc))
    black = explained(module.model, watcher.batch, module.label) - explained(start, watcher.batch, module.label)
    by_canary = torch.zeros(canaries, dtype=torch.float64).index_add_(0, chosen.owners, black)
    white = None if watcher.scores is None else watcher.scores.numpy()
    return CanaryRun(included, white, by_canary.numpy(), hook.guarantee(), hook.account())


class _Watcher(lightning.Callback):
    """Sees every release, and adds up how much it looks like what each canary would have said."""

    def __init__(self, hook: PrivacyHook, batch: Batch, owners: Tensor) -> None:
        self.hook, self.batch, self.owners = hook, batch, owners
        self.scores: Tensor | None = None

    def on_fit_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:  # noqa: ARG002
        """Take a seat where releases are made."""
        if hasattr(self.hook.way, "watch"):
            self.hook.way.watch = self._see  # type: ignore[union-attr]

    def _see(self, module: lightning.LightningModule, released: Tensor) -> None:
        said = self.hook.way.said(module, self.batch, self.owners).double()  # type: ignore[union-attr]
        # The best linear guess of who is in the sum: what canaries have in common must not count for each of them.
        alike = said @ said.mT
        alike.diagonal().add_(alike.diagonal().mean())
        found = torch.linalg.solve(alike, said @ released.double().flatten()).cpu()
        self.scores = found if self.scores is None else self.scores + found


@torch.no_grad()
def explained(model: nn.Module, batch: Batch, label: str | None) -> Tensor:
    """How well a model explains each utterance as what it is, `(utterances,)`."""
    if isinstance(model, GaussianMixture):
        return model.average_log_prob(batch["features"], batch["lengths"]).double()
    scores = model(batch["features"], batch["lengths"]).double()
    assert label is not None
    own: Tensor = scores.gather(1, batch[label].unsqueeze(1)).squeeze(1)
    return own
