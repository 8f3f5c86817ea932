"""Privacy of gradient steps: bounded contributions, and the plan of noisy sums over samples."""

from ppspeech.privacy.gradients.clipping import (
    clip_norm,
    contribution_weights,
    limit_contributions,
    unit_index,
    unit_means,
)
from ppspeech.privacy.gradients.plan import (
    ALONE,
    GradientPlan,
    PoissonBatches,
    Ranks,
    SampledGaussianEvent,
    noise_multiplier_for,
)

__all__ = [
    "ALONE",
    "GradientPlan",
    "PoissonBatches",
    "Ranks",
    "SampledGaussianEvent",
    "clip_norm",
    "contribution_weights",
    "limit_contributions",
    "noise_multiplier_for",
    "unit_index",
    "unit_means",
]
