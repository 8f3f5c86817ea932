"""Mechanisms, one file each."""

from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussian
from ppspeech.privacy.mechanisms.distributed import (
    MOST_PARTIES,
    Law,
    NoiseShares,
    PolyaShares,
    SkellamShares,
    shares_for,
)
from ppspeech.privacy.mechanisms.gamma_norm import GammaNorm
from ppspeech.privacy.mechanisms.gaussian import Gaussian
from ppspeech.privacy.mechanisms.pca import AnalyzeGauss, without_negative

__all__ = [
    "MOST_PARTIES",
    "AnalyzeGauss",
    "DiscreteGaussian",
    "GammaNorm",
    "Gaussian",
    "Law",
    "NoiseShares",
    "PolyaShares",
    "SkellamShares",
    "shares_for",
    "without_negative",
]
