"""The benchmark of searches: its figures exist, and it notices what is not found."""

from dataclasses import replace

import pytest

from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import spotting as bench
from ppspeech.evidence.bench.two_parties import measure
from ppspeech.protocols.search import WarpShape

SMALL = replace(
    bench.SHAPE, frames=200, dimensions=16, states=(3,), block=30, longest=20,
    scores=(-1_500, 0), garbage=(-90, 20)
)  # fmt: skip


def small_jobs() -> list[bench.Timed]:
    several = replace(bench.TOGETHER, frames=200, dimensions=6, states=(3,), block=30, longest=20, recordings=2)
    return bench.jobs((SMALL, replace(SMALL, passes=2), several), WarpShape(6, 3, 4))


def test_small_jobs_give_all_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    small = small_jobs()
    monkeypatch.setattr(bench, "jobs", lambda: small)
    figures = {figure.metric: figure.value for figure in bench.run(quick=True)}
    assert {"spotting.minute_s", "spotting.average.minute_s", "dtw.clip_s"} <= set(figures)
    assert [figures[f"{name}.bytes"] for name in ("spotting", "spotting.average", "spotting.together", "dtw")] == [
        job.bytes for job in small
    ]
    assert all(value > 0 for value in figures.values())


def test_a_keyword_that_is_not_found_stops_the_bench() -> None:
    job = small_jobs()[0]
    assert not job.right([[None]])
    with pytest.raises(PpspeechError, match="wrong"):
        measure([replace(job, right=lambda _: job.right([[None]]))], repeats=1)


def test_sizes_are_within_what_was_promised() -> None:
    minute, average, together, clip = bench.jobs()
    assert (together.bytes or 0) <= bench.MINUTES * 6.2e6
    assert (together.rounds or 0) <= (minute.rounds or 0)
    assert (minute.bytes or 0) <= 12e6
    assert (clip.bytes or 0) <= 12e6
    assert (average.rounds or 0) < 7 * (minute.rounds or 0)
