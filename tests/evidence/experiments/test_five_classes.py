"""The five-class experiment gives every curve, and privacy costs less as epsilon grows."""

from pathlib import Path

from ppspeech.evidence.experiments import five_classes


def test_quick_run_gives_the_curves(tmp_path: Path) -> None:
    figures = {figure.metric: figure.value for figure in five_classes.run(True, tmp_path)}
    assert figures["five_classes.nonprivate.error"] < 0.2
    for kind in ("pure", "gaussian"):
        assert figures[f"five_classes.{kind}.eps100.error"] < figures[f"five_classes.{kind}.eps1.error"] + 0.05
        assert figures[f"five_classes.{kind}.eps100.error"] < 0.4
    assert {f"five_classes.published.eps{at:g}.error" for at in five_classes.EPSILONS} <= set(figures)
    assert (tmp_path / "five_classes.png").read_bytes().startswith(b"\x89PNG")
