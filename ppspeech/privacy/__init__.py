"""Differential privacy: mechanisms, events, an accountant and an audit. Knows tensors; knows no speech.

Every mechanism is a frozen dataclass with `event`, `guarantee` and `release(value) -> Released`. For releases,
`DiscreteLaplace` and `DiscreteGaussian` are the default: their guarantee holds for the released bits.
"""

from ppspeech.privacy.accounting.accountant import Accountant, AccountReport
from ppspeech.privacy.accounting.events import (
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
from ppspeech.privacy.accounting.groups import group_privacy
from ppspeech.privacy.accounting.hockey_stick import gaussian_delta, gaussian_epsilon, gaussian_sigma
from ppspeech.privacy.accounting.noise_events import (
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
)
from ppspeech.privacy.convex.events import (
    LogisticObjectivePureEvent,
    ObjectiveGaussianEvent,
    ObjectivePureEvent,
    objective_sigma,
)
from ppspeech.privacy.convex.logistic_event import LogisticObjectiveGaussianEvent
from ppspeech.privacy.convex.objective import ObjectivePerturbation
from ppspeech.privacy.convex.output import OutputPerturbation
from ppspeech.privacy.gradients.events import SampledGaussianEvent, noise_multiplier_for
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussian
from ppspeech.privacy.mechanisms.discrete_laplace import DiscreteLaplace
from ppspeech.privacy.mechanisms.distributed import PolyaShares, SkellamShares, shares_for
from ppspeech.privacy.mechanisms.distributed_events import SkellamEvent
from ppspeech.privacy.mechanisms.exponential import Exponential
from ppspeech.privacy.mechanisms.gamma_norm import GammaNorm
from ppspeech.privacy.mechanisms.gaussian import Gaussian
from ppspeech.privacy.mechanisms.laplace import Laplace
from ppspeech.privacy.mechanisms.pca import AnalyzeGauss
from ppspeech.privacy.mechanisms.permute_and_flip import PermuteAndFlip
from ppspeech.privacy.mechanisms.sparse_vector import SparseVector
from ppspeech.privacy.parameters import check_choice, check_count, check_positive, check_probability
from ppspeech.privacy.relation import Adjacency, Relation, Unit

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
    "Relation",
    "Released",
    "SampledGaussianEvent",
    "SkellamEvent",
    "SkellamShares",
    "SparseVector",
    "Unit",
    "UnsupportedAnalysisError",
    "ZcdpEvent",
    "check_choice",
    "check_count",
    "check_positive",
    "check_probability",
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
