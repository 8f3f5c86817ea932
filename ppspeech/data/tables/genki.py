"""GENKI faces: small gray pictures of which one label is a task and the other a secret to hide."""

from collections import Counter
from itertools import product
from pathlib import Path

import torch

from ppspeech.data.registry import register_table
from ppspeech.data.tables.files import read_arrays
from ppspeech.data.tables.table import Table
from ppspeech.errors import CorpusError
from ppspeech.storage import data_folder

ROWS = 1_940
TEST_ROWS = 200
SIDE = 16
LABEL_NAMES = {"smile": ("no smile", "smile"), "female": ("male", "female")}


@register_table("genki")
def load_genki(folder: Path | str | None = None, label: str = "smile") -> Table:
    """Load the 1,940 faces of 16 x 16 pixels used in the minimax filter papers: 1,740 train, 200 test.

    Both labels are in `extra`, as `smile` and `female`; each of the four combinations has 485 faces. `folder` holds
    `genki_faces.npz`; by default the data folder. `label` is which of them is `labels`. Raises CorpusError if `label`
    is another word, or the file is missing or damaged.
    """
    if label not in LABEL_NAMES:
        raise CorpusError(f"label must be {' or '.join(LABEL_NAMES)}, got {label!r}")
    path = (Path(folder) if folder is not None else data_folder()) / "genki_faces.npz"
    arrays = read_arrays(
        path,
        {"X": ("f", (ROWS, SIDE**2)), "smile": ("u", (ROWS,)), "female": ("u", (ROWS,)), "is_test": ("b", (ROWS,))},
    )
    cells = Counter(zip(arrays["smile"].tolist(), arrays["female"].tolist(), strict=True))
    if int(arrays["is_test"].sum()) != TEST_ROWS or cells != dict.fromkeys(product((0, 1), repeat=2), ROWS // 4):
        raise CorpusError(f"{path}: the labels or the split are not as published; copy it again")
    labels = {name: torch.from_numpy(arrays[name]).long() for name in LABEL_NAMES}
    return Table(
        name="genki",
        features=torch.from_numpy(arrays["X"]),
        labels=labels[label],
        feature_names=tuple(f"pixel_{row}_{column}" for row in range(SIDE) for column in range(SIDE)),
        label_names=LABEL_NAMES[label],
        is_test=torch.from_numpy(arrays["is_test"]),
        extra=labels,
    )
