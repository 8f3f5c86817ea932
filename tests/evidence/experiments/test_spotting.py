"""Hidden wake words and digits among templates: found under encryption as in the clear."""

from pathlib import Path

import pytest

from ppspeech.evidence.experiments import EXPERIMENTS


@pytest.mark.slow
@pytest.mark.usefixtures("data")
def test_wake_words_are_found_where_they_were_hidden(tmp_path: Path) -> None:
    figures = {figure.metric: figure for figure in EXPERIMENTS["spotting"](False, tmp_path)}
    assert figures["spotting.auc"].value >= 0.95
    assert figures["spotting.located"].value >= 40
    assert figures["spotting.same_segments"].value >= 77


@pytest.mark.slow
@pytest.mark.usefixtures("data")
def test_digits_are_named_as_in_the_clear(tmp_path: Path) -> None:
    figures = {figure.metric: figure for figure in EXPERIMENTS["dtw"](True, tmp_path)}
    assert figures["dtw.flips"].value == 0
    assert figures["dtw.accuracy"].value >= 0.85
