"""What becomes shares of scores: monomials, and the weights of linear models, mixtures and states."""

from ppspeech.protocols.scores.linear import LinearColumns, LinearPlan, LinearScorer, ScoreNorm
from ppspeech.protocols.scores.mixture import Covariance, MixturePlan, Mixtures, MixtureScorer
from ppspeech.protocols.scores.monomials import form_weights, monomials_of, scaled_weights
from ppspeech.protocols.scores.states import MOST, MOST_LIMIT, WordArrays, WordShape

__all__ = [
    "MOST",
    "MOST_LIMIT",
    "Covariance",
    "LinearColumns",
    "LinearPlan",
    "LinearScorer",
    "MixturePlan",
    "MixtureScorer",
    "Mixtures",
    "ScoreNorm",
    "WordArrays",
    "WordShape",
    "form_weights",
    "monomials_of",
    "scaled_weights",
]
