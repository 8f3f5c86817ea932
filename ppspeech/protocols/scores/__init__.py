"""What becomes shares of scores: monomials, and the weights of linear models, mixtures and states."""

from ppspeech.protocols.scores.fit import MOST_BITS, fit_words
from ppspeech.protocols.scores.linear import LinearColumns, LinearPlan, LinearScorer, ScoreNorm
from ppspeech.protocols.scores.mixture import Covariance, MixturePlan, Mixtures, MixtureScorer
from ppspeech.protocols.scores.monomials import Terms, form_weights, gaussian_weights, monomials_of, scaled_weights
from ppspeech.protocols.scores.range import (
    RAREST,
    ball_bounds,
    column_bounds,
    frame_bounds,
    most_apart,
    most_monomials,
    within_ball,
)
from ppspeech.protocols.scores.states import MOST, MOST_LIMIT, VAGUE, WordArrays, WordShape

__all__ = [
    "MOST",
    "MOST_BITS",
    "MOST_LIMIT",
    "RAREST",
    "VAGUE",
    "Covariance",
    "LinearColumns",
    "LinearPlan",
    "LinearScorer",
    "MixturePlan",
    "MixtureScorer",
    "Mixtures",
    "ScoreNorm",
    "Terms",
    "WordArrays",
    "WordShape",
    "ball_bounds",
    "column_bounds",
    "fit_words",
    "form_weights",
    "frame_bounds",
    "gaussian_weights",
    "monomials_of",
    "most_apart",
    "most_monomials",
    "scaled_weights",
    "within_ball",
]
