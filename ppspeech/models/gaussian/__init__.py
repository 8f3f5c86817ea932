"""Gaussians and their mixtures: Phi, densities, statistics that add, EM, background models."""

from ppspeech.models.gaussian.em import fit, fit_mixture, initialize_, maximize_
from ppspeech.models.gaussian.gaussians import Covariance, Gaussians
from ppspeech.models.gaussian.mixture import GaussianMixture, frame_mask
from ppspeech.models.gaussian.phi import cost, phi_from_moments, smat, svec
from ppspeech.models.gaussian.statistics import MixtureStatistics, statistics
from ppspeech.models.gaussian.ubm import map_adapt, supervectors

__all__ = [
    "Covariance",
    "GaussianMixture",
    "Gaussians",
    "MixtureStatistics",
    "cost",
    "fit",
    "fit_mixture",
    "frame_mask",
    "initialize_",
    "map_adapt",
    "maximize_",
    "phi_from_moments",
    "smat",
    "statistics",
    "supervectors",
    "svec",
]
