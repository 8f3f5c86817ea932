"""What is said: a speech embedding every 80 ms, each of the 0.78 s before it (Lin et al. 2020, "Training keyword
spotters with limited and synthesized speech data").

The mel spectrogram is computed here, the network runs in onnxruntime. An embedding depends on the samples of its own
window and on their level, and on nothing else: speech that is heard while it is spoken gives the same numbers as a
recording of it.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ppspeech.arrays import Reals
from ppspeech.audio.cepstra import mel_triangles
from ppspeech.audio.embeddings.front_end import RATE, EmbeddingConfig
from ppspeech.audio.embeddings.wheels import weights_of
from ppspeech.audio.sound import Samples
from ppspeech.errors import AudioError, MissingPackageError

MEL, HOP = 32, 160
BAND = 60.0, 3_800.0  # Hz
WINDOW, TRANSFORM = 400, 512  # samples that are looked at, in the middle of those that are transformed
SPAN, STEP = 76, 8  # mel frames of an embedding, and from one to the next
FIRST = TRANSFORM + (SPAN - 1) * HOP
"""Samples of the first embedding; every `STEP * HOP` more give another."""
HOP_S = STEP * HOP / RATE
DEEPEST = 8.0  # decades of power below the loudest that are told apart
LOUD = 0.5  # what the peak of speech is brought to, of full scale
FULL_SCALE = 32_767.0
QUIETEST = 1e-3  # a peak below this is not brought up: nobody speaks
MEMORY = 2 * RATE  # samples before an embedding's end whose peak is its level, where speech goes on and on
BATCH = 64


class SpeechWindows:
    """Samples to embeddings, 96 numbers each. Raises MissingPackageError or AudioError without the weights."""

    def __init__(self, config: EmbeddingConfig | None = None) -> None:
        self.config = config or EmbeddingConfig("speech")
        if self.config.name != "speech":
            raise AudioError(f"words are heard through speech embeddings, got those of a {self.config.name}")
        self._network = open_network("speech")
        self._input = self._network.get_inputs()[0].name
        self._filters = mel_triangles(np.linspace(0, RATE / 2, TRANSFORM // 2 + 1), MEL, *BAND, "slaney")
        around = (TRANSFORM - WINDOW) // 2
        self._taper = np.pad(np.hanning(WINDOW + 1)[:-1], around)

    def __call__(self, samples: Samples, peak: float | None = None) -> Reals:
        """The embeddings of a waveform at 16 kHz, `(embeddings, 96)`, none where it is shorter than `FIRST`. `peak` is
        the level, by default that of the whole.
        """
        mel = self.mel(samples)
        starts = np.arange(0, len(mel) - SPAN + 1, STEP)
        level = float(np.abs(samples).max(initial=0.0)) if peak is None else peak
        return self.embed(mel, starts, np.full(len(starts), level))

    def going_on(self, samples: Samples) -> Reals:
        """As `__call__` where each embedding's level is the peak of the two seconds before its end: what `LiveWindows`
        gives as the speech is spoken.
        """
        mel = self.mel(samples)
        starts = np.arange(0, len(mel) - SPAN + 1, STEP)
        return self.embed(
            mel, starts, np.array([_peak_before(samples, start * HOP + FIRST) for start in starts.tolist()])
        )

    def mel(self, samples: Samples) -> Reals:
        """Log power in 32 bands every 10 ms, `(frames, 32)`, in decades."""
        if len(samples) < TRANSFORM:
            return np.zeros((0, MEL))
        frames = sliding_window_view(np.asarray(samples, np.float64), TRANSFORM)[::HOP]
        power = np.abs(np.fft.rfft(frames * self._taper)) ** 2
        decades: Reals = np.log10(np.maximum(power @ self._filters, 1e-20))
        return decades

    def embed(self, mel: Reals, starts: Any, peaks: Reals) -> Reals:
        """Embeddings of the windows that begin at mel frames `starts`, of speech with such peaks."""
        found: list[Reals] = [np.zeros((0, self.config.size))]
        for some in range(0, len(starts), BATCH):
            windows = np.stack([mel[start : start + SPAN] for start in starts[some : some + BATCH]])
            gains = LOUD * FULL_SCALE / np.maximum(peaks[some : some + BATCH], QUIETEST)
            windows = windows + 2 * np.log10(gains)[:, None, None]
            windows = np.maximum(windows, windows.max(axis=(1, 2), keepdims=True) - DEEPEST) + 2.0
            (told,) = self._network.run(None, {self._input: windows[..., None].astype(np.float32)})
            found.append(told.reshape(len(windows), -1).astype(np.float64))
        return np.concatenate(found)


class LiveWindows:
    """Embeddings of speech that is still being spoken, each 80 ms after the one before."""

    def __init__(self, windows: SpeechWindows) -> None:
        self._windows = windows
        self._heard: Samples = np.zeros(0, np.float32)
        self._begins = 0  # of what is kept, in samples since the first
        self._next = 0  # of the next embedding

    def feed(self, samples: Samples) -> Reals:
        """The embeddings that are known now, `(embeddings, 96)`, none or more."""
        self._heard = np.concatenate((self._heard, samples))
        found: list[Reals] = [np.zeros((0, self._windows.config.size))]
        while self._next + FIRST <= self._begins + len(self._heard):
            start = self._next - self._begins
            mel = self._windows.mel(self._heard[start : start + FIRST])
            peak = _peak_before(self._heard, start + FIRST)
            found.append(self._windows.embed(mel, [0], np.array([peak])))
            self._next += STEP * HOP
        kept = max(0, min(self._next, self._next + FIRST - MEMORY) - self._begins)
        self._heard, self._begins = self._heard[kept:], self._begins + kept
        return np.concatenate(found)


def _peak_before(samples: Samples, end: int) -> float:
    return float(np.abs(samples[max(0, end - MEMORY) : end]).max())


@cache
def open_network(name: Any) -> Any:
    """A network of onnxruntime, on one thread: sessions that share a machine do not wait for each other."""
    path = weights_of(name)
    try:
        import onnxruntime  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise MissingPackageError("public embeddings", "onnxruntime", "pip install 'ppspeech[embeddings]'") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
