"""Songs over which people talk, and words by their patches: named and found under encryption as in the clear."""

from pathlib import Path

import pytest

from ppspeech.evidence.experiments import EXPERIMENTS


@pytest.mark.slow
@pytest.mark.usefixtures("data")
def test_songs_are_named_as_in_the_clear_and_no_wrong_one(tmp_path: Path) -> None:
    figures = {figure.metric: figure.value for figure in EXPERIMENTS["music"](False, tmp_path)}
    bars = {
        "correlation": (1.0, 0.98, 0.96, 0.835),
        "fingerprint": (1.0, 0.98, 0.98, 0.93),
        "landmarks": (1.0, 0.98, 0.96, 0.8),
    }
    for way, bar in bars.items():
        for level, least in zip(("none", "10db", "5db", "0db"), bar, strict=True):
            assert figures[f"music.{way}.accuracy_{level}"] >= least, (way, level)
        assert figures[f"music.{way}.wrong_named"] == 0
        assert figures[f"music.{way}.same"] == 324
    for way in ("correlation", "fingerprint"):
        assert figures[f"music.{way}.strangers_named"] == 0


@pytest.mark.slow
@pytest.mark.usefixtures("data")
def test_words_are_found_by_their_patches(tmp_path: Path) -> None:
    figures = {figure.metric: figure.value for figure in EXPERIMENTS["patches"](False, tmp_path)}
    assert figures["patches.auc"] >= 0.93
    assert figures["patches.svm.auc"] >= 0.9
    for name in ("patches", "patches.svm"):
        assert abs(figures[f"{name}.auc"] - figures[f"{name}.clear_auc"]) < 0.03
        assert figures[f"{name}.auc_low"] < figures[f"{name}.auc"] < figures[f"{name}.auc_high"]
