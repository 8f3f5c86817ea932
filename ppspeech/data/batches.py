"""Utterances as training items, and batches of utterances of similar length."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, Sampler

from ppspeech.data.corpus import Corpus
from ppspeech.errors import CorpusError

LABELS = ("word", "speaker", "emotion", "gender")
"""The labels every item carries as integers; -1 where the corpus does not say."""

Batch = dict[str, Tensor]


class Vocabulary:
    """The order of each label's values: what the integers in a batch mean.

    It is made from the whole corpus before it is split, so that train and test agree.
    """

    def __init__(self, corpus: Corpus) -> None:
        self.names = {label: corpus.labels(label) for label in LABELS}
        self._index = {label: {name: i for i, name in enumerate(names)} for label, names in self.names.items()}

    def __getitem__(self, label: str) -> tuple[str, ...]:
        return self.names[label]

    def encode(self, label: str, value: str | None) -> int:
        """The integer of a value; -1 for None.

        Raises:
            CorpusError: for a value the corpus does not have.
        """
        if value is None:
            return -1
        try:
            return self._index[label][value]
        except KeyError:
            raise CorpusError(f"no {label} called {value!r} in this corpus") from None


class UtteranceDataset(Dataset[Batch]):
    """Features and labels of a corpus's utterances.

    An item is `{"features": (frames, d), "word", "speaker", "emotion", "gender", "take", "index"}`; `index` is the
    utterance's place in the corpus, and `speaker` the unit that privacy accounting counts.
    """

    def __init__(self, corpus: Corpus, features: Sequence[Tensor], vocabulary: Vocabulary) -> None:
        if len(corpus) != len(features):
            raise CorpusError(f"{len(features)} feature arrays for {len(corpus)} utterances")
        self.corpus = corpus
        self.features = features
        labels = [[vocabulary.encode(label, getattr(u, label)) for label in LABELS] for u in corpus]
        self.labels = torch.tensor(labels, dtype=torch.long).view(-1, len(LABELS))
        self.lengths = [len(f) for f in features]

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, index: int) -> Batch:
        item = {label: self.labels[index, i] for i, label in enumerate(LABELS)}
        item["take"] = torch.tensor(self.corpus[index].take)
        item["index"] = torch.tensor(index)
        return {"features": self.features[index], **item}

    @property
    def speakers(self) -> Tensor:
        """The speaker of every item, `(items,)`."""
        return self.labels[:, LABELS.index("speaker")]


def collate(items: Sequence[Batch]) -> Batch:
    """Pad items into one batch: `features` `(batch, frames, d)`, `lengths` `(batch,)`, every label `(batch,)`."""
    features = [item["features"] for item in items]
    batch = {"features": pad_sequence(features, batch_first=True), "lengths": torch.tensor([len(f) for f in features])}
    return batch | {name: torch.stack([item[name] for item in items]) for name in items[0] if name != "features"}


class LengthBuckets(Sampler[list[int]]):
    """Batches of utterances of similar length, so that little of a batch is padding.

    Utterances are shuffled, cut into pools of `pool` batches, sorted by length inside each pool, and the batches
    shuffled again. Not for differentially private training, whose batches must be drawn independently of the data.

    Args:
        lengths: of every utterance, in frames.
        batch_size: utterances a batch; the last may hold fewer.
        shuffle: False gives the order of the corpus, sorted by length.
        seed: with the epoch, decides the order.
        pool: batches sorted together.
    """

    def __init__(
        self, lengths: Sequence[int], batch_size: int, *, shuffle: bool = True, seed: int = 0, pool: int = 20
    ) -> None:
        if batch_size < 1:
            raise CorpusError(f"batch_size must be >= 1, got {batch_size}")
        self.lengths = lengths
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.pool = pool
        self.epoch = 0

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next pass (Lightning calls this)."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        if not self.shuffle:
            order = sorted(range(len(self.lengths)), key=self.lengths.__getitem__)
            yield from self._cut(order, self.batch_size)
            return
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        order = torch.randperm(len(self.lengths), generator=generator).tolist()
        pools = self._cut(order, self.batch_size * self.pool)
        batches = [b for p in pools for b in self._cut(sorted(p, key=self.lengths.__getitem__), self.batch_size)]
        for place in torch.randperm(len(batches), generator=generator).tolist():
            yield batches[place]

    @staticmethod
    def _cut(order: list[int], size: int) -> list[list[int]]:
        return [order[i : i + size] for i in range(0, len(order), size)]
