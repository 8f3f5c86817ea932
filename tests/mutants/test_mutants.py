"""The list of mutants is alive: every text is where it was, every test is there, and survivors are told from killed."""

import ast
from pathlib import Path

import pytest

from tests.mutants.__main__ import check_tests, is_killed
from tests.mutants.catalog import MUTANTS
from tests.mutants.mutant import ROOT, Mutant, mutant


def test_there_are_forty_of_them_with_names_of_their_own() -> None:
    assert len({each.name for each in MUTANTS}) == len(MUTANTS) >= 40


@pytest.mark.parametrize("each", MUTANTS, ids=[each.name for each in MUTANTS])
def test_every_mutant_still_applies(each: Mutant, tmp_path: Path) -> None:
    for edit in each.edits:
        copied = tmp_path / edit.file
        if not copied.exists():
            copied.parent.mkdir(parents=True, exist_ok=True)
            copied.write_text((ROOT / edit.file).read_text())
        edit.apply(tmp_path)
        ast.parse(copied.read_text())
    assert all((ROOT / test.partition("::")[0]).exists() for test in each.tests)


@pytest.mark.parametrize(("new", "killed"), [("VALUE = 2\n", True), ("VALUE = 1  # the same\n", False)])
def test_a_mutant_is_killed_by_a_test_that_fails(
    new: str, killed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # this one needs none, and they take their time
    (tmp_path / "ppspeech").mkdir()
    (tmp_path / "ppspeech" / "thing.py").write_text("VALUE = 1\n")
    (tmp_path / "test_thing.py").write_text(
        "from pathlib import Path\n"
        "def test_value():\n"
        "    assert 'VALUE = 1' in Path(__file__).with_name('ppspeech').joinpath('thing.py').read_text()\n"
    )
    check_tests([mutant("nothing yet", "nothing", "test_thing.py")], tmp_path)
    change = mutant("a value", "nothing", "test_thing.py", ("thing.py", "VALUE = 1\n", new))
    assert is_killed(change, tmp_path) is killed
    assert (tmp_path / "ppspeech" / "thing.py").read_text() == "VALUE = 1\n"
    with pytest.raises(ValueError, match="0 times"):
        mutant("gone", "nothing", "test_thing.py", ("thing.py", "VALUE = 7", "")).edits[0].apply(tmp_path)
    (tmp_path / "test_broken.py").write_text("def test_nothing():\n    assert False\n")
    with pytest.raises(RuntimeError, match="where nothing was changed"):
        check_tests([mutant("nothing yet", "nothing", "test_broken.py")], tmp_path)
    with pytest.raises(RuntimeError, match="could not run"):
        is_killed(mutant("untested", "nothing", "test_other.py", ("thing.py", "VALUE = 1\n", new)), tmp_path)
