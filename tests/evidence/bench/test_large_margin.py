"""The benchmark solves the same problem on both sides."""

from pathlib import Path

import pytest

from ppspeech.evidence.bench.large_margin import run


def test_both_sides_reach_the_same_objective(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPSPEECH_DATA", str(data))
    figures = {figure.metric: figure for figure in run(quick=True)}
    for name in ("large_margin", "large_margin.weak"):
        assert abs(figures[f"{name}.objective_difference"].value) < 1e-5
        solve = figures[f"{name}.solve_s"]
        assert solve.ratio == pytest.approx(figures[f"{name}.speedup_vs_cvxpy"].value)
        assert solve.peer is not None
    assert figures["large_margin.weak.training_accuracy"].value > 0.95
