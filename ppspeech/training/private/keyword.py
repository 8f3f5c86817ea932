"""Private Baum-Welch for word models (Pathak 2010's proposal): what makes `WordModels` private by its statistics."""

from collections.abc import Sequence
from typing import Any

from ppspeech.bundle import DataTouch
from ppspeech.data import Batch
from ppspeech.errors import PrivacyError
from ppspeech.privacy import Guarantee
from ppspeech.privacy.accounting import Accountant
from ppspeech.privacy.mechanisms import StatisticsRelease, UnitSums
from ppspeech.training.module import SpeechModule
from ppspeech.training.private.record import PrivacyRecord
from ppspeech.training.private.statistics import hmm_moments, maximize_hmm_
from ppspeech.training.words import WordModels

TOUCHES = (
    DataTouch("normalization", "untouched", "each utterance by itself"),
    DataTouch("early_stopping", "untouched", "the number of releases is fixed in advance"),
    DataTouch("threshold", "untouched", "the decision is an argmax"),
    DataTouch("initialization", "untouched", "the start is trained on public speech"),
)
"""Where this recipe looks at no private data; what it does not know, such as tuning, is exported as not covered."""


class StatisticsPrivacy:
    """A release of the statistics of every epoch, and its account.

    Args:
        release: epsilon, unit, iterations and bounds.
    """

    def __init__(self, release: StatisticsRelease) -> None:
        self.release = release
        self.account = Accountant(release.relation)
        self._sums: UnitSums | None = None

    def add(self, module: SpeechModule, batch: Batch) -> None:
        """The E-step of a batch, kept apart by unit."""
        assert isinstance(module, WordModels)
        if self._sums is None:
            speakers = len(module.trainer.datamodule.vocabulary["speaker"])  # type: ignore[attr-defined]
            self._sums = UnitSums(self.release, speakers)
        moments = hmm_moments(module.bank, batch["features"], batch["lengths"], batch["word"])
        self._sums.add(moments, batch["lengths"], batch["speaker"])

    def maximize_(self, module: SpeechModule) -> None:
        """A release, then the M-step."""
        assert isinstance(module, WordModels)
        assert self._sums is not None
        maximize_hmm_(module.bank, self._sums.released(), self.release)
        self.account.compose(self.release.mechanism.event)
        self._sums = None


class PrivateKeywordHmm(WordModels):
    """A bank of word models by private Baum-Welch; an epoch is an iteration, and one release.

    It starts from public speech. Formal guarantee: what the module holds after `iterations` epochs is
    (epsilon, delta)-DP for one `unit` of the training part, if the vocabulary, the number of iterations and the
    bounds were chosen without looking at it. Metrics of private validation data are not covered.

    Args:
        release: epsilon, unit, iterations and bounds.
        states: of each word.
        floor: smallest variance.
        public: corpora to start from; see `public_bank`.
    """

    def __init__(
        self,
        release: StatisticsRelease,
        states: int = 12,
        floor: float = 1e-2,
        public: Sequence[str] = ("synthetic",),
    ) -> None:
        super().__init__(states=states, covariance="diagonal", floor=floor, start="public", public=public)
        self._hparams.clear()
        self.release = release
        self.private = StatisticsPrivacy(release)
        self.statistics_hook = self.private

    @property
    def account(self) -> Accountant:
        """The releases so far."""
        return self.private.account

    def setup(self, stage: str) -> None:
        """Refuse a run of another length than the budget was split for.

        Raises:
            PrivacyError: if the trainer would run another number of epochs than there are releases.
        """
        epochs = self.trainer.max_epochs
        if stage == "fit" and epochs != self.release.iterations:
            raise PrivacyError(
                f"the budget is split over {self.release.iterations} releases, one an epoch, and the trainer runs "
                f"{epochs}: set trainer.max_epochs to {self.release.iterations}"
            )
        super().setup(stage)

    def guarantee(self) -> Guarantee:
        """What the releases so far promise together."""
        return self.account.guarantee(
            self.release.delta,
            assumptions=(
                f"the start is public: {', '.join(self.public)}",
                "the vocabulary, bounds and number of iterations were chosen without the private recordings",
            ),
        )

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add the account; plain values only."""
        super().on_save_checkpoint(checkpoint)
        PrivacyRecord.of(self.account, self.guarantee(), TOUCHES).write_(checkpoint)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """A resumed run goes on with its account."""
        super().on_load_checkpoint(checkpoint)
        self.private.account = PrivacyRecord.from_plain(checkpoint["privacy"]).account
