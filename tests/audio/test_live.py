"""Features of speech that is still being spoken are those of the whole."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ppspeech.audio import LiveFrames, Mfcc, MfccConfig, features_of, waits_for_the_end, waveform_at, write_audio
from ppspeech.errors import AudioError, SpeechWarning
from tests.service.voices import LIVE, WHOLE, voice


@pytest.mark.parametrize("chunk", [77, 160, 1_000, 10_000])
@pytest.mark.parametrize("changes", [{}, {"cmvn": "none"}, {"deltas": 0, "cmvn": "none"}, {"delta_reach": 3}], ids=str)
def test_live_features_are_those_of_the_whole(chunk: int, changes: dict[str, Any]) -> None:
    config, sound = replace(LIVE, **changes), voice(3, 0.12)
    live = LiveFrames(config)
    given = [live.feed(piece) for piece in sound.split(chunk)]
    early = sum(len(each) for each in given)
    frames = np.concatenate([*given, live.finish()])
    # of 32 bits, around 35: how they are rounded depends on the processor
    np.testing.assert_allclose(frames, Mfcc(config)(sound).features[0].numpy(), atol=1e-4)
    assert early == len(frames) - config.deltas * config.delta_reach  # only what may still change waits


@pytest.mark.parametrize("config", [WHOLE, replace(LIVE, level="peak"), replace(LIVE, vad_db=30.0)], ids=str)
def test_features_that_wait_are_refused_by_name(config: MfccConfig) -> None:
    assert waits_for_the_end(config) is not None
    with pytest.raises(AudioError, match="not known before the end"):
        LiveFrames(config)
    assert waits_for_the_end(LIVE) is None


def test_rates_are_changed() -> None:
    time = torch.arange(8_000) / 8_000
    slow, fast = torch.sin(2_000 * time), torch.sin(2_000 * torch.arange(16_000) / 16_000)
    with pytest.warns(SpeechWarning):
        heard = waveform_at(slow, 8_000, 16_000)
    assert len(heard) == 16_000
    np.testing.assert_allclose(heard[2_000:6_000], fast[2_000:6_000], atol=0.02)


def test_frames_without_voice_are_not_among_the_features_of_a_sound() -> None:
    mfcc, sound = Mfcc(replace(WHOLE, vad_db=10.0, vad_hangover=0)), voice(3, 0.12)
    sound = torch.cat([sound, sound / 100])
    frames = mfcc(sound)
    assert int(frames.lengths[0]) < frames.features.shape[1]
    assert len(features_of([sound], mfcc, mfcc.config.sample_rate)[0]) == int(frames.lengths[0])


@pytest.mark.parametrize(("rate", "complaint"), [(8_000, "nothing above 4,000 Hz"), (11_025, "nothing above 5,512 Hz")])
def test_speech_narrower_than_the_model_is_said(rate: int, complaint: str, tmp_path: Path) -> None:
    sound = voice(1, 0.5).numpy()
    with pytest.warns(SpeechWarning, match=complaint):
        assert len(waveform_at(sound, rate, 16_000)) > len(sound)
    write_audio(tmp_path / "a.wav", torch.from_numpy(sound).clamp(-1, 1), rate)
    with pytest.warns(SpeechWarning, match=f"a.wav: recorded at {rate:,} Hz"):
        features_of([tmp_path / "a.wav"], Mfcc(WHOLE))


def test_speech_of_less_than_half_the_band_is_refused(tmp_path: Path) -> None:
    write_audio(tmp_path / "a.wav", voice(1, 0.5).clamp(-1, 1), 1_000)
    with pytest.raises(AudioError, match=r"a.wav: recorded at 1,000 Hz.*record at 16,000 Hz"):
        features_of([tmp_path / "a.wav"], Mfcc(WHOLE))


def test_resampling_folds_nothing_into_the_band() -> None:
    """7 kHz, which 8,000 samples a second cannot hold, vanishes; it does not come back as 1 kHz."""
    tone = np.sin(2 * np.pi * 7_000 * np.arange(16_000) / 16_000).astype(np.float32)
    assert waveform_at(tone, 16_000, 8_000)[200:-200].abs().max() < 0.01
