"""What is to be inferred from filtered features, each with its convex inner problem.

A task is a linear model on top of the filter, trained on the features it is given. The same task serves both sides
of the game: as a *private* task it is the adversary (Hamm 2015 eq. 1 and 5), as a *utility* task the aggregator
(eq. 2 and 8). Its parameters are `(heads, features + 1)`; the last column is the intercept. Its loss is

    l(v; g) = sum_i c_i loss_i(v [g_i, 1]) + (ridge / 2) ||v||^2,      sum_i c_i = 1,

which is strongly convex in v: the best response is unique, and the norm of the gradient certifies it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from ppspeech.errors import ModelError
from ppspeech.filters.borrowed_newton import Factored, Solve, minimize_with
from ppspeech.models import LARGEST_EXPLICIT, Certificate, ConvexObjective, Expansion, Head, SoftmaxRegression, minimize

RIDGE = 1e-6  # Hamm 2015 section 5, "Parameters"
CHUNK = 1 << 18  # numbers of a Hessian's rows made at once: 2 MB stay in the processor's cache


@dataclass(frozen=True, eq=False)
class Solution:
    """The best response to some features.

    `newton` solves systems with the Hessian there or nearby, for problems that start from here; none if it is too large
    to be formed, or if the next solution does not depend on where it starts.
    """

    parameters: Tensor  # `(heads, features + 1)`, float64
    loss: Tensor  # the regularized loss there, a tensor of no dimensions
    certificate: Certificate  # how far it can be from the exact minimum
    newton: Solve | None = None


@dataclass(frozen=True, eq=False)
class ClassTask:
    """Which class a sample belongs to: multinomial logistic regression (eq. 5). Two classes are the binary case. Raises
    ModelError for labels that are not such integers, or weights or constants that are not such numbers. Weights are of
    the samples, `(n,)`, >= 0; none means all alike. The paper's weighted binary loss (7) is `weights = S - 1` for
    samples of the subject and 1 for all others. They are divided by their sum (the paper divides by n): chance stays at
    ln(classes) for balanced weights.
    """

    labels: Tensor  # `(n,)`, integers in 0..classes-1
    classes: int
    ridge: float = RIDGE
    weights: Tensor | None = None
    name: str = ""
    importance: float = 1.0  # what the loss is multiplied with among several tasks, > 0

    def __post_init__(self) -> None:
        _check_constants(self.ridge, self.importance)
        labels = self.labels
        if labels.ndim != 1 or len(labels) == 0 or labels.is_floating_point() or labels.dtype == torch.bool:
            raise ModelError(f"labels must be integers of shape (n >= 1,), got {labels.dtype} of {tuple(labels.shape)}")
        if self.classes < 2 or labels.min() < 0 or labels.max() >= self.classes:
            raise ModelError(
                f"labels must lie in 0..classes-1 with classes >= 2, got {int(labels.min())}..{int(labels.max())} "
                f"and {self.classes} classes"
            )
        weights = self.weights
        if weights is not None and (weights.shape != labels.shape or not (weights >= 0).all() or not weights.sum() > 0):
            raise ModelError(f"weights must be >= 0, not all 0, of shape {tuple(labels.shape)}")

    @property
    def rows(self) -> int:
        """How many samples it has labels for."""
        return len(self.labels)

    def best_response(
        self, features: Tensor, start: Tensor | Solution | None = None, tolerance: float = 1e-8
    ) -> Solution:
        """The parameters with the least loss on features `(n, d)`, by Newton's method in double precision.

        `start` is parameters to start from, or the response to similar features, whose Hessian then serves again;
        `tolerance` is on the norm of the gradient. Raises ModelError if it is not reached.
        """
        objective = self.objective(features)
        borrowed = None
        if isinstance(start, Solution):
            borrowed, start = start.newton, start.parameters
        begin = objective.zeros() if start is None else start.detach().to(objective.features)
        newton: Solve | None = None
        if objective.parameters <= LARGEST_EXPLICIT:
            found, newton = minimize_with(objective, lambda v: self._newton(v, objective), begin, borrowed, tolerance)
        else:
            found = minimize(objective, begin, tolerance)
        loss = torch.as_tensor(found.certificate.objective, dtype=found.theta.dtype, device=features.device)
        return Solution(found.theta, loss, found.certificate, newton)

    def objective(self, features: Tensor) -> ConvexObjective:
        """The loss on features `(n, d)` as a function of the parameters."""
        model = SoftmaxRegression(1, self.classes)
        return ConvexObjective(
            model.head(self.labels.to(features.device)),
            augment(features.detach().double()),
            self.classes,
            self.ridge,
            weights=self._shares(features.detach().double()),
        )

    def newton(self, parameters: Tensor, features: Tensor) -> Callable[[Tensor], Tensor]:
        """Solves (Hessian at `parameters`) step = right-hand side, both of the shape of the parameters."""
        return self._newton(parameters, self.objective(features))

    @staticmethod
    def _newton(parameters: Tensor, objective: ConvexObjective) -> Solve:
        def hessian() -> Tensor:
            wide, weights = objective.features, objective.weights
            assert weights is not None
            shares = (wide @ parameters.mT).softmax(-1)
            return softmax_hessian(wide, shares, weights, objective.quadratic)

        return Factored(hessian)

    def loss(self, parameters: Tensor, features: Tensor) -> Tensor:
        """The regularized loss of features `(n, d)`, for autograd by either argument."""
        scores = augment(features) @ parameters.mT
        losses = functional.cross_entropy(scores, self.labels.to(features.device), reduction="none")
        return losses @ self._shares(losses) + parameters.square().sum() * (self.ridge / 2)

    def accuracy(self, parameters: Tensor, features: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
        """The share of samples `(n, d)` whose class `(n,)` is found, weighted where weights `(n,)` are given."""
        right = ((augment(features) @ parameters.to(features).mT).argmax(-1) == labels).to(features.dtype)
        return right.mean() if weights is None else (right * weights).sum() / weights.sum()

    def _shares(self, like: Tensor) -> Tensor:
        """c_i, in the dtype and on the device of `like`."""
        if self.weights is None:
            return like.new_full((self.rows,), 1 / self.rows)
        weights = self.weights.to(like)
        return weights / weights.sum()


@dataclass(frozen=True, eq=False)
class TargetTask:
    """Numbers to predict by least squares: the mean square error over samples and coordinates, over 2.

    Targets are `(n, k)`, finite. Standardize them: errors are in their units. `ridge` > 0 is of the parameters;
    `importance` > 0 is what the loss is multiplied with among several tasks. Raises ModelError for targets that are not
    such numbers.
    """

    targets: Tensor
    ridge: float = RIDGE
    name: str = ""
    importance: float = 1.0

    def __post_init__(self) -> None:
        _check_constants(self.ridge, self.importance)
        if self.targets.ndim != 2 or self.targets.numel() == 0 or not self.targets.is_floating_point():
            raise ModelError(
                f"targets must be real numbers of shape (n, k), got {self.targets.dtype} {tuple(self.targets.shape)}"
            )
        if not self.targets.isfinite().all():
            raise ModelError("targets hold values that are not finite: remove those samples")

    @property
    def rows(self) -> int:
        """How many samples it has targets for."""
        return len(self.targets)

    def best_response(
        self, features: Tensor, start: Tensor | Solution | None = None, tolerance: float = 1e-8
    ) -> Solution:
        """The least-squares parameters on features `(n, d)`: one Cholesky system, whatever the start. Raises ModelError
        if rounding leaves a gradient above `tolerance`: the features span too many scales.
        """
        objective = self.objective(features)
        begin = start.parameters if isinstance(start, Solution) else objective.zeros() if start is None else start
        point = objective.at(begin)
        solve = self.newton(begin, features)
        for iteration in (1, 2):  # the second step only removes rounding
            point = objective.at(point.theta - solve(point.gradient))
            residual = point.gradient.norm()
            if residual <= tolerance:
                certificate = objective.certify(point, residual, iteration, tolerance)
                return Solution(point.theta, objective.value(point), certificate)
        raise ModelError(
            f"least squares stopped at a gradient norm of {float(residual):.3g}, asked for {tolerance:.3g}: "
            "scale the features, or raise ridge"
        )

    def objective(self, features: Tensor) -> ConvexObjective:
        """The loss on features `(n, d)` as a function of the parameters."""
        wide = augment(features.detach().double())
        shares = wide.new_full((len(wide),), 1 / self.targets.numel())
        return ConvexObjective(self._head(wide), wide, self.targets.shape[1], self.ridge, weights=shares)

    def newton(self, parameters: Tensor, features: Tensor) -> Callable[[Tensor], Tensor]:  # noqa: ARG002 (constant Hessian)
        """Solves Hessian step = right-hand side, both `(k, d + 1)`: every row has the same Gram matrix."""
        wide = augment(features.detach().double())
        gram = wide.mT @ wide / self.targets.numel()
        gram.diagonal().add_(self.ridge)
        factor = torch.linalg.cholesky(gram)
        return lambda right: torch.cholesky_solve(right.mT, factor).mT

    def loss(self, parameters: Tensor, features: Tensor) -> Tensor:
        """The regularized loss of features `(n, d)`, for autograd by either argument."""
        errors = augment(features) @ parameters.mT - self.targets.to(features)
        return errors.square().mean() / 2 + parameters.square().sum() * (self.ridge / 2)

    def accuracy(self, parameters: Tensor, features: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
        """The share of the variance of targets `(n, k)` that is explained (R^2): 0 for guessing their mean."""
        shares = labels.new_ones(len(labels)) if weights is None else weights
        shares = (shares / shares.sum()).unsqueeze(-1)
        errors = augment(features) @ parameters.to(features).mT - labels
        spread = labels - (shares * labels).sum(0)
        return 1 - (shares * errors.square()).sum() / (shares * spread.square()).sum()

    def _head(self, like: Tensor) -> Head:
        targets = self.targets.to(like)

        def expand(scores: Tensor) -> Expansion:
            errors = scores - targets
            return Expansion(lambda: errors.square().sum(-1) / 2, errors, lambda direction: direction)

        return expand


@dataclass(frozen=True, eq=False)
class SetTask:
    """A task on means of filtered samples: someone who has T clips of one person, or looks at some samples alone.

    `of` is the task, with a label for each set; `sets` `(m, T)` are the samples of each, numbers below `samples`, how
    many there are. A sample may be in several sets, or in none. The mean is linear in the features, so what is known of
    tasks holds: the best response is unique, and its gradient goes back to the samples in equal parts. Raises
    ModelError for sets that do not fit.
    """

    of: ClassTask | TargetTask
    sets: Tensor
    samples: int

    def __post_init__(self) -> None:
        sets = self.sets
        if sets.ndim != 2 or sets.numel() == 0 or sets.is_floating_point() or len(sets) != self.of.rows:
            raise ModelError(f"need a set (m, T >= 1) of samples for each of {self.of.rows} labels, got {sets.shape}")
        if int(sets.min()) < 0 or int(sets.max()) >= self.samples:
            raise ModelError(f"sets must be of samples 0..{self.samples - 1}, got {int(sets.min())}..{int(sets.max())}")

    @property
    def rows(self) -> int:
        """How many samples it looks at sets of."""
        return self.samples

    @property
    def name(self) -> str:
        """That of the task."""
        return self.of.name

    @property
    def importance(self) -> float:
        """That of the task."""
        return self.of.importance

    def seen(self, features: Tensor) -> Tensor:
        """The means of the sets, `(m, d)`, of features `(samples, d)`."""
        return features[self.sets.to(features.device)].mean(1)

    def sent_back(self, slopes: Tensor) -> Tensor:
        """The gradient by the features, `(samples, d)`, of the one by the means, `(m, d)`."""
        each = slopes.repeat_interleave(self.sets.shape[1], 0) / self.sets.shape[1]
        return slopes.new_zeros(self.samples, slopes.shape[1]).index_add(0, self.sets.flatten().to(slopes.device), each)

    def best_response(
        self, features: Tensor, start: Tensor | Solution | None = None, tolerance: float = 1e-8
    ) -> Solution:
        """That of the task to the means."""
        return self.of.best_response(self.seen(features), start, tolerance)

    def objective(self, features: Tensor) -> ConvexObjective:
        """The loss on the means as a function of the parameters."""
        return self.of.objective(self.seen(features))

    def newton(self, parameters: Tensor, features: Tensor) -> Callable[[Tensor], Tensor]:
        """Solves with the Hessian on the means."""
        return self.of.newton(parameters, self.seen(features))

    def loss(self, parameters: Tensor, features: Tensor) -> Tensor:
        """The regularized loss on the means, for autograd by either argument."""
        return self.of.loss(parameters, self.seen(features))


def draw_sets(labels: Tensor, clips: int, seed: int = 0, only: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Sets of so many samples that have one label, drawn without a sample twice: `(m, clips)`, and labels `(m,)`.

    `labels` are `(n,)`; `only` `(n,)` says which samples may be drawn. What is left of a label is in no set. Raises
    ModelError if there is no set at all.
    """
    allowed = torch.ones_like(labels, dtype=torch.bool) if only is None else only
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed)).to(labels.device)
    drawn = [order[(labels == label)[order] & allowed[order]] for label in torch.unique(labels)]
    sets = torch.cat([own[: len(own) // clips * clips].view(-1, clips) for own in drawn]) if clips >= 1 else labels[:0]
    if len(sets) == 0:
        raise ModelError(f"nobody has {clips} samples to draw a set from: ask for fewer clips")
    return sets, labels[sets[:, 0]]


def set_family(
    private: Tensor, task: Tensor, clips: int, make: Callable[[Tensor], "ClassTask | TargetTask"], seed: int = 0
) -> "list[Task]":
    """Whom a filter that is to hide people who speak often is learned against: someone with one clip, someone with the
    mean of `clips`, and for each class of the task someone who knows it. Labels are `(n,)`; `make` makes an adversary
    of labels. A filter is as good as the worst of them (`MinimaxProblem`, `sharpness`).
    """
    sets, owners = draw_sets(private, clips, seed)
    family: list[Task] = [make(private), SetTask(make(owners), sets, len(private))]
    for label in torch.unique(task).tolist():
        some, whose = draw_sets(private, 1, seed, task == label)
        family.append(SetTask(make(whose), some, len(private)))
    return family


Task = ClassTask | TargetTask | SetTask


@dataclass(frozen=True)
class ReconstructionTask:
    """The input itself, to be reconstructed from the features by least squares (eq. 10, the norm squared)."""

    ridge: float = RIDGE
    name: str = "reconstruction"
    importance: float = 1.0

    def bound(self, inputs: Tensor) -> TargetTask:
        """The task of reconstructing inputs `(n, ..., D)`, every row of D numbers a sample."""
        return TargetTask(inputs.flatten(0, -2), self.ridge, self.name, self.importance)


def augment(features: Tensor) -> Tensor:
    """[features, 1], `(n, d)` to `(n, d + 1)`: the intercept is a parameter like the others."""
    return functional.pad(features, (0, 1), value=1.0)


def softmax_hessian(features: Tensor, shares: Tensor, weights: Tensor, ridge: float) -> Tensor:
    """The Hessian of the weighted cross-entropy by the flattened parameters, `(heads d, heads d)`.

    Block (j, k) is sum_i c_i p_ij (1[j = k] - p_ik) phi_i phi_i', from one product over the samples: of rows sqrt(c_i)
    [p_i1 phi_i, p_i2 phi_i, ...] with themselves. Features phi are `(n, d)`, shares p, the probabilities of the
    classes, `(n, heads)`, weights c `(n,)`; the ridge is added to the diagonal.
    """
    width, heads = features.shape[1], shares.shape[1]
    hessian = torch.zeros(heads * width, heads * width, dtype=features.dtype, device=features.device)
    own = hessian.new_zeros(heads, width, width)
    at_once = max(1, CHUNK // len(hessian))
    for phi, p, c in zip(*(torch.split(part, at_once) for part in (features, shares, weights)), strict=True):
        scaled = ((c.sqrt().unsqueeze(-1) * p).unsqueeze(-1) * phi.unsqueeze(1)).view(len(phi), -1)
        hessian.addmm_(scaled.mT, scaled, alpha=-1)
        own.add_(((c.unsqueeze(-1) * p).mT.unsqueeze(-1) * phi).mT @ phi)
    blocks = hessian.view(heads, width, heads, width).diagonal(dim1=0, dim2=2)  # (d, d, heads), a view
    blocks.add_(own.permute(1, 2, 0))
    hessian.diagonal().add_(ridge)
    return hessian


def _check_constants(ridge: float, importance: float) -> None:
    if not ridge > 0 or not importance > 0:
        raise ModelError(f"ridge and importance must be > 0, got {ridge} and {importance}")
