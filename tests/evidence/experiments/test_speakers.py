from pathlib import Path

import pytest
import torch

from ppspeech.data.corpora.audiomnist import load_audiomnist
from ppspeech.data.corpora.fsdd import DIGIT_WORDS
from ppspeech.evidence.experiments import speakers


def test_people_who_differ_are_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole experiment on made-up cepstra: 14 people, each with an own covariance that CMVN leaves alone."""
    generator = torch.Generator().manual_seed(0)
    names = tuple(f"{index:02d}" for index in range(14))
    turns = {who: torch.linalg.qr(torch.randn(6, 6, generator=generator)).Q for who in names}
    scales = torch.tensor([1.6, 1.3, 1.0, 0.8, 0.6, 0.5])
    clips = {
        (who, take, word): torch.randn(8, 6, generator=generator) * scales @ turns[who]
        for who in names
        for take in range(8)
        for word in DIGIT_WORDS
    }
    monkeypatch.setattr(speakers, "BACKGROUND", 10)
    monkeypatch.setattr(speakers, "load_clips", lambda: (clips, names))
    figures = {figure.metric: figure for figure in speakers.run(quick=True, folder=tmp_path)}
    assert figures["speakers.ten_digits.llr.eer"].value < 0.10
    assert figures["speakers.ten_digits.llr.identification"].value > 0.80
    assert figures["speakers.one_digit.llr.eer"].value > figures["speakers.ten_digits.llr.eer"].value
    assert "64 trials, 16 of them targets" in str(figures["speakers.ten_digits.llr.eer"].note)
    assert (tmp_path / "speakers.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_audiomnist_speakers_are_verified(data: Path, tmp_path: Path) -> None:
    assert len(load_audiomnist(data / "audiomnist").speakers) == 60
    figures = {figure.metric: figure.value for figure in speakers.run(quick=False, folder=tmp_path)}
    assert figures["speakers.ten_digits.llr.eer"] <= 0.03
