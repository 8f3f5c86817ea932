"""Word recognition: one left-right model a word, by Baum-Welch, for a margin, or by gradients."""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, Literal

import pytorch_lightning as lightning
import torch
from pytorch_lightning.utilities.types import OptimizerLRScheduler
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import MfccConfig
from ppspeech.bundle import DataTouch, KeywordHmmSettings, LargeMarginKeywordSettings, SentenceHmmSettings
from ppspeech.data import Batch, Corpus, FeatureStore, load_corpus, numbered
from ppspeech.errors import ModelError
from ppspeech.models.gaussian import Covariance
from ppspeech.models.hmm import (
    GaussianEmission,
    HiddenMarkovModel,
    HmmStatistics,
    Prior,
    baum_welch,
    flat_start_,
    flat_start_batches_,
    hmm_statistics,
    left_right,
    update_hmm_,
)
from ppspeech.models.margin import LargeMarginHmm
from ppspeech.training.confusion import ConfusionCallback
from ppspeech.training.module import MaximizationStep, SpeechModule

POOLED = Prior(covariance=1e6)  # a prior so heavy that all states share one covariance: that of a public start


class WordModels(SpeechModule):
    """A bank of word models.

    The words and the front end come from the data module, so one recipe serves any corpus. Training starts from
    utterances cut into equal parts, one a state, or from public speech. Raises ModelError for `margin` with mixtures or
    skips.

    Args:
        method: `baum_welch`, an epoch an iteration; `margin`, gradient steps on the large-margin loss (every Phi is
            projected to the positive semidefinite ones after each); or `gradient`, gradient steps on the posterior of
            the right word (maximum mutual information). The last two start from a bank that Baum-Welch trained.
        states: of each word.
        components: Gaussians in the mixture of a state; 1 for `margin`.
        covariance: `full`, `diagonal`, `spherical` or `tied`.
        floor: smallest variance in any direction; features have variance 1.
        skips: how many states a move may leap over; 0 for `margin`.
        must_finish: whether a word has to end in its last state.
        prior_covariance: weight, in frames, of the covariance pooled over all states: what keeps full covariances of
            little data usable on people who were not heard in training.
        prior_counts: added to every expected count.
        start: `cut`, from the training part; or `public`, from `public`.
        public: corpora that are nobody's secret; see `public_bank`.
        iterations: of Baum-Welch before `margin` or `gradient`, where the start is `cut`.
        margin: what a wrong frame must cost more, in nats.
        width: of the Huber hinge, in nats.
        level: a margin over wrong `word`s, or over wrong `state` sequences.
        scale: for `gradient`: of the average log-likelihood a frame, before the softmax over words.
        learning_rate: of Adam; for `margin` it falls to 0 along a cosine.
    """

    label = "word"

    def __init__(
        self,
        method: Literal["baum_welch", "margin", "gradient"] = "baum_welch",
        states: int = 5,
        components: int = 1,
        covariance: Covariance = "full",
        floor: float = 1e-2,
        skips: int = 0,
        must_finish: bool = False,
        prior_covariance: float = 0.0,
        prior_counts: float = 0.0,
        start: Literal["cut", "public"] = "cut",
        public: Sequence[str] = ("synthetic",),
        iterations: int = 10,
        margin: float = 1.0,
        width: float = 1.0,
        level: Literal["word", "state"] = "word",
        scale: float = 4.0,
        learning_rate: float = 1e-3,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        if method == "margin" and (components != 1 or skips or must_finish):
            raise ModelError("word models for a margin have one Gaussian a state, no skips and may end anywhere")
        self.method, self.start, self.public, self.iterations = method, start, tuple(public), iterations
        self.automatic_optimization = method != "baum_welch"
        self.public_start = start == "public"
        self.prior = Prior(prior_covariance, prior_counts)
        self.bank_settings: KeywordHmmSettings | SentenceHmmSettings = KeywordHmmSettings(
            states=states,
            components=components,
            covariance=covariance,
            floor=float(floor),
            skips=skips,
            must_finish=must_finish,
        )
        self.margin, self.width, self.level = float(margin), float(width), level
        self.scale, self.learning_rate = scale, learning_rate
        self._total: HmmStatistics | None = None
        self._frames: Tensor | int = 0

    def settings(self) -> KeywordHmmSettings | LargeMarginKeywordSettings | SentenceHmmSettings:
        """Of a bank of hidden Markov models, or of matrices trained for a margin."""
        if self.method == "margin":
            return LargeMarginKeywordSettings(states=self.bank_settings.states, margin=self.margin, width=self.width)
        return self.bank_settings

    def touches(self) -> tuple[DataTouch, ...]:
        """The decision needs no threshold."""
        return (DataTouch("threshold", "untouched", "the model has none: the highest score wins"),)

    def public_speech(self) -> tuple[Corpus, ...]:
        """What a public start is trained on."""
        return tuple(public_corpus(name, self.labels) for name in self.public) if self.public_start else ()

    @property
    def bank(self) -> HiddenMarkovModel:
        """The bank of `baum_welch` and `gradient`."""
        assert isinstance(self.model, HiddenMarkovModel)
        return self.model

    @property
    def margin_bank(self) -> LargeMarginHmm:
        """The bank of `margin`."""
        assert isinstance(self.model, LargeMarginHmm)
        return self.model

    def on_train_start(self) -> None:
        """Find the starting point, unless a checkpoint is being resumed."""
        if self.resumed:
            return
        start = self.starting_point().to(self.device)
        if self.method == "margin":
            start = LargeMarginHmm.from_hmm(start, self.margin, self.width)  # type: ignore[assignment]
        assert self.model is not None
        self.model.load_state_dict(start.state_dict())
        self.agree_()

    def starting_point(self) -> HiddenMarkovModel:
        """A bank from public speech, or from the training part cut into equal pieces."""
        bank = self.bank_settings.build(self.labels, self.mfcc.features).to(self.device)
        if self.start == "public":
            return public_bank_(bank, self.labels, self.mfcc, self.public)
        batches = self.training_batches()
        flat_start_batches_(bank, batches, self.prior)
        own = self.training_batches(self.ranks)
        for _ in range(0 if self.method == "baum_welch" else self.iterations):
            found = self.ranks.sums(reduce(add, (hmm_statistics(bank, *batch) for batch in own)))
            update_hmm_(bank, found, self.prior)
        return bank

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """The M-step; Adam with a cosine schedule over the whole run; or Adam on the Gaussians alone."""
        if self.method == "baum_welch":
            return MaximizationStep(self.parameters(), self._maximize)
        if self.method == "gradient":
            return torch.optim.Adam(self.bank.emission.parameters(), self.learning_rate)
        bank = self.margin_bank
        optimizer = torch.optim.Adam([bank.vector, bank.transition_logits], self.learning_rate)
        steps = max(int(self.trainer.estimated_stepping_batches), 1)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def losses(self, batch: Batch) -> Tensor:
        """For training by gradients: the loss of every utterance, `(batch,)`, of its own utterance only."""
        if self.method == "margin":
            return self.margin_bank.loss(batch["features"], batch["lengths"], batch["word"], self.level)
        frames = batch["lengths"].clamp_min(1).unsqueeze(-1)
        scores = self.scale * self(batch["features"], batch["lengths"]) / frames
        return functional.cross_entropy(scores, batch["word"], reduction="none")

    def training_step(self, batch: Batch) -> Tensor | None:
        """The mean loss of a batch; or its E-step, added up, and after the last batch of the epoch the M-step.

        Baum-Welch logs the log-likelihood a frame before the M-step; privately, where it is a release, nothing.
        """
        if self.method != "baum_welch":
            return self.mean_loss(batch, self.losses)
        if len(batch["lengths"]):
            self._expect(batch)
        if self.last_batch():
            if self._total is not None:
                self._total = self.ranks.sums(self._total)
                likelihood = self._total.log_likelihood.sum() / self.ranks.added(torch.as_tensor(self._frames))
                self.log("train_log_likelihood", likelihood, on_step=False, on_epoch=True, prog_bar=True)
            self.maximize()
            self._total, self._frames = None, 0
        return None

    def _expect(self, batch: Batch) -> None:
        if self.statistics_hook is not None:
            self.statistics_hook.add(self, batch)
            return
        found = self.expected(batch)
        self._total = found if self._total is None else self._total + found
        self._frames = self._frames + batch["lengths"].sum()

    def expected(self, batch: Batch) -> HmmStatistics:
        """The E-step of a batch, summed by model."""
        return hmm_statistics(self.bank, batch["features"], batch["lengths"], batch["word"])

    def _maximize(self) -> None:
        if self.statistics_hook is not None:
            self.statistics_hook.maximize_(self)
        else:
            assert self._total is not None
            update_hmm_(self.bank, self._total, self.prior)

    def on_train_batch_end(self, *_: Any) -> None:
        """Keep every Phi positive semidefinite."""
        if self.method == "margin":
            self.margin_bank.project_()

    def validation_step(self, batch: Batch) -> Batch:
        """What was said and what is heard."""
        return {"said": batch["word"], "heard": self(batch["features"], batch["lengths"]).argmax(-1)}

    test_step = validation_step

    def configure_callbacks(self) -> list[lightning.Callback]:
        """Count and draw what is recognized."""
        return [ConfusionCallback()]


def public_bank(
    words: Sequence[str], mfcc: MfccConfig, states: int, corpora: Sequence[str] = ("synthetic",), floor: float = 1e-2
) -> HiddenMarkovModel:
    """Word models of one diagonal Gaussian a state, of speech that is nobody's secret; see `public_bank_`."""
    emission = GaussianEmission(len(words), states, mfcc.features, covariance="diagonal", floor=floor)
    return public_bank_(HiddenMarkovModel(left_right(states), emission), words, mfcc, corpora)


def public_corpus(name: str, words: Sequence[str]) -> Corpus:
    """A public corpus by name; the built-in voices say these words."""
    return load_corpus(name, **({"words": tuple(words)} if name == "synthetic" else {}))


def public_bank_(
    bank: HiddenMarkovModel, words: Sequence[str], mfcc: MfccConfig, corpora: Sequence[str]
) -> HiddenMarkovModel:
    """Train a bank on public speech: where private training starts. Raises ModelError for a word that is not in it."""
    heard = (part.to(bank.initial_logits.device) for part in public_utterances(words, mfcc, corpora))
    features, lengths, labels, _ = heard
    flat_start_(bank, features, lengths, labels, POOLED)
    baum_welch(bank, features, lengths, labels, 6, POOLED)
    return bank


def public_utterances(
    words: Sequence[str], mfcc: MfccConfig, corpora: Sequence[str]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features `(n, frames, d)`, lengths, words and speakers of public speech, all corpora's speakers apart.

    Raises ModelError for a word that is not in it.
    """
    index = {word: i for i, word in enumerate(words)}
    features: list[Tensor] = []
    known: list[tuple[str, int]] = []
    for name in corpora:
        own = [utterance for utterance in public_corpus(name, words) if utterance.word in index]
        features += FeatureStore(mfcc).load(own)
        known += [(f"{name} {utterance.speaker}", index[str(utterance.word)]) for utterance in own]
    missing = sorted(set(words) - {words[label] for _, label in known})
    if missing:
        raise ModelError(f"no public recording of {', '.join(missing)} in {', '.join(corpora)}")
    lengths = torch.tensor([len(x) for x in features])
    _, speakers = numbered([speaker for speaker, _ in known])
    return pad_sequence(features, batch_first=True), lengths, torch.tensor([label for _, label in known]), speakers
