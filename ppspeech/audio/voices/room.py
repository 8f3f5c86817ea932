"""Where and with what a take was recorded: a small room, some noise, a gain, a moment before and after."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.signal
from numpy.typing import NDArray

from ppspeech.errors import AudioError

_ECHOES_PER_SECOND = 2000


@dataclass(frozen=True, slots=True)
class Room:
    """The conditions of one recording."""

    decay: float = 0.15  # time in which the reverberation falls by 60 dB, in seconds
    wetness: float = -15.0  # energy of the reverberation relative to the direct sound, in dB
    snr: float = 30.0  # speech over background noise, in dB
    color: float = 0.7  # of the noise: correlation of neighboring samples, 0 (white) to below 1 (a rumble)
    peak: float = 0.5  # largest absolute value of the recording
    before: float = 0.1  # seconds of background before the speech
    after: float = 0.1  # seconds of background after it

    def __post_init__(self) -> None:
        if not 0 < self.peak <= 1:
            raise AudioError(f"a recording's peak lies in (0, 1], got {self.peak}")
        if not 0 <= self.color < 1:
            raise AudioError(f"the noise's color lies in [0, 1), got {self.color}")
        if not self.decay > 0:
            raise AudioError(f"a room's decay must be > 0 s, got {self.decay}")
        if not (self.before >= 0 and self.after >= 0):
            raise AudioError(f"the silence around speech must be >= 0 s, got {self.before} and {self.after}")

    @classmethod
    def draw(cls, generator: np.random.Generator) -> Self:
        """A quiet office or living room: every take of a corpus is recorded in one of its own."""
        return cls(
            decay=generator.uniform(0.08, 0.25),
            wetness=generator.uniform(-22, -12),
            snr=generator.uniform(20, 35),
            color=generator.uniform(0, 0.95),
            peak=generator.uniform(0.3, 0.9),
            before=generator.uniform(0.05, 0.2),
            after=generator.uniform(0.05, 0.2),
        )

    def record(
        self, speech: NDArray[np.float64], sample_rate: int, generator: np.random.Generator
    ) -> NDArray[np.float64]:
        """Record clean speech in this room. Speech is `(samples,)` of any level; the recording is longer by `before`,
        `after` and the decay. Raises AudioError if the speech is empty, silent or not finite.
        """
        if speech.ndim != 1 or not np.isfinite(speech).all() or not speech.any():
            raise AudioError(f"speech to record is one finite, audible channel, got shape {speech.shape}")
        sound = scipy.signal.fftconvolve(speech, self.impulse_response(sample_rate, generator))
        padding = round(self.before * sample_rate), round(self.after * sample_rate)
        level = np.sqrt(np.mean(sound[: speech.size] ** 2))
        sound = np.pad(sound, padding)
        sound += level * 10 ** (-self.snr / 20) * colored_noise(sound.size, self.color, generator)
        recording: NDArray[np.float64] = sound * (self.peak / np.abs(sound).max())
        return recording

    def impulse_response(self, sample_rate: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """The direct sound, then echoes at random times and of random sign that decay exponentially."""
        times = np.arange(1, max(2, round(self.decay * sample_rate))) / sample_rate
        echoes = generator.standard_normal(times.size) * 10 ** (-3 * times / self.decay)
        echoes *= generator.random(times.size) < _ECHOES_PER_SECOND / sample_rate
        energy = np.sum(echoes**2)
        if energy > 0:
            echoes *= np.sqrt(10 ** (self.wetness / 10) / energy)
        return np.concatenate(([1.0], echoes))


def colored_noise(size: int, color: float, generator: np.random.Generator) -> NDArray[np.float64]:
    """Gaussian noise of unit power, `(size,)`; `color` is the correlation of neighbors, 0 (white) to below 1."""
    noise = scipy.signal.lfilter([1.0], [1.0, -color], generator.standard_normal(size))
    unit: NDArray[np.float64] = noise / np.sqrt(np.mean(noise**2))
    return unit
