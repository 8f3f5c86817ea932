"""The built-in speakers differ from each other, stay themselves, and can be calm or excited."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.signal
import torch
import torchaudio.transforms
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ppspeech.audio.voices.espeak import SAMPLE_RATE, Espeak
from ppspeech.audio.voices.speakers import STYLES, VOICES, Voice
from ppspeech.errors import AudioError


@pytest.fixture(scope="module")
def espeak() -> Iterator[Espeak]:
    with Espeak() as running:
        yield running


def test_there_are_many_voices_each_with_a_name_and_balanced_genders() -> None:
    assert len(VOICES) >= 40
    assert len({voice.name for voice in VOICES}) == len(VOICES)
    assert all(voice.name[0] == voice.gender for voice in VOICES)
    for count in (2, 10, len(VOICES)):
        genders = Counter(voice.gender for voice in VOICES[:count])
        assert genders["f"] == genders["m"] == count // 2


def test_voices_with_the_same_variant_are_apart() -> None:
    for first in VOICES:
        for second in VOICES:
            if first.name < second.name and first.variant == second.variant:
                assert abs(first.tract - second.tract) > 0.05


def test_every_voice_speaks(espeak: Espeak) -> None:
    for voice in VOICES:
        speech = voice.say("nine", espeak, np.random.default_rng(0), sample_rate=8000)
        assert 0.15 < speech.size / 8000 < 1.2, voice
        assert np.abs(speech).max() > 0.05, voice


@given(st.sampled_from(VOICES), st.sampled_from(sorted(STYLES)), st.integers(0, 2**32))
def test_every_take_is_within_what_espeak_can_do(voice: Voice, style: str, seed: int) -> None:
    voice.prompt("seven", style, np.random.default_rng(seed))  # Prompt refuses what is out of range


def test_takes_differ_and_follow_from_the_generator() -> None:
    prompts = [VOICES[0].prompt("seven", "calm", np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert prompts[0] == prompts[1] != prompts[2]


def test_an_unknown_style_is_refused() -> None:
    with pytest.raises(AudioError, match="no speaking style 'angry': choose from calm, excited"):
        VOICES[0].prompt("seven", "angry", np.random.default_rng(0))


@pytest.mark.parametrize("sample_rate", [8000, 16000, 44100])
@pytest.mark.parametrize("tract", [0.9, 1.0, 1.11])
def test_the_tract_moves_all_frequencies(sample_rate: int, tract: float) -> None:
    voice = Voice("x", "f", "en", "f1", tract, 50, 50, 170)
    tone = np.sin(2 * np.pi * 1000 * np.arange(SAMPLE_RATE) / SAMPLE_RATE + 0.1).astype(np.float32)
    shaped = voice.shape(tone, sample_rate)
    assert shaped.size == pytest.approx(sample_rate / tract, rel=1e-3)
    frequencies, power = scipy.signal.periodogram(shaped, sample_rate)
    assert frequencies[power.argmax()] == pytest.approx(1000 * tract, abs=2)
    assert np.square(shaped[500:-500]).mean() == pytest.approx(0.5, abs=0.02)


def test_shape_agrees_with_scipy_and_trims_silence() -> None:
    voice = Voice("x", "f", "en", "f1", 1.0, 50, 50, 170)
    noise = np.random.default_rng(0).uniform(0.1, 0.5, 4410).astype(np.float32)
    padded = np.pad(noise, (1000, 3000))
    expected = scipy.signal.resample_poly(noise.astype(np.float64), 320, 441)
    np.testing.assert_allclose(voice.shape(padded, 16000), expected, atol=1e-12)


def test_excited_speech_is_faster_and_higher(espeak: Espeak) -> None:
    for voice in VOICES[:6]:
        calm, excited = (
            voice.say("a marmalade memory", espeak, np.random.default_rng(0), style=style) for style in STYLES
        )
        assert excited.size < 0.95 * calm.size
        assert _pitch(excited) > 1.08 * _pitch(calm), voice


def _pitch(speech: NDArray[np.float64]) -> float:
    """Median over frames of the strongest autocorrelation between 60 and 500 Hz."""
    frames = np.lib.stride_tricks.sliding_window_view(speech, 800)[::400]
    frames = frames[np.square(frames).mean(axis=1) > 0.1 * np.square(frames).mean(axis=1).max()]
    lags = np.arange(32, 267)
    correlation = np.stack([(frames[:, lag:] * frames[:, : 800 - lag]).mean(axis=1) for lag in lags])
    return float(np.median(16000 / lags[correlation.argmax(axis=0)]))


def test_speakers_can_be_told_apart(espeak: Espeak) -> None:
    """Long-term MFCC statistics of four words identify each of 40 speakers from four other words."""
    cepstra = torchaudio.transforms.MFCC(16000, 20, melkwargs={"n_fft": 512, "hop_length": 160, "n_mels": 40})

    def statistics(voice: Voice, words: str) -> torch.Tensor:
        takes = [voice.say(word, espeak, np.random.default_rng(0)) for word in words.split()]
        speech = np.concatenate(takes)
        frames = cepstra(torch.from_numpy(speech / np.abs(speech).max()).float())
        return torch.cat([frames.mean(1), frames.std(1)])

    known = torch.stack([statistics(voice, "zero one two three") for voice in VOICES[:40]])
    heard = torch.stack([statistics(voice, "six seven eight nine") for voice in VOICES[:40]])
    mean, scale = known.mean(0), known.std(0)
    distances = torch.cdist((heard - mean) / scale, (known - mean) / scale)
    accuracy = (distances.argmin(1) == torch.arange(40)).float().mean()
    assert accuracy > 0.5  # chance is 0.025
