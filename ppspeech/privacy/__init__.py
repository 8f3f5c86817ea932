"""Differential privacy: mechanisms, events, an accountant and an audit. Knows tensors; knows no speech.

Every mechanism is a frozen dataclass with `event`, `guarantee` and `release(value) -> Released`. For releases,
`DiscreteLaplace` and `DiscreteGaussian` are the default: their guarantee holds for the released bits.
"""

from ppspeech.privacy.accountant import Accountant, AccountReport
from ppspeech.privacy.discrete_gaussian import DiscreteGaussian
from ppspeech.privacy.discrete_laplace import DiscreteLaplace
from ppspeech.privacy.distributed_events import SkellamEvent
from ppspeech.privacy.distributed_noise import PolyaShares, SkellamShares, shares_for
from ppspeech.privacy.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    Event,
    NonPrivateEvent,
    PureEvent,
    UnsupportedAnalysisError,
    ZcdpEvent,
    event_from_json,
    event_to_json,
)
from ppspeech.privacy.exponential import Exponential
from ppspeech.privacy.gamma_norm import GammaNorm
from ppspeech.privacy.gaussian import Gaussian
from ppspeech.privacy.group_privacy import group_privacy
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.hockey_stick import gaussian_delta, gaussian_epsilon, gaussian_sigma
from ppspeech.privacy.laplace import Laplace
from ppspeech.privacy.logistic_objective_event import LogisticObjectiveGaussianEvent
from ppspeech.privacy.noise_events import DiscreteGaussianEvent, DiscreteLaplaceEvent, GaussianEvent, LaplaceEvent
from ppspeech.privacy.objective import ObjectivePerturbation
from ppspeech.privacy.objective_events import (
    LogisticObjectivePureEvent,
    ObjectiveGaussianEvent,
    ObjectivePureEvent,
    objective_sigma,
)
from ppspeech.privacy.output import OutputPerturbation
from ppspeech.privacy.parameters import Adjacency, Unit
from ppspeech.privacy.pca import AnalyzeGauss
from ppspeech.privacy.permute_and_flip import PermuteAndFlip
from ppspeech.privacy.sampled_events import SampledGaussianEvent, noise_multiplier_for
from ppspeech.privacy.sparse_vector import SparseVector

__all__ = [
    "AccountReport",
    "Accountant",
    "Adjacency",
    "AnalyzeGauss",
    "ApproximateEvent",
    "BoundedRangeEvent",
    "DiscreteGaussian",
    "DiscreteGaussianEvent",
    "DiscreteLaplace",
    "DiscreteLaplaceEvent",
    "Event",
    "Exponential",
    "GammaNorm",
    "Gaussian",
    "GaussianEvent",
    "Guarantee",
    "Laplace",
    "LaplaceEvent",
    "LogisticObjectiveGaussianEvent",
    "LogisticObjectivePureEvent",
    "NonPrivateEvent",
    "ObjectiveGaussianEvent",
    "ObjectivePerturbation",
    "ObjectivePureEvent",
    "OutputPerturbation",
    "PermuteAndFlip",
    "PolyaShares",
    "PureEvent",
    "Released",
    "SampledGaussianEvent",
    "SkellamEvent",
    "SkellamShares",
    "SparseVector",
    "Unit",
    "UnsupportedAnalysisError",
    "ZcdpEvent",
    "event_from_json",
    "event_to_json",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_sigma",
    "group_privacy",
    "noise_multiplier_for",
    "objective_sigma",
    "shares_for",
]
