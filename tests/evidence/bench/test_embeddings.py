"""The benchmark of heads on embeddings: its figures exist, and wrong words stop it."""

from dataclasses import replace

import pytest

from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import embeddings as bench
from ppspeech.service import export_words


def test_a_run_gives_every_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"WORDS": 2, "PARTS": 1, "AHEAD": 3, "LABELS": ("one", "two")}.items():
        monkeypatch.setattr(bench, name, size)
    figures = {figure.metric: figure for figure in bench.run(quick=True)}
    wanted = {
        *(f"word.{each}" for each in ("total_ms", "offline_ms", "online_ms", "bytes", "rounds", "meeting_ms")),
        *(f"step.{each}" for each in ("online_ms", "offline_ms", "bytes", "rounds")),
        *(f"{way}.{each}" for way in ("margin", "garbled", "outcome") for each in ("total_ms", "bytes", "rounds")),
        *("plain.ms", "front_end.ms", "front_end.step_ms"),
    }
    assert {f"embeddings.{name}" for name in wanted} <= set(figures)
    assert figures["embeddings.garbled.rounds"].value == 2
    assert "load" in (figures["embeddings.word.total_ms"].note or "")


def test_a_real_size_stays_below_its_bytes() -> None:
    job = bench.timed("word", export_words("embedding_head", bench.made_head("logistic"), bench.LABELS))
    assert job.bytes is not None
    assert job.bytes < 100_000


def test_a_wrong_word_stops_the_benchmark() -> None:
    job = bench.timed("word", export_words("embedding_head", bench.made_head("logistic"), bench.LABELS))
    with pytest.raises(PpspeechError, match="no figure can be trusted"):
        bench.measure([replace(job, right=lambda words: words == ["another"])], repeats=1)
