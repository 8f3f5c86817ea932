"""The benchmark trains every module on both sides; how fast is not asserted."""

import pytest
import torch

from ppspeech.evidence.bench import privacy


def test_every_module_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    small = tuple((name, make, 3, classes) for name, make, _, classes in privacy.MODULES)
    monkeypatch.setattr(privacy, "MODULES", small)
    threads = torch.get_num_threads()
    figures = {figure.metric: figure.value for figure in privacy.run(quick=True)}
    assert torch.get_num_threads() == threads
    overheads = [value for name, value in figures.items() if name.count(".") == 4]
    assert len(overheads) == 8
    assert figures["privacy.objective.overhead"] == max(overheads) > 0
    assert figures["privacy.objective.calibration_s"] > 0
