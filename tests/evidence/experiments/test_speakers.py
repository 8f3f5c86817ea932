from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from ppspeech.audio import Frames
from ppspeech.data.corpora.audiomnist import load_audiomnist
from ppspeech.data.corpora.fsdd import DIGIT_WORDS
from ppspeech.evidence.experiments import embedded_speakers, speakers


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


def test_encrypted_cosines_are_plain_ones_to_a_thousandth() -> None:
    generator = torch.Generator().manual_seed(0)
    people = torch.nn.functional.normalize(torch.rand(6, 256, generator=generator), dim=-1).double()
    voices = torch.nn.functional.normalize(
        people.repeat_interleave(3, 0) + 0.02 * torch.randn(18, 256, generator=generator), dim=-1
    )
    plain, shared = embedded_speakers.encrypted_cosines(people, voices)
    assert torch.allclose(plain, voices @ people.mT)
    assert 0 < float((plain - shared).abs().max()) < 1e-3
    targets = torch.arange(6).repeat_interleave(3)[:, None] == torch.arange(6)
    told = embedded_speakers._eer("some.eer", shared, targets, "made-up voices")
    assert told.value == 0
    assert "108 trials, 18 of them targets; made-up voices" in str(told.note)
    assert "none of 6 is confused, so that fewer than 39% of people would be" in str(told.note)
    mixed = embedded_speakers._eer("some.eer", torch.rand(18, 6, generator=generator), targets, "chance")
    assert mixed.low is not None
    assert mixed.high is not None
    assert 0.1 < mixed.low < mixed.value < mixed.high
    assert "confused" not in str(mixed.note)


def test_voices_of_different_lengths_are_heard_as_if_alone() -> None:
    network = Loud()
    voices = [torch.rand(frames, 40) for frames in (50, 10, 30, 20)]
    found = embedded_speakers.directions(network, voices)  # type: ignore[arg-type]
    assert torch.allclose(found, torch.stack([each.sum(0) for each in voices]))


class Loud:
    """In place of the network: what was said is added up."""

    config = SimpleNamespace(size=40)

    def voices(self, frames: Frames) -> torch.Tensor:
        assert len(frames.features) <= embedded_speakers.AT_A_TIME
        return torch.stack([x[:n].sum(0) for x, n in zip(frames.features, frames.lengths.tolist(), strict=True)])
