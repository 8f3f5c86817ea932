"""The experiment with beliefs, on graphs that are small."""

import numpy as np
import pytest

from ppspeech.evidence.experiments import beliefs as experiment


def test_a_small_contagion_is_as_in_the_clear_and_tells_more_than_a_symptom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "SWEEPS", 30)
    error, accuracy = experiment.contagion(people=200)
    assert error.value < 0.1
    assert accuracy.peer_value is not None
    assert accuracy.value > accuracy.peer_value


def test_the_torus_has_ten_thousand_messages() -> None:
    shape = experiment.torus(experiment.SIDE)
    assert len(shape.sources) == 10_000
    assert shape.rounds == 20
    assert np.bincount(shape.targets).tolist() == [4] * 2_500
    assert shape.lines.error < 2.0**-9


def test_speed_is_measured_where_answers_have_the_right_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "SIDE", 4)
    figures = {figure.metric: figure.value for figure in experiment.speed(1)}
    assert {"beliefs.10k20.s", "beliefs.10k20.bytes", "beliefs.10k20.rounds"} <= set(figures)
    assert figures["beliefs.10k20.rounds"] == 22
