"""Privacy of gradient steps: bounded contributions, and the plan of noisy sums over samples."""

from ppspeech.privacy.gradients.clipping import (
    STEPS,
    clip_norm,
    contribution_weights,
    limit_contributions,
    unit_index,
    unit_means,
    whole,
    whole_scale,
)
from ppspeech.privacy.gradients.plan import (
    GradientPlan,
    PoissonBatches,
    SampledDiscreteGaussianEvent,
    SampledGaussianEvent,
    noise_multiplier_for,
)

__all__ = [
    "STEPS",
    "GradientPlan",
    "PoissonBatches",
    "SampledDiscreteGaussianEvent",
    "SampledGaussianEvent",
    "clip_norm",
    "contribution_weights",
    "limit_contributions",
    "noise_multiplier_for",
    "unit_index",
    "unit_means",
    "whole",
    "whole_scale",
]
