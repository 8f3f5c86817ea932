"""The benchmarks of songs and of patches: their figures exist, and they notice what is not found."""

from dataclasses import replace

import pytest

from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import music as bench
from ppspeech.evidence.bench import patches as bench_patches
from ppspeech.evidence.bench.two_parties import STRANGERS, measure
from ppspeech.protocols.music import MusicShape
from ppspeech.protocols.search import PatchShape


def test_small_jobs_give_all_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = bench.excerpt_jobs(3, 40, 8)
    shape = MusicShape("fingerprints", 200, 3, pattern=8)
    monkeypatch.setattr(bench, "excerpt_jobs", lambda: jobs)
    monkeypatch.setattr(bench, "hours_shape", lambda hours: shape)
    monkeypatch.setattr(bench, "landmark_jobs", lambda quick: [bench.landmark_job("landmarks", 2, 2, 60)])
    figures = {figure.metric: figure.value for figure in bench.run(quick=True)}
    assert {"music.27.s", "music.1h.s", "music.fingerprints.clip_s", "music.landmarks.clip_ms"} <= set(figures)
    assert figures["music.fingerprints.bytes"] == jobs[0].bytes
    assert figures["music.landmarks.rounds"] == 1
    assert all(value > 0 for metric, value in figures.items() if not metric.endswith("offline_ms"))


def test_a_song_that_is_not_found_stops_the_bench() -> None:
    job = bench.excerpt_jobs(2, 30, 6)[0]
    assert not job.right(None)
    with pytest.raises(PpspeechError, match="wrong"):
        measure([replace(job, right=lambda _: False)], repeats=1)
    marks = bench.landmark_job("landmarks", 2, 2, 60)
    with pytest.raises(PpspeechError, match="wrong"):
        measure([replace(marks, right=lambda _: False)], repeats=1, meet=STRANGERS)


def test_sizes_are_within_what_was_promised() -> None:
    assert (bench.song_job("27", MusicShape("fingerprints", 27 * 422, 27)).bytes or 0) <= 2.2e6
    small, large = (bench.hours_shape(hours) for hours in (1, 6))
    assert large.offsets > 5 * small.offsets
    assert large.songs == 108


def test_a_small_word_of_patches_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_patches, "SHAPE", PatchShape(pieces=40, numbers=20, bins=3, per_bin=2))
    figures = {figure.metric: figure.value for figure in bench_patches.run(quick=True)}
    for name, job in bench_patches.jobs().items():
        assert figures[f"{name}.bytes"] == job.bytes
        assert not job.right([None])
