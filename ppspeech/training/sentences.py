"""Continuous recognition: word models and one of silence, trained on pieces of sentences, tested on whole ones."""

from types import MappingProxyType
from typing import Any

import pytorch_lightning as lightning

from ppspeech.bundle import SentenceHmmSettings, SentenceTranscriber
from ppspeech.data import Batch, SentenceDataModule
from ppspeech.errors import ModelError
from ppspeech.models import total_word_errors
from ppspeech.models.gaussian import Covariance
from ppspeech.training.words import WordModels


class SentenceModels(WordModels):
    """A bank of word models and a model of silence, by Baum-Welch, with the graph of what may be said.

    For `SentenceDataModule`, which knows where words begin and end. Whole held-out sentences are written down by the
    graph, as the released bundle does it.

    Args:
        states: of each word, and of silence.
        covariance: `full`, `diagonal`, `spherical` or `tied`.
        floor: smallest variance in any direction; features have variance 1. The larger, the smaller the range of what a
            frame can score.
        prior_covariance: weight, in frames, of the covariance pooled over all states.
        prior_counts: added to every expected count.
        grammar: what may be said, such as `(one | two)+ [zero]`; any words in any order by default.
        word_penalty: nats that every word costs, against words that were not said.
        leave: the probability of leaving a word after a frame in its last state.
    """

    meanings = MappingProxyType(
        {"test_accuracy": "1 - word error rate of joined sentences", "test_sentences": "sentences without an error"}
    )
    refuses_privacy = SentenceDataModule.refuses_privacy

    def __init__(
        self,
        states: int = 5,
        covariance: Covariance = "full",
        floor: float = 1e-2,
        prior_covariance: float = 0.0,
        prior_counts: float = 0.0,
        grammar: str | None = None,
        word_penalty: float = 0.0,
        leave: float = 0.2,
    ) -> None:
        super().__init__(
            states=states,
            covariance=covariance,
            floor=floor,
            prior_covariance=prior_covariance,
            prior_counts=prior_counts,
        )
        self.bank_settings = SentenceHmmSettings(
            states=states,
            covariance=covariance,
            floor=float(floor),
            grammar=grammar,
            word_penalty=float(word_penalty),
            leave=float(leave),
        )
        self._transcriber: SentenceTranscriber | None = None
        self._texts: list[tuple[list[str], list[str]]] = []

    def setup(self, stage: str) -> None:
        """As of every recipe. Raises ModelError for data without marks of where words are."""
        if not isinstance(self.trainer.datamodule, SentenceDataModule):  # type: ignore[attr-defined]
            raise ModelError("models of sentences learn from joined ones: set data.class_path to SentenceDataModule")
        super().setup(stage)

    def on_test_epoch_start(self) -> None:
        """The transcriber of the bank as it is now."""
        self._transcriber, self._texts = SentenceTranscriber.of(self.bank, self.config), []

    on_validation_epoch_start = on_test_epoch_start

    def test_step(self, batch: Batch) -> None:  # type: ignore[override]
        """What was said and what is heard in every sentence."""
        assert self._transcriber is not None
        for features, length, said in zip(batch["features"], batch["lengths"].tolist(), batch["said"], strict=True):
            words = [self.labels[place] for place in said.tolist() if place >= 0]
            heard = self._transcriber.words(features[:length])
            self._texts.append((words, [word.word for word in heard]))

    validation_step = test_step  # type: ignore[assignment]

    def on_test_epoch_end(self) -> None:
        """Count errors over all sentences."""
        self._tell("test")

    def on_validation_epoch_end(self) -> None:
        """As of the test."""
        self._tell("validation")

    def _tell(self, part: str) -> None:
        right = sum(said == heard for said, heard in self._texts) / len(self._texts)
        told = {"accuracy": 1 - total_word_errors(self._texts).rate, "sentences": right}
        self.log_dict({f"{part}_{name}": value for name, value in told.items()})

    def predict_step(self, *_: Any) -> Batch:
        """Refused: a sentence has no score for every label."""
        raise ModelError("sentences are written down, not scored: use `ppspeech transcribe CHECKPOINT CLIP`")

    def configure_callbacks(self) -> list[lightning.Callback]:
        """None: words of a sentence are not told apart one by one."""
        return []
