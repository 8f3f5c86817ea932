"""Word recognition with differential privacy: hidden Markov models by private Baum-Welch (Pathak 2010's proposal)."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import pytorch_lightning as lightning
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import MfccConfig
from ppspeech.bundle import DataTouch
from ppspeech.data import Batch, FeatureStore, SpeechDataModule, load_corpus
from ppspeech.errors import ModelError, PrivacyError
from ppspeech.models.hmm import GaussianEmission, HiddenMarkovModel, Prior, baum_welch, flat_start_, left_right
from ppspeech.privacy import Guarantee
from ppspeech.privacy.accounting import Accountant
from ppspeech.training.confusion import ConfusionCallback
from ppspeech.training.em import MaximizationStep
from ppspeech.training.private.em import hmm_moments, maximize_hmm_
from ppspeech.training.private.record import PrivacyRecord
from ppspeech.training.private.statistics import StatisticsRelease, UnitSums

TOUCHES = (
    DataTouch("normalization", "untouched", "each utterance by itself"),
    DataTouch("early_stopping", "untouched", "the number of releases is fixed in advance"),
    DataTouch("threshold", "untouched", "the decision is an argmax"),
    DataTouch("initialization", "untouched", "the start is trained on public speech"),
)
"""Where this recipe looks at no private data; what it does not know, such as tuning, is exported as not covered."""

POOLED = Prior(covariance=1e6)
"""A prior so heavy that all states share one covariance: what private Baum-Welch re-estimates."""


def public_bank(
    words: Sequence[str], mfcc: MfccConfig, states: int, corpora: Sequence[str] = ("synthetic",), floor: float = 1e-2
) -> HiddenMarkovModel:
    """Word models of speech that is nobody's secret: where private training starts, and its alignments come from.

    Args:
        words: the vocabulary; every corpus must say some of them, and all of them together every word.
        mfcc: the front end.
        states: of each word.
        corpora: registered corpora that count as public; `synthetic` is the built-in voices.
        floor: smallest variance.

    Raises:
        ModelError: if a word is not said in any of the corpora.
    """
    index = {word: i for i, word in enumerate(words)}
    features: list[Tensor] = []
    labels: list[int] = []
    for name in corpora:
        corpus = load_corpus(name, **({"words": tuple(words)} if name == "synthetic" else {}))
        known = [utterance for utterance in corpus if utterance.word in index]
        features += FeatureStore(mfcc).load(known)
        labels += [index[str(utterance.word)] for utterance in known]
    missing = sorted(set(words) - {words[label] for label in labels})
    if missing:
        raise ModelError(f"no public recording of {', '.join(missing)} in {', '.join(corpora)}")
    bank = HiddenMarkovModel(
        left_right(states), GaussianEmission(len(words), states, mfcc.features, covariance="diagonal", floor=floor)
    )
    lengths = torch.tensor([len(x) for x in features])
    training_set = pad_sequence(features, batch_first=True), lengths, torch.tensor(labels)
    flat_start_(bank, *training_set, POOLED)
    baum_welch(bank, *training_set, 6, POOLED)
    return bank


class PrivateKeywordHmm(lightning.LightningModule):
    """A bank of word models by private Baum-Welch; an epoch is an iteration, and one release.

    It starts from public speech. Formal guarantee: what the module holds after `iterations` epochs is
    (epsilon, delta)-DP for one `unit` of the training part, if the vocabulary, the number of iterations and the
    bounds were chosen without looking at it. Metrics of private validation data are not covered.

    Its checkpoints open as a `KeywordHmm`.

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
        super().__init__()
        self.save_hyperparameters({"states": states, "covariance": "diagonal", "floor": floor})
        self.automatic_optimization = False
        self.release, self.public = release, tuple(public)
        self.start = partial(public_bank, states=states, corpora=self.public, floor=floor)
        self.names: tuple[str, ...] = ()
        self.mfcc = MfccConfig()
        self.bank: HiddenMarkovModel | None = None
        self.account = Accountant(release.relation)
        self._sums: UnitSums | None = None

    def build_(self, words: tuple[str, ...], mfcc: MfccConfig) -> None:
        """Train the public start for these words and this front end.

        Raises:
            ModelError: for fewer than two words, or a word without a public recording.
        """
        if len(words) < 2:
            raise ModelError(f"a recognizer needs at least two words to choose from, got {words}")
        self.names, self.mfcc = words, mfcc
        self.bank = self.start(words, mfcc)

    def setup(self, stage: str) -> None:
        """Take the words and the front end from the data module.

        Raises:
            PrivacyError: if the trainer would run another number of epochs than there are releases.
        """
        epochs = self.trainer.max_epochs
        if stage == "fit" and epochs != self.release.iterations:
            raise PrivacyError(
                f"the budget is split over {self.release.iterations} releases, one an epoch, and the trainer runs "
                f"{epochs}: set trainer.max_epochs to {self.release.iterations}"
            )
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

    def training_step(self, batch: Batch) -> None:
        """The E-step of a batch, kept apart by unit; after the last batch of the epoch, a release and the M-step.

        Nothing is logged: a likelihood of private speech is a release of its own.
        """
        assert self.bank is not None
        if self._sums is None:
            speakers = len(self.trainer.datamodule.vocabulary["speaker"])  # type: ignore[attr-defined]
            self._sums = UnitSums(self.release, speakers)
        moments = hmm_moments(self.bank, batch["features"], batch["lengths"], batch["word"])
        self._sums.add(moments, batch["lengths"], batch["speaker"])
        if self.trainer.is_last_batch:
            optimizer = self.optimizers()
            assert not isinstance(optimizer, list)
            optimizer.step()

    def _maximize(self) -> None:
        assert self.bank is not None
        assert self._sums is not None
        maximize_hmm_(self.bank, self._sums.released(), self.release)
        self.account.compose(self.release.mechanism.event)
        self._sums = None

    def guarantee(self) -> Guarantee:
        """What the releases so far promise together."""
        return self.account.guarantee(
            self.release.delta,
            assumptions=(
                f"the start is public: {', '.join(self.public)}",
                "the vocabulary, bounds and number of iterations were chosen without the private recordings",
            ),
        )

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
        """Add what is needed to use the model without its corpus, and the account; plain values only."""
        checkpoint["recognizer"] = {"kind": "keyword_hmm", "names": list(self.names), "mfcc": asdict(self.mfcc)}
        PrivacyRecord.of(self.account, self.guarantee(), TOUCHES).write_(checkpoint)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """A resumed run goes on with its account."""
        self.account = PrivacyRecord.from_plain(checkpoint["privacy"]).account
        if self.bank is None:
            told = checkpoint["recognizer"]
            self.build_(tuple(told["names"]), MfccConfig(**told["mfcc"]))
