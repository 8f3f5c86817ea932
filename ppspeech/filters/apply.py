"""Filtered features on disk: what may be handed on, and beside it, apart, what must stay.

    FOLDER/samples/000000.npz   filtered samples; all vectors in one file, frames one file an utterance
    FOLDER/manifest.csv         what each sample is, as far as it may be known
    FOLDER/privacy.json         what is promised, or that nothing is, and what attackers found
    FOLDER.private.csv          whose each sample was: for `filter attack`, never to be handed on

Samples are numbered in an order drawn from the operating system: corpora are sorted by person, and so were names.
"""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import Frames
from ppspeech.crypto import uniform_residues
from ppspeech.errors import ModelError
from ppspeech.filters.noisy import FeatureNoise, NoisyFilter
from ppspeech.privacy import Guarantee
from ppspeech.progress import track
from ppspeech.storage import atomic_write

FORMAT = 1
SAMPLES = "samples"
MANIFEST = "manifest.csv"
STATEMENT = "privacy.json"
MOST_JSON_BYTES = 2**20

Kind = Literal["vectors", "frames"]


@dataclass(frozen=True, slots=True)
class Owner:
    """What is known about a sample before it is filtered.

    Attributes:
        kept: the label that stays.
        private: the label that must not.
        recording: where it was taken from; samples of one recording must not be on both sides of a test.
    """

    kept: str
    private: str
    recording: str


@dataclass(frozen=True, eq=False)
class FilteredFolder:
    """Filtered samples as they are on disk, with whose they were.

    Attributes:
        features: `(samples, d)`, or Frames.
        kept: the label of each that stayed, as an index into `kept_names`.
        kept_names: its values.
        private: the label of each that was to be hidden, an index into `private_names`.
        private_names: its values.
        recordings: `(samples,)`.
        statement: what `privacy.json` says.
    """

    features: Tensor | Frames
    kept: Tensor
    kept_names: tuple[str, ...]
    private: Tensor
    private_names: tuple[str, ...]
    recordings: Tensor
    statement: dict[str, Any]


def private_file(folder: Path) -> Path:
    """Where whose each sample was is kept: beside the folder, not in it."""
    return folder.with_name(f"{folder.name}.private.csv")


def write_filtered(
    folder: Path,
    filter: nn.Module,
    owners: Sequence[Owner],
    load: Callable[[int], Tensor],
    *,
    kind: Kind,
    noise: FeatureNoise | None = None,
    about: dict[str, Any] | None = None,
) -> Guarantee:
    """Filter samples one after another, in a random order, and write them with a statement.

    Args:
        folder: must not exist.
        filter: what to apply.
        owners: one a sample.
        load: the inputs of sample i, `(D,)` or `(frames, D)`.
        kind: which of the two.
        noise: added to every vector; None for a bare filter, which promises nothing.
        about: more for the statement, as JSON can hold it, such as what attackers found.

    Returns:
        What is promised to the person with the most samples.

    Raises:
        ModelError: if there is such a folder, or nothing to write.
    """
    if kind not in get_args(Kind):
        raise ModelError(f"samples are {' or '.join(get_args(Kind))}, got {kind!r}")
    beside = private_file(folder)
    if folder.exists() or beside.exists():
        raise ModelError(f"{folder if folder.exists() else beside} exists already: choose another folder")
    if not owners:
        raise ModelError("there is no sample to filter")
    released = NoisyFilter(filter, noise)
    order = np.argsort(uniform_residues(len(owners))).tolist()
    counts: dict[str, int] = {}
    vectors: list[Tensor] = []
    for place, index in enumerate(track(order, "Filtering")):
        given = load(index)
        filtered = released.release(given.unsqueeze(0) if kind == "vectors" else given).value
        counts[owners[index].private] = counts.get(owners[index].private, 0) + len(filtered)
        if kind == "vectors":
            vectors.append(filtered)
        else:
            _save(folder / SAMPLES / f"{place:06d}.npz", filtered)
    if kind == "vectors":
        _save(folder / SAMPLES / f"{0:06d}.npz", torch.cat(vectors))
    _write_rows(folder / MANIFEST, ("sample", "kept"), [(place, owners[i].kept) for place, i in enumerate(order)])
    rows = [(place, owners[i].private, owners[i].recording) for place, i in enumerate(order)]
    _write_rows(beside, ("sample", "private", "recording"), rows, secret=True)
    most = max(counts.values())
    guarantee = released.guarantee if noise is None else noise.guarantee_for(most)
    statement = {
        "format": FORMAT,
        "kind": kind,
        "samples": len(owners),
        "guarantee": guarantee.to_json(),
        "each_sample": released.guarantee.to_json(),
        "most_samples_of_one_person": most if noise is not None else None,
        "about": about or {},
    }
    with atomic_write(folder / STATEMENT) as temporary:
        temporary.write_text(json.dumps(statement, indent=2) + "\n", encoding="utf-8")
    return guarantee


