from pathlib import Path

import pytest

from ppspeech.evidence.bench.hmm import _exponent, run


def test_the_growth_exponent_of_a_known_power() -> None:
    assert _exponent([10, 20, 40], [3.0, 6.0, 12.0]) == pytest.approx(1)
    assert _exponent([10, 20, 40], [1.0, 4.0, 16.0]) == pytest.approx(2)


def test_both_sides_agree_on_what_they_computed(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPSPEECH_DATA", str(data))
    figures = {figure.metric: figure for figure in run(quick=True)}
    assert figures["hmm.train_likelihood_gap"].value < 1e-5
    assert figures["hmm.score_gap"].value < 1e-6
    assert figures["hmm.accuracy.float64"].value == figures["hmm.accuracy.float64"].peer_value
    assert figures["hmm.accuracy.float64"].value > 0.95
    assert figures["hmm.train_s"].peer_value is not None
    assert {"hmm.growth.frames", "hmm.growth.states", "hmm.growth.utterances"} <= set(figures)
