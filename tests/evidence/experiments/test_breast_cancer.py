"""Breast cancer: the whole experiment, small, and its targets."""

from pathlib import Path

import pytest

from ppspeech.evidence.experiments import breast_cancer
from ppspeech.intervals import Mean


def test_the_experiment_tells_sound_from_published(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPSPEECH_DATA", str(data))
    monkeypatch.setattr(breast_cancer, "EPSILONS", (0.1, 10.0))
    monkeypatch.setattr(breast_cancer, "DRAWS", 2)
    figures = {figure.metric: figure for figure in breast_cancer.run(quick=True, folder=tmp_path)}
    assert figures["bcw.nonprivate.error"].value < 0.08
    assert figures["bcw.pure.eps0.1.error"].value > 2 * figures["bcw.pure.eps10.error"].value
    assert figures["bcw.published.eps0.1.error"].value < 0.1  # its noise cancels
    lower = figures["audit.large_margin_published.eps_lower"]
    assert lower.value > figures["audit.large_margin_published.eps_stated"].value
    assert "violated" in str(lower.note)
    assert "vacuous" in str(figures["bcw.published.bound_empirical"].note)
    assert (tmp_path / "breast_cancer.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_breast_cancer_reaches_its_targets(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPSPEECH_DATA", str(data))
    figures = {figure.metric: figure.value for figure in breast_cancer.run(quick=False, folder=tmp_path)}
    assert figures["bcw.pure.eps1.error"] <= 0.10
    assert figures["bcw.pure.eps3.error"] <= 0.06
    assert figures["bcw.gaussian.eps1.error"] <= 0.07


def test_an_interval_covers_the_mean() -> None:
    """Student's t at 2 degrees of freedom: 4.3027 standard errors."""
    mean = Mean.of([1.0, 2.0, 3.0])
    assert mean.value == 2
    assert mean.half_width == pytest.approx(4.302652729911275 / 3**0.5)
