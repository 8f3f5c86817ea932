"""Notebooks are read where nobody runs them: what they show is stored with them. And they run."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fresh import start

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))

LONG = {"private_release", "hide_the_speaker"}  # whose steps are those of the walk and of the commands for filters

NAMES = {
    "hide_the_speaker",
    "hospitals",
    "new_mechanism",
    "new_protocol",
    "own_network",
    "own_words",
    "private_release",
    "secret_word",
    "voice_login",
}


RUN = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in {cells!r}:
    shell.run_cell(cell, store_history=True).raise_error()
"""
"""Cell by cell as a notebook runs them, in a process that need not import the package first."""


def code_cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


def test_documents_can_link_to_them() -> None:
    assert {path.stem for path in NOTEBOOKS} == NAMES


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_it_shows_is_stored_with_it(path: Path) -> None:
    cells = code_cells(path)
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert sum(bool(cell["outputs"]) for cell in cells) >= len(cells) // 2
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]
    shown = json.dumps(outputs)
    assert not [place for place in ("/tmp", "/home", "/root") if place in shown]  # nothing of the machine that ran it
    assert path.stat().st_size < 300_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_short_and_checks_what_it_says(path: Path) -> None:
    cells = code_cells(path)
    assert 6 <= len(cells) <= 12
    lines = [line for cell in cells for line in "".join(cell["source"]).splitlines()]
    assert max(map(len, lines)) <= 120
    assert sum(line.strip().startswith("assert ") for line in lines) >= 3
    # Run in order from the beginning, once: what is shown is what these cells show.
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    title = json.loads(path.read_text())["cells"][0]
    assert title["cell_type"] == "markdown"
    assert "".join(title["source"]).startswith("# ")


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.slow if path.stem in LONG else ()) for path in NOTEBOOKS],
    ids=[path.stem for path in NOTEBOOKS],
)
def test_it_runs_from_the_first_cell_to_the_last(path: Path, tmp_path: Path) -> None:
    cells = ["".join(cell["source"]) for cell in code_cells(path)]
    job = start(RUN.format(cells=cells), tmp_path, python=True, environment={"IPYTHONDIR": str(tmp_path / "ipython")})
    assert job.end() == 0, job.stdout[-2000:] + job.stderr[-2000:]


def test_a_cell_that_fails_is_noticed(tmp_path: Path) -> None:
    job = start(RUN.format(cells=["x = 1", "assert x == 2"]), tmp_path, python=True)
    assert job.end() != 0
    assert "AssertionError" in job.stdout + job.stderr
