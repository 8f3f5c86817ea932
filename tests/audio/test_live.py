"""Features of speech that is still being spoken are those of the whole."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ppspeech.audio import LiveFrames, Mfcc, MfccConfig, features_of, waits_for_the_end, waveform_at
from ppspeech.errors import AudioError
from tests.service.voices import LIVE, WHOLE, voice


@pytest.mark.parametrize("chunk", [77, 160, 1_000, 10_000])
@pytest.mark.parametrize("changes", [{}, {"cmvn": "none"}, {"deltas": 0, "cmvn": "none"}, {"delta_reach": 3}], ids=str)
def test_live_features_are_those_of_the_whole(chunk: int, changes: dict[str, Any]) -> None:
    config, sound = replace(LIVE, **changes), voice(3, 0.12)
    live = LiveFrames(config)
    given = [live.feed(piece) for piece in sound.split(chunk)]
    early = sum(len(each) for each in given)
    frames = np.concatenate([*given, live.finish()])
    np.testing.assert_allclose(frames, Mfcc(config)(sound).features[0].numpy(), atol=1e-5)
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
    heard = waveform_at(slow, 8_000, 16_000)
    assert len(heard) == 16_000
    np.testing.assert_allclose(heard[2_000:6_000], fast[2_000:6_000], atol=0.02)


def test_frames_without_voice_are_not_among_the_features_of_a_sound() -> None:
    mfcc, sound = Mfcc(replace(WHOLE, vad_db=10.0, vad_hangover=0)), voice(3, 0.12)
    sound = torch.cat([sound, sound / 100])
    frames = mfcc(sound)
    assert int(frames.lengths[0]) < frames.features.shape[1]
    assert len(features_of([sound], mfcc, mfcc.config.sample_rate)[0]) == int(frames.lengths[0])
