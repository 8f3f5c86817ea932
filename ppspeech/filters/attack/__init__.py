"""Attacks on filtered features: retrained attackers, on sets of clips and behind known filters; linkability,
reconstruction.
"""

from ppspeech.filters.attack.attack import CLIPS, attack, attacker_names, judge, judge_samples
from ppspeech.filters.attack.heard import heard_in_cepstra, heard_in_sound, sound_samples
from ppspeech.filters.attack.known_filter import KnownFilter, Layered
from ppspeech.filters.attack.plot import Point, plot_clips, plot_trade_off
from ppspeech.filters.attack.reconstruction import reconstruction_attack
from ppspeech.filters.attack.report import UNKNOWN, AttackReport, FilterEvidence, Finding

__all__ = [
    "CLIPS",
    "UNKNOWN",
    "AttackReport",
    "FilterEvidence",
    "Finding",
    "KnownFilter",
    "Layered",
    "Point",
    "attack",
    "attacker_names",
    "heard_in_cepstra",
    "heard_in_sound",
    "judge",
    "judge_samples",
    "plot_clips",
    "plot_trade_off",
    "reconstruction_attack",
    "sound_samples",
]
