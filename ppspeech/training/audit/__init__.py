"""Audits of training itself: canaries go through the whole of a recipe, and an attacker guesses who was there."""

from ppspeech.training.audit.canaries import Canaries
from ppspeech.training.audit.joint import audit_joint_words
from ppspeech.training.audit.recipe import audit_recipe, figures_of
from ppspeech.training.audit.run import CanaryRun, run_with_canaries

__all__ = [
    "Canaries",
    "CanaryRun",
    "audit_joint_words",
    "audit_recipe",
    "figures_of",
    "run_with_canaries",
]
