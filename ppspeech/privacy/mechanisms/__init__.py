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
from ppspeech.privacy.mechanisms.graph_cuts import GraphCuts, sketched_laplacian
from ppspeech.privacy.mechanisms.johnson_lindenstrauss import JohnsonLindenstrauss, ProjectionEvent, projection_ratio
from ppspeech.privacy.mechanisms.local import LabelResponse, LocalRecords
from ppspeech.privacy.mechanisms.median import MedianMechanism, histograms
from ppspeech.privacy.mechanisms.pca import AnalyzeGauss, principal_directions, without_negative
from ppspeech.privacy.mechanisms.projection import RandomProjection
from ppspeech.privacy.mechanisms.running import RunningMoments
from ppspeech.privacy.mechanisms.shifts import ShiftRelease
from ppspeech.privacy.mechanisms.statistics import Moments, StatisticsRelease, UnitSums, normalized
from ppspeech.privacy.mechanisms.unit_sum import ALONE, UnitSum
from ppspeech.privacy.mechanisms.wishart import Wishart

__all__ = [
    "ALONE",
    "MOST_PARTIES",
    "AnalyzeGauss",
    "DiscreteGaussian",
    "GammaNorm",
    "Gaussian",
    "GraphCuts",
    "JohnsonLindenstrauss",
    "LabelResponse",
    "Law",
    "LocalRecords",
    "MedianMechanism",
    "Moments",
    "NoiseShares",
    "PolyaShares",
    "ProjectionEvent",
    "RandomProjection",
    "RunningMoments",
    "ShiftRelease",
    "SkellamShares",
    "StatisticsRelease",
    "UnitSum",
    "UnitSums",
    "Wishart",
    "histograms",
    "normalized",
    "principal_directions",
    "projection_ratio",
    "shares_for",
    "sketched_laplacian",
    "without_negative",
]
