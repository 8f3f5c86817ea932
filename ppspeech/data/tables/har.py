"""UCI HAR: which of six things is a person with a smartphone at the waist doing?"""

import math
from pathlib import Path

import torch

from ppspeech.data.registry import register_table
from ppspeech.data.tables.files import Expected, read_arrays
from ppspeech.data.tables.table import Table
from ppspeech.errors import CorpusError
from ppspeech.storage import data_folder

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


@register_table("har")
def load_har(folder: Path | str | None = None, windows: bool = False) -> Table:
    """Load the 10,299 windows of 2.56 s: 7,352 by 21 subjects to train on, 2,947 by 9 others to test on.

    `groups` is the subject (1 to 30) and `extra["recording"]` the recording. Neighboring windows of one recording share
    half their samples, so **the table refuses to be split by row**. `folder` holds `uci_har_features.npz` and
    `uci_har_windows.npz`; by default `uci_har` in the data folder. With `windows` rows are the motion itself,
    `(9 channels, 128 samples)` in g and rad/s, instead of the 561 features computed from it. Raises CorpusError if the
    file is missing or damaged.
    """
    folder = Path(folder) if folder is not None else data_folder() / "uci_har"
    if windows:
        path, names = folder / "uci_har_windows.npz", "channel_names"
        shapes: dict[str, Expected] = {"X": ("i", (ROWS, 9, 128)), "scale": ("f", ()), names: ("U", (9,))}
    else:
        path, names = folder / "uci_har_features.npz", "feature_names"
        shapes = {"X": ("f", (ROWS, 561)), names: ("U", (561,))}
    arrays = read_arrays(path, LABELS | shapes)
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
        features=features * float(arrays["scale"]) if windows else features,
        labels=torch.from_numpy(arrays["activity"]).long(),
        feature_names=tuple(arrays[names].tolist()),
        label_names=tuple(name.lower().replace("_", " ") for name in arrays["activity_names"].tolist()),
        groups=torch.from_numpy(arrays["subject"]).long(),
        is_test=torch.from_numpy(arrays["is_test"]),
        extra={"recording": torch.from_numpy(arrays["recording"]).long()},
        norm=None if windows else math.sqrt(features.shape[1]),  # every feature was scaled to -1 to 1
        overlapping=True,
    )
