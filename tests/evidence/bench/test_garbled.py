"""The benchmark of garbled circuits: its figures exist at small sizes, and it notices wrong words."""

from dataclasses import replace

import pytest

from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import garbled as bench
from ppspeech.evidence.bench.two_parties import measure
from ppspeech.protocols.trellis import whole_cost


def test_small_jobs_give_all_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "JOBS", (("digits", 3, 2, 21, True), ("word", 2, 2, 5, False)))
    monkeypatch.setattr(bench, "FRAME_SECONDS", 0.001)
    figures = {figure.metric: figure for figure in bench.run(quick=True)}
    wanted = {f"garbled.{job}.{link}.online_ms" for job in ("digits", "word") for link in ("loopback", "link40")}
    wanted |= {"garbled.garble_ns", "garbled.evaluate_ns", "garbled.digits.loopback.real_time"}
    assert wanted | {"garbled.digits.link40.after_last_frame_ms"} <= set(figures)
    job = bench.Loop("digits", 3, 2, 21, meets=True)
    assert figures["garbled.digits.loopback.bytes"].value == whole_cost(job.circuit).total + job.product.total_bytes
    assert figures["garbled.word.link40.online_ms"].value > 80  # two round trips
    assert figures["garbled.digits.link40.after_last_frame_ms"].value > 40  # one


def test_wrong_words_are_no_figures() -> None:
    job = bench.Loop("word", 2, 2, 5).timed()
    with pytest.raises(PpspeechError, match="is wrong"):
        measure([replace(job, right=lambda read: read.records() == ((),))], repeats=1)
