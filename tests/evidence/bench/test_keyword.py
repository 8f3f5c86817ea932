"""The keyword benchmark: its figures exist at small sizes, and it notices wrong words and formulas."""

from dataclasses import replace

import numpy as np
import pytest

from ppspeech.crypto.transfer import extension
from ppspeech.errors import PpspeechError, ProtocolError
from ppspeech.evidence.bench import keyword as bench
from ppspeech.evidence.bench.two_parties import measure
from ppspeech.evidence.published.protocols.slice_timing import Slice
from ppspeech.protocols.words.keyword import KeywordJob


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"FRAMES": 6, "DIMENSIONS": 3, "WORDS": 3, "STATES": 2, "BATCH": 2, "FRAMES_30": 3}.items():
        monkeypatch.setattr(bench, name, size)


@pytest.mark.usefixtures("small")
def test_small_jobs_give_all_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "published_keyword_seconds", lambda *_, **__: Slice(1.0, 10.0, "a slice"))
    figures = {figure.metric: figure for figure in bench.run(quick=True)}
    wanted = {f"keyword.{name}.total_s" for name in ("forward", "viterbi", "published_512", "published_2048")}
    wanted |= {"keyword.forward.ratio_to_bare_kernel", "keyword.forward.bytes", "keyword.streaming.answer_ms"}
    wanted |= {"keyword.batch.utterances_per_s", "keyword.batch.forward.utterances_per_s", "active.forward.overhead"}
    wanted |= {"keyword.rtt40.online_s", "keyword.rtt40.offline_s", "keyword.garbled.total_s"}
    wanted |= {f"keyword.hop30.{name}.{what}" for name in ("forward", "viterbi") for what in ("total_s", "bytes")}
    assert wanted | {"keyword.plain_s"} <= set(figures)
    assert figures["keyword.forward.bytes"].value == KeywordJob(bench.made_models().shape).total_bytes
    assert all(figure.value > 0 for figure in figures.values())
    assert figures["keyword.link40ms.viterbi.frames.online_s"].value > 0.04
    assert figures["keyword.rtt40.online_s"].value > 0.08


def test_the_bench_alone_leaves_out_what_it_compares_with() -> None:
    """Columns that do not agree pass while nothing is checked, and not any more afterwards."""
    columns = np.ones((4, 32), np.uint8)
    before = extension.hash_columns(bytes(16), columns)
    with bench.unchecked():
        assert not extension.hash_columns(bytes(16), columns).any()
    assert (extension.hash_columns(bytes(16), columns) == before).all()


def test_no_frame_of_the_bench_is_clipped_and_no_floor_is_needed() -> None:
    models = bench.made_models()
    assert (models.shape.floor, models.shape.reach) == (None, None)
    assert max(np.linalg.norm(bench.made_utterance(seed), axis=1).max() for seed in range(16)) < models.shape.radius


def test_the_job_has_the_sizes_of_the_seed_and_its_bytes() -> None:
    job = KeywordJob(bench.made_models().shape)
    assert (job.plan.rows, job.plan.inner, job.plan.columns) == (98, 820, 50)
    assert job.total_bytes <= 5e6


@pytest.mark.usefixtures("small")
def test_a_wrong_word_stops_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    models = bench.made_models()
    monkeypatch.setattr(bench, "_sure_word", lambda *_: "another word")
    with pytest.raises(PpspeechError, match="no figure can be trusted"):
        measure([bench.timed(models, [bench.made_utterance()])], repeats=1)


@pytest.mark.usefixtures("small")
def test_plain_scores_are_a_sum_over_paths() -> None:
    models = bench.made_models()
    frames = bench.made_utterance()[:2]
    emissions = (models.shape.frame_monomials(frames) @ models.weights).reshape(2, 3, 2)
    stay = emissions[0, :, 0] + np.log(0.95) + emissions[1, :, 0]
    move = emissions[0, :, 0] + np.log(0.05) + emissions[1, :, 1]
    np.testing.assert_allclose(bench.plain_scores(models, frames), np.logaddexp(stay, move))
    best = bench.with_operation(models, "viterbi")
    np.testing.assert_allclose(bench.plain_scores(best, frames), np.maximum(stay, move))
    with pytest.raises((PpspeechError, ProtocolError)):
        replace(models, shape=replace(models.shape, words=4))
