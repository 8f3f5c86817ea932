"""One vector for what was said: means of the embeddings of an utterance, or of the last two seconds.

    utterance   the spoken part, with half a second before it and a bit after, however long it is
    window      as many embeddings as there are in two seconds, every 80 ms again: for speech that goes on

The embeddings are cut into equal `parts` and each part is averaged. This is public and is done where the voice is.
"""

from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.audio.embeddings.front_end import RATE, SHORTEST_S, EmbeddingConfig, Pooling
from ppspeech.audio.embeddings.windows import FIRST, HOP_S, LiveWindows, SpeechWindows
from ppspeech.audio.sound import Samples, Sound, samples_at, spoken_part
from ppspeech.errors import AudioError

BEFORE_S, AFTER_S = 0.5, 0.3  # of an utterance: what is looked at around what is spoken
LONGEST_S = 30.0
ROOM = 1e-3  # what stands for a quiet room, of the peak, where a recording has nothing before or after


class WordVectors:
    """Sound to the vector that a model of words takes."""

    def __init__(self, config: EmbeddingConfig) -> None:
        self.config, self.pooling = config, config.pooling
        self.embeddings = SpeechWindows(config)

    @property
    def seconds(self) -> float:
        """How much sound a window looks at."""
        return FIRST / RATE + (self.pooling.windows - 1) * HOP_S

    def of(self, sound: Sound, rate: int | None = None) -> Reals:
        """The vector of an utterance, or of the last window of a recording, `(size,)`; a window that is not full
        begins in a quiet room. Raises AudioError for sound that cannot be used.
        """
        try:
            samples = self._checked(samples_at(sound, rate, RATE))
            if self.pooling.over == "utterance":
                return averaged(self.pooling, self.embeddings(utterance(samples)))
            needed = round(self.seconds * RATE)
            full = np.concatenate([quiet_room(samples, needed - len(samples)), samples[-needed:]])
            (vector,) = windowed(self.pooling, self.embeddings.going_on(full))
            return np.asarray(vector)
        except AudioError as error:
            if not isinstance(sound, str | Path) or str(sound) in str(error):
                raise
            raise AudioError(f"{sound}: {error}") from None

    def all(self, samples: Samples) -> Reals:
        """The vectors of every window of a recording at 16 kHz, `(windows, size)`, one every 80 ms."""
        return windowed(self.pooling, self.embeddings.going_on(samples))

    def _checked(self, samples: Samples) -> Samples:
        seconds = len(samples) / RATE
        if not np.isfinite(samples).all():
            raise AudioError("the waveform has samples that are NaN or infinite")
        if not samples.any():
            raise AudioError("the waveform is silent: every sample is zero")
        if not SHORTEST_S <= seconds <= LONGEST_S:
            raise AudioError(f"what is said takes {SHORTEST_S:g} to {LONGEST_S:g} s, got {seconds:.2f} s")
        return samples


class LiveVectors:
    """The vectors of windows of speech that is still being spoken, one every 80 ms once there are two seconds."""

    def __init__(self, vectors: WordVectors) -> None:
        self._pooling = vectors.pooling
        self._live = LiveWindows(vectors.embeddings)
        self._kept: Reals = np.zeros((0, vectors.config.size))

    def feed(self, samples: Samples) -> Reals:
        """The vectors that are known now, `(windows, size)`."""
        self._kept = np.concatenate((self._kept, self._live.feed(samples)))
        found = windowed(self._pooling, self._kept)
        self._kept = self._kept[max(0, len(self._kept) - self._pooling.windows + 1) :]
        return found


def windowed(pooling: Pooling, embeddings: Reals) -> Reals:
    """All windows of embeddings `(count, size)`, each 80 ms after the one before: `(windows, features)`."""
    count, size = len(embeddings) - pooling.windows + 1, embeddings.shape[1]
    if count < 1:
        return np.zeros((0, pooling.parts * size))
    sums = np.concatenate([np.zeros((1, size)), embeddings.cumsum(axis=0)])
    each = pooling.windows // pooling.parts
    starts = range(0, pooling.windows, each)
    return np.concatenate([(sums[s + each : s + each + count] - sums[s : s + count]) / each for s in starts], axis=1)


def averaged(pooling: Pooling, embeddings: Reals) -> Reals:
    """The vector of a whole utterance; one of fewer embeddings than parts repeats them."""
    at = np.linspace(0, len(embeddings), pooling.parts + 1).astype(int)
    cut = [embeddings[start : max(end, start + 1)] for start, end in pairwise(at.tolist())]
    return np.concatenate([part.mean(axis=0) for part in cut])


def utterance(samples: Samples) -> Samples:
    """The spoken part with what is before and after it, in a quiet room where the recording ends too soon."""
    spoken = spoken_part(samples, RATE)
    start = _place(samples, spoken)
    before, after = round(BEFORE_S * RATE), round(AFTER_S * RATE)
    after = max(after, FIRST - before - len(spoken))
    left, right = samples[max(0, start - before) : start], samples[start + len(spoken) :][:after]
    parts = quiet_room(spoken, before - len(left)), left, spoken, right, quiet_room(spoken, after - len(right))
    return np.concatenate(parts)


def quiet_room(samples: Samples, count: int) -> Samples:
    """So many samples, none where there would be fewer: noise, always the same, far below a recording's peak."""
    level = ROOM * float(np.abs(samples).max(initial=0.0))
    return np.float32(level) * np.resize(_noise(), max(0, count))


@cache
def _noise() -> Samples:
    return np.random.default_rng(0).standard_normal(2 * RATE).astype(np.float32)


def _place(samples: Samples, part: Samples) -> int:
    """Where a view begins in the samples it was cut from."""
    offset = part.__array_interface__["data"][0] - samples.__array_interface__["data"][0]
    return int(offset // samples.itemsize)
