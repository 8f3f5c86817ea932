"""Sound files to waveforms and back, as tensors."""

from collections.abc import Sequence
from pathlib import Path

import soundfile
import torch
import torchaudio.functional

from ppspeech.audio.mfcc import Mfcc
from ppspeech.audio.sound import Sound, read_samples, samples_at
from ppspeech.errors import AudioError
from ppspeech.storage import atomic_write


def read_audio(path: str | Path, sample_rate: int | None = None) -> torch.Tensor:
    """Read a sound file as one channel of float32 in [-1, 1].

    Any rate and any format that libsndfile reads (WAV, FLAC, OGG, ...); channels are averaged. The file is resampled to
    `sample_rate`; None keeps its own. Returns `(samples,)`. Raises AudioError if the file is missing, unreadable, empty
    or cut short, or holds samples that are not finite.
    """
    waveform, rate = read_with_rate(path)
    if sample_rate is not None and rate != sample_rate:
        waveform = torchaudio.functional.resample(waveform, rate, sample_rate)
    return waveform


def read_with_rate(path: str | Path) -> tuple[torch.Tensor, int]:
    """As `read_audio` at the file's own rate, with that rate."""
    samples, rate = read_samples(path)
    return torch.from_numpy(samples), rate


def waveform_at(sound: Sound, rate: int | None, wanted: int) -> torch.Tensor:
    """As `samples_at`: one channel `(samples,)` at the wanted rate."""
    return torch.from_numpy(samples_at(sound, rate, wanted))


@torch.no_grad()
def features_of(sounds: Sequence[Sound], mfcc: Mfcc, rate: int | None = None) -> list[torch.Tensor]:
    """Features of each sound, `(frames, features)`: waveforms of one `rate`, in Hz, or files, which errors name."""
    found = []
    for sound in sounds:
        try:
            frames = mfcc(waveform_at(sound, rate, mfcc.config.sample_rate))
            found.append(frames.features[0, : int(frames.lengths[0])])
        except AudioError as error:
            if not isinstance(sound, str | Path) or str(sound) in str(error):
                raise
            raise AudioError(f"{sound}: {error}") from None
    return found


def write_audio(path: str | Path, waveform: torch.Tensor, sample_rate: int) -> None:
    """Write one channel as 16-bit WAV or FLAC, chosen by the suffix; whole or not at all.

    An existing file is replaced; the waveform is `(samples,)` in [-1, 1]. Raises AudioError if the waveform is not one
    finite channel within [-1, 1], or the suffix is neither.
    """
    path = Path(path)
    if path.suffix.lower() not in {".wav", ".flac"}:
        raise AudioError(f"cannot write {path}: the suffix must be .wav or .flac")
    if waveform.ndim != 1 or not waveform.numel():
        raise AudioError(f"a waveform to write has shape (samples,), got {tuple(waveform.shape)}")
    peak = waveform.detach().abs().max().item()
    if not peak <= 1.0:  # also true for NaN
        raise AudioError(f"a waveform to write lies in [-1, 1], got a peak of {peak}: scale it first")
    samples = (waveform.detach().cpu().double() * 32767).round().to(torch.int16).numpy()
    with atomic_write(path) as temporary:
        soundfile.write(temporary, samples, sample_rate, subtype="PCM_16")
