"""Breast Cancer Wisconsin (Original): nine marks given to cells under a microscope; is the tumor malignant?"""

import math
from pathlib import Path

import torch

from ppspeech.data.layout import read_rows
from ppspeech.data.registry import register_table
from ppspeech.data.tables.table import Table
from ppspeech.errors import CorpusError
from ppspeech.storage import data_folder

ROWS = 699
COMPLETE = 683
MALIGNANT = 239
FEATURES = (
    *("clump_thickness", "cell_size_uniformity", "cell_shape_uniformity", "marginal_adhesion"),
    *("epithelial_cell_size", "bare_nuclei", "bland_chromatin", "normal_nucleoli", "mitoses"),
)
HIGHEST_MARK = 10
CLASSES = {"2": 0, "4": 1}


@register_table("breast_cancer")
def load_breast_cancer(folder: Path | str | None = None) -> Table:
    """Load the 683 complete rows, 239 of them malignant (label 1).

    **Sixteen of the 699 rows are dropped**, as is usual: they lack `bare_nuclei`. `groups` is the sample's id; some ids
    come more than once. There is no official split. `folder` holds `breast_cancer_wisconsin.csv`; by default the data
    folder. Raises CorpusError if the file is missing or damaged, a mark is not 1 to 10, or a count is not as published.
    """
    path = (Path(folder) if folder is not None else data_folder()) / "breast_cancer_wisconsin.csv"
    read = read_rows(path, ("id", *FEATURES, "class"), rows=ROWS)
    rows = [row for row in read if row["bare_nuclei"]]
    for row in rows:
        marks = [row[name] for name in FEATURES]
        numbers = all(value.isdecimal() for value in (row["id"], *marks))
        if not numbers or not all(1 <= int(mark) <= HIGHEST_MARK for mark in marks) or row["class"] not in CLASSES:
            raise CorpusError(
                f"{path}: the row of id {row['id']!r} is damaged: marks are 1 to 10 and the class is 2 or 4, "
                f"got {','.join(marks)} and {row['class']!r}"
            )
    labels = torch.tensor([CLASSES[row["class"]] for row in rows])
    if (len(rows), int(labels.sum())) != (COMPLETE, MALIGNANT):
        raise CorpusError(
            f"{path} has {len(rows)} complete rows, {int(labels.sum())} malignant, where {COMPLETE} and "
            f"{MALIGNANT} were published; copy it again"
        )
    return Table(
        name="breast_cancer",
        features=torch.tensor([[float(row[name]) for name in FEATURES] for row in rows]),
        labels=labels,
        feature_names=FEATURES,
        label_names=("benign", "malignant"),
        groups=torch.tensor([int(row["id"]) for row in rows]),
        norm=HIGHEST_MARK * math.sqrt(len(FEATURES)),
    )
