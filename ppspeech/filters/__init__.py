"""Features to features that hide someone: minimax filters (seed 003), baselines and attackers.

A filter is an nn.Module. `learn_filter` learns one that keeps a task and hides who or what is behind the features;
`BASELINES` are the ones to compare with.
"""

from ppspeech.filters.alternating import solve_alternating
from ppspeech.filters.baselines import BASELINES
from ppspeech.filters.joint import solve_kiwiel
from ppspeech.filters.kiwiel import KiwielOptions
from ppspeech.filters.learn import learn_filter
from ppspeech.filters.modules import LinearFilter, Mlp, SigmoidNetwork, Standardised, TemporalConvolution
from ppspeech.filters.noisy import FeatureNoise, NoisyFilter
from ppspeech.filters.pretraining import pretrain_, supervise_
from ppspeech.filters.problem import MinimaxProblem
from ppspeech.filters.result import FilterCertificate, Result
from ppspeech.filters.starts import STARTS
from ppspeech.filters.tasks import ClassTask, ReconstructionTask, TargetTask

__all__ = [
    "BASELINES",
    "STARTS",
    "ClassTask",
    "FeatureNoise",
    "FilterCertificate",
    "KiwielOptions",
    "LinearFilter",
    "MinimaxProblem",
    "Mlp",
    "NoisyFilter",
    "ReconstructionTask",
    "Result",
    "SigmoidNetwork",
    "Standardised",
    "TargetTask",
    "TemporalConvolution",
    "learn_filter",
    "pretrain_",
    "solve_alternating",
    "solve_kiwiel",
    "supervise_",
]
