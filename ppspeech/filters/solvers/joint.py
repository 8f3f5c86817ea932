"""Algorithm 2 of Hamm 2015: the joint form of Kiwiel's method, for a minimax problem and a filter on autograd."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from ppspeech.filters.borrowed_newton import Solve
from ppspeech.filters.problem import Evaluation, FilterCertificate, FlatFilter, MinimaxProblem, Result
from ppspeech.filters.solvers.kiwiel import KiwielOptions, Piece, descend
from ppspeech.filters.tasks import SetTask, Solution, Task

CONTRACTION = 0.7  # the chord method must shrink the decrement so much a step, or q is too long
SMALL = 1e-6  # decrement at which a linearized response is exact: the value is then right to 1e-12


def solve_kiwiel(
    problem: MinimaxProblem,
    module: nn.Module,
    iterations: int = 100,
    options: KiwielOptions | None = None,
    tau: float = 1e-3,
    inner_tolerance: float = 1e-8,
) -> Result:
    """Minimize Phi from where the filter is; the filter is changed in place and returned. Phi never goes up.

    The module becomes double precision. `tau` > 0 is the first step scale; `inner_tolerance` is on the gradient norm of
    every inner solve.
    """
    flat = FlatFilter(module.double())
    joint = Joint(problem, flat, inner_tolerance)
    here, descent = descend(joint, flat.vector(), iterations, options, tau)
    flat.load_(here.u)
    slope, steps = float(problem.gradient(here).norm()), len(descent.history) - 1
    certificate = FilterCertificate(slope, descent.promised, here.residual, steps, descent.converged)
    return Result(module, descent.history, certificate, "kiwiel")


class Joint:
    """The functions f, Phi and Phi^l of Algorithm 2: max over the adversaries v, min over the aggregators w."""

    def __init__(self, problem: MinimaxProblem, flat: FlatFilter, tolerance: float = 1e-8) -> None:
        self.problem, self.flat, self.tolerance = problem, flat, tolerance
        self._factors: tuple[Evaluation, list[Linearized]] | None = None

    def evaluate(self, u: Tensor, near: Evaluation | None) -> Evaluation:
        """Phi(u) by exact inner solves."""
        if near is not None and self._factors is not None and self._factors[0] is near:
            near = self._with_own_hessians(near, [response.solve for response in self._factors[1]])
        return self.problem.evaluate(self.flat, u, near, self.tolerance)

    def piece(self, at: Evaluation) -> Piece:
        """f_priv(u, v*) and rho f_util(u, w*) with their gradients by u; the ridge on u goes with the latter."""
        shares = self.problem.shares([s.loss for s in at.private])
        return self._piece(at, [s.parameters for s in at.private], shares, [s.parameters for s in at.utility])

    def linearized(self, at: Evaluation, q: Tensor) -> tuple[Tensor, Piece] | None:
        """Phi^l(q) with its inner maximum and minimum found exactly, and the piece of their solutions."""
        moved = at.push(q)
        answers = []
        for response in self._responses(at):
            answer = response(moved)
            if answer is None:
                return None
            answers.append(answer)
        private, utility = answers[: len(self.problem.private)], answers[len(self.problem.private) :]
        shares = self.problem.shares([loss for _, loss in private])
        piece = self._piece(at, [v for v, _ in private], shares, [w for w, _ in utility])
        value = self.problem.value(at.u, [loss for _, loss in private], [loss for _, loss in utility])
        return value + self.problem.ridge * (at.u * q).sum(), piece

    def _piece(self, at: Evaluation, private: Sequence[Tensor], shares: Tensor, utility: Sequence[Tensor]) -> Piece:
        problem = self.problem
        quadratic = problem.ridge / 2 * at.u.square().sum()
        return Piece(
            max_value=problem.found(_losses(problem.private, private, at.features), shares),
            max_gradient=at.pull(problem.private_slope(private, at.features, shares)),
            min_value=problem.rho * _total(problem.utility, utility, at.features) + quadratic,
            min_gradient=at.pull(problem.utility_slope(utility, at.features)) + problem.ridge * at.u,
        )

    @staticmethod
    def _with_own_hessians(near: Evaluation, solvers: Sequence[Solve]) -> Evaluation:
        """The same point, its solutions with the Hessians there in place of those they were found with."""
        own = [replace(s, newton=newton) for s, newton in zip((*near.private, *near.utility), solvers, strict=True)]
        return replace(near, private=tuple(own[: len(near.private)]), utility=tuple(own[len(near.private) :]))

    def _responses(self, at: Evaluation) -> "list[Linearized]":
        """The linearized inner problems at a point, factored once for all directions tried there."""
        if self._factors is None or self._factors[0] is not at:
            tasks = (*self.problem.private, *self.problem.utility)
            pairs = zip(tasks, (*at.private, *at.utility), strict=True)
            self._factors = at, [Linearized(task, solution, at.features) for task, solution in pairs]
        return self._factors[1]


class Linearized:
    """The inner problem along a direction: min over v of loss(u, v) + <grad_u loss(u, v), q>.

    With s = v [g, 1] the scores and s' = v [g', 0] how they move, g' = J q, this is sum_i c_i (l_i(s_i) + <l_i'(s_i),
    s_i'>) + (ridge / 2) |v|^2: not convex, but close to the convex loss for short q. It is solved from v* by the chord
    method: Newton steps with the Hessian of the loss at v*, factored once. `solution` is the best response at u, with
    features g(x; u), `(observations, features)`.
    """

    def __init__(self, task: Task, solution: Solution, features: Tensor) -> None:
        self.task, self.start = task, solution.parameters
        self.objective = task.objective(features)
        self.solve = task.newton(self.start, features)

    def __call__(self, moved: Tensor, most: int = 40) -> tuple[Tensor, Tensor] | None:
        """The minimizer near v* and the value there, for g' `(observations, features)`; None if q is too long.

        The steps contract where the loss and its linearization are close. Where they stop contracting, there is no
        minimum near v* that could be certified.
        """
        objective = self.objective
        assert objective.weights is not None
        shares = objective.weights.unsqueeze(-1)
        moved = self.task.seen(moved) if isinstance(self.task, SetTask) else moved
        wide, wide_moved = objective.features, functional.pad(moved, (0, 1))
        v, before = self.start, torch.inf
        for _ in range(most):
            expansion = objective.head(wide @ v.mT)
            scores_moved = wide_moved @ v.mT
            slopes = shares * expansion.slopes
            bent = slopes + shares * expansion.curve(scores_moved)
            gradient = bent.mT @ wide + slopes.mT @ wide_moved + objective.quadratic * v
            step = self.solve(gradient)
            decrement = float((step * gradient).sum().clamp_min(0).sqrt())
            if decrement <= SMALL:
                losses = expansion.losses() @ objective.weights + (slopes * scores_moved).sum()
                return v, losses + v.square().sum() * (objective.quadratic / 2)
            if not decrement <= CONTRACTION * before:
                return None
            v, before = v - step, decrement
        return None


def _total(tasks: Sequence[Task], parameters: Sequence[Tensor], features: Tensor) -> Tensor:
    """The weighted losses at some parameters."""
    losses = _losses(tasks, parameters, features)
    return torch.stack([task.importance * loss for task, loss in zip(tasks, losses, strict=True)]).sum()


def _losses(tasks: Sequence[Task], parameters: Sequence[Tensor], features: Tensor) -> list[Tensor]:
    return [task.loss(v, features) for task, v in zip(tasks, parameters, strict=True)]
