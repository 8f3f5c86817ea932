"""A corpus whose features are given, as a filter leaves them.

    FOLDER/samples/000000.npy   features of one sample, float32 `(frames, d)`; a single frame where it is a vector
    FOLDER/manifest.csv         as in any corpus folder: path, speaker and the label that was kept
    FOLDER/filtering.json       what was made of what, and what is promised, or that nothing is

Where the speaker is not what was kept, every sample has a speaker of its own: a guarantee per speaker is then one per
sample, and a split by speaker one by sample.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from ppspeech.data.corpus import LABELS
from ppspeech.data.layout import NUMPY_DAMAGE, no_repairs, write_rows
from ppspeech.errors import CorpusError

FILTERING = "filtering.json"
FORMAT = 2  # 1 was a folder that no corpus loader could read

MOST_JSON_BYTES = 2**20

Kind = Literal["vectors", "frames"]


@dataclass(frozen=True)
class Filtering:
    """What `filtering.json` says."""

    kind: Kind  # whether a sample is one vector or a sequence of frames
    features: int
    label: str  # the column of the manifest that holds the label that was kept; those of tables are called words
    sample_rate: int  # of the recordings, in Hz; 1 where there were none
    statement: Mapping[str, Any]  # what is promised and who says so, as JSON can hold it

    def __post_init__(self) -> None:
        for name, known in (("kind", get_args(Kind)), ("label", LABELS)):
            if getattr(self, name) not in known:
                raise CorpusError(f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r:.80}")
        for name in ("features", "sample_rate"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 1:
                raise CorpusError(f"{name} must be a whole number >= 1, got {getattr(self, name)!r:.80}")
        if not isinstance(self.statement, Mapping):
            raise CorpusError(f"the statement must be an object, got {self.statement!r:.80}")


def write_sample(folder: Path, place: int, features: Tensor) -> None:
    """Write the features `(frames, d)` at one place; `folder/samples` is there."""
    np.save(folder / name_of(place), features.numpy(force=True).astype(np.float32), allow_pickle=False)


def write_manifest(folder: Path, kept: Sequence[str], label: str) -> None:
    """Write the manifest of samples with the `label` that was kept of each, in the order of their places."""
    rows = [
        [name_of(place), each] if label == "speaker" else [name_of(place), f"unknown-{place:06d}", each]
        for place, each in enumerate(kept)
    ]
    header = ["path", "speaker"] if label == "speaker" else ["path", "speaker", label]
    write_rows(folder / "manifest.csv", header, rows)


def name_of(place: int) -> str:
    """Where in the folder a sample is."""
    return f"samples/{place:06d}.npy"


def write_filtering(folder: Path, filtering: Filtering) -> None:
    """Write `filtering.json`."""
    plain = {"format": FORMAT, **vars(filtering)}
    (folder / FILTERING).write_text(json.dumps(plain, indent=2) + "\n", encoding="utf-8")


def read_filtering(folder: Path) -> Filtering:
    """Read `filtering.json`. Raises CorpusError if it is missing or says something else."""
    path = folder / FILTERING
    try:
        if path.stat().st_size > MOST_JSON_BYTES:
            raise ValueError("it is too large")
        plain = json.loads(path.read_text(encoding="utf-8"))
        if plain.pop("format") != FORMAT:
            raise ValueError(f"this version reads format {FORMAT}")
        return Filtering(**plain)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorpusError(f"{path} is no statement of filtered features: {error}") from None


def read_given(path: Path, features: int) -> Tensor:
    """The features of one sample, `(frames, features)`. Raises CorpusError if the file holds anything else."""
    array = np.array(_opened(path))
    if array.ndim != 2 or not len(array) or array.dtype != np.float32 or not np.isfinite(array).all():
        raise CorpusError(f"{path} must hold finite float32 features of shape (frames, features), got {array.shape}")
    if array.shape[1] != features:
        raise CorpusError(f"{path} holds {array.shape[1]} features a frame where the corpus has {features}")
    return torch.from_numpy(array)


def frames_given(path: Path) -> int:
    """How many frames a sample has, by the header of its file."""
    return len(_opened(path))


def _opened(path: Path) -> np.ndarray[Any, Any]:
    if path.suffix != ".npy":
        raise CorpusError(f"{path} holds no features: sound cannot stand in for features that are given")
    try:
        with no_repairs():
            opened: np.ndarray[Any, Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except NUMPY_DAMAGE as damaged:
        raise CorpusError(f"{path} holds no features: {damaged}") from None
    return opened
