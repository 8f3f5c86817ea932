"""Sound files of every kind we promise to read, and those we promise to refuse."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from ppspeech.audio import read_audio, read_with_rate, write_audio
from ppspeech.errors import AudioError

TONE = (0.5 * np.sin(2 * np.pi * 440 * np.arange(4_410) / 44_100)).astype(np.float32)


@pytest.mark.parametrize("suffix", ["wav", "flac"])
@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "FLOAT"])
@pytest.mark.parametrize("channels", [1, 2])
def test_reads_any_kind(tmp_path: Path, suffix: str, subtype: str, channels: int) -> None:
    if suffix == "flac" and subtype == "FLOAT":
        subtype = "PCM_S8"
    path = tmp_path / f"tone.{suffix}"
    soundfile.write(path, np.stack([TONE] * channels, axis=1), 44_100, subtype=subtype)
    waveform, rate = read_with_rate(path)
    assert rate == 44_100
    assert waveform.dtype == torch.float32
    np.testing.assert_allclose(waveform.numpy(), TONE, atol=1e-2 if subtype == "PCM_S8" else 1e-4)


def test_stereo_is_averaged(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "two.wav", np.stack([TONE, -TONE], axis=1), 44_100)
    assert read_audio(tmp_path / "two.wav").abs().max() < 1e-4


def test_resamples(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "tone.wav", TONE, 44_100)
    waveform = read_audio(tmp_path / "tone.wav", sample_rate=16_000)
    assert len(waveform) == 1_600
    expected = 0.5 * np.sin(2 * np.pi * 440 * np.arange(1_600) / 16_000)
    np.testing.assert_allclose(waveform.numpy()[100:-100], expected[100:-100], atol=5e-3)


@pytest.mark.parametrize("name", ["a.wav", "a.flac"])
def test_round_trip_is_exact_to_16_bits(tmp_path: Path, name: str) -> None:
    write_audio(tmp_path / "deeper" / name, torch.from_numpy(TONE), 16_000)
    waveform, rate = read_with_rate(tmp_path / "deeper" / name)
    assert rate == 16_000
    np.testing.assert_allclose(waveform.numpy(), TONE, atol=1 / 32_767)
    assert [p.name for p in (tmp_path / "deeper").iterdir()] == [name]


def test_bad_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AudioError, match="no sound file at"):
        read_audio(tmp_path / "absent.wav")
    (tmp_path / "text.wav").write_text("this is not sound")
    with pytest.raises(AudioError, match="not a readable sound file"):
        read_audio(tmp_path / "text.wav")
    soundfile.write(tmp_path / "empty.wav", np.zeros(0), 16_000)
    with pytest.raises(AudioError, match="empty"):
        read_audio(tmp_path / "empty.wav")
    broken = TONE.copy()
    broken[441] = np.nan
    soundfile.write(tmp_path / "nan.wav", broken, 44_100, subtype="FLOAT")
    with pytest.raises(AudioError, match=r"NaN or infinite, first at 0\.010 s"):
        read_audio(tmp_path / "nan.wav")


@pytest.mark.parametrize(
    ("name", "waveform", "message"),
    [
        ("a.mp3", torch.zeros(10), "suffix"),
        ("a.wav", torch.zeros(2, 10), "shape"),
        ("a.wav", torch.zeros(0), "shape"),
        ("a.wav", torch.full((10,), 1.5), "peak of 1.5"),
        ("a.wav", torch.full((10,), torch.nan), "peak of nan"),
    ],
)
def test_bad_waveforms_are_not_written(tmp_path: Path, name: str, waveform: torch.Tensor, message: str) -> None:
    with pytest.raises(AudioError, match=message):
        write_audio(tmp_path / name, waveform, 16_000)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "subtype"), [("a.wav", "PCM_16"), ("a.wav", "FLOAT"), ("a.flac", None), ("a.aiff", None)]
)
def test_a_file_that_was_cut_is_refused(tmp_path: Path, name: str, subtype: str | None) -> None:
    soundfile.write(tmp_path / name, TONE, 44_100, subtype=subtype)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(AudioError, match=r"is cut short: \d+% of what|not a readable sound file"):
        read_audio(tmp_path / name)


def test_a_file_from_a_pipe_says_no_length_and_is_read(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", TONE, 44_100)
    streamed = bytearray((tmp_path / "a.wav").read_bytes())
    for place in (4, 40):
        streamed[place : place + 4] = b"\xff" * 4
    (tmp_path / "a.wav").write_bytes(streamed)
    assert len(read_audio(tmp_path / "a.wav")) == len(TONE)
