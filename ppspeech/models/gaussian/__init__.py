"""Gaussians and their mixtures: Phi, densities, statistics that add, EM, background models."""

from ppspeech.models.gaussian.em import fit_mixture, run_em, start_mixture_, update_mixture_
from ppspeech.models.gaussian.gaussians import Covariance, Gaussians
from ppspeech.models.gaussian.kmeans import kmeans
from ppspeech.models.gaussian.mixture import GaussianMixture, frame_mask
from ppspeech.models.gaussian.phi import cost, phi_from_moments, smat, svec
from ppspeech.models.gaussian.statistics import MixtureStatistics, mixture_statistics
from ppspeech.models.gaussian.ubm import map_adapt, supervectors

__all__ = [
    "Covariance",
    "GaussianMixture",
    "Gaussians",
    "MixtureStatistics",
    "cost",
    "fit_mixture",
    "frame_mask",
    "kmeans",
    "map_adapt",
    "mixture_statistics",
    "phi_from_moments",
    "run_em",
    "smat",
    "start_mixture_",
    "supervectors",
    "svec",
    "update_mixture_",
]
