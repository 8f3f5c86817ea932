"""What an installation takes is measured, and the parts are parts of the whole."""

import pytest

from ppspeech.evidence.bench.package import _distributions, run


def test_modules_are_told_by_who_brings_them() -> None:
    assert _distributions({"sklearn", "yaml", "json"}) == {"scikit-learn", "pyyaml"}


@pytest.mark.slow
def test_the_figures() -> None:
    figures = {figure.metric: figure.value for figure in run(quick=True)}
    assert 100 < figures["package.wheel_kb"] < 5_000
    assert 0 < figures["package.client_mb"] < figures["package.full_mb"]
    assert figures["package.cuda_mb"] < figures["package.full_mb"]
