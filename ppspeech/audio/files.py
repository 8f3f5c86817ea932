"""Sound files to waveforms and back."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
import torchaudio.functional

from ppspeech.errors import AudioError
from ppspeech.storage import atomic_write

CUT = re.compile(r"(?:data|SSND)\s*: (\d+) \(should be (\d+)\)")  # how libsndfile tells of a file that ends too soon
UNKNOWN = 2**31 - 2**16  # what programs that write to a pipe say that a file will hold, at least
LOST = 0.01  # the share that may lack without a word: some programs count their own headers


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
    path = Path(path)
    if not path.is_file():
        raise AudioError(f"no sound file at {path}")
    try:
        with soundfile.SoundFile(path) as file:
            samples, rate = file.read(dtype="float32", always_2d=True), int(file.samplerate)
            lost = _lost(file, len(samples))
    except soundfile.LibsndfileError as unreadable:
        why = unreadable.error_string or "damaged, or cut short"
        raise AudioError(f"{path} is not a readable sound file: {why}") from None
    if not len(samples):
        raise AudioError(f"{path} is empty: it holds no samples")
    if lost > LOST:
        raise AudioError(
            f"{path} is cut short: {lost:.0%} of what its header tells of are missing; copy it again, or save what is "
            "left as a new file"
        )
    if not np.isfinite(samples).all():
        bad = int((~np.isfinite(samples)).any(axis=1).argmax())
        raise AudioError(f"{path} has a sample that is NaN or infinite, first at {bad / rate:.3f} s")
    return torch.from_numpy(samples.mean(axis=1, dtype=np.float32)), rate


def _lost(file: Any, read: int) -> float:
    """The share of an open file's samples that its header tells of and that are not there."""
    for told, there in CUT.findall(file.extra_info):
        if int(there) < int(told) < UNKNOWN:
            return 1 - int(there) / int(told)
    guessed = file.format == "MP3"  # which has no count of its samples
    return 0.0 if guessed or not file.frames else 1 - read / file.frames


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
