"""Those who try to tell whose sample it was: each retrained from scratch on what the filter gives."""

from ppspeech.filters.attack.attackers.attacker import (
    CLIP_ATTACKERS,
    SET_ATTACKERS,
    SPEECH_ATTACKERS,
    VECTOR_ATTACKERS,
    VOICE_ATTACKERS,
    Attacker,
    Clips,
    Scorer,
    SetAttacker,
)

__all__ = [
    "CLIP_ATTACKERS",
    "SET_ATTACKERS",
    "SPEECH_ATTACKERS",
    "VECTOR_ATTACKERS",
    "VOICE_ATTACKERS",
    "Attacker",
    "Clips",
    "Scorer",
    "SetAttacker",
]
