"""Features to features that hide someone: minimax filters (Hamm 2015), baselines and attackers.

A filter is an nn.Module. `learn_filter` learns one that keeps a task and hides who or what is behind the features;
`BASELINES` are the ones to compare with. `ppspeech.filters.attack.attack` says what attackers find behind one, and
`write_filtered` makes a corpus of filtered features, on which recipes train.
"""

from ppspeech.filters.apply import NOT_COVERED, private_file, read_filtered, write_filtered
from ppspeech.filters.baselines import BASELINES, fit_without_means
from ppspeech.filters.certified import NamingBound, NamingTarget
from ppspeech.filters.codes import CodeFilter, codes_of, learn_codes
from ppspeech.filters.learn import HIDDEN, Learning, Solver, learn_filter, opponent
from ppspeech.filters.modules import LinearFilter, Mlp, Scaling, SigmoidNetwork, Standardized, TemporalConvolution
from ppspeech.filters.noisy import NO_NOISE, CodeNoise, FeatureNoise, Noise, NoisyFilter
from ppspeech.filters.personal import (
    Filtered,
    PersonalFilter,
    PersonalSettings,
    improve_,
    improve_all_,
    weighted_risks,
    worst_risks,
)
from ppspeech.filters.pretraining import pretrain_, supervise_
from ppspeech.filters.problem import FilterCertificate, FlatFilter, MinimaxProblem, Result
from ppspeech.filters.solvers.alternating import solve_alternating
from ppspeech.filters.solvers.joint import solve_kiwiel
from ppspeech.filters.solvers.kiwiel import KiwielOptions
from ppspeech.filters.starts import STARTS, principal_directions
from ppspeech.filters.tasks import ClassTask, ReconstructionTask, SetTask, TargetTask, draw_sets, set_family
from ppspeech.filters.transformer import MinimaxTransformer

__all__ = [
    "BASELINES",
    "HIDDEN",
    "NOT_COVERED",
    "NO_NOISE",
    "STARTS",
    "ClassTask",
    "CodeFilter",
    "CodeNoise",
    "FeatureNoise",
    "FilterCertificate",
    "Filtered",
    "FlatFilter",
    "KiwielOptions",
    "Learning",
    "LinearFilter",
    "MinimaxProblem",
    "MinimaxTransformer",
    "Mlp",
    "NamingBound",
    "NamingTarget",
    "Noise",
    "NoisyFilter",
    "PersonalFilter",
    "PersonalSettings",
    "ReconstructionTask",
    "Result",
    "Scaling",
    "SetTask",
    "SigmoidNetwork",
    "Solver",
    "Standardized",
    "TargetTask",
    "TemporalConvolution",
    "codes_of",
    "draw_sets",
    "fit_without_means",
    "improve_",
    "improve_all_",
    "learn_codes",
    "learn_filter",
    "opponent",
    "pretrain_",
    "principal_directions",
    "private_file",
    "read_filtered",
    "set_family",
    "solve_alternating",
    "solve_kiwiel",
    "supervise_",
    "weighted_risks",
    "worst_risks",
    "write_filtered",
]
