"""The experiment on eigenvectors, small: its figures, its picture, and what they must show."""

from pathlib import Path

import numpy as np
import pytest

from ppspeech.crypto.paillier import generate_paillier
from ppspeech.evidence.experiments import eigenvectors
from ppspeech.evidence.published.protocols.eigenvector import run_published


def test_small_figures_and_picture(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(eigenvectors, "DECOY_ROUNDS", 60)
    key = generate_paillier(512, insecure_demo=True)
    monkeypatch.setattr(eigenvectors, "QUICK", eigenvectors.Sweep((1.5,), (1, 6), (3,), (3,), (1.0, 0.4), 2))
    monkeypatch.setattr(eigenvectors, "generate_paillier", lambda bits, **_: key)
    monkeypatch.setattr(eigenvectors, "run_published", lambda *a, **k: run_published(*a, **k | {"insecure_demo": True}))
    figures = {figure.metric: figure for figure in eigenvectors.run(True, tmp_path)}
    assert figures["eigenvectors.ratio1.5.squarings6.error"].value < 1e-6
    assert figures["eigenvectors.ratio1.5.squarings1.error"].value > 1e-3
    assert figures["eigenvectors.k3.bytes"].value > 1e4
    for genuine in ("1", "0.4"):  # how many rounds it takes depends on where it starts, at random
        assert 2 <= figures[f"eigenvectors.genuine{genuine}.rounds"].value <= 60
        assert figures[f"eigenvectors.genuine{genuine}.attack_error"].value < 1e-3
    assert (tmp_path / "eigenvectors.png").stat().st_size > 10_000


def test_frames_have_the_spectrum_they_are_drawn_for() -> None:
    frames, direction = eigenvectors.draw(6, 1.3, 3)
    values, vectors = np.linalg.eigh(sum(own.T @ own for own in frames))
    assert values[-1] / values[-2] == pytest.approx(1.3)
    assert abs(vectors[:, -1] @ direction) == pytest.approx(1)
