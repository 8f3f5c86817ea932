"""Notebooks are read where nobody runs them: what they show is stored with them. That they run is checked apart."""

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_it_shows_is_stored_with_it(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert sum(bool(cell["outputs"]) for cell in cells) >= len(cells) // 2
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]
    assert "/tmp" not in json.dumps(outputs)  # nothing of the machine that ran it
    assert path.stat().st_size < 300_000
