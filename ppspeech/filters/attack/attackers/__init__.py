"""Those who try to tell whose sample it was: each retrained from scratch on what the filter gives."""

from ppspeech.filters.attack.attackers.attacker import SPEECH_ATTACKERS, VECTOR_ATTACKERS, Attacker, Scorer

__all__ = ["SPEECH_ATTACKERS", "VECTOR_ATTACKERS", "Attacker", "Scorer"]
