"""The benchmark of networks: its figures exist, it notices wrong labels, and sizes stay what they are."""

from dataclasses import replace

import numpy as np
import pytest

from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import network as bench
from ppspeech.evidence.bench.two_parties import measure


def test_a_small_network_gives_all_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "FRAMES", 6)
    monkeypatch.setattr(bench, "SIZES", (8, 6, 6, 4))
    monkeypatch.setattr(bench, "SENTENCE", 32)
    figures = {figure.metric: figure for figure in bench.run(quick=True)}
    assert {"network.ms_per_frame", "network.logit_error", "network.bytes", "network.rounds"} <= set(figures)
    assert {f"network.{name}.{what}" for name in ("ctc", "hybrid") for what in ("s", "bytes", "rounds")} <= set(figures)
    assert figures["network.logit_error"].value < 0.15
    assert figures["network.ms_per_frame"].peer_value is not None
    assert all(figure.value > 0 for figure in figures.values())


def test_wrong_labels_stop_the_bench() -> None:
    own = bench.made_network(6, (8, 6, 4))
    job = bench.job(own, bench.made_frames(6, 8))
    assert not job.right(["another"] * 6)
    with pytest.raises(PpspeechError, match="wrong"):
        measure([replace(job, right=lambda _: job.right(["another"] * 6))], repeats=1)


def test_the_network_of_the_bar_is_exact_and_of_the_stated_size() -> None:
    own, frames = bench.made_network(bench.FRAMES, bench.SIZES), bench.made_frames(bench.FRAMES, bench.SIZES[0])
    job = bench.job(own, frames)
    assert (job.bytes or 0) <= 19e6
    assert (job.rounds or 0) <= 25
    assert np.abs(bench.logit_errors(own, frames)).max() <= 0.15
