"""Clips of a word to vectors: as they are, and changed in ways that anybody may know.

The changes are public and always the same: nothing about a clip decides what is done to it. That a clip of a word stays
one is why they help where there are few clips.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.audio import Samples, Sound, resampled, samples_at, spoken_part
from ppspeech.audio.embeddings import EmbeddingConfig, WordVectors, averaged, quiet_room, utterance, windowed
from ppspeech.errors import AudioError

RATE = 16_000
ENDS_S = (0.32, 0.24, 0.4)
"""How long ago a word ended, in seconds, in the windows that it is learned from: whoever listens on meets such a one
whatever the hour."""


def _faster(samples: Samples) -> Samples:
    return resampled(samples, RATE + 1_600, RATE)


def _slower(samples: Samples) -> Samples:
    return resampled(samples, RATE - 1_600, RATE)


def _noisy(samples: Samples) -> Samples:
    noise = np.random.default_rng(1).standard_normal(len(samples)).astype(np.float32)
    return samples + np.float32(0.1 * np.sqrt(np.mean(samples**2))) * noise


CHANGES: Mapping[str, Callable[[Samples], Samples]] = MappingProxyType(
    {"faster": _faster, "slower": _slower, "noisy": _noisy}
)
"""10 % faster and higher, 10 % slower and lower, and with noise 20 dB below."""


def word_examples(
    clips: Sequence[Sound], embedding: EmbeddingConfig, rate: int | None = None, changes: Sequence[str] = ()
) -> Reals:
    """Vectors of clips of one word, `(clips, variants, features)`: of each clip as it is, then of each change of it.

    Over windows, a word is learned from windows in which it ended a third of a second ago, each a variant. `rate` is
    that of waveforms, in Hz. Raises AudioError for a clip that cannot be used, and for a change that there is not.
    """
    unknown = [change for change in changes if change not in CHANGES]
    if unknown:
        raise AudioError(f"clips are changed by {', '.join(CHANGES)}, got {unknown[0]!r:.40}")
    vectors = WordVectors(embedding)
    found = np.zeros((len(clips), 0, embedding.features))
    for place, clip in enumerate(clips):
        vectors.of(clip, rate)  # refuses what cannot be used, with its name
        samples = samples_at(clip, rate, RATE)
        variants = [samples, *(CHANGES[change](samples) for change in changes)]
        rows = np.concatenate([_vectors(vectors, variant) for variant in variants])
        if not found.shape[1]:
            found = np.zeros((len(clips), *rows.shape))
        found[place] = rows
    return found


def _vectors(vectors: WordVectors, samples: Samples) -> Reals:
    """Of one utterance, `(1, features)`, or of the windows in which it just ended."""
    if vectors.pooling.over == "utterance":
        return averaged(vectors.pooling, vectors.embeddings(utterance(samples)))[None]
    spoken = spoken_part(samples, RATE)
    around = utterance(samples)  # half a second, what is spoken, and three tenths or more
    ends = round(0.5 * RATE) + len(spoken)
    needed = round(vectors.seconds * RATE)
    rows = []
    for ago in ENDS_S:
        after = ends + round(ago * RATE)
        heard = np.concatenate([around[:after], quiet_room(spoken, after - len(around))])[-needed:]
        heard = np.concatenate([quiet_room(spoken, needed - len(heard)), heard])
        rows.append(windowed(vectors.pooling, vectors.embeddings.going_on(heard))[-1])
    return np.stack(rows)
