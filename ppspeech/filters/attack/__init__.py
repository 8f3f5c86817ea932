"""Attacks on filtered features: retrained attackers, linkability, reconstruction."""

from ppspeech.filters.attack.attack import UNKNOWN, AttackReport, FilterEvidence, Finding, attack, judge, judge_samples
from ppspeech.filters.attack.plot import Point, plot_trade_off
from ppspeech.filters.attack.reconstruction import reconstruction_attack

__all__ = [
    "UNKNOWN",
    "AttackReport",
    "FilterEvidence",
    "Finding",
    "Point",
    "attack",
    "judge",
    "judge_samples",
    "plot_trade_off",
    "reconstruction_attack",
]
