"""The benchmark of eigenvectors: its figures exist under their names, and a wrong direction stops it."""

import numpy as np
import pytest

from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import eigen as bench


def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "FEATURES", 5)
    monkeypatch.setattr(bench, "published_round_seconds", lambda frames, rounds: 0.5)


def test_small_problems_give_all_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    _small(monkeypatch)
    figures = {figure.metric: figure for figure in bench.run(quick=True)}
    assert set(figures) == {
        "eigen.k39.cos", "eigen.k39.total_s", "eigen.k39.published_s", "eigen.k39.bytes", "eigen.k39.rounds"
    }  # fmt: skip
    assert 1 - 1e-4 < figures["eigen.k39.cos"].value <= 1 + 1e-9
    assert figures["eigen.k39.published_s"].value == 64
    ours = figures["eigen.k39.total_s"]
    assert ours.ratio == pytest.approx(64 / ours.value)


def test_a_wrong_direction_stops_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    _small(monkeypatch)
    frames, direction = bench.two_parties(5, 1.1)
    monkeypatch.setattr(bench, "two_parties", lambda *_: (frames, np.roll(direction, 1)))
    with pytest.raises(PpspeechError, match="no figure can be trusted"):
        bench.run(quick=True)


def test_the_slice_of_the_published_protocol_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    frames, direction = bench.two_parties(3, 1.5)
    monkeypatch.setattr(bench, "KEY_BITS", 2048)
    assert np.linalg.norm(direction) == pytest.approx(1)
    assert bench.published_round_seconds(np.concatenate(frames), 1) > 0


def test_the_problem_has_the_ratio_and_direction_it_says() -> None:
    frames, direction = bench.two_parties(39, 1.1)
    values, vectors = np.linalg.eigh(sum(own.T @ own for own in frames))
    assert values[-1] / values[-2] == pytest.approx(1.1)
    assert abs(vectors[:, -1] @ direction) == pytest.approx(1)
