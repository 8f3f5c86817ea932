import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ppspeech.data.tables.table import Table
from ppspeech.errors import CorpusError


def make_table(groups: list[int], /, **changes: object) -> Table:
    rows = len(groups)
    fields = {
        "name": "made",
        "features": torch.arange(2.0 * rows).reshape(rows, 2),
        "labels": torch.arange(rows) % 2,
        "feature_names": ("x", "y"),
        "label_names": ("no", "yes"),
        "groups": torch.tensor(groups),
        "extra": {"recording": torch.arange(rows) // 2},
    }
    return Table(**(fields | changes))  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 9), min_size=4, max_size=40), st.floats(0.05, 0.5), st.integers(0, 1000))
def test_no_group_is_on_both_sides(groups: list[int], share: float, seed: int) -> None:
    table = make_table(groups)
    distinct = set(groups)
    if max(1, round(share * len(distinct))) == len(distinct):
        with pytest.raises(CorpusError, match="leave a part empty"):
            table.split_by_group(share, seed=seed)
        return
    train, test = table.split_by_group(share, seed=seed)
    assert train.groups is not None
    assert test.groups is not None
    assert set(train.groups.tolist()) | set(test.groups.tolist()) == distinct
    assert not set(train.groups.tolist()) & set(test.groups.tolist())
    assert len(set(test.groups.tolist())) == max(1, round(share * len(distinct)))
    # Every row moved whole: x says which row it was.
    for part in (train, test):
        for row in range(len(part)):
            was = int(part.features[row, 0]) // 2
            assert part.groups is not None
            assert (part.labels[row], part.groups[row]) == (was % 2, groups[was])
            assert part.extra["recording"][row] == was // 2


def test_named_groups_and_other_columns() -> None:
    table = make_table([1, 1, 2, 2, 3])
    train, test = table.split_by_group([3, 1])
    assert train.groups is not None
    assert train.groups.tolist() == [2, 2]
    _, test = table.split_by_group([2], by="recording")
    assert test.features.tolist() == [[8.0, 9.0]]
    with pytest.raises(CorpusError, match=r"no groups \[4\]; it has \[1, 2, 3\]"):
        table.split_by_group([4])
    with pytest.raises(CorpusError, match=r"no column 'person' to split by; it has \['groups', 'recording'\]"):
        table.split_by_group(0.5, by="person")
    with pytest.raises(CorpusError, match=r"no column 'groups' to split by; it has \['recording'\]"):
        make_table([1, 2], groups=None).split_by_group(0.5)
    with pytest.raises(CorpusError, match="0 of 5 rows to test on leave a part empty"):
        table.split_by_group([])


def test_official_split() -> None:
    table = make_table([1, 2, 3], is_test=torch.tensor([False, True, False]))
    train, test = table.train_test()
    assert (train.features[:, 0].tolist(), test.features[:, 0].tolist()) == ([0, 4], [2])
    assert train.is_test is None
    with pytest.raises(CorpusError, match="no official split"):
        train.train_test()


@given(st.floats(0.01, 0.9), st.integers(0, 1000))
def test_split_by_row(share: float, seed: int) -> None:
    train, test = make_table(list(range(40))).split_by_row(share, seed=seed)
    assert len(test) == max(1, round(share * 40))
    rows = torch.cat((train.features[:, 0], test.features[:, 0]))
    assert sorted(rows.tolist()) == [2.0 * row for row in range(40)]


@pytest.mark.parametrize("share", [0, 1, -1, 1.5, float("nan"), True])
def test_bad_shares_are_refused(share: float) -> None:
    with pytest.raises(CorpusError, match="share must be more than 0 and less than 1"):
        make_table([1, 2, 3]).split_by_row(share)
    with pytest.raises(CorpusError, match="share must be more than 0 and less than 1"):
        make_table([1, 2, 3]).split_by_group(share)


def test_overlapping_rows_are_not_split_by_row() -> None:
    with pytest.raises(CorpusError, match=r"overlap.*split_by_group, by groups or by recording"):
        make_table([1, 1, 2], overlapping=True).split_by_row(0.5)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"features": torch.zeros(3, 3)}, r"features must have shape \(3, 2\), got \(3, 3\)"),
        ({"features": torch.zeros(3)}, r"features must have shape"),
        ({"features": torch.zeros(3, 2).double()}, "features must be torch.float32"),
        ({"labels": torch.zeros(3)}, "labels must be torch.int64"),
        ({"labels": torch.tensor([0, 1, 2])}, "labels must be 0 to 1"),
        ({"labels": torch.tensor([0, 1, -1])}, "labels must be 0 to 1"),
        ({"groups": torch.tensor([1, 2])}, "groups must be torch.int64 with 3 rows"),
        ({"is_test": torch.tensor([0, 1, 0])}, "is_test must be torch.bool"),
        ({"extra": {"age": torch.zeros(3, 1).long()}}, "age must be torch.int64 with 3 rows"),
    ],
)
def test_inconsistent_tables_are_refused(changes: dict[str, object], complaint: str) -> None:
    with pytest.raises(CorpusError, match=complaint):
        make_table([1, 2, 3], **changes)
