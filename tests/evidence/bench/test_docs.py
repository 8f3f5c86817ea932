"""The figures about the site are those of a build, and what it needs is said. `tests/test_site.py` builds it."""

from pathlib import Path

import pytest

from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import docs


def test_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs, "build", lambda folder: (67, ["a.md:3: WARNING: x", "b.md:1: ERROR: y"]))
    figures = {figure.metric: figure for figure in docs.run(quick=True)}
    assert figures["docs.pages"].value == 67
    assert figures["docs.warnings"].value == 2
    assert "b.md:1" in figures["docs.warnings"].note


def test_it_needs_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs, "TOP", tmp_path)
    with pytest.raises(PpspeechError, match="run it in a checkout"):
        docs.run(quick=True)


def test_it_needs_sphinx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs, "find_spec", lambda name: None)
    with pytest.raises(PpspeechError, match=r"ppspeech\[docs\]"):
        docs.run(quick=True)


def test_a_site_that_cannot_be_built_is_no_site(tmp_path: Path) -> None:
    (tmp_path / "conf.py").write_text("raise ValueError('on purpose')")
    with pytest.raises(PpspeechError, match="on purpose"):
        docs.build(tmp_path / "site", tmp_path)
