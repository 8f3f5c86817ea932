"""`ppspeech bench scale-ray` believes no time of files that differ."""

from pathlib import Path

import pytest

from ppspeech.cluster import HERE
from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import scale_ray


def test_figures_are_of_files_that_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers here are this process: what a cluster does is in tests/cluster."""
    monkeypatch.setattr(scale_ray, "QUICK", 3)
    monkeypatch.setattr(scale_ray, "pool", lambda *_: _Entered())
    figures = {figure.metric: figure for figure in scale_ray.run(True)}
    assert set(figures) == {
        "scale.features.ray2.speedup", "scale.features.ray1.rate", "scale.features.ray2.rate",
        "scale.features.ray2.start_s",
    }  # fmt: skip
    assert figures["scale.features.ray2.speedup"].value > 0
    filled = scale_ray._filled

    def other(folder: Path, *rest: object) -> tuple[float, dict[str, bytes]]:
        seconds, files = filled(folder, *rest)  # type: ignore[arg-type]
        return seconds, {name: content + folder.name.encode() for name, content in files.items()}

    monkeypatch.setattr(scale_ray, "_filled", other)
    with pytest.raises(PpspeechError, match="other files than one process"):
        scale_ray.run(True)


class _Entered:
    def __enter__(self) -> object:
        return HERE

    def __exit__(self, *_: object) -> None:
        return None
