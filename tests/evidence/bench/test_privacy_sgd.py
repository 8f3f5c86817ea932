"""The DP-SGD benchmark measures both sides."""

import pytest

from ppspeech.evidence.bench.privacy_sgd import run


@pytest.mark.slow
def test_both_sides_are_measured() -> None:
    figures = {figure.metric: figure for figure in run(quick=True)}
    step = figures["privacy.dp_sgd.step_s"]
    assert step.value > 0
    assert step.peer_value is not None
    assert figures["privacy.dp_sgd.overhead"].value == pytest.approx(step.value / step.peer_value)
