"""Attacks on filtered features: retrained attackers, linkability, reconstruction."""

from ppspeech.filters.attack.attack import UNKNOWN, AttackReport, Finding, attack
from ppspeech.filters.attack.plot import Point, plot_trade_off
from ppspeech.filters.attack.reconstruction import reconstruction_attack

__all__ = ["UNKNOWN", "AttackReport", "Finding", "Point", "attack", "plot_trade_off", "reconstruction_attack"]
