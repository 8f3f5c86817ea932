"""Where training meets privacy: one hook for recipes, and functions for tables and experiments."""

from ppspeech.training.private.gradients import CollateWithEmpty, GradientPrivacy
from ppspeech.training.private.hook import PrivacyHook
from ppspeech.training.private.objective import (
    ConvexHook,
    ConvexModule,
    ObjectivePrivacy,
    fit_privately,
    head_of,
    radius_of,
    theta_shape,
)
from ppspeech.training.private.per_sample import Losses, per_sample_gradients
from ppspeech.training.private.perturbed import ClassMoments, PerturbedRecords, discriminant, fit_perturbed
from ppspeech.training.private.record import PrivacyRecord
from ppspeech.training.private.shifts import PersonSums, ShiftPrivacy, ShiftSpace
from ppspeech.training.private.statistics import StatisticsPrivacy, hmm_moments, maximize_hmm_

__all__ = [
    "ClassMoments",
    "CollateWithEmpty",
    "ConvexHook",
    "ConvexModule",
    "GradientPrivacy",
    "Losses",
    "ObjectivePrivacy",
    "PersonSums",
    "PerturbedRecords",
    "PrivacyHook",
    "PrivacyRecord",
    "ShiftPrivacy",
    "ShiftSpace",
    "StatisticsPrivacy",
    "discriminant",
    "fit_perturbed",
    "fit_privately",
    "head_of",
    "hmm_moments",
    "maximize_hmm_",
    "per_sample_gradients",
    "radius_of",
    "theta_shape",
]
