"""What an installation takes is measured, and the parts are parts of the whole."""

import pytest

from ppspeech.evidence.bench.package import run


@pytest.mark.slow
def test_the_figures() -> None:
    figures = {figure.metric: figure.value for figure in run(quick=True)}
    assert 100 < figures["package.wheel_kb"] < 5_000
    assert 0 < figures["package.client_mb"] < figures["package.full_mb"] / 5
    assert figures["package.cuda_mb"] < figures["package.full_mb"]
    assert figures["package.client_import_s"] > 0
