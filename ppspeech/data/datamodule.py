"""Corpora as LightningDataModules."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pytorch_lightning as lightning
from torch.utils.data import DataLoader

from ppspeech.audio import GivenFeatures, MfccConfig
from ppspeech.data.batches import Batch, LengthBuckets, UtteranceDataset, Vocabulary, collate
from ppspeech.data.corpus import Corpus
from ppspeech.data.features import FeatureStore
from ppspeech.data.normalization import publicly_normalized
from ppspeech.data.registry import load_corpus, options_for
from ppspeech.data.splits import Split, split_by_speaker, split_by_take, split_official
from ppspeech.errors import CorpusError


class SpeechDataModule(lightning.LightningDataModule):
    """A corpus, split, turned into features and batched by length.

    Batches are `{"features": (batch, frames, d), "lengths", "word", "speaker", "emotion", "gender", "take",
    "index"}`; `vocabulary` says what the integers mean. No sound file is opened before a batch needs it: features are
    computed on first use, kept on disk, and need not fit in memory. With several ranks each loads its own batches: a
    Trainer needs `use_distributed_sampler=False`, which recipes set.

    Args:
        corpus: a registered name or a folder; `synthetic` needs no file.
        options: what the corpus's loader takes, such as `{"speakers": 20}`; or that by corpus, such as
            `{"synthetic": {"speakers": 20}}`, which leaves other corpora as they are.
        split: `speaker` holds out people, `take` repetitions, `official` uses the corpus's own.
        test: share of the speakers, or their names, or the takes, to test on.
        validation: likewise, for choices during training; 0 for none.
        mfcc: the front end; None takes the preset for the corpus's sample rate. A filtered corpus has features already.
        normalization: corpora that are nobody's secret, such as `["synthetic"]`, over which features get mean 0 and
            variance 1, instead of over each utterance: they are then known as they are spoken. Unless `mfcc` says
            otherwise, loudness is left as it is too.
        batch_size: utterances a batch.
        workers: processes that load batches.
        seed: decides the split and the order of batches.
    """

    def __init__(
        self,
        corpus: str = "synthetic",
        options: dict[str, Any] | None = None,
        split: Literal["speaker", "take", "official"] = "speaker",
        test: float | list[str] | list[int] = 0.25,
        validation: float | list[str] | list[int] = 0.0,
        mfcc: MfccConfig | None = None,
        normalization: Sequence[str] = (),
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
        self.batch_size = batch_size
        self.workers = workers
        self.seed = seed
        self._normalized: MfccConfig | None = None
        self.parts: Mapping[str, UtteranceDataset] = {}

    def prepare_data(self) -> None:
        """Build or check the corpus, once on each machine."""
        load_corpus(self.corpus_name, **self.options)

    def setup(self, stage: str | None = None) -> None:  # noqa: ARG002 (Lightning's signature; all stages share one split)
        """Split the corpus; features are left for when they are needed."""
        if self.parts:
            return
        corpus = load_corpus(self.corpus_name, **self.options)
        self.corpus = corpus
        self.vocabulary = Vocabulary(corpus)
        store = FeatureStore(self.config(corpus))
        self.parts = {
            name: UtteranceDataset(part, store.lazy(part.utterances), self.vocabulary)
            for name, part in self.divide(corpus).parts.items()
        }

    def config(self, corpus: Corpus) -> MfccConfig:
        """The front end for this corpus; where its features are given, their number."""
        if corpus.features is not None:
            return GivenFeatures(given=corpus.features)
        chosen = self.mfcc or MfccConfig.at_rate(corpus.sample_rate)
        if not self.normalization:
            return chosen
        if corpus.name in {*self.normalization} - {"synthetic"}:
            raise CorpusError(
                f"features cannot be normalized by {corpus.name}, which is trained on: its means would leave with the "
                "model; name a corpus that is nobody's secret, such as synthetic"
            )
        if self._normalized is None:
            live = chosen if self.mfcc else replace(chosen, level="keep")
            self._normalized = publicly_normalized(live, self.normalization)
        return self._normalized

    def divide(self, corpus: Corpus) -> Split:
        """The split that was asked for."""
        if self.split_by == "official":
            return split_official(corpus)
        if self.split_by == "speaker":
            return split_by_speaker(corpus, _names(self.test), _names(self.validation), seed=self.seed)
        takes = [[] if part == 0 else part for part in (self.test, self.validation)]
        if not all(isinstance(part, list) for part in takes):
            raise CorpusError("a split by take needs lists of takes, such as test=[0, 1]; got a share")
        return split_by_take(corpus, *([int(take) for take in part] for part in takes if isinstance(part, list)))

    def train_dataloader(self) -> DataLoader[Batch]:
        """Shuffled batches of the training part."""
        return self._loader("train", shuffle=True)

    def val_dataloader(self) -> DataLoader[Batch] | list[DataLoader[Batch]]:
        """The validation part in order of length; no loader where nothing is held out for it."""
        return self._loader("validation") if "validation" in self.parts else []

    def test_dataloader(self) -> DataLoader[Batch]:
        """The test part in order of length."""
        return self._loader("test")

    predict_dataloader = test_dataloader

    def _loader(self, part: str, *, shuffle: bool = False) -> DataLoader[Batch]:
        dataset, trainer = self.parts[part], self.trainer
        rank, ranks = (trainer.global_rank, trainer.world_size) if trainer else (0, 1)
        buckets = LengthBuckets(dataset.sizes, self.batch_size, shuffle=shuffle, seed=self.seed, rank=rank, ranks=ranks)
        return DataLoader(dataset, batch_sampler=buckets, collate_fn=collate, num_workers=self.workers)


def _names(part: float | list[str] | list[int]) -> float | list[str]:
    return [str(name) for name in part] if isinstance(part, list) else part
