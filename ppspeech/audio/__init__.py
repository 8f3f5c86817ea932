"""Waveform to frames: sound files, MFCC features, utterance statistics, and the built-in voices."""

from typing import TYPE_CHECKING

from ppspeech.doors import door

if TYPE_CHECKING:
    from ppspeech.audio.cepstra import Cepstra
    from ppspeech.audio.encoder import with_neighbors
    from ppspeech.audio.files import features_of, read_audio, read_with_rate, waveform_at, write_audio
    from ppspeech.audio.frames import Frames, length_mask, utterance_statistics
    from ppspeech.audio.live import LiveFrames, waits_for_the_end
    from ppspeech.audio.mfcc import Mfcc
    from ppspeech.audio.mfcc_config import GivenFeatures, MfccConfig
    from ppspeech.audio.microphone import find_recorder, record
    from ppspeech.audio.picture import plot_clip
    from ppspeech.audio.public_encoder import PublicEncoder
    from ppspeech.audio.sound import (
        Samples,
        Sound,
        missing_band,
        one_channel,
        read_samples,
        resampled,
        samples_at,
        spoken_part,
    )
    from ppspeech.audio.steps import normalize_utterance
    from ppspeech.audio.usual import LIMIT, in_usual_range, usual_radius, usual_range

__all__ = [
    "LIMIT",
    "Cepstra",
    "Frames",
    "GivenFeatures",
    "LiveFrames",
    "Mfcc",
    "MfccConfig",
    "PublicEncoder",
    "Samples",
    "Sound",
    "features_of",
    "find_recorder",
    "in_usual_range",
    "length_mask",
    "missing_band",
    "normalize_utterance",
    "one_channel",
    "plot_clip",
    "read_audio",
    "read_samples",
    "read_with_rate",
    "record",
    "resampled",
    "samples_at",
    "spoken_part",
    "usual_radius",
    "usual_range",
    "utterance_statistics",
    "waits_for_the_end",
    "waveform_at",
    "with_neighbors",
    "write_audio",
]

if not TYPE_CHECKING:
    __getattr__ = door(__name__)
