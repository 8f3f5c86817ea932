"""What music is known again by: shapes of spectra, fingerprints, landmarks."""

from ppspeech.audio.music.features import (
    LANDMARK_BITS,
    MUSIC_RATE,
    PEAK_HOP,
    PRINT_CHANNELS,
    SHAPE_BITS,
    SHAPE_CHANNELS,
    excerpt,
    fingerprints,
    landmarks,
    music_samples,
    shapes,
)

__all__ = [
    "LANDMARK_BITS",
    "MUSIC_RATE",
    "PEAK_HOP",
    "PRINT_CHANNELS",
    "SHAPE_BITS",
    "SHAPE_CHANNELS",
    "excerpt",
    "fingerprints",
    "landmarks",
    "music_samples",
    "shapes",
]
