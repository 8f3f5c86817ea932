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
from ppspeech.privacy.mechanisms.median import MedianMechanism, histograms
from ppspeech.privacy.mechanisms.pca import AnalyzeGauss, without_negative
from ppspeech.privacy.mechanisms.shifts import ShiftRelease
from ppspeech.privacy.mechanisms.statistics import Moments, StatisticsRelease, UnitSums, normalized
from ppspeech.privacy.mechanisms.unit_sum import ALONE, UnitSum

__all__ = [
    "ALONE",
    "MOST_PARTIES",
    "AnalyzeGauss",
    "DiscreteGaussian",
    "GammaNorm",
    "Gaussian",
    "Law",
    "MedianMechanism",
    "Moments",
    "NoiseShares",
    "PolyaShares",
    "ShiftRelease",
    "SkellamShares",
    "StatisticsRelease",
    "UnitSum",
    "UnitSums",
    "histograms",
    "normalized",
    "shares_for",
    "without_negative",
]
