import pytest
import torch

pytest.importorskip("sklearn")
from ppspeech.evidence.bench import gmm


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gmm, "COMPONENTS", 3)
    monkeypatch.setattr(gmm, "FEATURES", 4)
    monkeypatch.setattr(gmm, "THREADS", 1)


@pytest.mark.parametrize("kind", ["full", "diagonal"])
def test_both_sides_do_the_same_work(small: None, kind: gmm.Kind) -> None:
    start, x = gmm.problem(kind, 500)
    double, peer = gmm.runner("float64", start, x), gmm.runner("sklearn", start, x)
    for iterations in (1, 4):
        assert double(iterations) == pytest.approx(peer(iterations), abs=1e-9)
    assert peer(4) > peer(1)


def test_figures_are_complete_and_leave_threads_alone(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    problem = gmm.problem
    monkeypatch.setattr(gmm, "problem", lambda kind, frames: problem(kind, 400))
    figures = {figure.metric: figure for figure in gmm.run(quick=True)}
    assert torch.get_num_threads() == before
    assert "gmm.em.speedup_vs_sklearn" in figures
    for prefix in ("gmm.em", "gmm.em.diagonal"):
        assert figures[f"{prefix}.speedup_vs_sklearn"].unit == "x"
        assert figures[f"{prefix}.log_likelihood_difference"].value < 1e-3
        assert figures[f"{prefix}.float64.log_likelihood_difference"].value < 1e-9
        assert figures[f"{prefix}.log_likelihood"].peer == "scikit-learn"


@pytest.mark.slow
def test_memory_is_measured_in_a_fresh_process() -> None:
    assert gmm.peak_memory("sklearn", "full", 20_000) > 5
