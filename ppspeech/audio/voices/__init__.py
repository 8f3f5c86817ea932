"""The built-in speakers: who they are, how eSpeak NG speaks for them, and the rooms they are recorded in."""

from ppspeech.audio.voices.espeak import Espeak, Prompt, UnsayableError, phones_of
from ppspeech.audio.voices.room import Room
from ppspeech.audio.voices.speakers import STYLES, VOICES, Voice

__all__ = ["STYLES", "VOICES", "Espeak", "Prompt", "Room", "UnsayableError", "Voice", "phones_of"]
