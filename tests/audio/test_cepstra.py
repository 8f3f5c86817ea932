"""What clients compute in numpy is what models were trained on, and rates are changed as torchaudio changes them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchaudio.functional
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.audio import Cepstra, GivenFeatures, Mfcc, MfccConfig, PublicEncoder, read_samples, resampled, write_audio
from ppspeech.audio.cepstra import cosines, mel_filters, taper
from ppspeech.errors import AudioError, SpeechWarning
from tests.service.voices import voice

ENCODER = PublicEncoder.of(
    [
        (torch.randn(16, 39 * 3, generator=torch.Generator().manual_seed(1)) / 9, torch.linspace(-1, 1, 16)),
        (torch.randn(5, 16, generator=torch.Generator().manual_seed(2)) / 4, torch.zeros(5)),
    ],
    39,
)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"cmvn": "none"},
        {"cmvn": "none", "level": "keep", "pre_emphasis": 0.0, "window": "rectangular"},
        {"cmvn": "public", "public_mean": tuple(range(39)), "public_std": (2.0,) * 39, "level": "keep"},
        {"deltas": 0, "lifter": 0, "window": "hann", "mel_scale": "slaney"},
        {"deltas": 1, "delta_reach": 4, "cepstra": 20, "mel_filters": 30, "high_hz": 7_000.0},
        {"vad_db": 12.0, "vad_hangover": 1},
        {"vad_db": 6.0, "vad_hangover": 0, "cmvn": "none"},
        {"hop_s": 0.030},
        {"hop_s": 0.040, "cmvn": "none"},
        {"encoder": ENCODER},
    ],
    ids=str,
)
def test_clients_compute_what_models_take(changes: dict[str, Any]) -> None:
    config = replace(MfccConfig(), **changes)
    sound = torch.cat([voice(3, 0.2), voice(1, 0.3) / 20])
    exact, mfcc = Cepstra(config)(sound.numpy()), Mfcc(config, torch.float64)
    whole = mfcc(sound)
    theirs = whole.features[0, : int(whole.lengths[0])].numpy()
    assert exact.shape == theirs.shape == (len(theirs), config.features)
    np.testing.assert_allclose(exact, theirs, atol=1e-9)  # the formula is one
    single = Mfcc(config)(sound)
    np.testing.assert_allclose(exact, single.features[0, : int(single.lengths[0])].numpy(), atol=2e-3)


@pytest.mark.parametrize("changes", [{}, {"mel_scale": "slaney"}, {"sample_rate": 8_000, "mel_filters": 23}], ids=str)
def test_constants_are_those_of_torchaudio(changes: dict[str, Any]) -> None:
    config = replace(MfccConfig(lifter=0), **changes)
    theirs = torchaudio.functional.melscale_fbanks(
        config.fft_length // 2 + 1,
        config.low_hz,
        config.top_hz,
        config.mel_filters,
        config.sample_rate,
        norm="slaney" if config.mel_scale == "slaney" else None,
        mel_scale=config.mel_scale,
    )
    np.testing.assert_allclose(mel_filters(config), theirs, atol=2e-5)
    np.testing.assert_allclose(
        cosines(config), torchaudio.functional.create_dct(13, config.mel_filters, "ortho"), atol=1e-6
    )
    np.testing.assert_allclose(taper(config), torch.hamming_window(config.window_length, periodic=False), atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from([8_000, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000, 101]),
    st.sampled_from([8_000, 16_000, 100]),
    st.integers(1, 3_000),
)
def test_rates_are_changed_as_torchaudio_does(rate: int, wanted: int, size: int) -> None:
    sound = np.random.default_rng(size).normal(size=size).astype(np.float32)
    theirs = torchaudio.functional.resample(torch.from_numpy(sound).double(), rate, wanted).numpy()
    ours = resampled(sound, rate, wanted)
    assert ours.dtype == np.float32
    assert len(ours) == len(theirs)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_files_are_read_and_named(tmp_path: Path) -> None:
    write_audio(tmp_path / "a.wav", voice(3, 0.3).clamp(-1, 1), 16_000)
    samples, rate = read_samples(tmp_path / "a.wav")
    cepstra = Cepstra(MfccConfig())
    np.testing.assert_array_equal(cepstra.of(tmp_path / "a.wav"), cepstra.of(samples, rate))
    np.testing.assert_array_equal(cepstra.of(torch.from_numpy(samples), rate), cepstra(samples))
    write_audio(tmp_path / "short.wav", torch.full((80,), 0.5), 16_000)
    with pytest.raises(AudioError, match=r"short\.wav: .* too short"):
        cepstra.of(tmp_path / "short.wav")


@pytest.mark.parametrize(
    ("sound", "said"),
    [
        (np.zeros(4_000), "silent"),
        (np.full(4_000, np.nan), "NaN"),
        (np.ones(100), "too short"),
        (np.ones((2, 4_000)), "shape"),
        (np.tile([0.5, -0.5], 4_000), "does not change"),
    ],
)
def test_what_cannot_be_used_is_refused(sound: Any, said: str) -> None:
    with pytest.raises(AudioError, match=said):
        Cepstra(MfccConfig(deltas=0, pre_emphasis=0.0, hop_s=0.010))(sound)


def test_given_features_are_not_computed() -> None:
    with pytest.raises(AudioError, match="given"):
        Cepstra(GivenFeatures(given=4))


def test_a_filter_that_hears_nothing_is_said() -> None:
    with pytest.warns(SpeechWarning, match="hears nothing"):
        Cepstra(MfccConfig(mel_filters=250, window_s=0.010))
