"""Where training meets privacy."""

from ppspeech.training.private.convex import ConvexHook, ConvexModule, fit_privately, head_of, radius_of, theta_shape
from ppspeech.training.private.gradients import CollateWithEmpty, GradientPrivacy, _Losses
from ppspeech.training.private.statistics import hmm_moments, maximize_hmm_

__all__ = [
    "CollateWithEmpty",
    "ConvexHook",
    "ConvexModule",
    "GradientPrivacy",
    "_Losses",
    "fit_privately",
    "head_of",
    "hmm_moments",
    "maximize_hmm_",
    "radius_of",
    "theta_shape",
]
