"""Isotropic noise in the subspace where a gradient lives: symmetric matrices, and sets of them that sum to zero.

Noise outside the subspace protects nothing and costs accuracy; noise along an excluded direction only, as the
shared matrix of Pathak and Raj 2012, protects nothing at all (Correction 1.21 in docs/theory/release.md). Projecting
iid normals orthogonally is isotropic in the subspace.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.parameters import check_positive
from ppspeech.privacy.samplers.randomness import erlang, standard_normal


def subspace_dimension(shape: Sequence[int], *, symmetric: bool = False, centered: bool = False) -> int:
    """N: how many free directions there are.

    `shape`: `(*heads, p, p)` where symmetric, else `(*heads, d)`; `symmetric`: the last two axes are a symmetric
    matrix: p(p+1)/2 directions, not p^2; `centered`: the sum over all heads is zero: one head less.

    >>> subspace_dimension((2, 1, 3, 3), symmetric=True, centered=True)
    6
    """
    tail = 2 if symmetric else 1
    if len(shape) < tail or (symmetric and shape[-1] != shape[-2]) or min(shape) < 1:
        raise PrivacyError(f"shape {tuple(shape)} does not end in {'a square matrix' if symmetric else 'a vector'}")
    size = shape[-1] * (shape[-1] + 1) // 2 if symmetric else shape[-1]
    heads = math.prod(shape[:-tail])
    if centered and heads < 2:
        raise PrivacyError(f"centering needs at least two heads, shape {tuple(shape)} has {heads}")
    return (heads - 1 if centered else heads) * size


def isotropic_normal(
    shape: Sequence[int], *, symmetric: bool = False, centered: bool = False, like: Tensor | None = None
) -> Tensor:
    """N(0, I) in the subspace, in the Frobenius inner product: diagonal variance 1, off-diagonal 1/2; by float64."""
    subspace_dimension(shape, symmetric=symmetric, centered=centered)  # refuses wrong shapes
    drawn = standard_normal(shape)
    if symmetric:
        drawn = (drawn + drawn.mT) / 2
    if centered:
        tail = 2 if symmetric else 1
        drawn = drawn - drawn.mean(dim=tuple(range(drawn.dim() - tail)), keepdim=True)
    return drawn if like is None else drawn.to(dtype=like.dtype, device=like.device)


def gamma_norm_noise(
    shape: Sequence[int], kappa: float, *, symmetric: bool = False, centered: bool = False, like: Tensor | None = None
) -> Tensor:
    """Noise with density proportional to exp(-kappa |b|_2) on the subspace.

    A uniform direction, and |b| ~ Gamma(N, 1/kappa) with mean N / kappa. Drawn in float64, then given the dtype and
    device of `like`.
    """
    check_positive("kappa", kappa)
    size = subspace_dimension(shape, symmetric=symmetric, centered=centered)
    direction = isotropic_normal(shape, symmetric=symmetric, centered=centered)
    noise = direction * (erlang(size) / kappa / float(torch.linalg.vector_norm(direction)))
    return noise if like is None else noise.to(dtype=like.dtype, device=like.device)