def read_filtered(folder: Path, private: Path | None = None) -> FilteredFolder:
    """Read what `write_filtered` wrote, and whose it was.

    Args:
        folder: the filtered samples.
        private: whose they were; beside the folder by default.

    Raises:
        ModelError: for files that are missing, damaged or do not fit each other.
    """
    statement = _read_statement(folder / STATEMENT)
    kept = [row["kept"] for row in _read_rows(folder / MANIFEST, ("sample", "kept"))]
    owners = _read_rows(private or private_file(folder), ("sample", "private", "recording"))
    if len(kept) != len(owners):
        raise ModelError(
            f"{folder} lists {len(kept)} samples, the private labels {len(owners)}: they do not belong together"
        )
    if statement["kind"] == "vectors":
        features: Tensor | Frames = _load(folder / SAMPLES / f"{0:06d}.npz")
        there = len(features)
    else:
        clips = [_load(folder / SAMPLES / f"{place:06d}.npz") for place in range(len(kept))]
        features = Frames(pad_sequence(clips, batch_first=True), torch.tensor([len(clip) for clip in clips]))
        there = len(clips)
    if there != len(kept):
        raise ModelError(f"{folder} has {there} samples where its manifest lists {len(kept)}")
    kept_names, kept_numbers = _numbered(kept)
    private_names, private_numbers = _numbered([row["private"] for row in owners])
    _, recordings = _numbered([row["recording"] for row in owners])
    return FilteredFolder(features, kept_numbers, kept_names, private_numbers, private_names, recordings, statement)


def _numbered(values: list[str]) -> tuple[tuple[str, ...], Tensor]:
    names = tuple(sorted(set(values)))
    place = {name: index for index, name in enumerate(names)}
    return names, torch.tensor([place[value] for value in values])


def _save(path: Path, features: Tensor) -> None:
    with atomic_write(path, durable=False) as temporary:
        np.savez_compressed(temporary, allow_pickle=False, features=features.numpy(force=True))


def _load(path: Path) -> Tensor:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            features = np.asarray(arrays["features"])
    except (OSError, ValueError, KeyError, EOFError) as damaged:
        raise ModelError(f"{path} holds no filtered samples: {damaged}") from None
    if features.ndim != 2 or features.dtype.kind != "f" or not np.isfinite(features).all():
        raise ModelError(f"{path} must hold finite numbers of shape (samples, features), got {features.shape}")
    return torch.from_numpy(features)


def _write_rows(path: Path, heading: Sequence[str], rows: Sequence[Sequence[Any]], *, secret: bool = False) -> None:
    with atomic_write(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([heading, *rows])
    if secret:
        path.chmod(0o600)


def _read_rows(path: Path, heading: tuple[str, ...]) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader: Iterator[dict[str, str]] = csv.DictReader(file)
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ModelError(f"cannot read {path}: {error}") from None
    if not rows or any(set(row) != set(heading) or None in row.values() for row in rows):
        raise ModelError(f"{path} must have the columns {', '.join(heading)} and at least one row")
    if [row["sample"] for row in rows] != [str(place) for place in range(len(rows))]:
        raise ModelError(f"{path} must list its samples in order, from 0")
    return rows


def _read_statement(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MOST_JSON_BYTES:
            raise ValueError("it is too large")
        statement = json.loads(path.read_text(encoding="utf-8"))
        if statement["format"] != FORMAT or statement["kind"] not in get_args(Kind):
            raise ValueError(f"format {statement['format']!r:.20} of kind {statement['kind']!r:.20}")
        Guarantee.from_json(statement["guarantee"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} is no statement of filtered samples: {error}") from None
    return dict(statement)
