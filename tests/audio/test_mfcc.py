"""MFCCs against librosa, against a plain numpy loop, alone and in a batch, and against bad input."""

from pathlib import Path

import librosa
import numpy as np
import pytest
import scipy.fft
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.audio import Mfcc, MfccConfig, read_audio
from ppspeech.errors import AudioError


def reference(waveform: np.ndarray, config: MfccConfig) -> np.ndarray:
    """D log(M |F x|^2) frame by frame, with librosa's filters and scipy's cosine transform."""
    x = waveform.astype(np.float64)
    x = x / np.abs(x).max()
    x = np.concatenate([x[:1], x[1:] - config.pre_emphasis * x[:-1]])
    filters = librosa.filters.mel(
        sr=config.sample_rate,
        n_fft=config.fft_length,
        n_mels=config.mel_filters,
        fmin=config.low_hz,
        fmax=config.top_hz,
        htk=True,
        norm=None,
        dtype=np.float64,
    )
    window = np.hamming(config.window_length)
    rows = []
    for start in range(0, len(x) - config.window_length + 1, config.hop_length):
        power = np.abs(np.fft.rfft(x[start : start + config.window_length] * window, config.fft_length)) ** 2
        cepstra = scipy.fft.dct(np.log(np.maximum(filters @ power, config.floor)), norm="ortho")[: config.cepstra]
        rows.append(cepstra * (1 + config.lifter / 2 * np.sin(np.pi * np.arange(config.cepstra) / config.lifter)))
    static = np.array(rows)
    return np.concatenate([static, slope(static), slope(slope(static))], axis=1)


def slope(c: np.ndarray) -> np.ndarray:
    out = np.zeros_like(c)
    for t in range(len(c)):
        for k in (1, 2):
            out[t] += k * (c[min(t + k, len(c) - 1)] - c[max(t - k, 0)])
    return out / 10


def voice(samples: int, seed: int = 0) -> torch.Tensor:
    """A decaying buzz in noise: something with a spectrum."""
    generator = torch.Generator().manual_seed(seed)
    time = torch.arange(samples) / 16_000
    buzz = sum(torch.sin(2 * torch.pi * 140 * n * time) / n for n in range(1, 20))
    return 0.2 * buzz * torch.exp(-2 * time) + 0.01 * torch.randn(samples, generator=generator)


@pytest.mark.parametrize(
    ("clip", "config"),
    [
        ("audiomnist/07/3_07_2.flac", MfccConfig(cmvn="none")),
        ("emodb/flac/03a01Fa.flac", MfccConfig(cmvn="none")),
        ("fsdd/recordings/7_jackson_3.wav", MfccConfig(sample_rate=8_000, mel_filters=23, cmvn="none")),
    ],
)
def test_real_clips_equal_a_numpy_loop(data: Path, clip: str, config: MfccConfig) -> None:
    waveform = read_audio(data / clip, config.sample_rate)
    ours = Mfcc(config, dtype=torch.float64)(waveform).features[0].numpy()
    np.testing.assert_allclose(ours, reference(waveform.numpy(), config), atol=1e-4)
    single = Mfcc(config)(waveform).features[0].numpy()
    np.testing.assert_allclose(single, ours, atol=2e-2)  # float32 logs of small energies


def test_static_part_equals_librosa(data: Path) -> None:
    config = MfccConfig(pre_emphasis=0, lifter=0, level="keep", cmvn="none", deltas=0, window="hann")
    waveform = read_audio(data / "audiomnist/12/5_12_0.flac", 16_000).double()
    mel = librosa.feature.melspectrogram(
        y=waveform.numpy(),
        sr=16_000,
        n_fft=512,
        hop_length=160,
        window=np.pad(np.hanning(400), (0, 112)),  # librosa centers a short window; ours starts the frame
        center=False,
        n_mels=26,
        fmin=20.0,
        htk=True,
        norm=None,
    )
    theirs = librosa.feature.mfcc(S=np.log(np.maximum(mel, 1e-10)), n_mfcc=13, norm="ortho").T
    ours = Mfcc(config, dtype=torch.float64)(waveform).features[0].numpy()
    np.testing.assert_allclose(ours[: len(theirs)], theirs, atol=1e-4)


@pytest.mark.parametrize("vad", [None, 30.0])
@pytest.mark.parametrize("cmvn", ["utterance", "none"])
@settings(deadline=None, max_examples=10)
@given(lengths=st.lists(st.integers(800, 9_000), min_size=2, max_size=4), junk=st.floats(-1, 1))
def test_alone_equals_in_a_padded_batch(vad: float | None, cmvn: str, lengths: list[int], junk: float) -> None:
    mfcc = Mfcc(MfccConfig(vad_db=vad, cmvn=cmvn), dtype=torch.float64)
    clips = [voice(n, seed=i).double() for i, n in enumerate(lengths)]
    batch = torch.full((len(clips), max(lengths)), junk, dtype=torch.float64)
    for row, clip in zip(batch, clips, strict=True):
        row[: len(clip)] = clip
    together = mfcc(batch, torch.tensor(lengths))
    for i, clip in enumerate(clips):
        alone = mfcc(clip)
        assert alone.lengths[0] == together.lengths[i]
        n = int(alone.lengths[0])
        torch.testing.assert_close(together.features[i, :n], alone.features[0, :n], atol=1e-8, rtol=0)
        assert not together.features[i, n:].any()


