"""LightningModules and callbacks: where models, data and privacy meet."""

from ppspeech.training.checkpoint import load_checkpoint
from ppspeech.training.classifier import LargeMarginClassifier
from ppspeech.training.confusion import Confusion
from ppspeech.training.export import export_checkpoint
from ppspeech.training.gradient_keyword import GradientKeywordHmm
from ppspeech.training.gradient_privacy import GradientPrivacy
from ppspeech.training.keyword import KeywordHmm
from ppspeech.training.large_margin_keyword import LargeMarginKeyword
from ppspeech.training.minimax import MinimaxFilter
from ppspeech.training.objective_callback import ObjectivePrivacy
from ppspeech.training.private_convex import fit_privately
from ppspeech.training.private_emissions import fit_private_emissions
from ppspeech.training.private_keyword import PrivateKeywordHmm
from ppspeech.training.private_statistics import StatisticsRelease
from ppspeech.training.speakers import SpeakerUbm

__all__ = [
    "Confusion",
    "GradientKeywordHmm",
    "GradientPrivacy",
    "KeywordHmm",
    "LargeMarginClassifier",
    "LargeMarginKeyword",
    "MinimaxFilter",
    "ObjectivePrivacy",
    "PrivateKeywordHmm",
    "SpeakerUbm",
    "StatisticsRelease",
    "export_checkpoint",
    "fit_private_emissions",
    "fit_privately",
    "load_checkpoint",
]
