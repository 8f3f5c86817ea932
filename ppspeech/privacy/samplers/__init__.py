"""Noise from the operating system's generator: exact laws on whole numbers, and real ones."""

from ppspeech.privacy.samplers.discrete import LARGEST, sample_discrete_gaussian, sample_discrete_laplace
from ppspeech.privacy.samplers.grid import Grid, dyadic
from ppspeech.privacy.samplers.randomness import (
    coins,
    erlang,
    random_below,
    random_order,
    random_words,
    standard_laplace,
    standard_normal,
    uniform,
)

__all__ = [
    "LARGEST",
    "Grid",
    "coins",
    "dyadic",
    "erlang",
    "random_below",
    "random_order",
    "random_words",
    "sample_discrete_gaussian",
    "sample_discrete_laplace",
    "standard_laplace",
    "standard_normal",
    "uniform",
]
