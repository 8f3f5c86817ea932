"""Positive semidefinite matrices: projection, roots, and convex training under the constraint Phi >= 0.

`minimize_psd` solves min F(Theta) where every row of Theta is svec of a positive semidefinite matrix. With P the
projection on the cone and Phi = P(Y), the point Y - P(Y) is normal to the cone at Phi, so

    R(Y) = Lambda (Y - P(Y)) + grad F(P(Y))

is a subgradient of the constrained objective at Phi, and ||Phi - Phi*|| <= ||R(Y)|| / Lambda: its norm is the
certificate, and its root is found by semismooth Newton steps, a handful from a good start. Where these do not make
progress, rounds of the augmented Lagrangian method (convex, so safe from anywhere) bring Y closer.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.models.convex import ConvexObjective, Point, Solution, check_solver_arguments, line_search, not_reached

ROUND_ACCURACY = 0.01  # how much a round of the augmented Lagrangian reduces its gradient
LARGEST = 10_000  # parameters, of the constrained solver
RAY_HALVINGS = 6  # of the search for the first point
SMALLEST_STEP = 1 / 32  # of the semismooth Newton method, before it hands over to the augmented Lagrangian


def project_psd(matrix: Tensor) -> Tensor:
    """The nearest positive semidefinite matrices to symmetric `(..., p, p)`, in Frobenius norm.

    >>> project_psd(torch.tensor([[1.0, 0.0], [0.0, -2.0]]))
    tensor([[1., 0.],
            [0., 0.]])
    """
    root = psd_root(matrix)
    return root @ root.mT


def psd_root(matrix: Tensor) -> Tensor:
    """R with R R' the projection of `matrix` `(..., p, p)`: the factorized parametrization of a cone."""
    values, vectors = torch.linalg.eigh(matrix)
    root: Tensor = vectors * values.clamp_min(0).sqrt().unsqueeze(-2)
    return root


@dataclass(frozen=True)
class Projection:
    """P(Y) in svec form `(heads, p (p + 1) / 2)`, with the eigenvalues `(heads, p)` and vectors of Y."""

    vector: Tensor
    values: Tensor
    vectors: Tensor


class PsdCone:
    """The cone of positive semidefinite p x p matrices in svec form, with its index tables made once."""

    def __init__(self, dimension: int, like: Tensor) -> None:
        size = (math.isqrt(8 * dimension + 1) - 1) // 2
        if size * (size + 1) // 2 != dimension:
            raise ModelError(f"{dimension} features are not svec of a symmetric matrix (1, 3, 6, 10, ...)")
        self.rows, self.columns = torch.triu_indices(size, size, device=like.device)
        off_diagonal = (self.rows != self.columns).to(like)
        self.scale = 1 + off_diagonal * (math.sqrt(2.0) - 1)
        order = torch.arange(dimension, device=like.device)
        self.position = torch.empty(size, size, dtype=torch.long, device=like.device)
        self.position[self.rows, self.columns] = order
        self.position[self.columns, self.rows] = order

    def project(self, vector: Tensor) -> Projection:
        """P of every row of `(heads, dimension)`."""
        values, vectors = torch.linalg.eigh((vector / self.scale)[:, self.position])
        matrix = (vectors * values.clamp_min(0).unsqueeze(-2)) @ vectors.mT
        return Projection(matrix[:, self.rows, self.columns] * self.scale, values, vectors)

    def faces(self, projection: Projection) -> tuple[list[Tensor], list[Tensor]]:
        """Where the projection moves: for each head a basis Q `(dimension, k)` and (1 - w) / w `(k,)`.

        With Y = V diag(l) V', the generalized derivative of P is U -> V (W * V' U V) V' with
        W_ij = ([l_i]_+ - [l_j]_+) / (l_i - l_j); Q holds svec of the pairs (i, j) with w = W_ij > 0.
        """
        low, high = projection.values[:, self.rows], projection.values[:, self.columns]  # ascending
        moving = high > 0
        stiffness = (-low).clamp_min(0) / high
        bases = []
        for vectors, kept in zip(projection.vectors, moving, strict=True):
            first, second = vectors[:, self.rows[kept]], vectors[:, self.columns[kept]]
            basis = first[self.rows] * second[self.columns] + second[self.rows] * first[self.columns]
            bases.append(basis * (self.scale.unsqueeze(-1) * (self.scale[kept] / 2)))
        return bases, [values[kept] for values, kept in zip(stiffness, moving, strict=True)]


_Lagrangian = tuple[Point, Projection, Tensor]  # F, the projection of X - penalty Theta, and the gradient


@dataclass(frozen=True)
class _State:
    """Y, its projection, F there, R(Y) and its norm."""

    shifted: Tensor
    projection: Projection
    point: Point
    subgradient: Tensor
    residual: Tensor


