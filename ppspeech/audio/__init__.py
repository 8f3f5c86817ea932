"""Waveform to frames: sound files, MFCC features, utterance statistics, and the built-in voices."""

from ppspeech.audio.encoder import PublicEncoder, with_neighbors
from ppspeech.audio.files import read_audio, read_with_rate, write_audio
from ppspeech.audio.frames import Frames, length_mask, utterance_statistics
from ppspeech.audio.live import (
    LiveFrames,
    Sound,
    features_of,
    missing_band,
    one_channel,
    waits_for_the_end,
    waveform_at,
)
from ppspeech.audio.mfcc import Mfcc
from ppspeech.audio.mfcc_config import GivenFeatures, MfccConfig
from ppspeech.audio.microphone import find_recorder, record
from ppspeech.audio.picture import plot_clip
from ppspeech.audio.steps import normalize_utterance, spoken_part
from ppspeech.audio.usual import in_usual_range, usual_range

__all__ = [
    "Frames",
    "GivenFeatures",
    "LiveFrames",
    "Mfcc",
    "MfccConfig",
    "PublicEncoder",
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
    "read_with_rate",
    "record",
    "spoken_part",
    "usual_range",
    "utterance_statistics",
    "waits_for_the_end",
    "waveform_at",
    "with_neighbors",
    "write_audio",
]
