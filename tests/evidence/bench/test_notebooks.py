"""The benchmark of notebooks: they are run, each with a cache of its own, and one that fails is named."""

from pathlib import Path

import nbformat
import pytest

from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import notebooks as bench


def written(path: Path, *cells: str) -> Path:
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(made, path)
    return path


def test_what_is_timed_is_what_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b", "a"):
        written(
            tmp_path / f"{name}.ipynb",
            "import os, pathlib; here = pathlib.Path('ran.txt')",
            f"here.write_text((here.read_text() if here.exists() else '') + '{name} ')",
            "assert not list(pathlib.Path(os.environ['PPSPEECH_CACHE']).iterdir())",
        )
    monkeypatch.setattr(bench, "NOTEBOOKS", tmp_path)
    (figure,) = bench.run(quick=False)
    assert (tmp_path / "ran.txt").read_text() == "a b "
    assert figure.metric == "notebooks.seconds"
    assert figure.value > 0
    assert figure.note is not None
    assert figure.note.startswith("2 notebooks: a ")
    monkeypatch.setattr(bench, "QUICK", "b")
    (quick,) = bench.run(quick=True)
    assert (tmp_path / "ran.txt").read_text() == "a b b "
    assert quick.note is not None
    assert quick.note.startswith("1 of 2 notebooks: b ")


def test_one_that_fails_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "wrong.ipynb", "1 + 1", "assert 1 + 1 == 3, 'so it is not'", "open('late.txt', 'w')")
    with pytest.raises(PpspeechError, match=r"wrong\.ipynb does not run: AssertionError: so it is not"):
        bench.execute(path)
    assert not (tmp_path / "late.txt").exists()


def test_without_a_source_tree_there_is_nothing_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "NOTEBOOKS", tmp_path)
    with pytest.raises(PpspeechError, match="run it in a checkout"):
        bench.run(quick=True)


def test_quick_runs_one_that_is_there() -> None:
    assert (bench.NOTEBOOKS / f"{bench.QUICK}.ipynb").is_file()
