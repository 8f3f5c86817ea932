"""Features computed when they are asked for, and kept on disk."""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from typing import overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ppspeech.audio import GivenFeatures, Mfcc, MfccConfig, read_audio
from ppspeech.audio.embeddings import EmbeddingConfig, WordVectors
from ppspeech.cluster import HERE, Pool
from ppspeech.data.corpus import LABELS, Corpus, Utterance
from ppspeech.data.file_index import FileIndex
from ppspeech.data.filtered import Filtering, frames_given, name_of, read_given, write_filtering, write_sample
from ppspeech.data.layout import NUMPY_DAMAGE, no_repairs, whole_folder, write_rows
from ppspeech.errors import AudioError, CorpusError
from ppspeech.storage import atomic_write, cache_folder, private_folder

FORMAT = 3  # raise when the meaning of a cached array changes

AT_ONCE = 16
"""Utterances that a worker is given at a time: few enough to lose little with it."""

FILLED = 4096
"""Utterances whose features are in memory at a time while a store is filled."""

KEPT = (*(label for label in LABELS if label != "speaker"), "take", "subset")
"""What is told of an utterance besides its speaker, in this order."""

MEMORY = 2**28
"""Bytes of features that a lazy sequence keeps at hand: small corpora are read once, large ones stay on disk."""


