"""UCI HAR: which of six things is a person with a smartphone at the waist doing?"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ppspeech.data.layout import Published, corpus_folder
from ppspeech.data.registry import register_table
from ppspeech.data.tables.files import Expected, read_arrays
from ppspeech.data.tables.table import Table
from ppspeech.errors import CorpusError

ROWS = 10_299
TEST_ROWS = 2_947
SUBJECTS = 30
LABELS: dict[str, Expected] = {
    "subject": ("u", (ROWS,)),
    "activity": ("u", (ROWS,)),
    "recording": ("i", (ROWS,)),
    "is_test": ("b", (ROWS,)),
    "activity_names": ("U", (6,)),
}

CHANNELS = tuple(f"{kind}_{axis}" for kind in ("body_acc", "body_gyro", "total_acc") for axis in "xyz")

PUBLISHED = Published(
    "https://archive.ics.uci.edu/dataset/240/human+activity+recognition+using+smartphones",
    "UCI HAR Dataset",
    "features.txt, activity_labels.txt, train/ and test/ with X_*.txt, y_*.txt, subject_*.txt and Inertial Signals/",
)


@register_table("har")
def load_har(folder: Path | str | None = None, windows: bool = False) -> Table:
    """Load the 10,299 windows of 2.56 s: 7,352 by 21 subjects to train on, 2,947 by 9 others to test on.

    `groups` is the subject (1 to 30) and `extra["recording"]` the recording. Neighboring windows of one recording share
    half their samples, so **the table refuses to be split by row**. `folder` is the published one, in which rows of one
    activity that follow each other count as one recording; or holds `uci_har_features.npz` and `uci_har_windows.npz`.
    By default `uci_har` or `UCI HAR Dataset` in the data folder. With `windows` rows are the motion itself,
    `(9 channels, 128 samples)` in g and rad/s, instead of the 561 features computed from it. Raises CorpusError if the
    file is missing or damaged.
    """
    folder = corpus_folder("uci_har", folder, PUBLISHED)
    if (folder / "activity_labels.txt").is_file():
        path, names = folder, "names"
        arrays = _published(folder, windows)
    elif windows:
        path, names = folder / "uci_har_windows.npz", "channel_names"
        shapes: dict[str, Expected] = {"X": ("i", (ROWS, 9, 128)), "scale": ("f", ()), names: ("U", (9,))}
        arrays = read_arrays(path, LABELS | shapes)
    else:
        path, names = folder / "uci_har_features.npz", "feature_names"
        arrays = read_arrays(path, LABELS | {"X": ("f", (ROWS, 561)), names: ("U", (561,))})
    subjects = set(arrays["subject"].tolist())
    if subjects != set(range(1, SUBJECTS + 1)) or int(arrays["is_test"].sum()) != TEST_ROWS:
        raise CorpusError(
            f"{path} has {len(subjects)} subjects and {int(arrays['is_test'].sum())} test rows where {SUBJECTS} "
            f"and {TEST_ROWS} were published; copy it again"
        )
    if set(arrays["subject"][arrays["is_test"]]) & set(arrays["subject"][~arrays["is_test"]]):
        raise CorpusError(f"{path}: a subject is on both sides of the official split; copy it again")
    features = torch.from_numpy(arrays["X"]).float()
    return Table(
        name="har",
        features=features * float(arrays["scale"]) if "scale" in arrays else features,
        labels=torch.from_numpy(arrays["activity"]).long(),
        feature_names=tuple(arrays[names].tolist()),
        label_names=tuple(name.lower().replace("_", " ") for name in arrays["activity_names"].tolist()),
        groups=torch.from_numpy(arrays["subject"]).long(),
        is_test=torch.from_numpy(arrays["is_test"]),
        extra={"recording": torch.from_numpy(arrays["recording"]).long()},
        norm=None if windows else math.sqrt(features.shape[1]),  # every feature was scaled to -1 to 1
        overlapping=True,
    )


def _published(folder: Path, windows: bool) -> dict[str, NDArray[Any]]:
    """The arrays of the published text files, train rows first."""
    parts = []
    for part, is_test in (("train", False), ("test", True)):
        where = folder / part
        subject, activity = (_numbers(where / f"{name}_{part}.txt", 1)[:, 0].astype(int) for name in ("subject", "y"))
        if windows:
            signals = where / "Inertial Signals"
            rows = np.stack([_numbers(signals / f"{channel}_{part}.txt", 128) for channel in CHANNELS], axis=1)
        else:
            rows = _numbers(where / f"X_{part}.txt", 561)
        if not len(subject) == len(activity) == len(rows):
            raise CorpusError(
                f"{where}: its files have {len(subject)}, {len(activity)} and {len(rows)} rows; copy it again"
            )
        parts.append((rows, subject, activity, np.full(len(rows), is_test)))
    rows, subject, activity, held_out = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    follows = (np.diff(subject) == 0) & (np.diff(activity) == 0)
    names = CHANNELS if windows else _second_words(folder / "features.txt")
    return {
        "X": rows,
        "subject": subject,
        "activity": activity - 1,
        "recording": np.concatenate([[0], np.cumsum(~follows)]),
        "is_test": held_out,
        "names": np.array(names),
        "activity_names": np.array(_second_words(folder / "activity_labels.txt")),
    }


def _numbers(path: Path, columns: int) -> NDArray[np.float32]:
    try:
        read = np.loadtxt(path, dtype=np.float32, ndmin=2)
    except (OSError, ValueError) as error:
        raise CorpusError(f"{path} cannot be read: {error}; copy it again") from None
    if read.shape[1] != columns or not np.isfinite(read).all():
        raise CorpusError(f"{path} must hold {columns} numbers a row, got {read.shape[1]}; copy it again")
    return read


def _second_words(path: Path) -> tuple[str, ...]:
    try:
        return tuple(line.split()[1] for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    except (OSError, UnicodeDecodeError, IndexError) as error:
        raise CorpusError(f"{path} cannot be read: {error}; copy it again") from None
