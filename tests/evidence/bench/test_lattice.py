"""The lattice benchmark: its figures exist, its job is checked, and its peers do the same work."""

import numpy as np
import pytest

from ppspeech.crypto.lattice import plan_product
from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import lattice as bench


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "FRAMES", 6)
    monkeypatch.setattr(bench, "DIMENSIONS", 8)
    monkeypatch.setattr(bench, "FEATURES", 45)
    monkeypatch.setattr(bench, "STATES", 3)
    monkeypatch.setattr(bench, "CORES", 1)


def test_the_job_has_the_sizes_of_the_seed() -> None:
    features, weights = bench.frames_and_model(bench.FRAMES, bench.DIMENSIONS, bench.STATES)
    assert (features.shape, weights.shape) == ((98, 820), (820, 50))
    assert np.abs(features).max() <= 64
    assert bench.FEATURES == 820


def test_a_run_gives_every_figure(small: None) -> None:
    figures = {figure.metric: figure for figure in bench.run(quick=True)}
    wanted = {"total_ms", "ratio_to_bare_kernel", "bytes", "error_nat", "speedup_vs_tenseal_matmul"}
    assert {f"lattice.{name}" for name in wanted} <= set(figures)
    assert all(figure.value > 0 for figure in figures.values())
    assert figures["lattice.error_nat"].value <= 0.05
    assert figures["lattice.bytes"].value == plan_product(6, 45, 3).total_bytes
    assert "extrapolated" in (figures["lattice.speedup_vs_tenseal_matmul"].note or "")
    assert "load" in (figures["lattice.total_ms"].note or "")


def test_wrong_scores_are_noticed(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    features, weights = bench.frames_and_model(6, 8, 3)
    monkeypatch.setattr(bench, "client_finish", lambda *_: np.zeros((6, 3), dtype=np.uint64))
    with pytest.raises(PpspeechError, match="no figure can be trusted"):
        bench.measure(features, weights, repeats=1)
