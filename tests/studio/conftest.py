"""Bundles for a studio, made once."""

from dataclasses import replace
from pathlib import Path

import pytest

from ppspeech.studio import Places
from tests.service.voices import MARGIN, SENTENCES, WHOLE, released


@pytest.fixture(scope="session")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two bundles of words and one of sentences, and one that was changed after it was written."""
    folder = tmp_path_factory.mktemp("models")
    released(folder / "animals")
    released(folder / "margins", MARGIN, seed=1)
    released(folder / "sentences", SENTENCES, replace(WHOLE, hop_s=0.05))
    released(folder / "broken")
    statement = folder / "broken" / "privacy.json"
    statement.write_text(statement.read_text().replace('"epsilon"', '"epsilom"', 1))
    return folder


@pytest.fixture
def places(bundles: Path, tmp_path: Path) -> Places:
    return Places(tmp_path / "work", (bundles,))
