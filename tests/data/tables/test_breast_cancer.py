from pathlib import Path

import pytest

from ppspeech.data.tables.breast_cancer import load_breast_cancer
from ppspeech.errors import CorpusError


def test_complete_rows(data: Path) -> None:
    table = load_breast_cancer()
    assert table.features.shape == (683, 9)
    assert int(table.labels.sum()) == 239
    assert (table.label_names[1], table.name) == ("malignant", "breast_cancer")
    assert table.features.min() == 1
    assert table.features.max() == 10
    assert table.groups is not None
    assert len(set(table.groups.tolist())) < 683
    # Malignant cells are marked higher throughout: the labels are not swapped.
    means = [table.features[table.labels == label].mean(0) for label in (0, 1)]
    assert bool((means[1] > means[0]).all())


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("1000025,5,1,1,1,2,1,3,1,1,2\n", "", "698 rows where the corpus has 699"),
        ("1000025,5,", "1000025,11,", "'1000025' is damaged"),
        ("1000025,5,", "1000025,x,", "'1000025' is damaged"),
        ("1000025,5,", "1000025,,", "'1000025' is damaged"),
        ("1000025,5,1,1,1,2,1,3,1,1,2\n", "1000025,5,1,1,1,2,1,3,1,1,3\n", "'1000025' is damaged"),
        ("1000025,5,1,1,1,2,1,3,1,1,2\n", "1000025,5,1,1,1,2,1,3,1,1,4\n", "240 malignant"),
        ("1000025,5,1,1,1,2,1,", "1000025,5,1,1,1,2,,", "682 complete rows"),
        ("mitoses", "mitosis", "no column 'mitoses'"),
    ],
)
def test_damaged_file_is_refused(data: Path, tmp_path: Path, old: str, new: str, complaint: str) -> None:
    name = "breast_cancer_wisconsin.csv"
    text = (data / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new))
    with pytest.raises(CorpusError, match=f"{name}.*{complaint}"):
        load_breast_cancer(tmp_path)
