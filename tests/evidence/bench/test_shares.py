"""The benchmark of shares: its figures exist, and it notices wrong results and formulas."""

from dataclasses import replace

import numpy as np
import pytest

from ppspeech.errors import PpspeechError, ProtocolError
from ppspeech.evidence.bench import shares as bench


def test_small_jobs_give_all_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    small = bench.jobs(steps=3, states=4, comparisons=1000)
    monkeypatch.setattr(bench, "jobs", lambda: small)
    figures = {figure.metric: figure for figure in bench.run(quick=True)}
    assert {"shares.max3x4.total_ms", "shares.logadd3x4.total_ms", "shares.argmax10.ms", "shares.compare1k.ms"} <= set(
        figures
    )
    assert figures["shares.max3x4.bytes"].value == small[0].cost.total_bytes
    assert all(figure.value > 0 for figure in figures.values())


def test_the_figures_asked_for_have_their_names_and_sizes() -> None:
    names = {job.name: job.cost for job in bench.jobs()}
    assert set(names) == {"max98x50", "logadd98x50", "argmax10", "compare10k"}
    assert names["max98x50"].total_bytes <= 1.5e6
    assert names["logadd98x50"].total_bytes <= 3.5e6


@pytest.mark.parametrize("fault", ["answer", "cost"])
def test_a_wrong_result_or_formula_stops_the_benchmark(fault: str) -> None:
    job = bench.jobs(steps=2, states=3, comparisons=1000)[0]
    assert job.answer is not None
    if fault == "answer":
        job = replace(job, answer=job.answer + np.array([0, 1, 0]))
    else:
        job = replace(job, cost=replace(job.cost, bytes_first=job.cost.bytes_first + 1))
    with pytest.raises((PpspeechError, ProtocolError)):
        bench.measure([job], repeats=1)
