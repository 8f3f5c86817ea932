"""Privacy of convex training: noise in the objective, or on the minimizer."""

from ppspeech.privacy.convex.bounds import HeadConstants, huber_svm_head, large_margin_head, logistic_head, softmax_head
from ppspeech.privacy.convex.minimum import Minimum, TiltableObjective, certified_minimum
from ppspeech.privacy.convex.objective import ObjectivePerturbation
from ppspeech.privacy.convex.output import OutputPerturbation

__all__ = [
    "HeadConstants",
    "Minimum",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "TiltableObjective",
    "certified_minimum",
    "huber_svm_head",
    "large_margin_head",
    "logistic_head",
    "softmax_head",
]