class FeatureStore:
    """Features of utterances, in a cache keyed by the front end's choices and the file's bytes: MFCCs, or the one
    vector that a public embedding makes of an utterance, as a single frame.

    A changed file or a changed config is a new key; nothing has to be cleared by hand. A file is hashed once, and again
    when its size or time has changed. Every array is written whole or not at all, so several workers may fill the same
    store, and an interrupted run goes on where it was. Features that are given are read from the utterances' own files.
    `folder` is by default the cache folder. Features of private speech are as private as the speech: the folder and all
    that is in it is closed to other users.
    """

    def __init__(self, config: MfccConfig | EmbeddingConfig, folder: Path | None = None) -> None:
        self.config = config
        self.folder = folder or cache_folder() / "features"
        self.index = FileIndex(self.folder / "files.sqlite") if folder else FileIndex.in_cache()
        self._prefix = json.dumps([FORMAT, asdict(config)], sort_keys=True).encode()

    def path(self, utterance: Utterance) -> Path:
        """Where the utterance's features are, or will be."""
        return self._paths([utterance])[0]

    def __getitem__(self, utterance: Utterance) -> Tensor:
        """The features of one utterance, `(frames, features)`, from the cache or computed now."""
        return self.load([utterance])[0]

    def lazy(self, utterances: Sequence[Utterance], memory: int = MEMORY) -> "LazyFeatures":
        """The features of many utterances as a sequence that reads, or computes, what is taken from it."""
        return LazyFeatures(self, utterances, memory)

    def load(self, utterances: Sequence[Utterance], workers: Pool = HERE) -> list[Tensor]:
        """The features of many utterances, each `(frames, features)`, in order; errors name the file.

        What is missing is computed by `workers`, each utterance by itself: what else is in a batch changes how numbers
        are rounded, and so a file's features depend on that file and the front end alone, to the last bit.
        """
        if isinstance(self.config, GivenFeatures):
            return [read_given(u.path, self.config.given) for u in utterances]
        private_folder(self.folder)
        paths = self._paths(utterances, workers)
        found = [self._read(path) for path in paths]
        missing = [place for place, features in enumerate(found) if features is None]
        parts = [missing[at : at + AT_ONCE] for at in range(0, len(missing), AT_ONCE)]
        files = [[utterances[place].path.absolute() for place in part] for part in parts]
        for number, computed in workers.each(partial(computed_alone, self.config), files, "Computing features"):
            for place, array in zip(parts[number], computed, strict=True):
                with atomic_write(paths[place], durable=False, private=True) as temporary:
                    np.save(temporary, array, allow_pickle=False)
                found[place] = torch.from_numpy(np.array(array))
        return [features for features in found if features is not None]

    def fill(self, utterances: Sequence[Utterance], workers: Pool = HERE) -> None:
        """See to it that the features of many utterances are kept; whoever is stopped goes on from there."""
        for at in range(0, len(utterances), FILLED):
            self.load(utterances[at : at + FILLED], workers)

    def expected_frames(self, utterances: Sequence[Utterance]) -> list[int]:
        """Frames of each utterance by its header alone; voice activity may leave fewer."""
        if isinstance(self.config, GivenFeatures):
            return [frames_given(u.path) for u in utterances]
        if isinstance(self.config, EmbeddingConfig):
            return [1] * len(utterances)
        headers = self.index.headers([u.path for u in utterances])
        for utterance, header in zip(utterances, headers, strict=True):
            if not header.sample_rate:
                raise AudioError(f"{utterance.path} is not a readable sound file")
        rate = self.config.sample_rate
        return [self.config.frame_count(-(-header.samples * rate // header.sample_rate)) for header in headers]

    def _paths(self, utterances: Sequence[Utterance], workers: Pool = HERE) -> list[Path]:
        keys = [
            hashlib.sha256(self._prefix + digest).hexdigest()
            for digest in self.index.digests([u.path for u in utterances], workers)
        ]
        return [self.folder / key[:2] / f"{key[2:]}.npy" for key in keys]

    def _read(self, path: Path) -> Tensor | None:
        try:
            with no_repairs():
                array = np.load(path, allow_pickle=False)
        except NUMPY_DAMAGE:
            return None  # absent, or damaged from outside: it is computed again and replaced
        if array.ndim != 2 or array.shape[1] != self.config.features or array.dtype != np.float32:
            raise CorpusError(f"{path} does not hold features of this config: delete it")
        return torch.from_numpy(array)


def computed_alone(config: MfccConfig | EmbeddingConfig, files: Sequence[Path]) -> list[NDArray[np.float32]]:
    """Features of sound files, each `(frames, features)`. Raises AudioError that names the file."""
    front_end = _front_end(config)
    if isinstance(front_end, WordVectors):
        return [front_end.of(file)[None].astype(np.float32) for file in files]
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # one clip is too little work for several
    try:
        with torch.no_grad():
            return [_frames_of(file, front_end) for file in files]
    finally:
        torch.set_num_threads(before)


def _frames_of(file: Path, mfcc: Mfcc) -> NDArray[np.float32]:
    waveform = read_audio(file, mfcc.config.sample_rate)
    try:
        frames = mfcc(waveform)
    except AudioError as error:
        raise AudioError(f"{file}: {error}") from None
    return np.array(frames.features[0, : int(frames.lengths[0])].numpy())


@lru_cache(maxsize=4)
def _front_end(config: MfccConfig | EmbeddingConfig) -> Mfcc | WordVectors:
    return WordVectors(config) if isinstance(config, EmbeddingConfig) else Mfcc(config)


def write_features(folder: Path, corpus: Corpus, config: MfccConfig, workers: Pool = HERE) -> int:
    """Write the features of a corpus of sound, and all of its labels, as a corpus that any recipe trains on.

    They are those of the cache, where what is missing is computed by `workers` and stays: whoever is stopped and asks
    again goes on from there, and the folder is there as a whole or not at all. Returns how many frames there are.
    Raises CorpusError for a folder that exists, or a corpus of features.
    """
    if folder.exists():
        raise CorpusError(f"{folder} exists already: choose another folder")
    if corpus.features is not None:
        raise CorpusError(f"corpus {corpus.name!r} holds features already, not sound")
    store, total = FeatureStore(config), 0
    store.fill(corpus.utterances, workers)
    labels = [name for name in KEPT if any(getattr(utterance, name) is not None for utterance in corpus)]
    rows = []
    with whole_folder(folder) as unfinished:
        (unfinished / "samples").mkdir()
        for place, (utterance, features) in enumerate(zip(corpus, store.lazy(corpus.utterances, 0), strict=True)):
            write_sample(unfinished, place, features)
            told = (getattr(utterance, name) for name in labels)
            rows.append([name_of(place), utterance.speaker, *("" if value is None else value for value in told)])
            total += len(features)
        write_rows(unfinished / "manifest.csv", ["path", "speaker", *labels], rows)
        statement = {"not_covered": ["everything: features tell what was said and who said it"]}
        write_filtering(unfinished, Filtering("frames", config.features, "speaker", config.sample_rate, statement))
    return total


class LazyFeatures(Sequence[Tensor]):
    """Features that are read, or computed, when they are taken; the last used ones stay in memory.

    Making one opens no file. `sizes` are known from headers, for batches of similar length. `memory` is how many bytes
    of features to keep at hand.
    """

    def __init__(self, store: FeatureStore, utterances: Sequence[Utterance], memory: int = MEMORY) -> None:
        self.store = store
        self.utterances = utterances
        self.memory = memory
        self.sizes = HeaderSizes(store, utterances)
        self._kept: OrderedDict[int, Tensor] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self.utterances)

    @overload
    def __getitem__(self, index: int) -> Tensor: ...
    @overload
    def __getitem__(self, index: slice) -> list[Tensor]: ...
    def __getitem__(self, index: int | slice) -> Tensor | list[Tensor]:
        if isinstance(index, slice):
            return self.many(range(*index.indices(len(self))))
        return self.many([range(len(self))[index]])[0]

    def __iter__(self) -> Iterator[Tensor]:
        for start in range(0, len(self), 64):
            yield from self.many(range(start, min(start + 64, len(self))))

    def many(self, places: Sequence[int]) -> list[Tensor]:
        """The features at these places; what is missing is computed as one batch."""
        found = {place: self._kept[place] for place in places if place in self._kept}
        absent = [place for place in dict.fromkeys(places) if place not in found]
        found |= zip(absent, self.store.load([self.utterances[place] for place in absent]), strict=True)
        for place in places:
            self._keep(place, found[place])
        return [found[place] for place in places]

    def _keep(self, place: int, features: Tensor) -> None:
        if place not in self._kept:
            self._bytes += features.nbytes
        self._kept[place] = features
        self._kept.move_to_end(place)
        while self._bytes > self.memory and self._kept:
            self._bytes -= self._kept.popitem(last=False)[1].nbytes


class HeaderSizes:
    """Frames of each utterance as its header tells, looked up when they are asked for and remembered."""

    def __init__(self, store: FeatureStore, utterances: Sequence[Utterance]) -> None:
        self._store, self._utterances = store, utterances
        self._known = np.full(len(utterances), -1, dtype=np.int32)

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, places: NDArray[np.int64]) -> NDArray[np.int32]:
        """The sizes at these places."""
        asked = places[self._known[places] < 0]
        if len(asked):
            self._known[asked] = self._store.expected_frames([self._utterances[place] for place in asked.tolist()])
        return self._known[places]
