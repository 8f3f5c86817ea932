"""Alternating descent with exact inner solves: both opponents answer exactly, then the filter takes one step.

The filter's step is a quasi-Newton one (L-BFGS), which is allowed because Phi is differentiable with an exact
gradient; plain gradient steps find the same points more slowly.
"""

from torch import nn

from ppspeech.errors import ModelError
from ppspeech.filters.flat import FlatFilter
from ppspeech.filters.problem import MinimaxProblem
from ppspeech.filters.solvers.quasi_newton import StepMemory
from ppspeech.filters.solvers.result import FilterCertificate, Result

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
    certificate = FilterCertificate(
        gradient_norm=float(gradient.norm()),
        decrease=history[-2] - history[-1] if len(history) > 1 else 0.0,
        inner_residual=here.residual,
        iterations=len(history) - 1,
        converged=converged,
    )
    return Result(module, tuple(history), certificate, "alternating")
