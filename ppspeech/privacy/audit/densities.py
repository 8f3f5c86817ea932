"""The log-densities of the shipped additive mechanisms, as their parameters really give them, for `audit_exact`."""

import math

import torch
from torch import Tensor

from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussian
from ppspeech.privacy.mechanisms.discrete_laplace import DiscreteLaplace
from ppspeech.privacy.mechanisms.gamma_norm import GammaNorm
from ppspeech.privacy.mechanisms.gaussian import Gaussian
from ppspeech.privacy.mechanisms.laplace import Laplace


def laplace_log_density(mechanism: Laplace, points: Tensor, value: Tensor) -> Tensor:
    """ln density of the output at `points` `(n, d)` when the exact value is `value` `(d,)`."""
    distance = (points - value).abs().sum(dim=-1)
    return -distance / mechanism.scale - points.shape[-1] * math.log(2 * mechanism.scale)


def gaussian_log_density(mechanism: Gaussian, points: Tensor, value: Tensor) -> Tensor:
    """ln density of the output at `points` `(n, d)` when the exact value is `value` `(d,)`."""
    square = (points - value).square().sum(dim=-1) / (2 * mechanism.sigma**2)
    return -square - points.shape[-1] * math.log(mechanism.sigma * math.sqrt(2 * math.pi))


def gamma_norm_log_density(mechanism: GammaNorm, points: Tensor, value: Tensor) -> Tensor:
    """ln density at `points` `(n, d)`: kappa^d Gamma(d/2) / (2 pi^(d/2) Gamma(d)) exp(-kappa |b|)."""
    d = points.shape[-1]
    log_constant = d * math.log(mechanism.kappa) + math.lgamma(d / 2) - math.lgamma(d)
    log_constant -= math.log(2) + d / 2 * math.log(math.pi)
    distance: Tensor = torch.linalg.vector_norm(points - value, dim=-1)
    return log_constant - mechanism.kappa * distance


def discrete_laplace_log_pmf(mechanism: DiscreteLaplace, points: Tensor, value: Tensor) -> Tensor:
    """ln probability of the output, `points` `(n, d)` in whole steps of the grid, value in its own units."""
    steps = mechanism.grid.to_steps(value)
    t = float(mechanism.scale)
    log_constant = math.log(math.tanh(1 / (2 * t)))  # (1 - q) / (1 + q)
    return points.shape[-1] * log_constant - (points - steps).abs().sum(dim=-1).to(torch.float64) / t


def discrete_gaussian_log_pmf(mechanism: DiscreteGaussian, points: Tensor, value: Tensor) -> Tensor:
    """ln probability of the output, `points` `(n, d)` in whole steps of the grid, value in its own units."""
    steps = mechanism.grid.to_steps(value)
    sigma = float(mechanism.scale)
    reach = math.ceil(40 * sigma)
    k = torch.arange(-reach, reach + 1, dtype=torch.float64)
    log_constant = torch.logsumexp(-k.square() / (2 * sigma**2), dim=0)
    square = (points - steps).to(torch.float64).square().sum(dim=-1)
    return -square / (2 * sigma**2) - points.shape[-1] * log_constant
