"""Corpora as LightningDataModules."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytorch_lightning as lightning
from torch.utils.data import DataLoader

from ppspeech.audio import GivenFeatures, MfccConfig
from ppspeech.audio.embeddings import EmbeddingConfig
from ppspeech.data.batches import Batch, LengthBuckets, UtteranceDataset, Vocabulary, collate
from ppspeech.data.corpora.packed import PackedCorpus, is_packed, read_packed
from ppspeech.data.corpus import Corpus
from ppspeech.data.features import FeatureStore
from ppspeech.data.normalization import publicly_normalized
from ppspeech.data.registry import load_corpus, options_for
from ppspeech.data.sentences import Pieces, WholeSentences, heard_by, joined_sentences
from ppspeech.data.sound_check import usable, with_training
from ppspeech.data.splits import split_by_speaker, split_by_take, split_official
from ppspeech.errors import AudioError, CorpusError, SpeechWarning
from ppspeech.ranks import Ranks


class SpeechDataModule(lightning.LightningDataModule):
    """A corpus, split, turned into features and batched by length.

    Batches are `{"features": (batch, frames, d), "lengths", "word", "speaker", "emotion", "gender", "take",
    "index"}`; `vocabulary` says what the integers mean. Every recording is listened to once, before anything else, so
    that all faults are told together; features are computed on first use, kept on disk, and need not fit in memory.
    Where the model hears through a public embedding, and says so in `embedding`, features are one vector an utterance.
    With several ranks each loads its own part: a Trainer needs `use_distributed_sampler=False`, which recipes set.
    Where `by_speaker` is set before training, all that somebody says is one rank's.

    Args:
        corpus: a registered name, a folder, or a folder of packed features (`ppspeech pack`), which are read batch by
            batch whatever their number; `synthetic` needs no file.
        options: what the corpus's loader takes, such as `{"speakers": 20}`; or that by corpus, such as
            `{"synthetic": {"speakers": 20}}`, which leaves other corpora as they are.
        split: `speaker` holds out people, `take` repetitions, `official` uses the corpus's own (a folder's column
            `subset`).
        test: share of the speakers, or their names; share of everyone's takes, or their numbers; 0 trains on everything
            and tests nothing.
        validation: likewise, for choices during training; 0 for none.
        mfcc: the front end, or what differs from the preset for the corpus's sample rate. A filtered corpus has
            features already.
        normalization: corpora that are nobody's secret, such as `["synthetic"]`, over which features get mean 0 and
            variance 1, instead of over each utterance: with `level: keep` they are known as they are spoken.
        encoder: a network between front end and model, learned from public speech and run by whoever speaks: what
            `publicly_encoded` takes, such as `{"corpora": ["synthetic"], "outputs": 24}`; None for none.
        rate: at which the front end listens, in Hz, whatever the corpus's rate.
        skip_bad: leave out, with a warning, recordings that cannot be used and labels without a training recording;
            otherwise they are refused.
        batch_size: utterances a batch.
        workers: processes that load batches.
        seed: decides the split and the order of batches.
    """

    invented = False
    """Whether nobody said what is in it: canaries, which there is nothing to protect of."""

    def __init__(
        self,
        corpus: str = "synthetic",
        options: dict[str, Any] | None = None,
        split: Literal["speaker", "take", "official"] = "speaker",
        test: float | list[str] | list[int] = 0.25,
        validation: float | list[str] | list[int] = 0.0,
        mfcc: dict[str, Any] | MfccConfig | None = None,
        normalization: Sequence[str] = (),
        encoder: dict[str, Any] | None = None,
        rate: int | None = None,
        skip_bad: bool = False,
        batch_size: int = 64,
        workers: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.corpus_name = corpus
        self.options = options_for(corpus, options or {})
        self.split_by = split
        self.test = test
        self.validation = validation
        self.mfcc = mfcc
        self.normalization = tuple(normalization)
        self.encoder = encoder
        self.rate = rate
        self.skip_bad = skip_bad
        self.batch_size = batch_size
        self.workers = workers
        self.seed = seed
        self.by_speaker = False
        self.packed: PackedCorpus | None = None
        self._normalized: MfccConfig | None = None
        self.parts: Mapping[str, UtteranceDataset] = {}

    def prepare_data(self) -> None:
        """Build or check the corpus, once on each machine."""
        if not is_packed(self.corpus_name):
            load_corpus(self.corpus_name, **self.options)

    def setup(self, stage: str | None = None) -> None:  # noqa: ARG002 (Lightning's signature; all stages share one split)
        """Listen to the corpus and split it; features are left for when they are needed."""
        if self.parts:
            return
        if is_packed(self.corpus_name):
            self._unpack()
        else:
            self._listen()
        self._check_alike()

    def _check_alike(self) -> None:
        """Refuse ranks with other utterances than each other's: they share them by their places."""
        place = Ranks.of(self.trainer)
        if place.ranks > 1 and len(set(place.gathered([tuple(part.digest for part in self.parts.values())]))) > 1:
            raise CorpusError(
                "the processes do not have the same utterances in the same order, so that several would hear some of "
                "them, and nobody others: give all of them one corpus, and split it alike (data.seed)"
            )

    def _listen(self) -> None:
        """The parts of a corpus of sound, or of given features."""
        corpus = load_corpus(self.corpus_name, **self.options)
        module = self.trainer and self.trainer.lightning_module
        config = self._embedded(corpus, getattr(module, "embedding", None)) or self.config(corpus)
        corpus = usable(corpus, config, skip_bad=self.skip_bad, rate_chosen=self.rate is not None)
        parts = self.divide(corpus)
        label: str | None = getattr(module, "label", None)
        if label is not None:
            parts = with_training(label, parts, skip_bad=self.skip_bad)
        self.corpus = replace(corpus, utterances=tuple(u for part in parts.values() for u in part))
        self.vocabulary = Vocabulary(self.corpus)
        store = FeatureStore(config)
        self.parts = {
            name: UtteranceDataset(part, store.lazy(part.utterances), self.vocabulary) for name, part in parts.items()
        }

    def _unpack(self) -> None:
        """The parts of packed features. Raises CorpusError for what they cannot be: heard or split in another way."""
        given: dict[str, Any] = {"options": self.options, "mfcc": self.mfcc, "normalization": self.normalization}
        given |= {"encoder": self.encoder, "rate": self.rate}
        strange = [name for name, value in given.items() if value]
        test, validation = self.test, self.validation
        if strange or self.split_by != "speaker" or isinstance(test, list) or isinstance(validation, list):
            raise CorpusError(
                f"{self.corpus_name} holds packed features, as they were heard, and is split by shares of speakers: "
                f"leave out {', '.join(f'data.{name}' for name in strange) or 'data.split and names'}"
            )
        module = self.trainer and self.trainer.lightning_module
        if getattr(module, "embedding", None) is not None:
            raise CorpusError(f"{self.corpus_name} holds packed features, and a public embedding hears sound")
        self.packed = read_packed(Path(self.corpus_name))
        divided = self.packed.divided(test, validation, self.seed)
        label: str | None = getattr(module, "label", None)
        if label is not None:
            self.packed.check_trained(label, divided["train"])
        self.vocabulary = self.packed  # type: ignore[assignment]
        self.parts = {name: self.packed.part(places) for name, places in divided.items()}
        self.corpus = self.parts["train"].corpus

    def _embedded(self, corpus: Corpus, embedding: EmbeddingConfig | None) -> EmbeddingConfig | None:
        """The public embedding that a model hears through, if it does: it leaves no choice of MFCCs."""
        if embedding is None:
            return None
        if corpus.features is not None:
            raise CorpusError(f"{corpus.name!r} holds features, and a public embedding hears sound")
        if self.mfcc or self.normalization or self.encoder is not None or self.rate is not None:
            raise CorpusError(
                "the model hears through a public embedding: leave out data.mfcc, normalization, encoder and rate"
            )
        return embedding

    def config(self, corpus: Corpus) -> MfccConfig:
        """The front end for this corpus; where its features are given, their number."""
        if self.packed is not None:
            return self.packed.config
        if corpus.features is not None:
            return GivenFeatures(given=corpus.features)
        if not self.normalization and self.encoder is None:
            return self._front_end(corpus)
        if corpus.name in {*self.normalization, *self.encoded_by} - {"synthetic"}:
            raise CorpusError(
                f"features cannot be normalized or encoded by {corpus.name}, which is trained on: what is learned of "
                "it would leave with the model; name a corpus that is nobody's secret, such as synthetic"
            )
        if self._normalized is None:
            config = self._front_end(corpus)
            if self.normalization:
                config = publicly_normalized(config, self.normalization)
            self._normalized = self._encoded(config)
        return self._normalized

    @property
    def encoded_by(self) -> tuple[str, ...]:
        """The public corpora that an encoder is learned from."""
        return () if self.encoder is None else tuple(self.encoder.get("corpora", ("synthetic",)))

    def _encoded(self, config: MfccConfig) -> MfccConfig:
        if self.encoder is None:
            return config
        from ppspeech.data.encoding import publicly_encoded  # joins sentences, which are a data module of their own

        try:
            return publicly_encoded(config, **self.encoder)
        except TypeError as unknown:
            raise CorpusError(f"the encoder (data.encoder) cannot be made: {unknown}") from None

    def _front_end(self, corpus: Corpus) -> MfccConfig:
        if isinstance(self.mfcc, MfccConfig):
            return self.mfcc if self.rate is None else replace(self.mfcc, sample_rate=self.rate)
        changes: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in (self.mfcc or {}).items()}
        if self.rate is not None:
            changes["sample_rate"] = self.rate
        preset = MfccConfig.at_rate(changes.get("sample_rate", corpus.sample_rate))
        try:
            return replace(preset, **changes)
        except (TypeError, AudioError) as error:
            raise CorpusError(f"the front end (data.mfcc) cannot be made: {error}") from None

    def divide(self, corpus: Corpus) -> Mapping[str, Corpus]:
        """The parts that were asked for, by name."""
        if not corpus.speakers_known:
            warnings.warn(
                f"who speaks in {corpus.name!r} is not known, so every recording counts as a speaker of its own: "
                "people may be heard in training and in the test, and a promise to a speaker is one to a recording",
                SpeechWarning,
                stacklevel=2,
            )
        if self.split_by == "official":
            return split_official(corpus).parts
        if self.test == 0 and self.validation == 0:
            return {"train": corpus}
        first, second = self.test, self.validation
        if first == 0:  # what is held out is for validation alone
            first, second = second, first
        if self.split_by == "speaker":
            parts = split_by_speaker(corpus, _names(first), _names(second), seed=self.seed).parts
        else:
            parts = split_by_take(corpus, _takes(first), _takes(second)).parts
        return parts if self.test != 0 else {"train": parts["train"], "validation": parts["test"]}

    def train_dataloader(self) -> DataLoader[Batch]:
        """Shuffled batches of the training part."""
        return self._loader("train", shuffle=True)

    def val_dataloader(self) -> DataLoader[Batch] | list[DataLoader[Batch]]:
        """The validation part in order of length; no loader where nothing is held out for it."""
        return self._loader("validation") if "validation" in self.parts else []

    def test_dataloader(self) -> DataLoader[Batch]:
        """The test part in order of length. Raises CorpusError where nothing was held out."""
        if "test" not in self.parts:
            raise CorpusError("nothing was held out to test on (data.test is 0): give a share, such as data.test=0.25")
        return self._loader("test")

    predict_dataloader = test_dataloader

    def _loader(self, part: str, *, shuffle: bool = False) -> DataLoader[Batch]:
        dataset, place = self.parts[part], Ranks.of(self.trainer)
        mine = None
        if shuffle and self.by_speaker:
            speakers = len(set(dataset.speakers.tolist()))
            if speakers < place.ranks:
                raise CorpusError(f"{place.ranks} processes cannot share {speakers} speakers: lower trainer.devices")
            mine = place.owns(dataset.speakers).numpy()
        buckets = LengthBuckets(dataset.sizes, self.batch_size, shuffle=shuffle, seed=self.seed, place=place, mine=mine)
        return DataLoader(dataset, batch_sampler=buckets, collate_fn=collate, num_workers=self.workers)


