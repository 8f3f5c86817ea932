"""MFCCs of one utterance in numpy: what a client computes, and the plain form that `Mfcc` is compared with.

Every step is one line of the definition, in double precision; `Mfcc` computes the same in batches, on any device, and
can be differentiated.
"""

import warnings
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ppspeech.arrays import Reals
from ppspeech.audio.mfcc_config import GivenFeatures, MfccConfig
from ppspeech.audio.sound import Sound, samples_at
from ppspeech.errors import AudioError, SpeechWarning

FLAT = 1e-10  # a feature whose variance over time is below this does not vary


class Cepstra:
    """A waveform to MFCCs, as `Mfcc` with the same config. Raises AudioError for features that are given, not computed.

    >>> Cepstra(MfccConfig())(np.sin(np.arange(16_000.0) ** 1.4)).shape
    (98, 39)
    """

    def __init__(self, config: MfccConfig) -> None:
        if isinstance(config, GivenFeatures):
            raise AudioError(
                f"the {config.given} features a frame are given, as in a filtered corpus: they are not computed from "
                "sound"
            )
        self.config = config
        self._window, self._mel, self._cosine = taper(config), mel_filters(config), cosines(config)

    def __call__(self, samples: Reals) -> Reals:
        """Features of `(samples,)` at the config's rate: `(frames, features)`.

        Raises AudioError for a waveform too short for one frame (two with `cmvn="utterance"`), samples that are not
        finite, or silence, which has no spectrum to normalize.
        """
        config = self.config
        samples = np.asarray(samples, np.float64)
        self._check(samples)
        if config.level == "peak":
            samples = samples / np.abs(samples).max()
        features = self.derived(self.static(samples))
        if config.vad_db is not None:
            features = features[self._loud(samples)]
        features = self.normalized(features)
        return features if config.encoder is None else config.encoder.encoded(features)

    def of(self, sound: Sound, rate: int | None = None) -> Reals:
        """Features of a waveform with its rate in Hz, or of a file, which errors name."""
        try:
            return self(samples_at(sound, rate, self.config.sample_rate))
        except AudioError as error:
            if not isinstance(sound, str | Path) or str(sound) in str(error):
                raise
            raise AudioError(f"{sound}: {error}") from None

    def static(self, samples: Reals, before: float = 0.0) -> Reals:
        """Cepstra of whole frames, `(frames, cepstra)`; `before` is the sample before the first."""
        return self.log_energies(samples, before) @ self._cosine

    def log_energies(self, samples: Reals, before: float = 0.0) -> Reals:
        """What the filters hear, `(frames, mel_filters)`, in nats."""
        config = self.config
        emphasized = samples - config.pre_emphasis * np.concatenate(([before], samples[:-1]))
        frames = self._frames(emphasized) * self._window
        power = np.abs(np.fft.rfft(frames, config.fft_length)) ** 2
        logs: Reals = np.log(np.maximum(power @ self._mel, config.floor))
        return logs

    def derived(self, cepstra: Reals) -> Reals:
        """Cepstra beside their derivatives, `(frames, computed)`."""
        orders = [cepstra]
        for _ in range(self.config.deltas):
            orders.append(slopes(orders[-1], self.config.delta_reach))
        return np.concatenate(orders, axis=1)

    def normalized(self, features: Reals) -> Reals:
        """By the utterance's own mean and variance, by public ones, or not at all."""
        config = self.config
        if config.cmvn == "public":
            public: Reals = (features - np.array(config.public_mean)) / np.array(config.public_std)
            return public
        if config.cmvn == "none":
            return features
        centered = features - features.mean(axis=0)
        variance = (centered**2).mean(axis=0)
        if (variance < FLAT).all():
            raise AudioError(
                "the utterance is silent or does not change over time: its features cannot be normalized; leave it "
                "out, or use cmvn='public' or 'none'"
            )
        scaled: Reals = centered / np.sqrt(np.maximum(variance, FLAT))
        return scaled

    def _frames(self, samples: Reals) -> Reals:
        return sliding_window_view(samples, self.config.window_length)[:: self.config.hop_length]

    def _loud(self, samples: Reals) -> Reals:
        """Which frames are within `vad_db` of the loudest, or near one that is."""
        energy = (self._frames(samples) ** 2).sum(axis=1)
        loud = np.flatnonzero(energy >= energy.max() * 10 ** (-(self.config.vad_db or 0.0) / 10))
        near = loud[:, None] + np.arange(-self.config.vad_hangover, self.config.vad_hangover + 1)
        return np.unique(near[(near >= 0) & (near < len(energy))])

    def _check(self, samples: Reals) -> None:
        config = self.config
        needed = config.window_length + (config.hop_length if config.cmvn == "utterance" else 0)
        if samples.ndim != 1:
            raise AudioError(f"a waveform is of shape (samples,), got {samples.shape}")
        if len(samples) < needed:
            raise AudioError(too_short(config, len(samples), needed))
        if not np.isfinite(samples).all():
            raise AudioError("the waveform has samples that are NaN or infinite")
        if not samples.any() and (config.level == "peak" or config.cmvn == "utterance"):
            raise AudioError("the waveform is silent: every sample is zero")


