"""Features of a corpus written side by side, as `ppspeech.data.corpora.packed` reads them."""

import json
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from torch import Tensor

from ppspeech.audio import GivenFeatures, MfccConfig
from ppspeech.data.corpora.packed import (
    COLUMNS,
    FORMAT,
    FRAMES,
    PACKED,
    STARTS,
    TABLE,
    PackedCorpus,
    read_packed,
)
from ppspeech.data.corpus import LABELS, Corpus
from ppspeech.data.features import FeatureStore
from ppspeech.data.layout import whole_folder
from ppspeech.data.sound_check import usable
from ppspeech.errors import CorpusError
from ppspeech.progress import track
from ppspeech.storage import flush


def write_packed(folder: Path, corpus: Corpus, config: MfccConfig, *, skip_bad: bool = False) -> PackedCorpus:
    """Compute all features of a corpus and pack them, a few utterances in memory at a time: see `write_rows_packed`.

    Raises CorpusError for recordings that cannot be used, which `skip_bad` leaves out with a warning.
    """
    if config.encoder is not None:
        raise CorpusError("features behind an encoder are not packed: pack what is before it")
    corpus = usable(corpus, config, skip_bad=skip_bad)
    store = FeatureStore(config).lazy(corpus.utterances, memory=0)
    vocabulary = {label: {name: place for place, name in enumerate(corpus.labels(label))} for label in LABELS}
    rows = (
        (*(vocabulary[label].get(getattr(u, label), -1) for label in LABELS), u.take) for u in track(corpus, "Packing")
    )
    names = {label: tuple(known) for label, known in vocabulary.items()}
    return write_rows_packed(folder, corpus.name, corpus.sample_rate, config, names, zip(store, rows, strict=True))


def write_rows_packed(
    folder: Path,
    name: str,
    sample_rate: int,
    config: MfccConfig,
    names: dict[str, tuple[str, ...]],
    rows: Iterable[tuple[Tensor, Sequence[int]]],
) -> PackedCorpus:
    """Pack features `(frames, d)` with the numbers of their labels and take, in the order of `COLUMNS`.

    The folder is there whole, or not at all, whatever happens to the machine. Raises CorpusError for one that is there,
    also if it has come meanwhile, features of another shape, and rows that are none.
    """
    if folder.exists():
        raise CorpusError(f"{folder} is there already: pack into a folder that is not")
    with whole_folder(folder, closed=True) as unfinished:
        starts, labels = _write_frames(unfinished / FRAMES, config.features, rows)
        np.save(unfinished / STARTS, np.asarray(starts, dtype="<i8"), allow_pickle=False)
        table = np.asarray(labels, dtype="<i4").reshape(-1, len(COLUMNS))
        np.save(unfinished / TABLE, table, allow_pickle=False)
        plain = {
            "format": FORMAT, "name": name, "sample_rate": sample_rate, "config": asdict(config),
            "given": config.given if isinstance(config, GivenFeatures) else None,
            "names": names, "utterances": len(table), "frames": starts[-1],
        }  # fmt: skip
        (unfinished / PACKED).write_text(json.dumps(plain) + "\n", encoding="utf-8")
        read_packed(unfinished)
        for path in unfinished.iterdir():
            flush(path)  # or else a power failure could leave a folder of silence
    return read_packed(folder)


def _write_frames(
    path: Path, width: int, rows: Iterable[tuple[Tensor, Sequence[int]]]
) -> tuple["array[int]", "array[int]"]:
    """Write features one after another; where each begins, and all labels: 28 bytes an utterance are kept."""
    starts, labels = array("q", [0]), array("i")
    with path.open("wb") as file:
        for features, numbers in rows:
            if features.ndim != 2 or features.shape[1] != width or not len(features):
                place, shape = len(starts) - 1, tuple(features.shape)
                raise CorpusError(f"utterance {place} has features {shape}, not (frames, {width})")
            file.write(features.numpy().astype("<f4").tobytes())
            starts.append(starts[-1] + len(features))
            labels.extend(numbers)
    if len(starts) == 1:
        raise CorpusError("there is no utterance to pack")
    return starts, labels
