"""A corpus as its features alone, in a few large files: what training on millions of utterances reads, bit by bit.

    FOLDER/packed.json    what it is: front end, names of labels, how many utterances and frames
    FOLDER/frames.bin     features of all utterances, one after another, float32 `(frames, d)`, little-endian
    FOLDER/starts.npy     where each begins, and the end, in frames, int64 `(utterances + 1,)`
    FOLDER/labels.npy     word, speaker, emotion, gender and take of each, int32 `(utterances, 5)`, -1 where unknown

Frames are read by position when a batch needs them, and nothing of them is kept: memory does not grow with the corpus,
but for labels and places, which are mapped, 28 bytes an utterance. Features of private speech are as private as the
speech: the folder is closed to other users.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ppspeech.audio import GivenFeatures, MfccConfig
from ppspeech.data.batches import Batch, UtteranceDataset
from ppspeech.data.corpus import LABELS, Utterance
from ppspeech.data.layout import NUMPY_DAMAGE, first_few, no_repairs
from ppspeech.errors import AudioError, CorpusError

PACKED, FRAMES, STARTS, TABLE = "packed.json", "frames.bin", "starts.npy", "labels.npy"
FORMAT = 1
MOST_JSON_BYTES = 2**26  # names of millions of speakers
COLUMNS = (*LABELS, "take")


def is_packed(name: str) -> bool:
    """Whether a corpus is named that is a folder of packed features."""
    return (Path(name) / PACKED).is_file()


@dataclass(frozen=True)
class PackedCorpus:
    """What `packed.json` says, with labels and places mapped; `names` are what the labels' numbers mean."""

    folder: Path
    name: str
    sample_rate: int
    config: MfccConfig
    names: dict[str, tuple[str, ...]]
    utterances: int
    frames: int

    def __len__(self) -> int:
        return self.utterances

    def __getitem__(self, label: str) -> tuple[str, ...]:
        """The values of a label, as of a `Vocabulary`."""
        return self.names[label]

    @cached_property
    def labels(self) -> NDArray[np.int32]:
        """The columns of labels and takes, `(utterances, 5)`."""
        return self._mapped(TABLE, np.dtype("<i4"), (self.utterances, len(COLUMNS)))

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where utterances begin, and the end, `(utterances + 1,)`."""
        found = self._mapped(STARTS, np.dtype("<i8"), (self.utterances + 1,))
        ordered = all(bool((np.diff(part) > 0).all()) for part in _slices(found))
        if found[0] != 0 or found[-1] != self.frames or not ordered:
            raise CorpusError(f"{self.folder / STARTS} does not say where utterances begin: pack the corpus again")
        return found

    def _mapped(self, file: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        try:
            with no_repairs():
                found: NDArray[Any] = np.load(self.folder / file, mmap_mode="r", allow_pickle=False)
        except NUMPY_DAMAGE as damaged:
            raise CorpusError(f"{self.folder / file} cannot be read: {damaged}; pack the corpus again") from None
        if found.shape != shape or found.dtype != dtype:
            raise CorpusError(f"{self.folder / file} holds {found.dtype} {found.shape}, not {dtype} {shape}")
        return found

    def part(self, places: NDArray[np.int64]) -> "PackedPart":
        """The utterances at these places."""
        return PackedPart(self, places)

    def check_trained(self, label: str, train: NDArray[np.int64]) -> None:
        """Refuse utterances without a value of `label`, and values that nobody says at the places of training.

        Raises CorpusError.
        """
        column = self.labels[:, COLUMNS.index(label)]
        said = np.bincount(column[train] + 1, minlength=len(self.names[label]) + 1)[1:]
        unlabeled = int((column < 0).sum())
        untrained = [name for name, count in zip(self.names[label], said, strict=True) if not count]
        what = [f"{unlabeled} utterances have no {label}"] if unlabeled else []
        what += [f"nobody says {label} {first_few(untrained, 20)} in training"] if untrained else []
        if what:
            raise CorpusError(f"{self.folder}: {', and '.join(what)}; pack others, or split otherwise (data.seed)")

    def divided(self, test: float, validation: float, seed: int) -> dict[str, NDArray[np.int64]]:
        """Places of the parts `train` and, where these shares are above 0, `test` and `validation`; nobody is in two.

        Raises CorpusError for shares that leave a part without a speaker.
        """
        column = self.labels[:, COLUMNS.index("speaker")]
        people = len(self.names["speaker"])
        order = torch.randperm(people, generator=torch.Generator().manual_seed(seed)).numpy()
        parts, begun = np.zeros(people, dtype=np.int8), 0
        for number, share in enumerate((test, validation), start=1):
            count = round(share * people)
            if share > 0 and not count > 0:
                raise CorpusError(f"{share} of {people} speakers is nobody: hold out more, or 0")
            parts[order[begun : begun + count]] = number
            begun += count
        if begun >= people:
            raise CorpusError(f"{test} and {validation} of {people} speakers leave nobody to train on")
        own = parts[column]
        found = {name: np.flatnonzero(own == number) for number, name in enumerate(("train", "test", "validation"))}
        return {name: places for name, places in found.items() if len(places)}


class PackedFeatures(Sequence[Tensor]):
    """Features of a packed corpus at some places, each read when it is taken, `(frames, d)`."""

    def __init__(self, corpus: PackedCorpus, places: NDArray[np.int64]) -> None:
        self.corpus, self.places = corpus, places
        self.sizes = _Sizes(corpus, places)
        self._file: int | None = None

    def __len__(self) -> int:
        return len(self.places)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_file": None}  # whoever loads batches in a process of its own opens the file itself

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)

    @overload
    def __getitem__(self, index: int) -> Tensor: ...
    @overload
    def __getitem__(self, index: slice) -> list[Tensor]: ...
    def __getitem__(self, index: int | slice) -> Tensor | list[Tensor]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = int(self.places[range(len(self))[index]])
        start, end = (int(frame) for frame in self.corpus.starts[place : place + 2])
        width = self.corpus.config.features
        if self._file is None:
            self._file = os.open(self.corpus.folder / FRAMES, os.O_RDONLY)
        size = 4 * width * (end - start)
        read = os.pread(self._file, size, 4 * width * start)
        if len(read) != size:
            raise CorpusError(f"{self.corpus.folder / FRAMES} is torn after {self.corpus.frames:,} frames: pack again")
        return torch.from_numpy(np.frombuffer(read, dtype="<f4").reshape(-1, width).copy())


class _Sizes:
    """Frames of each utterance, by where it begins and the next one does."""

    def __init__(self, corpus: PackedCorpus, places: NDArray[np.int64]) -> None:
        self._corpus, self._places = corpus, places

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, chosen: NDArray[np.int64]) -> NDArray[np.int32]:
        starts, places = self._corpus.starts, self._places[chosen]
        return (starts[places + 1] - starts[places]).astype(np.int32)


class PackedPart(UtteranceDataset):
    """Some utterances of a packed corpus as training items; `corpus` has them without their recordings."""

    def __init__(self, packed: PackedCorpus, places: NDArray[np.int64]) -> None:
        self.packed, self.places = packed, places
        self.features = self._packed_features = PackedFeatures(packed, places)
        self.labels = torch.from_numpy(packed.labels[places])

    @property
    def corpus(self) -> Any:  # type: ignore[override]
        """The utterances, made one by one: their path is the folder's, with their place."""
        return _Utterances(self.packed, self.places)

    def _item(self, index: int, features: Tensor) -> Batch:
        item = dict(zip(COLUMNS, self.labels[index].long(), strict=True))
        return {"features": features, **item, "index": torch.tensor(index)}

    @property
    def speakers(self) -> Tensor:
        """The speaker of every item, `(items,)`."""
        return self.labels[:, COLUMNS.index("speaker")].long()

    @property
    def digest(self) -> bytes:
        """Names the utterances and their order, wherever their files are."""
        names = repr((self.packed.name, self.packed.names, self.packed.frames)).encode()
        return hashlib.sha256(names + self.labels.numpy().tobytes()).digest()

    @property
    def lengths(self) -> list[int]:
        """Frames of every item, exactly."""
        found: list[int] = self._packed_features.sizes[np.arange(len(self))].tolist()
        return found

    @property
    def sizes(self) -> Any:
        """The same, looked up when they are asked for."""
        return self._packed_features.sizes


