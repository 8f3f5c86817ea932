"""Models trained for a margin: the hinge, the loss, large-margin Gaussians and HMMs."""

from ppspeech.models.margin.gaussians import LargeMarginGaussians, SumForm, sum_form
from ppspeech.models.margin.hmm import LargeMarginHmm
from ppspeech.models.margin.loss import MarginLoss
from ppspeech.models.margin.psd import minimize_psd

__all__ = ["LargeMarginGaussians", "LargeMarginHmm", "MarginLoss", "SumForm", "minimize_psd", "sum_form"]
