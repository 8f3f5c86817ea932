"""Digits by a network on shares, and a network that two parties train, on real recordings."""

from pathlib import Path

import pytest

from ppspeech.evidence.experiments import EXPERIMENTS


@pytest.mark.slow
@pytest.mark.usefixtures("data")
def test_digits_are_told_as_in_the_clear(tmp_path: Path) -> None:
    figures = {figure.metric: figure.value for figure in EXPERIMENTS["networks"](True, tmp_path)}
    assert figures["networks.largest_flip_margin"] < 0.1
    assert figures["networks.accuracy"] > 0.9
    assert figures["networks.training.weight_error"] < 0.01
    assert min(figures["networks.ctc.equal"], figures["networks.hybrid.equal"]) >= 11  # of 12: near ties turn
    assert max(figures["networks.ctc.wer"], figures["networks.hybrid.wer"]) < 0.5
