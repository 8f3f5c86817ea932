"""Utterances as training items, and batches of utterances of similar length."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, Sampler

from ppspeech.data.corpus import LABELS, Corpus
from ppspeech.data.features import HeaderSizes, LazyFeatures
from ppspeech.errors import CorpusError
from ppspeech.ranks import ONE_RANK, Ranks

Batch = dict[str, Tensor]


def numbered(values: Sequence[str]) -> tuple[tuple[str, ...], Tensor]:
    """The distinct values, sorted, and the place of each among them, `(values,)`.

    >>> numbered(["no", "yes", "no"])
    (('no', 'yes'), tensor([0, 1, 0]))
    """
    names = tuple(sorted(set(values)))
    place = {name: index for index, name in enumerate(names)}
    return names, torch.tensor([place[value] for value in values])


class Vocabulary:
    """What the integers in a batch mean; made from the whole corpus, so that train and test agree."""

    def __init__(self, corpus: Corpus) -> None:
        self.names = {label: corpus.labels(label) for label in LABELS}
        self._index = {label: {name: i for i, name in enumerate(names)} for label, names in self.names.items()}

    def __getitem__(self, label: str) -> tuple[str, ...]:
        return self.names[label]

    def encode(self, label: str, value: str | None) -> int:
        """The integer of a value; -1 for None. Raises CorpusError for a value the corpus does not have."""
        if value is None:
            return -1
        try:
            return self._index[label][value]
        except KeyError:
            raise CorpusError(f"no {label} called {value!r} in this corpus") from None

    def encode_all(self, label: str, values: Iterable[str | None]) -> Tensor:
        """The integers of many values, `(values,)`."""
        return torch.from_numpy(np.fromiter((self.encode(label, value) for value in values), dtype=np.int64))


class UtteranceDataset(Dataset[Batch]):
    """Features and labels of a corpus's utterances; features are taken when an item is.

    An item is `{"features": (frames, d), "word", "speaker", "emotion", "gender", "take", "index"}`; `index` is the
    utterance's place in the corpus, and `speaker` the unit that privacy accounting counts. Labels are integers, -1
    where the corpus does not say. Features are in memory or lazy; `vocabulary` says what the labels' integers mean.
    """

    def __init__(self, corpus: Corpus, features: Sequence[Tensor], vocabulary: Vocabulary) -> None:
        if len(corpus) != len(features):
            raise CorpusError(f"{len(features)} feature arrays for {len(corpus)} utterances")
        self.corpus = corpus
        self.features = features
        columns = [vocabulary.encode_all(label, (getattr(u, label) for u in corpus)) for label in LABELS]
        self.labels = torch.stack(columns, dim=1)

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, index: int) -> Batch:
        return self._item(index, self.features[index])

    def __getitems__(self, indices: list[int]) -> list[Batch]:
        """A batch of items (DataLoader asks so): what has to be computed is computed together."""
        if isinstance(self.features, LazyFeatures):
            taken = self.features.many(indices)
        else:
            taken = [self.features[index] for index in indices]
        return [self._item(index, features) for index, features in zip(indices, taken, strict=True)]

    def _item(self, index: int, features: Tensor) -> Batch:
        item = {label: self.labels[index, i] for i, label in enumerate(LABELS)}
        item["take"] = torch.tensor(self.corpus[index].take)
        item["index"] = torch.tensor(index)
        return {"features": features, **item}

    @property
    def lengths(self) -> list[int]:
        """Frames of every item, exactly: all features are read."""
        return [len(features) for features in self.features]

    @property
    def sizes(self) -> Sequence[int] | HeaderSizes:
        """Frames of every item for batches of similar length; where features are lazy, as headers tell."""
        return self.features.sizes if isinstance(self.features, LazyFeatures) else self.lengths

    @property
    def utterances(self) -> Tensor:
        """Which utterance each item is, `(items,)`: its place in the corpus."""
        return torch.arange(len(self))

    @property
    def speakers(self) -> Tensor:
        """The speaker of every item, `(items,)`."""
        return self.labels[:, LABELS.index("speaker")]

    @property
    def digest(self) -> bytes:
        """Names the utterances and their order, wherever their files are."""
        told = hashlib.sha256()
        for each in self.corpus:
            told.update(repr((each.path.name, each.take, *(getattr(each, label) for label in LABELS))).encode())
        return told.digest()


def collate(items: Sequence[Batch]) -> Batch:
    """Pad items into one batch: `features` `(batch, frames, d)`, `lengths` `(batch,)`, every label `(batch,)`.

    Of nobody, which is what a rank may have of a small batch, there are no labels.
    """
    if not items:
        return {"features": torch.zeros(0, 0, 0), "lengths": torch.zeros(0, dtype=torch.int64)}
    features = [item["features"] for item in items]
    batch = {"features": pad_sequence(features, batch_first=True), "lengths": torch.tensor([len(f) for f in features])}
    return batch | {name: torch.stack([item[name] for item in items]) for name in items[0] if name != "features"}


def check_shared(batch_size: int, place: Ranks) -> None:
    """Refuse batches of which a rank would never have a part. Raises CorpusError."""
    if batch_size < place.ranks:
        raise CorpusError(
            f"{place.ranks} processes share batches of {batch_size}: each needs one utterance; take fewer processes "
            "(trainer.devices) or larger batches (data.batch_size)"
        )


class LengthBuckets(Sampler[list[int]]):
    """Batches of utterances of similar length, so that little of a batch is padding.

    Utterances are shuffled, cut into pools of `pool` batches, sorted by length inside each pool, and the batches
    shuffled again. Lengths are asked for pool by pool, when a batch of the pool is due. Not for differentially private
    training, whose batches must be drawn independently of the data.

    Several ranks with the same seed share every utterance of an epoch, and none is given twice. Shuffled batches are
    those of one process, of each of which every rank has its part, so that a step sees what it would there: every
    so many-th utterance, or those that are its own (`mine`, bool, an utterance each), maybe nobody. Without `shuffle`
    every rank goes through its own utterances, sorted by length, in as many batches as that takes. `lengths` are in
    frames. Raises CorpusError for fewer utterances, or fewer a batch, than ranks.
    """

    def __init__(
        self,
        lengths: Sequence[int] | HeaderSizes,
        batch_size: int,
        *,
        shuffle: bool = True,
        seed: int = 0,
        pool: int = 20,
        place: Ranks = ONE_RANK,
        mine: NDArray[np.bool_] | None = None,
    ) -> None:
        if batch_size < 1:
            raise CorpusError(f"batch_size must be >= 1, got {batch_size}")
        check_shared(batch_size, place)
        if 0 < len(lengths) < place.ranks:
            raise CorpusError(f"{place.ranks} processes share {len(lengths)} utterances: lower trainer.devices")
        self.lengths = np.asarray(lengths) if isinstance(lengths, Sequence) else lengths
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.pool = pool
        self.place, self.mine = place, mine
        self.epoch = 0

    @property
    def batches(self) -> int:
        """Batches of an epoch: those of one process if shuffled, else this rank's."""
        count = len(self.lengths) if self.shuffle else len(range(self.place.rank, len(self.lengths), self.place.ranks))
        return -(-count // self.batch_size)

    def __len__(self) -> int:
        return self.batches

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next pass (Lightning calls this)."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        count = len(self.lengths)
        if self.shuffle:
            generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
            order = torch.randperm(count, generator=generator).numpy()
            places, pooled = torch.randperm(self.batches, generator=generator).numpy(), self.pool
        else:
            order = np.arange(self.place.rank, count, self.place.ranks)
            places, pooled = np.arange(self.batches), max(1, self.batches)
        is_sorted: set[int] = set()
        for place in map(int, places):
            pool = place // pooled
            if pool not in is_sorted:
                self._sort(order[pool * pooled * self.batch_size : (pool + 1) * pooled * self.batch_size])
                is_sorted.add(pool)
            batch = order[place * self.batch_size : (place + 1) * self.batch_size]
            yield (self._own(batch) if self.shuffle else batch).tolist()

    def _own(self, batch: NDArray[np.int64]) -> NDArray[np.int64]:
        """This rank's part of a batch of all."""
        return batch[self.place.rank :: self.place.ranks] if self.mine is None else batch[self.mine[batch]]

    def _sort(self, members: NDArray[np.int64]) -> None:
        members[:] = members[np.argsort(self.lengths[members], kind="stable")]
