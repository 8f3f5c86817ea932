"""The benchmark of shares: its figures exist, and it notices wrong results and formulas."""

from dataclasses import replace

import numpy as np
import pytest

from ppspeech.evidence.bench import shares as bench
from ppspeech.evidence.bench.two_parties import Timed


def test_small_jobs_give_all_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    small = bench.jobs(steps=3, states=4, comparisons=1000)
    monkeypatch.setattr(bench, "jobs", lambda: small)
    figures = {figure.metric: figure for figure in bench.run(quick=True)}
    assert {"shares.max3x4.total_ms", "shares.logadd3x4.total_ms", "shares.argmax10.ms", "shares.compare1k.ms"} <= set(
        figures
    )
    assert figures["shares.max3x4.bytes"].value == small[0].bytes
    assert all(figure.value > 0 for figure in figures.values())


def test_the_figures_asked_for_have_their_names_and_sizes() -> None:
    sizes = {job.name: job.bytes for job in bench.jobs()}
    assert set(sizes) == {"max98x50", "logadd98x50", "argmax10", "compare10k"}
    assert (sizes["max98x50"] or 0) <= 1.5e6
    assert (sizes["logadd98x50"] or 0) <= 3.5e6


def test_results_are_compared_with_those_in_the_clear() -> None:
    """Answers of the jobs as they come from a run, and one changed in one place."""
    found: dict[str, np.ndarray] = {}

    def kept(job: Timed) -> Timed:
        return replace(job, right=lambda got: job.right(found.setdefault(job.name, np.asarray(got))))

    jobs = bench.jobs(steps=2, states=3, comparisons=1000)
    bench.measure([kept(job) for job in jobs], repeats=1, meet=bench.MEETING)
    for job in jobs:
        changed = found[job.name].copy()
        changed.flat[0] ^= 1
        assert job.right(changed) == job.name.startswith("logadd")
