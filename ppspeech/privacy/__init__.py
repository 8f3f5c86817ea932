"""Differential privacy: mechanisms, events, an accountant and an audit. Knows tensors; knows no speech.

Every mechanism is a frozen dataclass with `relation`, `event`, `guarantee` and `release(value) -> Released`, entered by
`@mechanism(name)` with its event and its audit beside it. For releases,
`DiscreteLaplace` and `DiscreteGaussian` are the default: their guarantee holds for the released bits.
"""

from ppspeech.privacy.accounting.accountant import Accountant, AccountReport, ComposedEvent
from ppspeech.privacy.accounting.budget import Budget
from ppspeech.privacy.accounting.events import (
    ApproximateEvent,
    Event,
    ExactPureEvent,
    NonPrivateEvent,
    PureEvent,
    PureLike,
    UnsupportedAnalysisError,
    ZcdpEvent,
    event_from_json,
    event_to_json,
    group_privacy,
    register_event,
)
from ppspeech.privacy.accounting.hockey_stick import gaussian_delta, gaussian_epsilon, gaussian_sigma
from ppspeech.privacy.accounting.kept import KeptBudget
from ppspeech.privacy.convex.events import (
    LogisticObjectiveGaussianEvent,
    LogisticObjectivePureEvent,
    ObjectiveGaussianEvent,
    ObjectivePureEvent,
    SoftmaxObjectivePureEvent,
    objective_sigma,
)
from ppspeech.privacy.convex.objective import ObjectivePerturbation
from ppspeech.privacy.convex.output import OutputPerturbation
from ppspeech.privacy.gradients.plan import SampledDiscreteGaussianEvent, SampledGaussianEvent, noise_multiplier_for
from ppspeech.privacy.guarantee import MOST_DELTA, Guarantee, Released
from ppspeech.privacy.mechanism import MECHANISMS, Mechanism, mechanism
from ppspeech.privacy.mechanisms.bounded_sum import Mean, Sum
from ppspeech.privacy.mechanisms.count import Count
from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussian, DiscreteGaussianEvent
from ppspeech.privacy.mechanisms.discrete_laplace import DiscreteLaplace, DiscreteLaplaceEvent
from ppspeech.privacy.mechanisms.distributed import PolyaShares, SkellamEvent, SkellamShares, shares_for
from ppspeech.privacy.mechanisms.gamma_norm import GammaNorm
from ppspeech.privacy.mechanisms.gaussian import Gaussian, GaussianEvent
from ppspeech.privacy.mechanisms.histogram import Histogram
from ppspeech.privacy.mechanisms.laplace import Laplace, LaplaceEvent
from ppspeech.privacy.mechanisms.median import MedianMechanism, MedianSession
from ppspeech.privacy.mechanisms.noisy_max import NoisyMax
from ppspeech.privacy.mechanisms.pca import AnalyzeGauss
from ppspeech.privacy.mechanisms.quantile import Quantile
from ppspeech.privacy.mechanisms.selection import BoundedRangeEvent, Exponential, PermuteAndFlip
from ppspeech.privacy.mechanisms.sparse_vector import SparseVector
from ppspeech.privacy.mechanisms.unit_sum import UnitSum
from ppspeech.privacy.parameters import check_choice, check_count, check_positive, check_probability
from ppspeech.privacy.relation import Adjacency, Relation, Unit
from ppspeech.privacy.rows import MANY_ROWS, check_rows, check_single_rows

__all__ = [
    "MANY_ROWS",
    "MECHANISMS",
    "MOST_DELTA",
    "AccountReport",
    "Accountant",
    "Adjacency",
    "AnalyzeGauss",
    "ApproximateEvent",
    "BoundedRangeEvent",
    "Budget",
    "ComposedEvent",
    "Count",
    "DiscreteGaussian",
    "DiscreteGaussianEvent",
    "DiscreteLaplace",
    "DiscreteLaplaceEvent",
    "Event",
    "ExactPureEvent",
    "Exponential",
    "GammaNorm",
    "Gaussian",
    "GaussianEvent",
    "Guarantee",
    "Histogram",
    "KeptBudget",
    "Laplace",
    "LaplaceEvent",
    "LogisticObjectiveGaussianEvent",
    "LogisticObjectivePureEvent",
    "Mean",
    "Mechanism",
    "MedianMechanism",
    "MedianSession",
    "NoisyMax",
    "NonPrivateEvent",
    "ObjectiveGaussianEvent",
    "ObjectivePerturbation",
    "ObjectivePureEvent",
    "OutputPerturbation",
    "PermuteAndFlip",
    "PolyaShares",
    "PureEvent",
    "PureLike",
    "Quantile",
    "Relation",
    "Released",
    "SampledDiscreteGaussianEvent",
    "SampledGaussianEvent",
    "SkellamEvent",
    "SkellamShares",
    "SoftmaxObjectivePureEvent",
    "SparseVector",
    "Sum",
    "Unit",
    "UnitSum",
    "UnsupportedAnalysisError",
    "ZcdpEvent",
    "check_choice",
    "check_count",
    "check_positive",
    "check_probability",
    "check_rows",
    "check_single_rows",
    "event_from_json",
    "event_to_json",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_sigma",
    "group_privacy",
    "mechanism",
    "noise_multiplier_for",
    "objective_sigma",
    "register_event",
    "shares_for",
]