def too_short(config: MfccConfig, samples: int, needed: int) -> str:
    """What to say of a waveform that has not one frame."""
    rate = config.sample_rate
    return (
        f"a waveform of {samples} samples ({1000 * samples / rate:.0f} ms at {rate} Hz) is too short: "
        f"{1000 * needed / rate:.0f} ms are needed"
    )


def slopes(features: Reals, reach: int) -> Reals:
    """Regression slopes over `reach` frames on each side; beyond its ends an utterance goes on as it began and ended:
    d(t) = sum_k k (c(t+k) - c(t-k)) / (2 sum_k k^2).
    """
    size, padded = len(features), np.pad(features, ((reach, reach), (0, 0)), mode="edge")
    steps = range(1, reach + 1)
    rises = [k * (padded[reach + k : reach + k + size] - padded[reach - k : reach - k + size]) for k in steps]
    found: Reals = sum(rises) / (2 * sum(k * k for k in steps))  # type: ignore[assignment]
    return found


def taper(config: MfccConfig) -> Reals:
    """The window of a frame, `(window_length,)`."""
    length = config.window_length
    return {"hamming": np.hamming(length), "hann": np.hanning(length), "rectangular": np.ones(length)}[config.window]


def mel_filters(config: MfccConfig) -> Reals:
    """Triangles on the mel scale of a config, `(fft_length / 2 + 1, mel_filters)`.

    Warns where a filter falls between two frequencies and hears nothing.
    """
    hz = np.linspace(0, config.sample_rate // 2, config.fft_length // 2 + 1)
    triangles = mel_triangles(hz, config.mel_filters, config.low_hz, config.top_hz, config.mel_scale)
    if not triangles.any(axis=0).all():
        warnings.warn(
            f"{config.mel_filters} mel filters are too many for {config.low_hz:g} to {config.top_hz:g} Hz at "
            f"{len(hz)} frequencies: one of them hears nothing; take fewer, or a longer window",
            SpeechWarning,
            stacklevel=2,
        )
    return triangles


def mel_triangles(hz: Reals, filters: int, low_hz: float, high_hz: float, scale: str) -> Reals:
    """Triangles on a mel scale at these frequencies, `(frequencies, filters)`; Slaney's have equal areas."""
    low, high = _hz_to_mel(np.array([low_hz, high_hz]), scale)
    corners = _mel_to_hz(np.linspace(low, high, filters + 2), scale)
    rising = (hz[:, None] - corners[:-2]) / np.diff(corners)[:-1]
    falling = (corners[2:] - hz[:, None]) / np.diff(corners)[1:]
    triangles = np.maximum(0.0, np.minimum(rising, falling))
    return triangles * 2.0 / (corners[2:] - corners[:-2]) if scale == "slaney" else triangles


LINEAR_HZ, LINEAR_TO, OCTAVES = 200.0 / 3, 1_000.0, np.log(6.4) / 27.0  # Slaney's scale: linear, then logarithmic


def _hz_to_mel(hz: Reals, scale: str) -> Reals:
    if scale == "htk":
        return np.asarray(2595.0 * np.log10(1.0 + hz / 700.0))
    above = LINEAR_TO / LINEAR_HZ + np.log(np.maximum(hz, LINEAR_TO) / LINEAR_TO) / OCTAVES
    return np.where(hz < LINEAR_TO, hz / LINEAR_HZ, above)


def _mel_to_hz(mel: Reals, scale: str) -> Reals:
    if scale == "htk":
        return np.asarray(700.0 * (10.0 ** (mel / 2595.0) - 1.0))
    bend = LINEAR_TO / LINEAR_HZ
    return np.where(mel < bend, mel * LINEAR_HZ, LINEAR_TO * np.exp(OCTAVES * (np.maximum(mel, bend) - bend)))


def cosines(config: MfccConfig) -> Reals:
    """The orthonormal cosine transform of the filters, liftered, `(mel_filters, cepstra)`."""
    place, number = np.arange(config.mel_filters)[:, None], np.arange(config.cepstra)
    matrix = np.sqrt(2.0 / config.mel_filters) * np.cos(np.pi / config.mel_filters * (place + 0.5) * number)
    matrix[:, 0] /= np.sqrt(2.0)
    if config.lifter:
        matrix *= 1 + config.lifter / 2 * np.sin(np.pi * number / config.lifter)
    return np.asarray(matrix)
