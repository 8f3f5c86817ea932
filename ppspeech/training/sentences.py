"""Continuous recognition: models of words, or of their parts, and of silence, trained on pieces of sentences and tested
on whole ones; with a language model, if there is one, estimated from texts.
"""

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytorch_lightning as lightning
from torch import Tensor, tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import MfccConfig
from ppspeech.audio.voices import Espeak, phones_of
from ppspeech.bundle import (
    SILENCE,
    CtcTranscriber,
    SentenceBank,
    SentenceHmmSettings,
    SentenceTranscriber,
    lexicon_of,
    listed_ngrams,
)
from ppspeech.data import Batch, SentenceDataModule
from ppspeech.errors import ModelError, SpeechWarning
from ppspeech.models import HiddenMarkovModel, total_word_errors
from ppspeech.models.decoding import (
    DecodingGraph,
    NgramModel,
    embedded_statistics,
    estimate_ngrams,
    read_arpa,
    transcript_graph,
)
from ppspeech.models.gaussian import Covariance
from ppspeech.models.hmm import HmmStatistics, flat_start_batches_
from ppspeech.training.module import SpeechModule
from ppspeech.training.words import WordModels

ESPEAK = "espeak"  # the lexicon that the built-in voices speak by


class WritesDown(SpeechModule):
    """What recipes of sentences share: whole held-out ones are written down, as the released bundle does it.

    For `SentenceDataModule`, whose training batches are of `whole` sentences or of pieces, as the recipe needs.
    """

    meanings = MappingProxyType(
        {"test_accuracy": "1 - word error rate of joined sentences", "test_sentences": "sentences without an error"}
    )
    refuses_privacy = SentenceDataModule.refuses_privacy
    whole: bool = False

    @abstractmethod
    def transcriber(self) -> SentenceTranscriber | CtcTranscriber:
        """The model as it is now, in the clear."""

    def setup(self, stage: str) -> None:
        """As of every recipe. Raises ModelError for data without marks of where words are, or the wrong batches."""
        data = self.trainer.datamodule  # type: ignore[attr-defined]
        if not isinstance(data, SentenceDataModule):
            raise ModelError("models of sentences learn from joined ones: set data.class_path to SentenceDataModule")
        if data.whole != self.whole:
            raise ModelError(
                f"{type(self).__name__} learns from {'whole sentences' if self.whole else 'pieces of them'}"
                f": set data.whole to {str(self.whole).lower()}"
            )
        super().setup(stage)

    def on_test_epoch_start(self) -> None:
        """The transcriber of the model as it is now."""
        self._heard_by, self._texts = self.transcriber(), list[tuple[list[str], list[str]]]()

    on_validation_epoch_start = on_test_epoch_start

    def test_step(self, batch: Batch) -> None:
        """What was said and what is heard in every sentence."""
        for features, length, said in zip(batch["features"], batch["lengths"].tolist(), batch["said"], strict=True):
            words = [self.labels[place] for place in said.tolist() if place >= 0]
            heard = self._heard_by.words(features[:length])
            self._texts.append((words, [word.word for word in heard]))

    validation_step = test_step

    def on_test_epoch_end(self) -> None:
        """Count errors over all sentences."""
        self._tell("test")

    def on_validation_epoch_end(self) -> None:
        """As of the test."""
        self._tell("validation")

    def _tell(self, part: str) -> None:
        texts = self.ranks.gathered(self._texts)
        right = sum(said == heard for said, heard in texts) / len(texts)
        told = {"accuracy": 1 - total_word_errors(texts).rate, "sentences": right}
        self.log_dict({f"{part}_{name}": value for name, value in told.items()})

    def predict_step(self, *_: Any) -> Batch:
        """Refused: a sentence has no score for every label."""
        raise ModelError("sentences are written down, not scored: use `ppspeech transcribe CHECKPOINT CLIP`")

    def configure_callbacks(self) -> list[lightning.Callback]:
        """None: words of a sentence are not told apart one by one."""
        return []


