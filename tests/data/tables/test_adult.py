import lzma
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from ppspeech.data.tables.adult import AdultRecords, load_adult, load_adult_raw
from ppspeech.data.tables.table import Table
from ppspeech.errors import CorpusError


@pytest.fixture(scope="module")
def binary(data: Path) -> Table:
    return load_adult()


@pytest.fixture(scope="module")
def raw(data: Path) -> AdultRecords:
    return load_adult_raw()


@pytest.fixture
def folder(data: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(data / "adult", tmp_path / "adult"))


def edit(path: Path, old: str, new: str) -> None:
    text = lzma.decompress(path.read_bytes()).decode()
    assert old in text
    path.write_bytes(lzma.compress(text.replace(old, new, 1).encode(), preset=0))


def test_a9a_equals_the_dense_copy(data: Path, binary: Table) -> None:
    dense = np.load(data / "adult" / "a9a.npz")
    train, test = binary.train_test()
    for part, rows, name in ((train, 32_561, "train"), (test, 16_281, "test")):
        assert part.features.shape == (rows, 123)
        np.testing.assert_array_equal(part.features.numpy(), dense[f"X_{name}"])
        np.testing.assert_array_equal(part.labels.numpy(), dense[f"y_{name}"] == 1)
    assert (int(train.labels.sum()), int(test.labels.sum())) == (7_841, 3_846)
    assert (int(train.features.sum()), int(test.features.sum())) == (451_592, 225_731)


def test_records_have_the_labels_of_a9a(binary: Table, raw: AdultRecords) -> None:
    assert torch.equal(raw.is_test, binary.is_test)
    assert torch.equal(raw.labels[~raw.is_test], binary.labels[~raw.is_test])
    assert int(raw.labels[raw.is_test].sum()) == 3_846


def test_records(raw: AdultRecords) -> None:
    assert len(raw.numbers) + len(raw.categories) == 14
    assert (int(raw.numbers["age"].min()), int(raw.numbers["age"].max())) == (17, 90)
    assert {name for name, values in raw.categories.items() if None in values} == {
        "workclass",
        "occupation",
        "native_country",
    }
    assert not any("?" in values for values in raw.categories.values())
    assert int((raw.has_missing & ~raw.is_test).sum()) == 2_399
    assert int((raw.has_missing & raw.is_test).sum()) == 1_221
    assert set(raw.categories["sex"]) == {"Male", "Female"}
    assert (raw.numbers["age"][0], raw.categories["workclass"][0]) == (39, "State-gov")


@pytest.mark.parametrize(
    ("file", "old", "new", "complaint"),
    [
        ("a9a.xz", "-1 3:1 11:1", "-1 3:1 11:", "line 1: not LIBSVM text"),
        ("a9a.xz", "-1 3:1 11:1", "-1 3:1", "451591 entries where 451592 were published"),
        ("a9a.xz", "-1 3:1", "+1 3:1", "7842 positive labels where 7841"),
        ("a9a.xz", "-1 3:1", "0 3:1", r"labels must be \+1 or -1"),
        ("a9a.xz", "\n", "\n-1\n", "32562 rows where 32561"),
    ],
)
def test_damaged_a9a_is_refused(folder: Path, file: str, old: str, new: str, complaint: str) -> None:
    edit(folder / file, old, new)
    with pytest.raises(CorpusError, match=f"{file}.*{complaint}"):
        load_adult(folder)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("39, State-gov", "39", "line 1: a record has 15 values, got 14"),
        ("39, State-gov", "old, State-gov", "line 1: age cannot be 'old'"),
        ("39, State-gov", "39, ", "line 1: workclass cannot be ''"),
        ("39, State-gov", "39, ?", "2400 rows with a missing value where 2399"),
        ("<=50K", "50K", "line 1: the label must be"),
        ("<=50K", ">50K", "7842 positive labels"),
    ],
)
def test_damaged_records_are_refused(folder: Path, old: str, new: str, complaint: str) -> None:
    edit(folder / "adult.data.xz", old, new)
    with pytest.raises(CorpusError, match=f"adult.data.xz.*{complaint}"):
        load_adult_raw(folder)


def test_cut_and_missing_files_are_refused(folder: Path) -> None:
    path = folder / "a9a.xz"
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(CorpusError, match=r"a9a.xz is damaged"):
        load_adult(folder)
    path.write_bytes(b"-1 3:1 11:1\n")
    with pytest.raises(CorpusError, match=r"a9a.xz is damaged"):
        load_adult(folder)
    path.unlink()
    with pytest.raises(CorpusError, match=r"a9a is missing: get it from"):
        load_adult(folder)