class SentenceDataModule(SpeechDataModule):
    """A corpus of words, split as `SpeechDataModule` splits it, then joined to sentences within each part.

    Training batches are of pieces, words and pauses, or of whole sentences; the others of whole ones. All is kept in
    memory.

    Args:
        sentences: of every speaker of the training part.
        test_sentences: of every speaker of the test, or validation, part.
        words: the fewest and most words of a sentence.
        shortest: frames of a piece that is trained on, at least as many as a model has states.
        whole: train on whole sentences, where what is said is known and not when.
        levels: of every sentence's loudest sample, drawn between these, in dB below full scale: for front ends that
            hear how loud people are (`level: keep`).
        more: what `SpeechDataModule` takes.
    """

    refuses_privacy = (
        "an utterance is in many sentences and is normalized with its neighbors, so no bound for one holds; train a "
        "private bank of words by keyword_dp, which `ppspeech transcribe` takes too"
    )
    """Why nothing that is trained on it can be promised to anyone."""

    def __init__(
        self,
        sentences: int = 12,
        test_sentences: int = 4,
        words: tuple[int, int] = (4, 7),
        shortest: int = 5,
        whole: bool = False,
        levels: tuple[float, float] = (0.0, 0.0),
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self.sentences, self.test_sentences, self.words, self.shortest = sentences, test_sentences, words, shortest
        self.whole, self.levels = whole, levels
        self._joined = False

    def setup(self, stage: str | None = None) -> None:
        """Split, join and hear; all stages share one split. Raises CorpusError where features are given."""
        if is_packed(self.corpus_name):
            raise CorpusError(f"{self.corpus_name} holds packed features, and sentences are joined from sound")
        super().setup(stage)
        if self._joined:
            return
        config = self.config(self.corpus)
        if isinstance(config, GivenFeatures):
            raise CorpusError(f"{self.corpus.name!r} holds features, and sentences are joined from sound")
        words, people = self.vocabulary["word"], self.vocabulary["speaker"]
        parts: dict[str, Any] = {}
        for name, part in self.parts.items():
            each = self.sentences if name == "train" else self.test_sentences
            joined = joined_sentences(part.corpus, each, config.sample_rate, self.words, self.seed, self.levels)
            heard = heard_by(config, joined)
            if self.whole or name != "train":
                parts[name] = WholeSentences(heard, words, people)
            else:
                parts[name] = Pieces(heard, words, people, self.shortest)
        self.parts, self._joined = parts, True


def _names(part: float | list[str] | list[int]) -> float | list[str]:
    return [str(name) for name in part] if isinstance(part, list) else part


def _takes(part: float | list[str] | list[int]) -> float | list[int]:
    return [int(take) for take in part] if isinstance(part, list) else part
