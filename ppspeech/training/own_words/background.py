"""Speech that is none of the words: half of it teaches a head what to leave alone, the other half how sure to be.

It is public: nothing is promised to anybody who speaks in it.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.audio import Samples, Sound, samples_at
from ppspeech.audio.embeddings import (
    EmbeddingConfig,
    Pooling,
    SpeechWindows,
    averaged,
    quiet_room,
    utterance,
    windowed,
)
from ppspeech.errors import AudioError, ModelError
from ppspeech.progress import track

RATE = 16_000
STRETCH = 8
"""Embeddings of a stretch of speech that could be taken for an utterance: 1.3 s, as most words with what is around."""
APART = 8
"""Of the windows that come every 80 ms, one of so many trains: neighbors say the same."""
MOST_WHOLE_S = 3.0  # a recording so short may be an utterance as it is


@dataclass(frozen=True, eq=False)
class Stream:
    """One recording: embeddings every 80 ms `(count, 96)`, from a quiet room into another; and those of the recording
    as one utterance, where it is as short as one. `digest` is of its sound.
    """

    embeddings: Reals
    whole: Reals | None
    seconds: float
    digest: str

    @classmethod
    def of(cls, sound: Sound, network: SpeechWindows, rate: int | None = None) -> "Stream":
        """Listen to a recording. Raises AudioError for one that cannot be used."""
        samples = samples_at(sound, rate, RATE)
        if not np.isfinite(samples).all() or not samples.any():
            raise AudioError(f"{sound if isinstance(sound, str) else 'a recording'} is silent, or not finite")
        before, after = quiet_room(samples, 2 * RATE), quiet_room(samples, RATE // 2)
        whole = network(utterance(samples)) if len(samples) <= MOST_WHOLE_S * RATE else None
        going_on = network.going_on(np.concatenate([before, samples, after]))
        return cls(going_on, whole, len(samples) / RATE, digest_of(samples))

    def vectors(self, pooling: Pooling) -> Reals:
        """The vector of every window, or of every stretch that could be an utterance, `(count, features)`."""
        window = pooling if pooling.over == "window" else Pooling("window", pooling.parts, STRETCH)
        found = windowed(window, self.embeddings)
        if pooling.over == "window" or self.whole is None:
            return found
        return np.concatenate([found, averaged(pooling, self.whole)[None]])


@dataclass(frozen=True, eq=False)
class Background:
    """Streams that train, and others that calibrate; `says` what they are of, for the statement."""

    training: tuple[Stream, ...]
    calibrating: tuple[Stream, ...]
    says: str

    @classmethod
    def of(
        cls, training: Sequence[Sound], calibrating: Sequence[Sound], says: str, rate: int | None = None
    ) -> "Background":
        """Listen to recordings, which are embedded once; whoever can puts different people into the two."""
        network = SpeechWindows(EmbeddingConfig("speech"))
        first, second = (
            tuple(Stream.of(sound, network, rate) for sound in track(sounds, "Hearing the background"))
            for sounds in (training, calibrating)
        )
        return cls(first, second, says)

    def __post_init__(self) -> None:
        if not self.training or not self.calibrating:
            raise ModelError("a background needs recordings that train and others that calibrate: two at the least")
        both = {each.digest for each in self.training} & {each.digest for each in self.calibrating}
        if both:
            raise ModelError(
                f"{len(both)} recordings of the background train and calibrate: what was trained on alarms too rarely"
            )

    @property
    def hours(self) -> float:
        """Of what calibrates."""
        return sum(each.seconds for each in self.calibrating) / 3600

    @property
    def digests(self) -> frozenset[str]:
        """Of all recordings."""
        return frozenset(each.digest for each in (*self.training, *self.calibrating))

    def trained_on(self, pooling: Pooling, most: int) -> Reals:
        """At most so many vectors, evenly spread over what trains, `(count, features)`."""
        rows: Reals = np.concatenate([each.vectors(pooling)[::-APART] for each in self.training])
        spread: Reals = rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).round().astype(int)]
        return spread


def digest_of(samples: Samples) -> str:
    """Names a sound at 16 kHz."""
    return hashlib.sha256(np.ascontiguousarray(samples, np.float32).tobytes()).hexdigest()
