"""Music as numbers that stay alike when a loudspeaker, a room and people talking have changed it.

    shapes         12 numbers every 50 ms: log energies of 13 bands less their neighbor's and their mean over two
                   seconds, each frame of length one
    fingerprints   32 signs every 46 ms: of energy differences along frequency and time (Haitsma and Kalker 2002)
    landmarks      pairs of peaks of a spectrogram, (f1, f2, t2 - t1), with t1 (Wang 2003)

Shapes and fingerprints are compared frame by frame at every offset, landmarks by how many agree on one offset.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter, uniform_filter1d

from ppspeech.arrays import Reals, Whole
from ppspeech.errors import AudioError

MUSIC_RATE = 16_000
SHAPE_CHANNELS, SHAPE_BITS = 12, 7
"""Shapes are whole multiples of 2^-7, so that parties who round mean the same."""
PRINT_CHANNELS = 32
QUIET = 1e-4
"""Frames of a lower root mean square, of full scale, say nothing: silence must not sound like silence."""

_AT_ONCE = 512  # frames that are transformed together: memory
_LEAST = 1e-9


@dataclass(frozen=True, slots=True)
class _Cut:
    """How a waveform becomes bands: samples of a hop and of a window, Hz, and how many bands."""

    hop: int
    window: int
    low: float
    high: float
    bands: int

    def samples(self, frames: int) -> int:
        """That so many frames take."""
        return self.window + (frames - 1) * self.hop


SHAPES = _Cut(800, 4096, 150.0, 6_000.0, SHAPE_CHANNELS + 1)
PRINTS = _Cut(743, 5944, 300.0, 2_000.0, PRINT_CHANNELS + 1)
PEAKS = _Cut(512, 4096, 0.0, 0.0, 512)
_FIRST_BIN = 20  # of bins of 4 Hz
_AROUND, _HIGH = (9, 21), 0.93  # frames and bins of which a peak is the highest, above this quantile of all
_PARTNERS, _FURTHEST, _APART = 4, 31, 128  # of a peak: how many, frames later and bins away at the most
PEAK_HOP = PEAKS.hop
MEAN_FRAMES = 41
LANDMARK_BITS = 23


def music_samples(frames: int) -> int:
    """Samples at 16 kHz of a clip of which all of these can be had in so many frames."""
    return max(SHAPES.samples(frames), PRINTS.samples(frames + 1), PEAKS.samples(2))


def shapes(waveform: Reals) -> NDArray[np.int8]:
    """Shapes of spectra, `(frames, 12)`, in steps of 2^-7; no frame is longer than one. Zeros where it is quiet."""
    energy, heard = _bands(waveform, SHAPES)
    logs = np.log(energy + _LEAST)
    along = logs[:, 1:] - logs[:, :-1]
    centered = along - uniform_filter1d(along, MEAN_FRAMES, axis=0, mode="nearest")
    unit = centered / (np.linalg.norm(centered, axis=1, keepdims=True) + 1e-6)
    # A little shorter than one, so that rounding makes no frame longer: by √12 / 2 at the most.
    return np.asarray(np.rint(unit * heard[:, None] * ((1 << SHAPE_BITS) - 2)), np.int8)


def fingerprints(waveform: Reals) -> NDArray[np.int8]:
    """Signs, `(frames, 32)`, 1 and -1; 0 where it is quiet."""
    energy, heard = _bands(waveform, PRINTS)
    along = energy[:, :-1] - energy[:, 1:]
    return np.asarray(np.sign(along[1:] - along[:-1]) * (heard[1:] & heard[:-1])[:, None], np.int8)


def landmarks(waveform: Reals) -> tuple[Whole, Whole]:
    """Hashes of 23 bits and the frames of 32 ms they begin at, `(landmarks,)` each, the strongest first."""
    power, heard = _powers(waveform, PEAKS, lambda power: power[:, _FIRST_BIN : _FIRST_BIN + PEAKS.bands].copy())
    logs = np.log(power + _LEAST)
    level = logs - logs.mean(axis=1, keepdims=True)
    peak = (maximum_filter(level, _AROUND) == level) & (level > np.quantile(level, _HIGH)) & heard[:, None]
    times, bins = np.nonzero(peak)
    found: list[tuple[float, int, int]] = []
    for at, (time, low) in enumerate(zip(times.tolist(), bins.tolist(), strict=True)):
        partners = 0
        for other, high in zip(times[at + 1 :].tolist(), bins[at + 1 :].tolist(), strict=True):
            if other - time > _FURTHEST or partners == _PARTNERS:
                break
            if other > time + 1 and abs(high - low) < _APART:
                strength = float(level[time, low] + level[other, high])
                found.append((strength, low << 14 | high << 5 | (other - time), time))
                partners += 1
    found.sort(key=lambda each: -each[0])
    marks = np.array([(mark, time) for _, mark, time in found], np.int64).reshape(-1, 2)
    return marks[:, 0], marks[:, 1]


def excerpt(waveform: Reals, frames: int) -> Reals:
    """The beginning of a clip: as much as so many frames take, and what their means reach into behind them.

    Raises AudioError for a clip that is shorter, or silent.
    """
    wanted = music_samples(frames)
    if len(waveform) < wanted:
        raise AudioError(
            f"{len(waveform) / MUSIC_RATE:.1f} s of music are not enough: give {wanted / MUSIC_RATE:.1f} s or more"
        )
    if np.sqrt((waveform[:wanted] ** 2).mean()) < QUIET:
        raise AudioError(
            f"nothing is heard in the first {wanted / MUSIC_RATE:.1f} s: record it louder, or give another part"
        )
    return waveform[: wanted + MEAN_FRAMES // 2 * SHAPES.hop]


def _bands(waveform: Reals, cut: _Cut) -> tuple[Reals, NDArray[np.bool_]]:
    """Energies `(frames, bands)`, and which frames are heard."""
    hertz = np.fft.rfftfreq(cut.window, 1 / MUSIC_RATE)
    edges = np.searchsorted(hertz, np.geomspace(cut.low, cut.high, cut.bands + 1))
    return _powers(waveform, cut, lambda power: np.add.reduceat(power, edges, axis=1)[:, : cut.bands])


def _powers(waveform: Reals, cut: _Cut, taken: Callable[[Reals], Reals]) -> tuple[Reals, NDArray[np.bool_]]:
    """What is taken of power spectra `(frames, bins)`, and which frames are heard. Raises AudioError for less than two
    frames, or samples that are not finite.
    """
    given = np.asarray(waveform, np.float64)
    if given.ndim != 1 or len(given) < cut.samples(2):
        raise AudioError(f"music needs {cut.samples(2) / MUSIC_RATE:.2f} s of one channel, got shape {given.shape}")
    if not np.isfinite(given).all():
        raise AudioError("music has samples that are not finite: read it from a sound file")
    windows = np.lib.stride_tricks.sliding_window_view(given, cut.window)[:: cut.hop]
    taper = np.hanning(cut.window)
    parts = (windows[at : at + _AT_ONCE] for at in range(0, len(windows), _AT_ONCE))
    power = np.concatenate([taken(np.abs(np.fft.rfft(part * taper, axis=1)) ** 2) for part in parts])
    loudness = np.concatenate(([0.0], np.cumsum(given**2)))
    starts = cut.hop * np.arange(len(windows))
    return power, np.sqrt(np.maximum(loudness[starts + cut.window] - loudness[starts], 0.0) / cut.window) >= QUIET
