"""Words, and sentences of them, by a small network on frames, by gradients."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytorch_lightning as lightning
import torch
from pytorch_lightning.utilities.types import OptimizerLRScheduler
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from ppspeech.bundle import (
    SILENCE,
    CtcNetworkSettings,
    CtcTranscriber,
    DataTouch,
    KeywordNetworkSettings,
    SentenceHmmSettings,
    SentenceNetworkSettings,
    SentenceTranscriber,
)
from ppspeech.data import Batch, Heard, Pieces
from ppspeech.errors import ModelError
from ppspeech.models import FrameLayer, GaussianEmission, SequenceNetwork, StateNetwork, decode
from ppspeech.models.decoding import transcript_graph
from ppspeech.models.hmm import Prior, baum_welch, flat_start_
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
EVERY_FRAME: tuple[dict[str, Any], ...] = (
    {"outputs": 64, "width": 5},
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
    half_precision = True

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
        return self.mean_loss(batch, self.losses)

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
    half_precision = True

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
        return self.mean_loss(batch, self.losses)

    def transcriber(self) -> CtcTranscriber:
        """The network, read greedily."""
        return CtcTranscriber(self.labels, self.mfcc, self.network)


class SentenceNetwork(WritesDown):
    """A network that scores the states of a graph of words and silence (`ppspeech.models.StateNetwork`): a hybrid.

    Word models of Gaussians are trained on pieces of the sentences first, as `SentenceModels` does it, and say by
    forced alignment in which state every frame of a sentence is; the network learns that by cross-entropy. For
    `SentenceDataModule` with `whole: true`.

    Args:
        layers: as of `WordNetwork`, without strides and pools.
        states: of each word, and of silence.
        radius: what frames are shortened to; features have variance 1.
        dropout: of what comes out of each layer.
        learning_rate: of Adam, where it is highest; it rises first, and falls to 0.
        weight_decay: of Adam; small weights keep the ranges of shares small too.
        floor: smallest variance of the word models that align.
        prior_covariance: weight, in frames, of their pooled covariance.
        iterations: of their Baum-Welch.
        grammar: what may be said, such as `(one | two)+ [zero]`; any words in any order by default.
        word_penalty: nats that every word costs, against words that were not said.
        leave: the probability of leaving a state after a frame.
        scale: what a frame's scores weigh against moves and words.
    """

    label = "word"
    whole = True
    half_precision = True

    def __init__(
        self,
        layers: Sequence[Mapping[str, Any]] = EVERY_FRAME,
        states: int = 5,
        radius: float = 12.0,
        dropout: float = 0.2,
        learning_rate: float = 5e-3,
        weight_decay: float = 0.1,
        floor: float = 0.3,
        prior_covariance: float = 100.0,
        iterations: int = 6,
        grammar: str | None = None,
        word_penalty: float = 5.0,
        leave: float = 0.3,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.learning_rate, self.weight_decay, self.dropout = learning_rate, weight_decay, float(dropout)
        self.floor, self.prior, self.iterations = float(floor), Prior(covariance=prior_covariance), iterations
        self.chosen = SentenceNetworkSettings(
            states=states,
            grammar=grammar,
            word_penalty=float(word_penalty),
            leave=float(leave),
            scale=float(scale),
            radius=float(radius),
            layers=_layers(layers),
        )
        self.targets: list[Tensor] = []

    def settings(self) -> SentenceNetworkSettings:
        """Of a network that scores states."""
        return self.chosen

    @property
    def scorer(self) -> StateNetwork:
        """The network with its priors."""
        assert isinstance(self.model, StateNetwork)
        return self.model

    def setup(self, stage: str) -> None:
        """As of every recipe; priors are counted, not learned."""
        super().setup(stage)
        self.scorer.log_prior.requires_grad_(False)

    def on_train_start(self) -> None:
        """Say in which state every frame is; priors are how often they are. Dropout is of training alone."""
        self.scorer.network.dropout = self.dropout
        part: Any = self.training_part()
        self.targets = self._aligned(part)
        counts = torch.bincount(torch.cat(self.targets), minlength=len(self.scorer.log_prior)) + 1.0
        self.scorer.log_prior.data.copy_((counts / counts.sum()).log())
        self.agree_()

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """Adam, with one cycle of the learning rate over the whole run."""
        return _one_cycle(self, self.learning_rate, self.weight_decay)

    def losses(self, batch: Batch) -> Tensor:
        """-ln of the probability of every frame's state, the mean of an utterance's, `(batch,)`."""
        logits = self.scorer.network(batch["features"], batch["lengths"])
        known = [self.targets[place] for place in batch["index"].tolist()]
        wanted = pad_sequence(known, batch_first=True, padding_value=-1).to(logits.device)
        found = functional.cross_entropy(logits.mT, wanted, reduction="none", ignore_index=-1)
        return found.sum(-1) / batch["lengths"]

    def training_step(self, batch: Batch) -> Tensor:
        """The mean loss of a batch."""
        return self.mean_loss(batch, self.losses)

    def transcriber(self) -> SentenceTranscriber:
        """The network with its graph."""
        return SentenceTranscriber.of(self.scorer, self.config)

    def _aligned(self, part: Any) -> list[Tensor]:
        return aligned_states(part.heard, self.labels, self.chosen.states, self.floor, self.prior, self.iterations)


@torch.no_grad()
def aligned_states(
    heard: Sequence[Heard], labels: tuple[str, ...], states: int, floor: float, prior: Prior, iterations: int
) -> list[Tensor]:
    """The state of every frame, `(frames,)`, of every sentence: by word models of one Gaussian a state, trained on its
    pieces, and the best path through its words with pauses between them. State s of word m is m * states + s.
    """
    speakers = sorted({each.sentence.speaker for each in heard})
    pieces = Pieces(heard, labels, speakers, states)
    settings = SentenceHmmSettings(
        states=states, covariance="full", floor=floor, grammar=None, word_penalty=0.0, leave=0.2
    )
    bank = settings.build(labels, heard[0].features.shape[-1])
    data = pad_sequence(pieces.features, batch_first=True), torch.tensor(pieces.sizes), pieces.words
    flat_start_(bank, *data, prior)
    baum_welch(bank, *data, iterations, prior)
    units, found = settings.models(bank, labels), []
    assert isinstance(bank.emission, GaussianEmission)
    for each in heard:
        graph = transcript_graph(each.sentence.text, units, SILENCE)
        scores = bank.emission.log_likelihood(each.features.unsqueeze(0)).squeeze(0).flatten(1)
        found.append(graph.pdfs[list(decode(graph, scores).states)])
    return found


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
