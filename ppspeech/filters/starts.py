"""Where linear filters start, which are filters in their own right: random, PCA, private PLS and a discriminant ratio.

Every function takes standardized inputs x `(n, D)` and, where it looks at labels, indicator (or target) matrices
`(n, k)` of the private and the utility tasks; it returns a weight `(d, D)`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional

from ppspeech.errors import ModelError
from ppspeech.filters.tasks import ClassTask, SetTask, Task


def random_directions(x: Tensor, private: Tensor, task: Tensor, features: int, seed: int = 0) -> Tensor:  # noqa: ARG001
    """d orthonormal directions, uniformly random: looks at no data."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(x.shape[1], features, generator=generator, dtype=torch.float64)
    return cast(Tensor, torch.linalg.qr(drawn).Q).mT.to(x)


def principal_directions(x: Tensor, private: Tensor, task: Tensor, features: int, seed: int = 0) -> Tensor:  # noqa: ARG001
    """The d orthonormal directions of largest variance."""
    vectors: Tensor = torch.linalg.eigh(_covariance(x)).eigenvectors
    return vectors.flip(-1)[:, :features].mT.contiguous()


def private_pls(
    x: Tensor,
    private: Tensor,
    task: Tensor,
    features: int,
    seed: int = 0,  # noqa: ARG001
    balance: float = 1.0,
) -> Tensor:
    """Private partial least squares (Enev et al. 2012): directions that co-vary with the task and not with the secret.

    Each direction w of length 1 maximizes |Cov(w'x, task)|^2 - balance |Cov(w'x, private)|^2 among those orthogonal to
    the loadings of the earlier ones (deflation as in SIMPLS). Where no direction has a positive balance left, the rest
    are the directions of largest variance that co-vary with neither the secret nor the earlier ones. Inputs are
    `(n, D)`, private `(n, k)`, task `(n, m)`; `balance` is the weight of the private covariance, lambda of the paper.
    Nothing is random: the seed is not used.
    """
    covariance = _covariance(x)
    to_task, to_private = _cross(x, task), _cross(x, private)
    smallest = 1e-9 * to_task.square().sum()
    found: list[Tensor] = []
    loadings = x.new_zeros(x.shape[1], 0)
    while len(found) < features:
        keep = _without(loadings)
        both = torch.cat([keep(to_task), balance**0.5 * keep(to_private)], dim=1)
        signs = torch.cat([x.new_ones(task.shape[1]), -x.new_ones(private.shape[1])])
        # The eigenvectors of both diag(signs) both' lie in the span of `both`: a small problem gives them.
        basis, triangle = torch.linalg.qr(both)
        values, vectors = torch.linalg.eigh((triangle * signs) @ triangle.mT)
        if values[-1] <= smallest:
            break
        direction = functional.normalize(keep(basis @ vectors[:, -1:]), dim=0)
        loadings = torch.cat([loadings, functional.normalize(covariance @ direction, dim=0)], dim=1)
        found.append(direction)
    if len(found) < features:
        keep = _without(torch.cat([loadings, to_private], dim=1))
        left = torch.linalg.eigh(keep(keep(covariance).mT)).eigenvectors.flip(-1)
        found.append(left[:, : features - len(found)])
    return torch.cat(found, dim=1).mT.contiguous()


def discriminant_ratio(
    x: Tensor,
    private: Tensor,
    task: Tensor,
    features: int,
    seed: int = 0,  # noqa: ARG001
    shrink: float = 1e-2,
) -> Tensor:
    """Directions of the largest ratio of Fisher's metrics, that of the task over that of the secret.

    The generalized eigenproblem (B_task + shrink T) w = mu (B_private + shrink T) w with B the scatter between
    classes and T the total covariance with a hundredth of its mean variance added in every direction.
    """
    if not shrink > 0:
        raise ModelError(f"shrink must be > 0, got {shrink}")
    total = _covariance(x)
    total = total + 1e-2 * total.diagonal().mean() * torch.eye(len(total)).to(total)
    numerator = _between(x, task) + shrink * total
    factor = torch.linalg.cholesky(_between(x, private) + shrink * total)
    half = torch.linalg.solve_triangular(factor, numerator, upper=False)
    whole = torch.linalg.solve_triangular(factor, half.mT, upper=False)
    vectors = torch.linalg.eigh((whole + whole.mT) / 2).eigenvectors.flip(-1)[:, :features]
    return functional.normalize(torch.linalg.solve_triangular(factor.mT, vectors, upper=True), dim=0).mT.contiguous()


