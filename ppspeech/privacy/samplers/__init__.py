"""Noise from the operating system's generator: exact laws on whole numbers, and real ones."""

from ppspeech.privacy.samplers.grid import Grid
from ppspeech.privacy.samplers.randomness import erlang, exponential, standard_laplace, standard_normal, uniform

__all__ = ["Grid", "erlang", "exponential", "standard_laplace", "standard_normal", "uniform"]
