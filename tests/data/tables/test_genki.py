from pathlib import Path

import numpy as np
import pytest
import torch

from ppspeech.data.tables.genki import load_genki
from ppspeech.errors import CorpusError


def test_faces(data: Path) -> None:
    table = load_genki()
    assert table.features.shape == (1_940, 256)
    train, test = table.train_test()
    assert (len(train), len(test)) == (1_740, 200)
    assert torch.equal(table.labels, table.extra["smile"])
    cells = torch.bincount(2 * table.extra["smile"] + table.extra["female"])
    assert cells.tolist() == [485] * 4


def test_other_label(data: Path) -> None:
    table = load_genki(label="female")
    assert torch.equal(table.labels, table.extra["female"])
    assert table.label_names == ("male", "female")
    with pytest.raises(CorpusError, match="label must be smile or female, got 'age'"):
        load_genki(label="age")


def test_damaged_file_is_refused(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "genki_faces.npz"
    path.write_bytes((data / path.name).read_bytes()[:-200])
    with pytest.raises(CorpusError, match=r"genki_faces.npz is damaged"):
        load_genki(tmp_path)
    arrays = dict(np.load(data / path.name))
    for name in ("smile", "is_test"):
        np.savez(path, **(arrays | {name: np.ones_like(arrays[name])}))
        with pytest.raises(CorpusError, match="the labels or the split are not as published"):
            load_genki(tmp_path)
