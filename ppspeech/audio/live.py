"""Sound that is given or still being spoken: a waveform at a wanted rate, and features as soon as they are final."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torchaudio.functional
from numpy.typing import ArrayLike
from torch import Tensor

from ppspeech.arrays import Reals
from ppspeech.audio.files import read_with_rate
from ppspeech.audio.mfcc import Mfcc
from ppspeech.audio.mfcc_config import MfccConfig
from ppspeech.errors import AudioError, SpeechWarning

Sound = Tensor | Reals | str | Path  # A waveform `(samples,)`, or a sound file


def missing_band(rate: int, wanted: int) -> str | None:
    """What speech recorded at `rate` lacks for a model that listens at `wanted`, in Hz; None where it lacks nothing.

    Resampling cannot bring back what was not recorded. Raises AudioError below half of what is wanted, where a model
    would guess.

    >>> missing_band(44_100, 16_000), missing_band(8_000, 16_000)
    (None, 'recorded at 8,000 Hz, it has nothing above 4,000 Hz, and the model listens up to 8,000 Hz')
    """
    if rate >= wanted:
        return None
    there, heard = f"{rate // 2:,} Hz", f"{wanted // 2:,} Hz"
    lacks = f"recorded at {rate:,} Hz, it has nothing above {there}, and the model listens up to {heard}"
    if 2 * rate < wanted:
        raise AudioError(f"{lacks}: record at {wanted:,} Hz, or train a model for {rate:,} Hz")
    return lacks


def waveform_at(sound: Sound, rate: int | None, wanted: int) -> Tensor:
    """One channel `(samples,)` at the wanted rate; a waveform needs its `rate` in Hz, a file knows its own.

    Warns by SpeechWarning of speech that lacks part of the band that is wanted; `missing_band` refuses worse.
    """
    if isinstance(sound, str | Path):
        if rate is not None:
            raise AudioError(f"{sound} knows its own rate: give one with a waveform only")
        samples, rate = read_with_rate(sound)
    else:
        samples = torch.as_tensor(sound)
        if rate is None or rate < 1:
            raise AudioError(f"a waveform needs its rate in Hz, got {rate}")
    if samples.ndim != 1 or not samples.numel() or not samples.is_floating_point():
        raise AudioError(f"a waveform is real of shape (samples,), got {samples.dtype} of {tuple(samples.shape)}")
    samples = samples.detach().to(torch.float32)
    lacks = missing_band(rate, wanted)
    if lacks is not None:
        name = f"{sound}: " if isinstance(sound, str | Path) else ""
        warnings.warn(f"{name}{lacks}: expect more errors", SpeechWarning, stacklevel=2)
    if rate != wanted:
        samples = torchaudio.functional.resample(samples, rate, wanted)
    return samples


@torch.no_grad()
def features_of(sounds: Sequence[Sound], mfcc: Mfcc, rate: int | None = None) -> list[Tensor]:
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


class LiveFrames:
    """Features of speech that is still being spoken, each as soon as nothing to come can change it.

    Derivatives look `delta_reach` frames ahead, one order after the other, and an encoder its reach: a frame is final
    that much later. The
    features are those of the whole utterance, up to rounding. A front end that `waits_for_the_end` names is refused.
    """

    def __init__(self, config: MfccConfig) -> None:
        why = waits_for_the_end(config)
        if why is not None:
            raise AudioError(f"features of this model are not known before the end: {why}")
        self._mfcc = Mfcc(config)
        self._heard = torch.zeros(0)
        self._given = 0

    def feed(self, samples: Tensor) -> Reals:
        """The frames that have become final, `(frames, features)`, none or more; samples at the model's rate."""
        self._heard = torch.cat((self._heard, samples))
        config = self._mfcc.config
        ahead = config.deltas * config.delta_reach + (0 if config.encoder is None else config.encoder.reach)
        final = config.frame_count(len(self._heard)) - ahead
        return self._frames(final)

    def finish(self) -> Reals:
        """The rest."""
        return self._frames(self._mfcc.config.frame_count(len(self._heard)))

    @torch.no_grad()
    def _frames(self, until: int) -> Reals:
        if until <= self._given:
            return np.zeros((0, self._mfcc.config.features), np.float32)
        features = self._mfcc(self._heard).features[0, self._given : until]
        self._given = until
        return np.asarray(features.numpy())


def waits_for_the_end(config: MfccConfig) -> str | None:
    """Why features cannot be known before an utterance ends; None where they can."""
    if config.cmvn == "utterance":
        return "cmvn='utterance' takes mean and variance over all of it (train with cmvn='public' to stream)"
    if config.level == "peak":
        return "level='peak' scales by its loudest sample (train with level='keep' to stream)"
    if config.vad_db is not None:
        return "vad_db compares each frame with its loudest"
    return None


def one_channel(samples: Tensor | ArrayLike) -> Tensor:
    """Samples of one channel, `(samples,)`, in float32. Raises AudioError for anything else."""
    given = torch.as_tensor(samples)
    if given.ndim != 1 or not given.is_floating_point() or not bool(torch.isfinite(given).all()):
        raise AudioError(f"samples are finite, real and of shape (samples,), got {given.dtype} of {tuple(given.shape)}")
    return given.detach().to(torch.float32)