def without_means(
    x: Tensor,
    private: Tensor,
    task: Tensor,
    features: int,
    seed: int = 0,  # noqa: ARG001
    by_class: bool = False,
    shrink: float = 1e-2,
) -> Tensor:
    """The best discriminants of the task among filters that leave no person a mean of their own, in closed form.

        W (mean_p - mean) = 0  for every person p,  or by class  W (mean_pc - mean_c) = 0  for every class c as well.

    Someone who adds up clips sees the mean more and more sharply; behind such a filter it is the same for all of the
    training people (exactly, up to rounding), and what is left grows no faster than what differs in spread. The
    constraint takes S - 1 directions, or C (S - 1) by class: raises ModelError where too few are left. Theorem 4.5 in
    docs/theory/filters.md.
    """
    residual = _centered(x)
    if by_class:
        residual = residual - _fitted(residual, task)
        pairs = (private.unsqueeze(2) * task.unsqueeze(1)).flatten(1).to(x)
        own = residual.mT @ pairs / len(x)
    else:
        own = _cross(x, private)
    # Unit columns: rare people's means count as much as frequent ones', and rank is told from rounding.
    own = functional.normalize(own[:, own.norm(dim=0) > 1e-12], dim=0)
    basis, values, _ = torch.linalg.svd(own, full_matrices=True)
    free = basis[:, int((values > 1e-9).sum()) :]
    if free.shape[1] < features:
        raise ModelError(
            f"without the means of all people {free.shape[1]} of {x.shape[1]} directions are left, asked for {features}"
            ": learn from fewer people, or leave classes out of it"
        )
    total = free.mT @ _covariance(x) @ free
    total = total + shrink * total.diagonal().mean() * torch.eye(len(total)).to(total)
    factor = torch.linalg.cholesky(total)
    half = torch.linalg.solve_triangular(factor, free.mT @ _between(x, task) @ free, upper=False)
    whole = torch.linalg.solve_triangular(factor, half.mT, upper=False)
    vectors = torch.linalg.eigh((whole + whole.mT) / 2).eigenvectors.flip(-1)[:, :features]
    directions = free @ torch.linalg.solve_triangular(factor.mT, vectors, upper=True)
    return functional.normalize(directions, dim=0).mT.contiguous()


STARTS: dict[str, Callable[..., Tensor]] = {
    "random": random_directions,
    "pca": principal_directions,
    "ppls": private_pls,
    "plda": discriminant_ratio,
    "means": without_means,
    "means_by_class": partial(without_means, by_class=True),
}
"""Starting points by name."""


def targets_of(tasks: Sequence[Task]) -> Tensor:
    """What tasks look for as one matrix: indicators of classes and targets side by side, `(n, k)`, float64. Those that
    look at sets have no part in it: one that looks at samples must be there.
    """
    columns = [
        functional.one_hot(task.labels.long(), task.classes) if isinstance(task, ClassTask) else task.targets
        for task in tasks
        if not isinstance(task, SetTask)
    ]
    if not columns:
        raise ModelError("all tasks look at sets of samples: add one that looks at samples, or start at random")
    return torch.cat([column.double() for column in columns], dim=1)


def _centered(x: Tensor) -> Tensor:
    return x - x.mean(0)


def _covariance(x: Tensor) -> Tensor:
    centered = _centered(x)
    return centered.mT @ centered / len(x)


def _cross(x: Tensor, targets: Tensor) -> Tensor:
    """Cov(x, targets), `(D, k)`."""
    return _centered(x).mT @ _centered(targets.to(x)) / len(x)


def _between(x: Tensor, targets: Tensor) -> Tensor:
    """The covariance of what the targets predict of x linearly: for indicators, the scatter between the classes."""
    centered = _centered(targets.to(x))
    cross = _cross(x, targets)
    # Indicators of classes sum to a constant: one direction of theirs is nothing but rounding.
    inverse: Tensor = torch.linalg.pinv(centered.mT @ centered / len(x), rtol=1e-10, hermitian=True)
    return cross @ inverse @ cross.mT


def _fitted(x: Tensor, targets: Tensor) -> Tensor:
    """What the targets predict of x linearly, `(n, D)`: for indicators, the means of the classes less the mean."""
    centered = _centered(targets.to(x))
    inverse: Tensor = torch.linalg.pinv(centered.mT @ centered / len(x), rtol=1e-10, hermitian=True)
    return centered @ (inverse @ _cross(x, targets).mT)


def _without(columns: Tensor) -> Callable[[Tensor], Tensor]:
    """The projection onto what is orthogonal to `columns`, `(D, k)`."""
    if columns.shape[1] == 0:
        return lambda vectors: vectors
    basis, values, _ = torch.linalg.svd(columns, full_matrices=False)
    basis = basis[:, values > 1e-10 * values[0]]
    return lambda vectors: vectors - basis @ (basis.mT @ vectors)
