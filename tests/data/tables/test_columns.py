"""Tables and corpora as columns, and whose each row is."""

from pathlib import Path

import pytest

from ppspeech.data.tables import parse_predicate, read_columns
from ppspeech.errors import CorpusError
from ppspeech.storage import data_folder
from tests.fresh import TOP

TABLE = "person,age,word\nann,61,yes\nann,61,no\nbob,20,yes\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "calls.csv"
    path.write_text(TABLE)
    return path


def test_rows_are_units_unless_a_column_says_whose_they_are(table: Path) -> None:
    plain = read_columns(str(table))
    assert (plain.unit, plain.units, plain.kept.name) == ("record", 3, "calls.asked.sqlite")
    people = read_columns(str(table), "person")
    assert (people.unit, people.units) == ("speaker", 2)
    said = parse_predicate('word == "yes"')
    assert people.rows_that(said).tolist() == [True, False, True]
    assert people.units_that(parse_predicate('word == "no"')).tolist() == [True, False]
    table.write_text(TABLE.replace("person", "speaker"))
    assert read_columns(str(table)).unit == "speaker"
    assert read_columns(str(table), rows=True).unit == "utterance"
    assert read_columns(str(table), rows=True).units == 3


def test_the_budget_is_beside_the_data_whatever_they_are_called(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "linked.csv").symlink_to(table)
    found = [read_columns(name) for name in ("calls.csv", "./calls.csv", "linked.csv")]
    assert {(each.kept, each.key) for each in found} == {(tmp_path / "calls.asked.sqlite", "calls")}


def test_a_corpus_by_name_keeps_its_budget_with_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPSPEECH_STATE", str(tmp_path / "state"))
    if not (data_folder() / "breast_cancer_wisconsin.csv").is_file():
        pytest.skip("no breast cancer table")
    cells = read_columns("breast_cancer")
    assert cells.kept == tmp_path / "state" / "breast_cancer.asked.sqlite"
    assert cells.unit == "speaker"  # samples of one patient, by the patient's number
    assert int(cells.rows_that(parse_predicate('label == "malignant" and mitoses >= 1')).sum()) == 239


@pytest.mark.parametrize(
    ("where", "who", "words"),
    [
        ("nothing.csv", "", "there is no file nothing.csv"),
        ("nothing", "", "nothing is no CSV file, no folder"),
        (str(TOP / "docs"), "", "no folder with a manifest"),
    ],
)
def test_what_is_not_there_is_named(where: str, who: str, words: str) -> None:
    with pytest.raises(CorpusError, match=words):
        read_columns(where, who)


def test_a_column_that_is_not_there_is_named(table: Path) -> None:
    with pytest.raises(CorpusError, match=r"no column 'name'.*person, age, word"):
        read_columns(str(table), "name")
