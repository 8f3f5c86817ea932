"""LightningModules and callbacks: where models, data and privacy meet."""

from ppspeech.privacy.mechanisms import StatisticsRelease
from ppspeech.training.classes import LargeMarginClassifier
from ppspeech.training.confusion import Confusion
from ppspeech.training.filters import FilterRecipe, LearnedFilter, learn
from ppspeech.training.minimax import AdversarialSolver, MinimaxFilter
from ppspeech.training.module import SpeechModule, Trained
from ppspeech.training.private.convex import fit_privately
from ppspeech.training.private.emissions import fit_private_emissions
from ppspeech.training.private.gradients import GradientPrivacy
from ppspeech.training.private.keyword import PrivateKeywordHmm
from ppspeech.training.private.objective import ObjectivePrivacy
from ppspeech.training.quiet import quiet_lightning
from ppspeech.training.release import export_checkpoint, load_checkpoint, release
from ppspeech.training.speakers import SpeakerUbm
from ppspeech.training.words import POOLED, WordModels, public_bank

__all__ = [
    "POOLED",
    "AdversarialSolver",
    "Confusion",
    "FilterRecipe",
    "GradientPrivacy",
    "LargeMarginClassifier",
    "LearnedFilter",
    "MinimaxFilter",
    "ObjectivePrivacy",
    "PrivateKeywordHmm",
    "SpeakerUbm",
    "SpeechModule",
    "StatisticsRelease",
    "Trained",
    "WordModels",
    "export_checkpoint",
    "fit_private_emissions",
    "fit_privately",
    "learn",
    "load_checkpoint",
    "public_bank",
    "quiet_lightning",
    "release",
]
