"""Waveform to frames: sound files, MFCC features, utterance statistics, and the built-in voices."""

from ppspeech.audio.files import read_audio, read_with_rate, write_audio
from ppspeech.audio.frames import Frames, length_mask
from ppspeech.audio.mfcc import Mfcc
from ppspeech.audio.mfcc_config import MfccConfig
from ppspeech.audio.statistics import utterance_statistics
from ppspeech.audio.voices import VOICES, Voice

__all__ = [
    "VOICES",
    "Frames",
    "Mfcc",
    "MfccConfig",
    "Voice",
    "length_mask",
    "read_audio",
    "read_with_rate",
    "utterance_statistics",
    "write_audio",
]
