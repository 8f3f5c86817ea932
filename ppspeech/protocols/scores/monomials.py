"""Frames as monomials, and Gaussians as weights of them: a log-density is then one row of a matrix product.

    full      all z_i z_k of z = [x, 1], i <= k, row by row of the upper triangle
    diagonal  x_1^2 … x_d^2, x_1 … x_d, 1
    linear    x_1 … x_d, 1

The constant is always the last. `models.gaussian.Gaussians` has the same order (its `svec` scales monomials and weights
off the diagonal by the root of two); everything here is a numpy array.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals

Terms = Literal["full", "diagonal", "linear"]


def count_monomials(dimensions: int, terms: Terms) -> int:
    """Numbers that a frame of `dimensions` becomes.

    >>> [count_monomials(39, terms) for terms in ("full", "diagonal", "linear")]
    [820, 79, 40]
    """
    d = dimensions
    return {"full": (d + 1) * (d + 2) // 2, "diagonal": 2 * d + 1, "linear": d + 1}[terms]


def degrees(dimensions: int, terms: Terms) -> NDArray[np.int64]:
    """The degree of each monomial in x: 2, 1, or 0 for the constant; `(monomials,)`."""
    if terms == "full":
        left, right = np.triu_indices(dimensions + 1)
        return np.asarray(2 - (left == dimensions) - (right == dimensions).astype(np.int64))
    squares = [2] if terms == "diagonal" else []
    return np.append(np.repeat([*squares, 1], dimensions), 0)


def monomials_of(frames: Reals, terms: Terms) -> Reals:
    """Frames `(count, d)` as `(count, monomials)`.

    >>> monomials_of(np.array([[3.0, -2.0]]), "diagonal").tolist()
    [[9.0, 4.0, 3.0, -2.0, 1.0]]
    >>> monomials_of(np.array([[3.0, -2.0]]), "full").tolist()
    [[9.0, -6.0, 3.0, 4.0, -2.0, 1.0]]
    """
    z = np.concatenate([frames, np.ones((len(frames), 1))], axis=1)
    if terms == "diagonal":
        return np.concatenate([frames * frames, z], axis=1)
    if terms == "linear":
        return z
    left, right = np.triu_indices(z.shape[1])
    products: Reals = z[:, left] * z[:, right]
    return products


def form_weights(forms: Reals, terms: Literal["full", "diagonal"]) -> Reals:
    """Weights of the monomials, `(monomials, *shape)`, that give z' M z for symmetric M `(*shape, d + 1, d + 1)`.

    Only the upper triangle is read; `diagonal` leaves out what M has off the diagonal of its first d rows and columns.
    """
    size = forms.shape[-1]
    if terms == "full":
        left, right = np.triu_indices(size)
        weights = forms[..., left, right] * np.where(left == right, 1.0, 2.0)
    else:
        diagonal = np.diagonal(forms, axis1=-2, axis2=-1)
        weights = np.concatenate([diagonal[..., :-1], 2 * forms[..., :-1, -1], diagonal[..., -1:]], axis=-1)
    return np.moveaxis(weights, -1, 0)


def weight_forms(weights: Reals, terms: Terms) -> Reals:
    """The symmetric M, `(columns, d + 1, d + 1)`, with z'M z what weights `(monomials, columns)` score; z = [x, 1]."""
    monomials, columns = weights.shape
    if terms == "full":
        size = (math.isqrt(8 * monomials + 1) - 1) // 2
        left, right = np.triu_indices(size)
        forms = np.zeros((columns, size, size))
        forms[:, left, right] = (weights * np.where(left == right, 1.0, 0.5)[:, None]).T
        forms[:, right, left] = forms[:, left, right]
        return forms
    d = (monomials - 1) // 2 if terms == "diagonal" else monomials - 1
    every, forms = np.arange(d), np.zeros((columns, d + 1, d + 1))
    if terms == "diagonal":
        forms[:, every, every] = weights[:d].T
    forms[:, every, d] = forms[:, d, every] = weights[-d - 1 : -1].T / 2
    forms[:, d, d] = weights[-1]
    return forms


def scaled_weights(weights: Reals, terms: Terms, center: Reals, spread: Reals) -> Reals:
    """Weights `(monomials, columns)` of frames x as those of (x - center) / spread, `(d,)` each: the same scores."""
    d = len(center)
    if terms == "full":
        forms = weight_forms(weights, terms)
        to_frame = np.diag(np.append(spread, 1.0))
        to_frame[:d, d] = center
        return form_weights(to_frame.T @ forms @ to_frame, terms)
    at, unit = center[:, None], spread[:, None]
    squares = weights[:d] if terms == "diagonal" else np.zeros((d, weights.shape[1]))
    linear, constant = weights[-d - 1 : -1], weights[-1]
    scaled = [(2 * squares * at + linear) * unit, (constant + ((squares * at + linear) * at).sum(0))[None]]
    return np.concatenate([squares * unit**2, *scaled] if terms == "diagonal" else scaled)


def gaussian_weights(log_weights: Reals, means: Reals, covariances: Reals) -> Reals:
    """Weights of the monomials, `(monomials, *shape)`, that give ln w N(x; mean, covariance).

    Means are `(*shape, d)`, covariances variances `(*shape, d)`, or matrices `(*shape, d, d)` for full monomials.
    """
    d = means.shape[-1]
    if covariances.ndim == means.ndim:
        inverse: Reals = 1 / covariances
        linear, log_determinant = means * inverse, np.log(inverse).sum(-1)
    else:
        inverse = np.linalg.inv(covariances)
        linear, log_determinant = (inverse @ means[..., None])[..., 0], np.linalg.slogdet(inverse)[1]
    constant: Reals = log_weights + (log_determinant - d * np.log(2 * np.pi) - (means * linear).sum(-1)) / 2
    if covariances.ndim == means.ndim:
        return np.moveaxis(np.concatenate([-inverse / 2, linear, constant[..., None]], axis=-1), -1, 0)
    form = np.zeros((*means.shape[:-1], d + 1, d + 1))
    form[..., :d, :d], form[..., :d, d], form[..., d, d] = -inverse / 2, linear / 2, constant
    return form_weights(form, "full")
