"""Differential privacy for a convex recipe, by one callback in its config."""

from typing import Any, Literal

import pytorch_lightning as lightning
from pytorch_lightning.utilities import rank_zero_info

from ppspeech.bundle import DataTouch
from ppspeech.errors import PrivacyError
from ppspeech.privacy import Adjacency, Relation
from ppspeech.privacy.accounting import Accountant
from ppspeech.privacy.convex import ObjectivePerturbation
from ppspeech.training.classes import LargeMarginClassifier
from ppspeech.training.private.convex import PrivateFit
from ppspeech.training.private.record import PrivacyRecord

TOUCHES = (
    DataTouch("normalization", "untouched", "utterance statistics are scaled by those of the built-in voices"),
    DataTouch("early_stopping", "untouched", "one certified solve"),
    DataTouch("threshold", "untouched", "the decision is an argmax"),
)
"""Where this recipe looks at no private data; what it does not know, such as tuning, is exported as not covered."""


class ObjectivePrivacy(lightning.Callback):
    """Makes the convex solve of a `LargeMarginClassifier` private, by objective perturbation.

        trainer:
          max_epochs: 1
          callbacks:
            - class_path: ppspeech.training.private.objective.ObjectivePrivacy
              init_args: {epsilon: 4.0, delta: 1.0e-5, unit: utterance}

    The regularization is the recipe's `quadratic`, raised where privacy needs more. What the guarantee does not cover:
    validation and test results, which look at other utterances, and the choice of the recipe itself.

    Args:
        epsilon: in all.
        delta: 0 for pure privacy.
        unit: `utterance`, or `speaker`: then every speaker counts once, as the average over their utterances.
        adjacency: what neighboring means.
        norm: a public guess of the length of the weights; see `ObjectivePerturbation`.

    Raises:
        PrivacyError: for parameters that cannot hold.
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        unit: Literal["utterance", "speaker"] = "utterance",
        adjacency: Adjacency = "add_remove",
        norm: float | None = None,
    ) -> None:
        super().__init__()
        if unit not in ("utterance", "speaker"):
            raise PrivacyError(f"the classifier sees whole utterances: unit must be utterance or speaker, got {unit!r}")
        self.epsilon, self.delta, self.norm = epsilon, delta, norm
        self.relation = Relation(unit, adjacency)
        self.fit: PrivateFit | None = None
        self._hook(regularization=1.0)  # refuses bad parameters before anything is trained

    def _hook(self, regularization: float) -> ObjectivePerturbation:
        return ObjectivePerturbation(
            epsilon=self.epsilon,
            delta=self.delta,
            relation=self.relation,
            regularization=regularization,
            norm=self.norm,
        )

    def setup(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, stage: str) -> None:
        """Attach the hook.

        Raises:
            PrivacyError: for a recipe that this cannot make private.
        """
        if stage != "fit":
            return
        if not isinstance(pl_module, LargeMarginClassifier) or pl_module.solver != "newton":
            raise PrivacyError(
                "ObjectivePrivacy needs a LargeMarginClassifier with solver 'newton': its guarantee is about a "
                "certified minimum; models trained by gradients take GradientPrivacy"
            )
        if trainer.max_epochs != 1:
            raise PrivacyError(f"every epoch releases a model: set trainer.max_epochs to 1, got {trainer.max_epochs}")
        if pl_module.label == "speaker" and self.relation.unit == "speaker":
            raise PrivacyError("a model that tells speakers apart cannot hide that a speaker was there: use utterance")
        pl_module.privacy = self._hook(pl_module.quadratic)

    def on_train_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:  # noqa: ARG002
        """Keep what was done, and say what it promises."""
        assert isinstance(pl_module, LargeMarginClassifier)
        self.fit = pl_module.private_fit
        if self.fit is not None:
            rank_zero_info(str(self.fit.guarantee))

    def on_save_checkpoint(
        self,
        trainer: lightning.Trainer,  # noqa: ARG002
        pl_module: lightning.LightningModule,
        checkpoint: dict[str, Any],
    ) -> None:
        """Put the record of what was spent beside the parameters; plain values only."""
        assert isinstance(pl_module, LargeMarginClassifier)
        if pl_module.private_fit is None:
            return
        account = Accountant(self.relation)
        for event in pl_module.private_fit.events:
            account.compose(event)
        PrivacyRecord.of(account, pl_module.private_fit.guarantee, TOUCHES).write_(checkpoint)