def minimize_psd(
    objective: ConvexObjective, start: Tensor | None = None, tolerance: float = 1e-8, max_iterations: int = 300
) -> Solution:
    """Minimize F with every row of Theta svec of a positive semidefinite matrix.

    The dimension of the features is p (p + 1) / 2; `tolerance` is on the norm of the subgradient R; `max_iterations`
    counts Newton steps, those inside the augmented Lagrangian rounds included. Theta is feasible. Raises ModelError if
    the tolerance is not reached, the problem is too large, or the features are not svec of matrices.
    """
    check_solver_arguments(tolerance, max_iterations)
    if objective.parameters > LARGEST:
        raise ModelError(
            f"the constrained solver holds matrices of the square of the {objective.parameters} parameters, at most "
            f"{LARGEST}: solve without the constraint and project, or train in mini-batches"
        )
    cone = PsdCone(objective.shape[1], objective.features)
    state = _first_state(objective, cone, start)
    penalty = 10 * objective.quadratic
    used = 0
    while state.residual > tolerance:
        if used >= max_iterations:
            raise not_reached(state.residual, tolerance, max_iterations)
        used += 1
        better = _newton_step(objective, cone, state)
        if better is None:
            better, steps = _lagrangian_round(objective, cone, state, penalty, max_iterations - used)
            penalty *= 10
            used += steps
        state = better
    return Solution(state.point.theta, objective.certify(state.point, state.residual, used, tolerance))


def _state(objective: ConvexObjective, cone: PsdCone, shifted: Tensor) -> _State:
    projection = cone.project(shifted)
    point = objective.at(projection.vector)
    subgradient = torch.add(point.gradient, shifted - projection.vector, alpha=objective.quadratic)
    return _State(shifted, projection, point, subgradient, subgradient.norm())


def _first_state(objective: ConvexObjective, cone: PsdCone, start: Tensor | None) -> _State:
    """Around `start`, with the normal part its gradient suggests; or the best point on the first descent ray."""
    if start is not None:
        feasible = cone.project(start.detach().to(objective.features)).vector
        return _state(objective, cone, feasible - objective.at(feasible).gradient / objective.quadratic)
    shifted = -objective.at(objective.zeros()).gradient / objective.quadratic
    ray = cone.project(shifted).vector
    scores = objective.features @ ray.mT
    constant = (objective.linear * ray).sum()
    square = objective.quadratic * ray.square().sum()
    weights = 1.0 if objective.weights is None else objective.weights.unsqueeze(-1)

    def along(fraction: float) -> tuple[float, Tensor]:
        slopes = objective.head(fraction * scores).slopes * weights
        return fraction, (slopes * scores).sum() + constant + fraction * square

    fraction = line_search(along, along(0.0)[1], RAY_HALVINGS)
    return _state(objective, cone, fraction * shifted)


def _newton_step(objective: ConvexObjective, cone: PsdCone, state: _State) -> _State | None:
    """One semismooth Newton step on R, halved until its norm falls; none if it hardly does.

    The step moves Phi within the face its positive eigenvalues span: with Q the directions where the projection
    moves at all and w in (0, 1] how much it does, the Newton equation is, for the move d = Q e of Phi,

        (Q' hess F Q + Lambda (1 - w) / w) e = -Q' R,       Lambda dY = Lambda d - R - hess F d,

    which is symmetric and small when the solution has low rank.
    """
    bases, stiffness = cone.faces(state.projection)
    residual = [-(row @ basis) for row, basis in zip(state.subgradient, bases, strict=True)]
    system = objective.hessian(state.point, bases)
    system.diagonal().add_(torch.cat(stiffness), alpha=objective.quadratic)
    moves = torch.cholesky_solve(torch.cat(residual).unsqueeze(-1), torch.linalg.cholesky(system)).squeeze(-1)
    parts = torch.split(moves, [basis.shape[1] for basis in bases])
    move = torch.stack([basis @ part for basis, part in zip(bases, parts, strict=True)])
    pull = state.subgradient + objective.hessian_vector(state.point, move)
    step = move - pull / objective.quadratic
    fraction = 1.0
    while fraction >= SMALLEST_STEP:
        new = _state(objective, cone, state.shifted + fraction * step)
        if new.residual <= (1 - fraction / 10) * state.residual:
            return new
        fraction /= 2
    return None


def _lagrangian_round(
    objective: ConvexObjective, cone: PsdCone, state: _State, penalty: float, max_steps: int
) -> tuple[_State, int]:
    """Minimize F(Theta) + ||P(X - penalty Theta)||^2 / (2 penalty) by Newton, then move the multiplier X."""
    heads, size = objective.shape
    multiplier = objective.quadratic * (state.projection.vector - state.shifted)

    def lagrangian(theta: Tensor) -> _Lagrangian:
        point = objective.at(theta)
        outside = cone.project(multiplier - penalty * theta)
        return point, outside, point.gradient - outside.vector

    here = lagrangian(state.point.theta)
    wanted = ROUND_ACCURACY * here[2].norm()
    steps = 0
    while here[2].norm() > wanted and steps < max_steps:
        point, outside, gradient = here
        hessian = objective.hessian(point).view(heads, size, heads, size)
        for head, (basis, stiffness) in enumerate(zip(*cone.faces(outside), strict=True)):
            hessian[head, :, head] += (basis * (penalty / (1 + stiffness))) @ basis.mT
        factor = torch.linalg.cholesky(hessian.view(heads * size, heads * size))
        step = torch.cholesky_solve(-gradient.reshape(-1, 1), factor).view(heads, size)

        def along(fraction: float, origin: Tensor = point.theta, step: Tensor = step) -> tuple[_Lagrangian, Tensor]:
            new = lagrangian(origin + fraction * step)
            return new, (new[2] * step).sum()

        here = line_search(along, (gradient * step).sum())
        steps += 1
    feasible = cone.project(here[0].theta).vector
    return _state(objective, cone, feasible - here[1].vector / objective.quadratic), steps
