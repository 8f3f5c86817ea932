"""LightningModules and callbacks: where models, data and privacy meet."""

from ppspeech.training.checkpoint import load_checkpoint
from ppspeech.training.classifier import LargeMarginClassifier
from ppspeech.training.confusion import Confusion
from ppspeech.training.export import export_checkpoint
from ppspeech.training.filters import FilterRecipe, LearnedFilter, learn
from ppspeech.training.keyword import KeywordHmm
from ppspeech.training.large_margin_keyword import LargeMarginKeyword
from ppspeech.training.minimax import AdversarialSolver, MinimaxFilter
from ppspeech.training.private.convex import fit_privately
from ppspeech.training.private.emissions import fit_private_emissions
from ppspeech.training.private.gradient_keyword import GradientKeywordHmm
from ppspeech.training.private.gradients import GradientPrivacy
from ppspeech.training.private.keyword import PrivateKeywordHmm
from ppspeech.training.private.objective import ObjectivePrivacy
from ppspeech.training.private.statistics import StatisticsRelease
from ppspeech.training.quiet import quiet_lightning
from ppspeech.training.speakers import SpeakerUbm

__all__ = [
    "AdversarialSolver",
    "Confusion",
    "FilterRecipe",
    "GradientKeywordHmm",
    "GradientPrivacy",
    "KeywordHmm",
    "LargeMarginClassifier",
    "LargeMarginKeyword",
    "LearnedFilter",
    "MinimaxFilter",
    "ObjectivePrivacy",
    "PrivateKeywordHmm",
    "SpeakerUbm",
    "StatisticsRelease",
    "export_checkpoint",
    "fit_private_emissions",
    "fit_privately",
    "learn",
    "load_checkpoint",
    "quiet_lightning",
]
