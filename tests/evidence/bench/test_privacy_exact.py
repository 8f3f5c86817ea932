"""The benchmark of exact noise measures both sides and names what it says it names."""

import pytest

from ppspeech.evidence.bench.privacy_exact import run


@pytest.mark.slow
def test_exact_noise_is_measured_beside_floats() -> None:
    figures = {figure.metric: figure for figure in run(quick=True)}
    assert set(figures) == {
        "privacy.exact.overhead",
        "privacy.exact.statistics.overhead",
        "privacy.exact.sgd.overhead",
        "privacy.exact.noise_s",
    }
    worst = max(figures[f"privacy.exact.{name}.overhead"].value for name in ("statistics", "sgd"))
    assert figures["privacy.exact.overhead"].value == worst