class SentenceModels(WritesDown, WordModels):  # type: ignore[misc]
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
        leave: the probability of leaving a model after a frame in its last state.
        lexicon: what words are made of, so that they share models: `espeak` for the phones of the built-in voices, or a
            file with a word and its units on every line. The states are then of a unit. Words that are not heard in
            training may be written down too, if their units are.
        vocabulary: with a lexicon, a file of further words, one a line, or several.
        language: what is probable: a file with a sentence on every line, or n-grams with back-off (`.arpa`).
        order: of the n-grams that are estimated from sentences.
        language_scale: what the language model weighs against the sounds.
    """

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
        lexicon: str | None = None,
        vocabulary: str | None = None,
        language: str | None = None,
        order: int = 2,
        language_scale: float = 1.0,
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
            language_scale=float(language_scale),
        )
        if vocabulary is not None and lexicon is None:
            raise ModelError("words of a vocabulary need a lexicon of what they are made of: set model.lexicon")
        self.lexicon, self.vocabulary, self.language, self.order = lexicon, vocabulary, language, order
        self._said: Tensor | None = None
        self._graphs: dict[int, DecodingGraph] = {}

    def build_(self, labels: tuple[str, ...], mfcc: MfccConfig) -> None:
        """Make the untrained model; words of the vocabulary come after those of the data. Warns of those among them
        that sound as another does, or have units that no word of the data has: they are left out. Raises ModelError for
        a word of the data that the lexicon lacks.
        """
        chosen = self.bank_settings
        assert isinstance(chosen, SentenceHmmSettings)
        if self.lexicon is not None:
            more = () if self.vocabulary is None else tuple(_read(self.vocabulary).split())
            spelled = _spelled(self.lexicon, tuple(dict.fromkeys((*labels, *more))))
            labels = (*labels, *_sayable(more, labels, spelled))
            chosen = replace(chosen, **lexicon_of(spelled, labels))
        if self.language is not None:
            chosen, self._said = _listed(chosen, language_model(self.language, self.order), labels)
        self.bank_settings = chosen
        super().build_(labels, mfcc)

    def on_train_start(self) -> None:
        """As of every recipe; then what n-grams weigh, which no training changes."""
        super().on_train_start()
        if self._said is not None and isinstance(self.model, SentenceBank):
            self.model.language.data.copy_(self._said)
            self.agree_()

    def starting_point(self) -> HiddenMarkovModel:
        """Words, and where they have parts each of them, cut into equal pieces, one a state."""
        if self.lexicon is None:
            return super().starting_point()
        bank = self.bank_settings.build(self.labels, self.mfcc.features).to(self.device)
        cut = []
        for features, lengths, words in self.training_batches():
            pieces, units = [], []
            for frames, length, word in zip(features, lengths.tolist(), words.tolist(), strict=True):
                parts = self._parts(word)
                ends = [length * place // len(parts) for place in range(len(parts) + 1)]
                for part, start, end in zip(parts, ends, ends[1:], strict=False):
                    if start < end:
                        pieces.append(frames[start:end])
                        units.append(part)
            sizes = tensor([len(piece) for piece in pieces], device=self.device)
            cut.append((pad_sequence(pieces, batch_first=True), sizes, tensor(units, device=self.device)))
        flat_start_batches_(bank, cut, self.prior)
        return bank

    def expected(self, batch: Batch) -> HmmStatistics:
        """The E-step of a batch, summed by model: words that have parts are ways through the models of these."""
        if self.lexicon is None:
            return super().expected(batch)
        words = batch["word"].tolist()
        for word in set(words) - set(self._graphs):
            self._graphs[word] = self._way(word)
        graphs = [self._graphs[word] for word in words]
        return embedded_statistics(self.bank, batch["features"], batch["lengths"], graphs)

    def on_train_epoch_start(self) -> None:
        """Ways through models weigh what these say now."""
        self._graphs = {}

    def _parts(self, word: int) -> tuple[int, ...]:
        """The models of a word of the data; of a pause, which comes after the last, that of silence."""
        chosen, module = self.bank_settings, self.trainer.datamodule  # type: ignore[attr-defined]
        assert isinstance(chosen, SentenceHmmSettings)
        return (len(chosen.units),) if word == len(module.vocabulary["word"]) else chosen.lexicon[word]

    def _way(self, word: int) -> DecodingGraph:
        chosen = self.bank_settings
        assert isinstance(chosen, SentenceHmmSettings)
        names = (*chosen.units, SILENCE)
        return transcript_graph([names[part] for part in self._parts(word)], chosen.models(self.bank, self.labels))

    def transcriber(self) -> SentenceTranscriber:
        """The bank with its graph."""
        return SentenceTranscriber.of(self.bank, self.config)


def language_model(path: str, order: int = 2) -> NgramModel:
    """What a file says is probable: n-grams with back-off (`.arpa`), or a sentence on every line, from which they are
    estimated. Raises ModelError for a file that cannot be read, or holds none.
    """
    if path.endswith(".arpa"):
        _read(path)
        return read_arpa(Path(path))
    return estimate_ngrams([line.split() for line in _read(path).splitlines() if line.strip()], order)


def _sayable(more: Sequence[str], labels: Sequence[str], spelled: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Words besides the labels that are made of what these are made of, and sound as none before."""
    sounds = {spelled.get(label, ()) for label in labels}
    units, kept, left_out = {unit for parts in sounds for unit in parts}, [], []
    for word in dict.fromkeys(more):
        parts = spelled.get(word, ())
        if word in labels:
            continue
        if parts and parts not in sounds and units.issuperset(parts):
            sounds.add(parts)
            kept.append(word)
        else:
            left_out.append(word)
    if left_out:
        warnings.warn(
            f"{len(left_out)} of {len(left_out) + len(kept)} further words are left out, which sound as others do or "
            f"have units that nobody says in training: {', '.join(left_out[:20])}{', …' if len(left_out) > 20 else ''}",
            SpeechWarning,
            stacklevel=2,
        )
    return tuple(kept)


def _listed(
    chosen: SentenceHmmSettings, model: NgramModel, labels: tuple[str, ...]
) -> tuple[SentenceHmmSettings, Tensor]:
    ngrams, weights = listed_ngrams(model, labels)
    return replace(chosen, ngrams=ngrams), weights


def _spelled(lexicon: str, labels: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """The units of every word. Raises ModelError for a file that is no lexicon."""
    if lexicon == ESPEAK:
        with Espeak() as espeak:
            return {label: phones_of(label, espeak) for label in labels}
    rows = [line.split() for line in _read(lexicon).splitlines() if line.strip()]
    if not all(len(row) > 1 for row in rows):
        raise ModelError(f"{lexicon} is no lexicon: every line has a word and at least one unit")
    return {word: tuple(parts) for word, *parts in rows}


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as missing:
        raise ModelError(f"{path} cannot be read: {missing}") from None
