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
from ppspeech.privacy.mechanisms.statistics import Moments, StatisticsRelease, UnitSums

__all__ = [
    "MOST_PARTIES",
    "AnalyzeGauss",
    "DiscreteGaussian",
    "GammaNorm",
    "Gaussian",
    "Law",
    "Moments",
    "NoiseShares",
    "PolyaShares",
    "SkellamShares",
    "StatisticsRelease",
    "UnitSums",
    "shares_for",
    "without_negative",
]