def test_shapes_and_normalization() -> None:
    frames = Mfcc()(voice(16_000))
    assert frames.features.shape == (1, 98, 39)
    assert frames.lengths.tolist() == [98]
    torch.testing.assert_close(frames.features.mean(1), torch.zeros(1, 39), atol=1e-5, rtol=0)
    torch.testing.assert_close(frames.features.var(1, correction=0), torch.ones(1, 39), atol=1e-4, rtol=0)


def test_public_statistics_are_applied() -> None:
    plain = Mfcc(MfccConfig(cmvn="none"))(voice(8_000)).features
    config = MfccConfig(cmvn="public", public_mean=(1.0,) * 39, public_std=(2.0,) * 39)
    torch.testing.assert_close(Mfcc(config)(voice(8_000)).features, (plain - 1) / 2)


def test_gain_does_not_matter_at_peak_level() -> None:
    torch.testing.assert_close(Mfcc()(voice(8_000)).features, Mfcc()(0.01 * voice(8_000)).features, atol=1e-3, rtol=0)


def test_vad_drops_the_quiet_part() -> None:
    clip = torch.cat([1e-4 * voice(8_000, 1), voice(8_000), 1e-4 * voice(8_000, 2)])
    kept = Mfcc(MfccConfig(vad_db=40.0, vad_hangover=2))(clip).lengths.item()
    assert 40 <= kept <= 56


def test_differentiable_to_the_waveform() -> None:
    config = MfccConfig(sample_rate=1_000, mel_filters=5, cepstra=3, low_hz=0)
    mfcc = Mfcc(config, dtype=torch.float64)
    clip = voice(90).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: mfcc(x).features, (clip,), atol=1e-4)


def test_compiles_whole() -> None:
    mfcc = Mfcc()
    clips = torch.stack([voice(8_000), voice(8_000, 1)])
    lengths = torch.tensor([8_000, 6_000])
    compiled = torch.compile(mfcc, fullgraph=True, backend="eager")(clips, lengths)
    torch.testing.assert_close(compiled.features, mfcc(clips, lengths).features)


@pytest.mark.parametrize(
    ("clip", "message"),
    [
        (torch.zeros(16_000), "silent"),
        (voice(100), "6 ms at 16000 Hz\\) is too short"),
        (voice(400), "too short"),
        (torch.cat([voice(9_000), torch.tensor([torch.nan])]), "NaN or infinite"),
        (torch.cat([voice(9_000), torch.tensor([torch.inf])]), "NaN or infinite"),
        (voice(16_000).view(2, 2, 4_000), "shape"),
        (torch.ones(16_000, dtype=torch.int16), "floating point"),
    ],
)
def test_bad_waveforms_are_refused(clip: torch.Tensor, message: str) -> None:
    with pytest.raises(AudioError, match=message):
        Mfcc()(clip)


def test_a_constant_is_refused_where_it_would_be_normalized() -> None:
    constant = torch.ones(16_000)
    with pytest.raises(AudioError, match="utterance 0 is silent or does not change"):
        Mfcc(MfccConfig(pre_emphasis=0.0))(constant)
    assert Mfcc(MfccConfig(pre_emphasis=0.0, cmvn="none"))(constant).features.isfinite().all()


def test_one_short_clip_in_a_batch_is_named() -> None:
    with pytest.raises(AudioError, match=r"utterance 1: .*too short"):
        Mfcc().of_clips([voice(9_000), voice(300)])
    with pytest.raises(AudioError, match="exceeds"):
        Mfcc()(voice(9_000), torch.tensor([9_001]))
    with pytest.raises(AudioError, match="no waveforms"):
        Mfcc().of_clips([])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sample_rate": 0}, "sample_rate"),
        ({"cepstra": 30}, "cepstra"),
        ({"high_hz": 9_000.0}, "mel band"),
        ({"pre_emphasis": 1.0}, "pre_emphasis"),
        ({"deltas": 3}, "deltas"),
        ({"cmvn": "public"}, "public_mean"),
        ({"vad_db": -1.0}, "vad_db"),
        ({"floor": 0.0}, "floor"),
    ],
)
def test_bad_configs_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(AudioError, match=message):
        MfccConfig(**change)  # type: ignore[arg-type]
