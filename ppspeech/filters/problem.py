"""The minimax problem (9) of Hamm 2015: its value by exact inner solves, and its gradient by the envelope theorem.

Definition 4.1 in docs/theory/filters.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from ppspeech.errors import ModelError
from ppspeech.filters.tasks import ReconstructionTask, SetTask, Solution, Task


class FlatFilter:
    """g(x; u) of Hamm 2015: a filter with its trainable parameters laid out in one vector.

    The module maps `(n, ...)` to `(n, features)` or `(n, frames, features)`; parameters that do not require gradients
    stay as they are. Raises ModelError if nothing in it can be trained.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self._free = {name: value for name, value in module.named_parameters() if value.requires_grad}
        if not self._free:
            raise ModelError(f"{type(module).__name__} has no parameter that requires gradients: nothing to learn")

    @property
    def size(self) -> int:
        """The length of u."""
        return sum(value.numel() for value in self._free.values())

    def vector(self) -> Tensor:
        """u as it is in the module, `(size,)`."""
        return parameters_to_vector(self._free.values()).detach().clone()

    def __call__(self, u: Tensor, inputs: Tensor) -> Tensor:
        """The filtered inputs with these parameters, one observation a row: `(observations, features)`."""
        sizes = [value.numel() for value in self._free.values()]
        parts = torch.split(u, sizes)
        parameters = {name: part.view_as(old) for (name, old), part in zip(self._free.items(), parts, strict=True)}
        filtered: Tensor = functional_call(self.module, parameters, (inputs,))
        return filtered.flatten(0, -2)

    def load_(self, u: Tensor) -> None:
        """Write u into the module."""
        vector_to_parameters(u, self._free.values())


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Phi at one u, and what was found on the way."""

    u: Tensor
    value: Tensor
    features: Tensor  # g(x; u), `(observations, features)`
    private: tuple[Solution, ...]  # the adversaries' best responses v*
    utility: tuple[Solution, ...]  # the aggregators' best responses w*
    pull: Callable[[Tensor], Tensor]  # gradient by the features to gradient by u: the transposed Jacobian
    push: Callable[[Tensor], Tensor]  # direction in u to how the features move: the Jacobian

    @property
    def residual(self) -> float:
        """The largest gradient norm that an inner solve was left with."""
        return max(solution.certificate.residual for solution in (*self.private, *self.utility))


class MinimaxProblem:
    """min over u of Phi(u) = max_v f_priv(u, v) - rho max_w (-f_util(u, w))     (eq. 9 and 11).

    The signs are the paper's: f_priv is *minus* the adversary's loss, so that what it gains the contributors lose;
    f_util is *plus* the aggregator's loss. Written with losses,

        Phi(u) = - sum_a importance_a min_v loss_a(u, v) + rho sum_t importance_t min_w loss_t(u, w) + ridge / 2 |u|^2:

    a filter is good if the best adversary does badly and the best aggregator does well; a larger rho favors the task.
    This is the difference of two max functions ("min-diff-max"), not the min-max of one function: in u the adversary's
    part is a maximum and the aggregator's a minimum.

    The inner problems are strongly convex, so v* and w* are unique and Phi is differentiable; its gradient is that of f
    at fixed v*, w* (envelope theorem). Raises ModelError for no or infinite inputs, missing tasks, or constants out of
    range.

    Args:
        inputs: `(n, D)`, or `(n, frames, D)` for filters on frames. Standardize them.
        private: tasks to hide, at least one, with a label for every observation that the filter gives: `n`, or `n`
            times the frames it gives, sample by sample.
        utility: tasks to keep, at least one.
        rho: > 0.
        ridge: on u, >= 0.
        sharpness: none adds adversaries up, as above; a number s > 0 takes the worst of them,

                max_a (- importance_a min_v loss_a)   as   (1 / s) ln sum_a exp(- s importance_a min_v loss_a),

            which is at most ln(adversaries) / s above. It is the maximum over shares p of the adversaries of
            sum_a p_a f_a + H(p) / s: one more maximum, attained at p = softmax(s f), and all above holds of it.
    """

    def __init__(
        self,
        inputs: Tensor,
        private: Sequence[Task | ReconstructionTask],
        utility: Sequence[Task | ReconstructionTask],
        rho: float = 10.0,
        ridge: float = 1e-6,
        sharpness: float | None = None,
    ) -> None:
        if inputs.ndim < 2 or inputs.numel() == 0 or not inputs.isfinite().all():
            raise ModelError(f"inputs must be finite and of shape (n, ..., D), got {tuple(inputs.shape)}")
        if not private or not utility:
            raise ModelError(
                f"need at least one private and one utility task, got {len(private)} and {len(utility)}: "
                "without a task to keep, a constant filter is the answer"
            )
        if not rho > 0 or not ridge >= 0:
            raise ModelError(f"rho must be > 0 and ridge >= 0, got {rho} and {ridge}")
        if sharpness is not None and not sharpness > 0:
            raise ModelError(f"sharpness must be > 0, or None for the sum of adversaries, got {sharpness}")
        self.inputs = inputs.detach().double()
        self.private, self.utility = (
            tuple(task.bound(self.inputs) if isinstance(task, ReconstructionTask) else task for task in side)
            for side in (private, utility)
        )
        self.rho, self.ridge, self.sharpness = float(rho), float(ridge), sharpness

    def evaluate(
        self, flat: FlatFilter, u: Tensor, near: Evaluation | None = None, tolerance: float = 1e-8
    ) -> Evaluation:
        """Phi(u) by exact inner solves.

        `near` is an evaluation at a similar u: its responses are where the inner solves start, each to a gradient norm
        of `tolerance`. Raises ModelError if a task has labels for another number of observations than the filter gives.
        """
        leaf = u.detach().requires_grad_()
        filtered = flat(leaf, self.inputs)
        features = filtered.detach()
        for task in (*self.private, *self.utility):
            if task.rows != len(features):
                raise ModelError(
                    f"task {task.name or type(task).__name__!r} has {task.rows} labels, the filter gives "
                    f"{len(features)} observations: give one label for each (repeat labels over frames)"
                )
        starts = [None] * len(self.private) if near is None else near.private
        private = tuple(t.best_response(features, s, tolerance) for t, s in zip(self.private, starts, strict=True))
        starts = [None] * len(self.utility) if near is None else near.utility
        utility = tuple(t.best_response(features, s, tolerance) for t, s in zip(self.utility, starts, strict=True))
        value = self.value(u, [s.loss for s in private], [s.loss for s in utility])

        def pull(right: Tensor) -> Tensor:
            # Not grad_outputs=right: torch's check of it imports sympy, two seconds the first time.
            return torch.autograd.grad((filtered * right).sum(), leaf, retain_graph=True)[0]

        def push(q: Tensor) -> Tensor:
            # `pull` is linear: the derivative of <pull(right), q> by `right` is its transpose at q.
            right = torch.zeros_like(features).requires_grad_()
            pulled = torch.autograd.grad((filtered * right).sum(), leaf, create_graph=True)[0]
            return torch.autograd.grad((pulled * q).sum(), right)[0]

        return Evaluation(u, value, features, private, utility, pull, push)

    def value(self, u: Tensor, private: Sequence[Tensor], utility: Sequence[Tensor]) -> Tensor:
        """f with the losses of the adversaries and the aggregators at u, a tensor of no dimensions."""
        value = self.ridge / 2 * u.square().sum() + self.found(private, self.shares(private))
        for task, loss in zip(self.utility, utility, strict=True):
            value = value + self.rho * task.importance * loss
        return value

    def shares(self, private: Sequence[Tensor]) -> Tensor:
        """How much each adversary with these losses counts: all by 1, or the worst by most, `(adversaries,)`."""
        gains = -torch.stack([task.importance * loss for task, loss in zip(self.private, private, strict=True)])
        return torch.ones_like(gains) if self.sharpness is None else (self.sharpness * gains).softmax(0)

    def found(self, private: Sequence[Tensor], shares: Tensor) -> Tensor:
        """f_priv with these losses and shares, a tensor of no dimensions."""
        gains = -torch.stack([task.importance * loss for task, loss in zip(self.private, private, strict=True)])
        unsure = 0.0 if self.sharpness is None else torch.special.entr(shares).sum() / self.sharpness
        return (shares * gains).sum() + unsure

    def gradient(self, at: Evaluation) -> Tensor:
        """The gradient of Phi, `(size,)`."""
        shares = self.shares([s.loss for s in at.private])
        private = self.private_slope([s.parameters for s in at.private], at.features, shares)
        utility = self.utility_slope([s.parameters for s in at.utility], at.features)
        return at.pull(private + utility) + self.ridge * at.u

    def private_slope(self, parameters: Sequence[Tensor], features: Tensor, shares: Tensor) -> Tensor:
        """The gradient of f_priv(u, v) with these shares by the features, `(observations, features)`."""
        return -_slope(self.private, parameters, features, shares)

    def utility_slope(self, parameters: Sequence[Tensor], features: Tensor) -> Tensor:
        """The gradient of rho f_util(u, w) by the features, `(observations, features)`."""
        return self.rho * _slope(self.utility, parameters, features, features.new_ones(len(self.utility)))


def _slope(tasks: Sequence[Task], parameters: Sequence[Tensor], features: Tensor, shares: Tensor) -> Tensor:
    """The gradient of the weighted losses by the features."""
    total = torch.zeros_like(features)
    for task, v, share in zip(tasks, parameters, shares, strict=True):
        objective = task.objective(features)
        assert objective.weights is not None
        weights = share * task.importance * objective.weights
        slopes = objective.head(objective.features @ v.mT).slopes * weights.unsqueeze(-1) @ v[:, :-1]
        total = total + (task.sent_back(slopes) if isinstance(task, SetTask) else slopes)
    return total


@dataclass(frozen=True)
class FilterCertificate:
    """Where a solver stopped. Phi is not convex in u: this is about a stationary point, never about the best filter."""

    gradient_norm: float  # of Phi by u at the end
    decrease: float  # what the last model of Phi promises to gain (Kiwiel's -Psi), or the last decrease of Phi
    inner_residual: float  # the largest gradient norm an inner solve was left with at the end
    iterations: int
    converged: bool  # the convergence test was met; False where the iterations ran out or no step helped any more


@dataclass(frozen=True, eq=False)
class Result:
    """A learned filter for raw inputs; `history` is Phi at the start and after every outer iteration."""

    filter: nn.Module
    history: tuple[float, ...]
    certificate: FilterCertificate
    solver: str
