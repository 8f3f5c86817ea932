"""Full-batch training of convex models to a certified minimum, in double precision.

Logistic, softmax, Huber-SVM and large-margin Gaussian models share one structure: the loss of an example is a
convex function of its *scores* Theta phi, with phi the features of the example and Theta `(heads, features)` the
parameters. Their objective is the sum form

    F(Theta) = sum_i w_i f_i(Theta phi_i) + <B, Theta> + (Lambda / 2) ||Theta||^2,       Lambda > 0,

where the linear term B and Lambda come from outside: a trace regularizer, or the noise and the strength that a
privacy mechanism asks for. The gradient and Hessian-vector products are two matrix products each.

F is Lambda-strongly convex, so a small gradient *is* a certificate: ||Theta - Theta*|| <= ||grad F(Theta)|| / Lambda.
`minimize` returns a point with its certificate, or refuses; it never returns something almost good.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

import torch
from torch import Tensor

from ppspeech.errors import ModelError

Found = TypeVar("Found")

LARGEST_EXPLICIT = 2000  # parameters: beyond it Newton's systems are solved by conjugate gradients


@dataclass(frozen=True)
class Expansion:
    """The losses of n examples around their scores, to second order.

    Attributes:
        losses: gives f_i, `(n,)`; a function, because some solvers need slopes only.
        slopes: gradients of f_i by the scores, `(n, heads)`.
        curve: maps score directions `(..., n, heads)` to (generalized) Hessian products of the same shape.
    """

    losses: Callable[[], Tensor]
    slopes: Tensor
    curve: Callable[[Tensor], Tensor]


Head = Callable[[Tensor], Expansion]  # scores `(n, heads)` to an expansion; the labels of the n examples are inside


@dataclass(frozen=True)
class Certificate:
    """How good a returned point is.

    Attributes:
        residual: norm of the gradient there (of the least-norm subgradient found, under a constraint).
        distance: bound on the distance to the exact minimizer, residual / Lambda.
        gap: bound on the excess objective, residual^2 / (2 Lambda), plus what smoothing a hinge costs.
        converged: always true on what `minimize` returns; kept so that a record of it reads by itself.
    """

    residual: float
    distance: float
    gap: float
    objective: float
    iterations: int
    converged: bool


@dataclass(frozen=True)
class Solution:
    """A minimizer `(heads, features)` and its certificate."""

    theta: Tensor
    certificate: Certificate


@dataclass(frozen=True)
class Point:
    """F around one Theta: its gradient, and the expansion of the losses that its value and Hessian need."""

    theta: Tensor
    gradient: Tensor
    expansion: Expansion


class ConvexObjective:
    """F of the module docstring, held in double precision on the device of the features `(n, features)`.

    The linear term B is `(heads, features)`, and terms from several sources are simply added; weights w_i >= 0 `(n,)`
    may be 1 / n_s for per-speaker averages. Raises ModelError for no examples, values that are not finite, a bad shape,
    or Lambda <= 0.
    """

    def __init__(
        self,
        head: Head,
        features: Tensor,
        heads: int,
        quadratic: float,
        linear: Tensor | None = None,
        weights: Tensor | None = None,
    ) -> None:
        if features.ndim != 2 or features.shape[0] == 0:
            raise ModelError(f"features must be (n >= 1, features), got {tuple(features.shape)}")
        if not (quadratic > 0 and math.isfinite(quadratic)):
            raise ModelError(f"quadratic (Lambda) must be > 0 and finite, got {quadratic}")
        self.head = head
        self.features = features.detach().double()
        self.shape = (heads, features.shape[1])
        self.quadratic = float(quadratic)
        given = self._checked(linear, self.shape, "linear")
        self.linear = self.zeros() if given is None else given
        self.weights = self._checked(weights, features.shape[:1], "weights")
        if not self.features.isfinite().all():
            raise ModelError("features hold values that are not finite: clean or clip them first")
        if self.weights is not None and (self.weights < 0).any():
            raise ModelError("weights must be >= 0")

    def _checked(self, term: Tensor | None, shape: tuple[int, ...], name: str) -> Tensor | None:
        if term is None:
            return None
        if tuple(term.shape) != tuple(shape) or not term.isfinite().all():
            raise ModelError(f"{name} must be finite and of shape {tuple(shape)}, got {tuple(term.shape)}")
        return term.detach().to(self.features)

    @property
    def parameters(self) -> int:
        """heads x features."""
        return self.shape[0] * self.shape[1]

    def zeros(self) -> Tensor:
        """Theta = 0."""
        return self.features.new_zeros(self.shape)

    def at(self, theta: Tensor) -> Point:
        """The gradient at Theta, and what the value and Hessian products there need."""
        expansion = self.head(self.features @ theta.mT)
        slopes = expansion.slopes if self.weights is None else expansion.slopes * self.weights.unsqueeze(-1)
        outer = torch.add(self.linear, theta, alpha=self.quadratic)
        return Point(theta, torch.addmm(outer, slopes.mT, self.features), expansion)

    def value(self, point: Point) -> Tensor:
        """F at a point, a tensor of no dimensions."""
        losses = point.expansion.losses()
        total = losses.sum() if self.weights is None else losses @ self.weights
        return total + (self.linear * point.theta).sum() + point.theta.square().sum() * (self.quadratic / 2)

    def value_and_gradient(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """F and its gradient `(heads, features)` at Theta."""
        point = self.at(theta)
        return self.value(point), point.gradient

    def hessian_vector(self, point: Point, direction: Tensor) -> Tensor:
        """The (generalized) Hessian at a point times a direction, both `(heads, features)`."""
        curved = point.expansion.curve(self.features @ direction.mT)
        if self.weights is not None:
            curved = curved * self.weights.unsqueeze(-1)
        return torch.addmm(direction, curved.mT, self.features, beta=self.quadratic)

    def hessian(self, point: Point, bases: Sequence[Tensor] | None = None) -> Tensor:
        """The Hessian as a matrix over the flattened parameters, `(parameters, parameters)`.

        Examples whose loss is flat or linear where they are (most, for a hinge) cost nothing. `bases` restrict every
        head's row of Theta to an orthonormal basis `(features, k)`; none means all of the space.
        """
        heads = self.shape[0]
        units = torch.eye(heads, dtype=self.features.dtype, device=self.features.device).unsqueeze(1)
        curvature = point.expansion.curve(units.expand(heads, len(self.features), heads))  # (heads, n, heads)
        if self.weights is not None:
            curvature = curvature * self.weights.unsqueeze(-1)
        curved = curvature.ne(0).any(-1).any(0)
        rows = curved.nonzero().squeeze(-1)
        features, curvature = self.features[rows], curvature[:, rows].unsqueeze(-1)
        views = [features] * heads if bases is None else [features @ basis for basis in bases]
        ends = list(accumulate((view.shape[1] for view in views), initial=0))
        hessian = features.new_empty(ends[-1], ends[-1])
        for row in range(heads):
            scaled = torch.cat([views[head] * curvature[row, :, head] for head in range(row, heads)], dim=-1)
            strip = views[row].mT @ scaled
            hessian[ends[row] : ends[row + 1], ends[row] :] = strip
            hessian[ends[row] :, ends[row] : ends[row + 1]] = strip.mT
        hessian.diagonal().add_(self.quadratic)
        return hessian

    def certify(self, point: Point, residual: Tensor, iterations: int, tolerance: float) -> Certificate:
        """The certificate of a point where a (sub)gradient has the norm `residual`."""
        size = float(residual)
        return Certificate(
            residual=size,
            distance=size / self.quadratic,
            gap=size**2 / (2 * self.quadratic),
            objective=float(self.value(point)),
            iterations=iterations,
            converged=size <= tolerance,
        )


def minimize(
    objective: ConvexObjective, start: Tensor | None = None, tolerance: float = 1e-8, max_iterations: int = 200
) -> Solution:
    """Minimize F by damped Newton steps until the gradient norm is at most `tolerance`.

    Systems are solved exactly up to `LARGEST_EXPLICIT` parameters, else by conjugate gradients. The method is
    deterministic and converges from any start, because F is strongly convex with a Lipschitz gradient. `start` is 0 by
    default. Raises ModelError if the tolerance is not reached: nothing is returned, so nothing can be released by
    mistake.
    """
    check_solver_arguments(tolerance, max_iterations)
    point = objective.at(objective.zeros() if start is None else start.detach().to(objective.features))
    residual = point.gradient.norm()
    for iteration in range(max_iterations + 1):
        if residual <= tolerance:
            return Solution(point.theta, objective.certify(point, residual, iteration, tolerance))
        if objective.parameters <= LARGEST_EXPLICIT:
            factor = torch.linalg.cholesky(objective.hessian(point))
            step = torch.cholesky_solve(-point.gradient.view(-1, 1), factor).view(objective.shape)
        else:
            step = _conjugate_gradients(objective, point, residual)
        point = _along(objective, point, step)
        residual = point.gradient.norm()
    raise not_reached(residual, tolerance, max_iterations)


def check_solver_arguments(tolerance: float, max_iterations: int) -> None:
    """Refuse a tolerance or an iteration limit that no solver can meet."""
    if not tolerance > 0 or max_iterations < 1:
        raise ModelError(f"tolerance must be > 0 and max_iterations >= 1, got {tolerance} and {max_iterations}")


def not_reached(residual: Tensor, tolerance: float, max_iterations: int) -> ModelError:
    """The refusal of a solver that could not reach its tolerance."""
    return ModelError(
        f"the solver stopped at a gradient norm of {float(residual):.3g} and was asked for {tolerance:.3g} "
        f"within {max_iterations} iterations: raise max_iterations, tolerance or Lambda, or scale the features"
    )


def line_search(evaluate: Callable[[float], tuple[Found, Tensor]], slope: Tensor, halvings: int = 30) -> Found:
    """What `evaluate` finds at the fraction of a step, at most 1, where a convex function has all but stopped falling.

    Hinges make the functions here piecewise quadratic, where going to the minimum along a step takes far fewer steps
    than stopping at the first sufficient decrease. `evaluate` gives what is there and the slope along the step; `slope`
    is the one at 0, negative.
    """
    flat = 0.1 * slope.abs()
    low, high, fraction = 0.0, 1.0, 1.0
    for _ in range(halvings):
        found, slope = evaluate(fraction)
        if slope.abs() <= flat or (slope < 0 and fraction == 1):
            break
        low, high = (low, fraction) if slope > 0 else (fraction, high)
        fraction = (low + high) / 2
    return found


def _along(objective: ConvexObjective, point: Point, step: Tensor) -> Point:
    """The point that the line search finds along a Newton step."""

    def evaluate(fraction: float) -> tuple[Point, Tensor]:
        new = objective.at(point.theta + fraction * step)
        return new, (new.gradient * step).sum()

    return line_search(evaluate, (point.gradient * step).sum())


def _conjugate_gradients(objective: ConvexObjective, point: Point, residual: Tensor) -> Tensor:
    """Solve Hessian step = -gradient to a relative accuracy that tightens as the gradient shrinks."""
    wanted = residual * residual.sqrt().clamp(1e-6, 0.1)
    step = torch.zeros_like(point.gradient)
    left = -point.gradient
    direction, square = left, left.square().sum()
    for _ in range(10 * LARGEST_EXPLICIT):
        product = objective.hessian_vector(point, direction)
        size = square / (direction * product).sum()
        step = step + size * direction
        left = left - size * product
        new_square = left.square().sum()
        if new_square.sqrt() <= wanted:
            break
        direction, square = left + (new_square / square) * direction, new_square
    return step