@dataclass(frozen=True)
class _Utterances(Sequence[Utterance]):
    packed: PackedCorpus
    places: NDArray[np.int64]

    @property
    def name(self) -> str:
        return self.packed.name

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: Any) -> Any:
        place = int(self.places[index])
        *numbers, take = self.packed.labels[place].tolist()
        told = {n: self.packed.names[n][v] for n, v in zip(LABELS, numbers, strict=True) if v >= 0}
        return Utterance(self.packed.folder / f"{place}", **{"speaker": "", **told}, take=take)


def read_packed(folder: Path) -> PackedCorpus:
    """Open a packed corpus; only what it is is read. Raises CorpusError if it is damaged."""
    path = folder / PACKED
    try:
        if path.stat().st_size > MOST_JSON_BYTES:
            raise ValueError("it is too large")
        plain = json.loads(path.read_text(encoding="utf-8"))
        if plain["format"] != FORMAT:
            raise ValueError(f"this version reads format {FORMAT}")
        kept: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in plain["config"].items()
        }
        config = MfccConfig(**kept) if plain["given"] is None else GivenFeatures(given=int(plain["given"]))
        names = {label: tuple(map(str, plain["names"][label])) for label in LABELS}
        counts = [plain[name] for name in ("sample_rate", "utterances", "frames")]
        if not all(type(count) is int and count > 0 for count in counts):
            raise ValueError(f"counts are whole numbers >= 1, got {counts}")
        found = PackedCorpus(folder, str(plain["name"]), counts[0], config, names, *counts[1:])
        if (folder / FRAMES).stat().st_size != 4 * config.features * found.frames:
            raise ValueError(f"{FRAMES} does not hold {found.frames:,} frames of {config.features} numbers")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, AudioError) as error:
        raise CorpusError(f"{path} is no packed corpus: {error}") from None
    for column, label in enumerate(LABELS):
        for part in _slices(found.labels[:, column]):
            least, worst = int(part.min()), int(part.max())
            if worst >= len(names[label]) or least < (0 if label == "speaker" else -1):
                told = worst if worst >= len(names[label]) else least
                raise CorpusError(f"{folder / TABLE} names {label} {told}, and there are {len(names[label])}")
    return found


def _slices(values: NDArray[Any], size: int = 2**20) -> Iterator[NDArray[Any]]:
    """Of a long array, overlapping by one, so that little of it is copied at a time."""
    for start in range(0, len(values), size):
        yield values[start : start + size + 1]
