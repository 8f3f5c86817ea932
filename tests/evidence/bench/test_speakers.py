"""The benchmark of speakers: its figures exist, wrong answers stop it, encrypted error rates are the plain ones."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ppspeech.data.corpora.fsdd import DIGIT_WORDS
from ppspeech.errors import CorpusError, PpspeechError
from ppspeech.evidence.bench import speaker_trials, voices
from ppspeech.evidence.bench import speakers as bench
from ppspeech.figures import Figure
from ppspeech.protocols.speakers import HardenedTerms


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A few speakers with short embeddings, short trials, and no corpus."""
    sizes = {"DIMENSIONS": 32, "ENROLLED": (6, 300), "FRAMES": 10, "COMPONENTS": 4, "CEPSTRA": 5, "IDENTIFIED": 10}
    for name, size in sizes.items():
        monkeypatch.setattr(bench, name, size)
    monkeypatch.setattr(bench, "eer_differences", lambda quick: [Figure("speakers.eer_difference", 0.0)])
    monkeypatch.setattr(bench, "data_folder", lambda: tmp_path)
    monkeypatch.setattr(HardenedTerms, "usual", lambda features, models: HardenedTerms(features, models, 64))


def test_a_run_gives_every_figure(small: None) -> None:
    figures = {figure.metric: figure for figure in bench.run(quick=True)}
    wanted = {"6.ms", "300.ms", "identify.10.ms", "gmm_ubm.s", "gmm_ubm_max.s", "hardened.ms", "templates.ms"}
    assert {f"speakers.{name}" for name in wanted | {"eer_difference"}} <= set(figures)
    assert figures["speakers.hardened.300.ms"].peer_value == figures["speakers.300.ms"].value
    for job in bench.jobs():
        assert figures[f"speakers.{job.name}.bytes"].value == job.bytes
    assert "load" in (figures["speakers.6.ms"].note or "")
    assert "extrapolated" in (figures["speakers.6.ms"].note or "")
    assert figures["speakers.300.ms"].peer_value == pytest.approx(50 * (figures["speakers.6.ms"].peer_value or 0))


def test_the_queries_asked_for_stay_below_their_bytes() -> None:
    sizes = {}
    for count in bench.ENROLLED:
        job = bench.verification_job(str(count), np.random.default_rng(0), count)
        sizes[job.name] = job.bytes
    assert sizes.keys() == {"1000", "10000"}
    assert all(size <= 1.5e6 for size in sizes.values())


def test_a_wrong_answer_stops_the_benchmark(small: None) -> None:
    job = bench.verification_job("6", np.random.default_rng(0), 6)
    assert job.right(True)
    with pytest.raises(PpspeechError, match="no figure can be trusted"):
        bench.measure([replace(job, right=lambda got: got is False)], repeats=1)


def test_voices_among_many(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voices, "PEOPLE", 12)
    monkeypatch.setattr(voices, "_hearing", lambda repeats, load: Figure("voices.hearing_ms", 0.0, "ms"))
    figures = {figure.metric: figure for figure in voices.run(quick=True)}
    for name in ("verify", "identify", "hardened"):
        parts = [figures[f"voices.12.{name}_{part}_ms"].value for part in ("offline", "online")]
        assert figures[f"voices.12.{name}_ms"].value == pytest.approx(sum(parts))
        assert figures[f"voices.12.{name}_bytes"].value > 0
        assert figures[f"voices.12.{name}_rounds"].value >= 1
    assert figures["voices.12.offline_ms"].value == figures["voices.12.verify_offline_ms"].value


def test_without_data_nothing_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PPSPEECH_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(CorpusError, match="PPSPEECH_DATA"):
        bench.run(quick=True)


def test_error_rates_of_made_up_voices_do_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole comparison on cepstra of 12 people, each with an own covariance that CMVN leaves alone."""
    generator = torch.Generator().manual_seed(0)
    names = tuple(f"{index:02d}" for index in range(12))
    turns = {who: torch.linalg.qr(torch.randn(6, 6, generator=generator)).Q for who in names}
    scales = torch.tensor([1.6, 1.3, 1.0, 0.8, 0.6, 0.5])
    clips = {
        (who, take, word): torch.randn(12, 6, generator=generator) * scales @ turns[who]
        for who in names
        for take in range(8)
        for word in DIGIT_WORDS
    }
    monkeypatch.setattr(speaker_trials, "BACKGROUND", 8)
    monkeypatch.setattr(speaker_trials, "load_clips", lambda: (clips, names))
    figures = {figure.metric: figure for figure in speaker_trials.eer_differences(quick=True)}
    assert figures["speakers.eer_difference.linear"].value == 0
    assert "16 trials" in str(figures["speakers.eer_difference.gmm_ubm"].note)
    for codes in (figures["speakers.hardened.8192_bits.eer"], figures["speakers.hardened.4096_bits.eer"]):
        assert codes.peer_value is not None
        assert 0 <= codes.value <= codes.peer_value + 0.1
        assert "bootstrap over people" in str(codes.note)
    assert figures["speakers.eer_difference"].value == max(
        figures[f"speakers.eer_difference.{name}"].value for name in ("linear", "gmm_ubm")
    )
