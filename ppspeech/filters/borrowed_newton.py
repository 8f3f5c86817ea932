"""Newton's method with a borrowed Hessian: inner problems whose features have moved a little are solved anew.

A line search asks for the best response at many filters close to one another. Building and factoring a Hessian of
m = heads x (features + 1) parameters takes about n m^2 operations, a product with it only n m. So the newest factor,
often that of a nearby filter, preconditions conjugate gradients on the Hessian that is wanted, and a handful of
products make a Newton step. The answer is as exact as any other: the norm of its gradient certifies it.
"""

from collections.abc import Callable
from functools import cached_property
from typing import cast

import torch
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.models import ConvexObjective, Point, Solution, check_solver_arguments, not_reached

Solve = Callable[[Tensor], Tensor]  # the solution of Hessian step = right-hand side, both `(heads, features + 1)`

STEPS = 200
SIMILAR = 0.1  # a Newton decrement below which the next step uses the same Hessian
PRODUCT = 15  # so many products for a parameter cost as much as a Hessian, as measured
FLAT = 0.1  # of the slope of a step may be left where the line search ends
TRIALS = 30  # of a line search


class Factored:
    """Solves systems with a Hessian that is made and factored when it is first needed. `hessian` makes it, `(m, m)`.
    Raises ModelError when used, if the features are so large that the Hessian is not positive definite in 64 bit.
    """

    def __init__(self, hessian: Callable[[], Tensor]) -> None:
        self._hessian = hessian

    @cached_property
    def _factor(self) -> Tensor:
        factor, failed = torch.linalg.cholesky_ex(self._hessian())
        if failed:
            raise ModelError("rounding hides the ridge in the Hessian: scale the features down, or raise ridge")
        return cast(Tensor, factor)

    def __call__(self, right: Tensor) -> Tensor:
        """The step for a right-hand side, both `(heads, features + 1)`."""
        return torch.cholesky_solve(right.reshape(-1, 1), self._factor).view_as(right)


def minimize_with(
    objective: ConvexObjective,
    newton: Callable[[Tensor], Solve],
    start: Tensor,
    borrowed: Solve | None,
    tolerance: float,
) -> tuple[Solution, Solve]:
    """Minimize F from a start until the gradient norm is at most `tolerance`.

    `newton` makes a solver with the Hessian at some parameters; `borrowed` has that of a similar problem. Returns the
    minimizer with its certificate, and the solver that was used last. Raises ModelError if the tolerance is not
    reached.
    """
    check_solver_arguments(tolerance, STEPS)
    point, solve, similar = objective.at(start), borrowed, borrowed is not None
    residual = point.gradient.norm()
    for iteration in range(STEPS + 1):
        if residual <= tolerance:
            found = Solution(point.theta, objective.certify(point, residual, iteration, tolerance))
            return found, solve or newton(point.theta)
        step = _conjugate_gradients(objective, point, solve, tolerance) if similar and solve is not None else None
        if step is None:
            if similar and iteration == 0:
                point = _scaled(objective, point)
            solve = newton(point.theta)
            step = solve(-point.gradient)
        # Where F hardly falls any more its Hessian hardly changes: the next step can use the same one.
        similar = bool((point.gradient * step).sum().abs() <= SIMILAR**2)
        point = _along(objective, point, step)
        residual = point.gradient.norm()
    raise not_reached(residual, tolerance, STEPS)


def _scaled(objective: ConvexObjective, point: Point) -> Point:
    """The best smaller multiple of parameters that have become wrong: Newton's method takes long to undo margins."""
    return _along(objective, point, -point.theta) if (point.gradient * point.theta).sum() > 0 else point


def _conjugate_gradients(objective: ConvexObjective, point: Point, solve: Solve, tolerance: float) -> Tensor | None:
    """A Newton step, as exact as its gradient is small; None if that takes more work than factoring the Hessian."""
    step = torch.zeros_like(point.gradient)
    left = -point.gradient
    residual = left.norm()
    wanted = (residual * residual.sqrt().clamp(1e-6, 0.1)).clamp_min(0.5 * tolerance)
    products = 1 + objective.parameters // PRODUCT
    direction = eased = solve(left)
    square = (left * eased).sum()
    for _ in range(products):
        product = objective.hessian_vector(point, direction)
        size = square / (direction * product).sum()
        step = step + size * direction
        left = left - size * product
        if left.norm() <= wanted:
            return step
        eased = solve(left)
        new_square = (left * eased).sum()
        direction, square = eased + (new_square / square) * direction, new_square
    return None


def _along(objective: ConvexObjective, point: Point, step: Tensor) -> Point:
    """Where F has all but stopped falling along a step, which may be longer than the step.

    A logistic loss falls like exp(-margin), along which a Newton step always goes one unit: without longer ones it
    takes as many steps as the loss has factors of e to fall.
    """
    slope = (point.gradient * step).sum()
    low, high, fraction = 0.0, torch.inf, 1.0
    for _ in range(TRIALS):
        found = objective.at(point.theta + fraction * step)
        left = (found.gradient * step).sum()
        if left.abs() <= FLAT * slope.abs():
            break
        low, high = (low, fraction) if left > 0 else (fraction, high)
        fraction = 2 * low if high == torch.inf else (low + high) / 2
    return found
