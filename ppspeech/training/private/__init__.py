"""Where training meets privacy."""

from ppspeech.training.private.convex import ConvexHook, ConvexModule, fit_privately, head_of, radius_of, theta_shape
from ppspeech.training.private.gradient_keyword import GradientKeywordHmm
from ppspeech.training.private.gradients import CollateWithEmpty, GradientPrivacy, PoissonBatches, _Losses
from ppspeech.training.private.keyword import POOLED, public_bank
from ppspeech.training.private.statistics import hmm_moments, maximize_hmm_

__all__ = [
    "POOLED",
    "CollateWithEmpty",
    "ConvexHook",
    "ConvexModule",
    "GradientKeywordHmm",
    "GradientPrivacy",
    "PoissonBatches",
    "_Losses",
    "fit_privately",
    "head_of",
    "hmm_moments",
    "maximize_hmm_",
    "public_bank",
    "radius_of",
    "theta_shape",
]
