"""Training takes the cores that are idle: beside busy processes further threads only wait."""

import os
from pathlib import Path

import pytest
import torch

from ppspeech.training import threads
from ppspeech.training.threads import idle_cores, idle_cores_alone


@pytest.mark.parametrize(
    ("cores", "running", "idle"), [(2, 1, 2), (2, 2, 1), (2, 9, 1), (8, 1, 8), (8, 4, 5), (8, 90, 1)]
)
def test_as_many_as_nobody_uses(
    cores: int, running: int, idle: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loadavg").write_text(f"0.10 9.00 9.00 {running}/300 4711\n")  # averages are of what is over
    monkeypatch.setattr(threads, "LOAD", tmp_path / "loadavg")
    monkeypatch.setattr(threads, "SECONDS", 0.0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    assert idle_cores() == idle
    monkeypatch.setattr(threads, "LOAD", tmp_path / "absent")
    assert idle_cores() == cores


def test_who_says_how_many_gets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    monkeypatch.setattr(threads, "idle_cores", lambda: 1)
    try:
        torch.set_num_threads(3)
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
        with idle_cores_alone():
            assert torch.get_num_threads() == 3
        monkeypatch.delenv("OMP_NUM_THREADS")
        with idle_cores_alone():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
