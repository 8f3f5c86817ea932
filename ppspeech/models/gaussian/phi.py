r"""A Gaussian is a matrix Phi, and a log-density is one quadratic form.

With z = [x, 1], a weighted Gaussian is the symmetric matrix Phi of Pathak and Raj 2012 eq. (2),

    Phi = [   Psi        -Psi mu          ]       Psi   = C^-1 / 2
          [ -mu' Psi   mu' Psi mu + theta ]       theta = (ln|C| + d ln 2 pi) / 2 - ln w

so that its *cost* is z' Phi z = -ln( w N(x; mu, C) ) >= its minimum at mu. Generative, large-margin and
encrypted scoring all speak Phi. (Pathak 2010's printed constant has the signs of ln|C| and of mu' C^-1 mu
reversed; theta above is checked against scipy.)

The cost is linear in the monomials of z: <svec Phi, svec zz'>, where `svec` keeps the upper triangle with
off-diagonal entries times sqrt 2. All costs of all Gaussians for all frames are therefore one matrix product.
"""

import math

import torch
from torch import Tensor

LOG_2PI = math.log(2 * math.pi)
BLOCK = 2048


def augment(x: Tensor) -> Tensor:
    """Append the unit element: `(..., d)` to `(..., d + 1)`."""
    return torch.cat([x, x.new_ones(()).expand(*x.shape[:-1], 1)], dim=-1)


def svec(matrix: Tensor) -> Tensor:
    """Symmetric matrices `(..., p, p)` as vectors `(..., p (p + 1) / 2)` with the same inner product.

    >>> a = torch.tensor([[1.0, 2.0], [2.0, 3.0]])
    >>> torch.isclose(svec(a) @ svec(a), (a * a).sum()).item()
    True
    """
    rows, columns, scale = _triangle(matrix.shape[-1], matrix)
    return matrix[..., rows, columns] * scale


def smat(vector: Tensor) -> Tensor:
    """The inverse of `svec`."""
    size = (math.isqrt(8 * vector.shape[-1] + 1) - 1) // 2
    rows, columns, scale = _triangle(size, vector)
    position = torch.zeros(size, size, dtype=torch.long, device=vector.device)
    order = torch.arange(vector.shape[-1], device=vector.device)
    position[rows, columns] = order
    position[columns, rows] = order
    return (vector / scale)[..., position]


def quadratic_features(x: Tensor) -> Tensor:
    """The monomials svec(zz') of z = [x, 1]: `(..., d)` to `(..., (d + 1)(d + 2) / 2)`."""
    z = augment(x)
    size = z.shape[-1]
    # Row i of the triangle is z_i times a slice: several times faster than gathering both factors.
    products = torch.cat([z[..., i : i + 1] * z[..., i:] for i in range(size)], dim=-1)
    return products * _triangle(size, z)[2]


def quadratic_forms(x: Tensor, vectors: Tensor) -> Tensor:
    """z' M z of `(..., d)` for matrices M as `svec` has them, `(*forms, (d + 1)(d + 2) / 2)`: `(..., *forms)`.

    On a CPU and without a gradient, some thousand frames at a time, so that their monomials never leave its cache.
    """
    if torch.is_grad_enabled() or not x.is_cpu:
        forms: Tensor = torch.tensordot(quadratic_features(x), vectors, dims=([-1], [-1]))
        return forms
    size = x.shape[-1] + 1
    weights = vectors.reshape(-1, vectors.shape[-1]) * _triangle(size, vectors)[2]
    found = []
    frames = x.reshape(-1, x.shape[-1])
    for start in range(0, max(1, len(frames)), BLOCK):
        z = augment(frames[start : start + BLOCK]).mT.contiguous()
        monomials = torch.cat([z[row] * z[row:] for row in range(size)])
        found.append((weights @ monomials).mT)
    return torch.cat(found).reshape(*x.shape[:-1], *vectors.shape[:-1])


def cost(x: Tensor, phi: Tensor) -> Tensor:
    """Minus the log-density, z' Phi z, of `(..., d)` under `(*gaussians, d + 1, d + 1)`: `(..., *gaussians)`."""
    return quadratic_forms(x, svec(phi))


def phi_from_moments(mean: Tensor, covariance: Tensor, log_weight: Tensor | float = 0.0) -> Tensor:
    """Phi `(..., d + 1, d + 1)` of w N(mean, covariance); the covariance must be positive definite."""
    factor = torch.linalg.cholesky(covariance)
    psi = torch.cholesky_inverse(factor) / 2
    psi_mean = (psi @ mean.unsqueeze(-1)).squeeze(-1)
    half_log_det = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    theta = half_log_det + mean.shape[-1] * LOG_2PI / 2 - log_weight
    return assemble_phi(psi, psi_mean, (mean * psi_mean).sum(-1) + theta)


def assemble_phi(psi: Tensor, psi_mean: Tensor, corner: Tensor) -> Tensor:
    """Put the blocks of Pathak and Raj 2012 eq. (2) together: Psi, Psi mu and mu' Psi mu + theta."""
    right = torch.cat([-psi_mean, corner.unsqueeze(-1)], dim=-1)
    upper = torch.cat([psi, -psi_mean.unsqueeze(-1)], dim=-1)
    return torch.cat([upper, right.unsqueeze(-2)], dim=-2)


def moments_from_phi(phi: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The inverse of `phi_from_moments`: mean `(..., d)`, covariance `(..., d, d)`, log-weight `(...)`.

    The Psi block must be positive definite. After discriminative training the log-weight is whatever is
    left in the corner; it is a true weight only for a generative Phi.
    """
    psi = phi[..., :-1, :-1]
    factor = torch.linalg.cholesky(psi)
    mean = torch.cholesky_solve(-phi[..., :-1, -1:], factor).squeeze(-1)
    covariance = torch.cholesky_inverse(factor) / 2
    half_log_det = -(factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)) - mean.shape[-1] * math.log(2) / 2
    theta = phi[..., -1, -1] + (mean * phi[..., :-1, -1]).sum(-1)
    return mean, covariance, half_log_det + mean.shape[-1] * LOG_2PI / 2 - theta


def _triangle(size: int, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Row and column indices of the upper triangle and the factors that make svec an isometry."""
    rows, columns = torch.triu_indices(size, size, device=like.device)
    one, root = like.new_ones(()), like.new_full((), math.sqrt(2.0))
    scale = torch.where(rows == columns, one, root)
    return rows, columns, scale
