"""The private keyword experiment: what it promises on unseen people, and that its picture is drawn."""

from pathlib import Path

import pytest

from ppspeech.evidence.experiments.dp_keywords import run


@pytest.mark.slow
def test_private_words_of_unseen_people(data: Path, tmp_path: Path) -> None:
    found = {figure.metric: figure.value for figure in run(True, tmp_path)}
    assert found["dp_keywords.utterance.eps1.accuracy"] >= 0.905
    assert found["dp_keywords.utterance.eps4.accuracy"] >= 0.93
    assert found["dp_keywords.utterance.eps4.accuracy"] > found["dp_keywords.public.accuracy"]
    assert found["dp_keywords.speaker.eps4.accuracy"] > 0.85
    assert (tmp_path / "dp_keywords.png").stat().st_size > 10_000
