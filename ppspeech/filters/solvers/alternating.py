"""Alternating descent with exact inner solves: both opponents answer exactly, then the filter takes one step.

The filter's step is a quasi-Newton one (L-BFGS), which is allowed because Phi is differentiable with an exact
gradient; plain gradient steps find the same points more slowly.
"""

from collections import deque

from torch import Tensor, nn

from ppspeech.errors import ModelError
from ppspeech.filters.problem import FilterCertificate, FlatFilter, MinimaxProblem, Result


class StepMemory:
    """Pairs of steps s and gradient changes y, and the direction they suggest (Nocedal and Wright, algorithm 7.4).

    Phi is not convex, so a pair may show negative curvature; it is damped (Powell's rule), so that every direction is
    one of descent. The last `size` pairs are kept.
    """

    def __init__(self, size: int = 20) -> None:
        self._pairs: deque[tuple[Tensor, Tensor, Tensor]] = deque(maxlen=size)

    def __len__(self) -> int:
        return len(self._pairs)

    def clear(self) -> None:
        """Forget everything: the next direction is the steepest."""
        self._pairs.clear()

    def learn(self, step: Tensor, change: Tensor) -> None:
        """Remember a step and how the gradient changed along it, `(size,)` each."""
        scale = self._scale()  # the curvature 1 / scale is believed where the pair shows less than a fifth of it
        believed = step.square().sum() / scale
        shown = (step * change).sum()
        if shown < 0.2 * believed:
            keep = 0.8 * believed / (believed - shown)
            change = keep * change + (1 - keep) * step / scale
        self._pairs.append((step, change, (step * change).sum()))

    def direction(self, gradient: Tensor) -> Tensor:
        """A direction of descent, `(size,)`: minus an estimated inverse Hessian times the gradient."""
        left = gradient.clone()
        shares = []
        for step, change, curvature in reversed(self._pairs):
            share = (step * left).sum() / curvature
            left = left - share * change
            shares.append(share)
        left = left * self._scale()
        for (step, change, curvature), share in zip(self._pairs, reversed(shares), strict=True):
            left = left + (share - (change * left).sum() / curvature) * step
        return -left

    def _scale(self) -> Tensor | float:
        """The inverse curvature along the last step."""
        if not self._pairs:
            return 1.0
        _, change, curvature = self._pairs[-1]
        return curvature / change.square().sum()


ENOUGH = 1e-4  # share of the promised decrease that a step must keep
HALVINGS = 30
FIRST_STEP = 0.1  # of the length of u, or of 1


def solve_alternating(
    problem: MinimaxProblem,
    module: nn.Module,
    iterations: int = 100,
    tolerance: float = 1e-6,
    inner_tolerance: float = 1e-8,
) -> Result:
    """Minimize Phi from where the filter is; the filter is changed in place and returned. Phi never goes up.

    The module becomes double precision. It is converged when a step lowers Phi by no more than `tolerance`, relative to
    1 + |Phi|; `inner_tolerance` is on the gradient norm of every inner solve. Raises ModelError for no iterations or a
    tolerance <= 0.
    """
    if iterations < 1 or not tolerance > 0:
        raise ModelError(f"iterations must be >= 1 and tolerance > 0, got {iterations} and {tolerance}")
    flat = FlatFilter(module.double())
    here = problem.evaluate(flat, flat.vector(), tolerance=inner_tolerance)
    gradient = problem.gradient(here)
    memory = StepMemory()
    history = [float(here.value)]
    converged = False
    while len(history) <= iterations and not converged:
        direction = memory.direction(gradient)
        if len(memory) == 0:
            length = max(float(here.u.norm()), 1.0)  # a filter that is zero must be able to leave
            direction = direction * min(1.0, FIRST_STEP * length / max(float(gradient.norm()), 1e-300))
        slope = float((gradient * direction).sum())
        fraction = 1.0
        for _ in range(HALVINGS):
            there = problem.evaluate(flat, here.u + fraction * direction, here, inner_tolerance)
            if there.value - here.value <= ENOUGH * fraction * slope:
                break
            fraction /= 2
        else:
            if len(memory) == 0:
                break  # not even the steepest direction helps: rounding is all that is left
            memory.clear()
            continue
        new_gradient = problem.gradient(there)
        memory.learn(there.u - here.u, new_gradient - gradient)
        here, gradient = there, new_gradient
        history.append(float(here.value))
        converged = history[-2] - history[-1] <= tolerance * (1 + abs(history[-1]))
    flat.load_(here.u)
    decrease = history[-2] - history[-1] if len(history) > 1 else 0.0
    certificate = FilterCertificate(float(gradient.norm()), decrease, here.residual, len(history) - 1, converged)
    return Result(module, tuple(history), certificate, "alternating")
