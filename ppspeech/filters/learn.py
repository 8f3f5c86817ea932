"""The door of the room: data and labels in, a filter out."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from ppspeech.errors import ModelError
from ppspeech.filters.codes import learn_codes
from ppspeech.filters.modules import LinearFilter, Mlp, Scaling, SigmoidNetwork, TemporalConvolution
from ppspeech.filters.pretraining import pretrain_, supervise_
from ppspeech.filters.problem import FilterCertificate, MinimaxProblem, Result
from ppspeech.filters.solvers.alternating import solve_alternating
from ppspeech.filters.solvers.joint import solve_kiwiel
from ppspeech.filters.starts import STARTS, targets_of
from ppspeech.filters.tasks import RIDGE, ClassTask, ReconstructionTask, TargetTask, Task, set_family

Solver = Callable[[MinimaxProblem, nn.Module, int], Result]  # moves a filter from where it is, in so many iterations

SOLVERS: dict[str, Solver] = {"alternating": solve_alternating, "kiwiel": solve_kiwiel}
SHARPNESS = 10.0  # of the worst of a family: adversaries a tenth of a nat apart count as e to 1
HIDDEN = 32  # units of the layers inside the non-linear filters that are asked for by name

Tasks = Tensor | NDArray[Any] | Task | ReconstructionTask | Sequence[Task | ReconstructionTask]


Model = Literal["logistic", "least squares"]


@dataclass(frozen=True, kw_only=True)
class Learning:
    """How a filter is learned from two labels: what a recipe or an experiment chooses.

    The number of iterations is small because it is the regularizer: starting from the discriminant ratio, further steps
    fit the training people's noise. The ridges do the same for the opponents that the filter is trained against. The
    opponents are the paper's logistic regressions; among many classes least squares, whose best response is one small
    linear system, look at the same class means at a fraction of the cost.
    """

    filter: str = "linear"  # `linear`, `sigmoid`, `mlp` or `codes`
    solver: str = "alternating"  # `alternating` or `kiwiel`
    start: str = "plda"  # of a linear filter
    rho: float = 1.0  # what the task weighs against the secret
    iterations: int = 5  # of the solver: few, as they are the regularizer
    private_ridge: float = 1e-3  # of the adversary
    task_ridge: float = 1e-2  # of the aggregator
    adversary: Model = "logistic"  # whom the filter is learned against
    aggregator: Model = "logistic"  # whom it is learned for
    clips: int = 1  # above 1: against the worst of those with one clip, with so many, and with one of a known class
    codes: int = 0  # of a filter of codes: a multiple of the task's classes, or 0 for one a class

    def fit(
        self, inputs: Tensor, private: Tensor, task: Tensor, features: int, seed: int, solver: Solver | None = None
    ) -> Result:
        """Learn a filter of so many features from inputs `(n, D)` and labels `(n,)`, 0 to classes - 1. One of codes is
        learned from the task alone; only a `solver` of the caller's plays the game from there.
        """
        shape: str | nn.Module = self.filter
        if self.filter == "codes":
            made = learn_codes(inputs, task, self.codes, features=features, seed=seed)
            if solver is None:
                return Result(made, (), FilterCertificate(math.nan, math.nan, 0.0, 0, converged=False), "codes")
            shape = made.filter
        make = partial(opponent, model=self.adversary, ridge=self.private_ridge)
        family = set_family(private, task, self.clips, make, seed) if self.clips > 1 else [make(private)]
        return learn_filter(
            inputs,
            family,
            opponent(task, self.aggregator, self.task_ridge),
            features=features,
            rho=self.rho,
            shape=shape,
            solver=solver or self.solver,
            start=self.start,
            iterations=self.iterations,
            sharpness=SHARPNESS if self.clips > 1 else None,
            seed=seed,
        )


def opponent(labels: Tensor, model: Model, ridge: float) -> ClassTask | TargetTask:
    """Whom a filter is learned against, or for; the loss of guessing is ln(classes) with either model."""
    classes = int(labels.max()) + 1
    if model == "logistic":
        return ClassTask(labels, classes, ridge)
    indicators = functional.one_hot(labels, classes).double()
    standard = (indicators - indicators.mean(0)) / indicators.std(0, correction=0).clamp_min(1e-9)
    return TargetTask(standard, ridge / classes, importance=2 * math.log(classes))


def learn_filter(
    inputs: Tensor | NDArray[Any],
    private: Tasks,
    task: Tasks,
    *,
    features: int,
    rho: float = 10.0,
    shape: str | nn.Module = "linear",
    solver: str | Solver = "alternating",
    start: str = "plda",
    iterations: int = 100,
    ridge: float = RIDGE,
    sharpness: float | None = None,
    seed: int = 0,
) -> Result:
    """Learn a minimax filter (Hamm 2015 eq. 9): keep the task, lose the person.

    Inputs are standardized inside, and the filter that comes back takes raw inputs. It hides what the adversaries it
    was trained against look for, on data like this; it gives no differential privacy (`NoisyFilter` does). Raises
    ModelError for an unknown name, or shapes, labels and constants that do not fit.

    Inputs and labels are tensors or arrays.

    Args:
        inputs: `(n, D)`, or `(n, frames, D)` for a filter on frames.
        private: what to hide: labels `(n,)` or tasks. Labels are repeated over frames; tasks are taken as they are.
        task: what to keep: labels `(n,)` or tasks.
        features: d.
        rho: what the task weighs against the secret, > 0.
        shape: `linear`, `sigmoid` (pre-trained), `mlp`, `convolution` (on frames), or a module of your own for
            standardized inputs, with `.features`; it is changed in place.
        solver: `alternating`, `kiwiel`, or one of your own.
        start: of a linear filter: `random`, `pca`, `ppls`, `plda`, `means` or `means_by_class`; the others start
            trained on the task alone.
        ridge: of the adversaries and aggregators made from labels, > 0.
        sharpness: > 0 for the worst of several adversaries instead of their sum (`MinimaxProblem`).
    """
    if isinstance(solver, str) and solver not in SOLVERS:
        raise ModelError(f"solver must be one of {', '.join(SOLVERS)}, got {solver!r}")
    inputs = torch.as_tensor(inputs)
    scaling = Scaling(inputs)
    standard = scaling(inputs)
    hide, keep = (_tasks(given, inputs, ridge, name) for given, name in ((private, "private"), (task, "task")))
    problem = MinimaxProblem(standard, hide, keep, rho, sharpness=sharpness)
    module = shape if isinstance(shape, nn.Module) else _made(shape, problem, features, start, seed)
    if getattr(module, "features", None) != features:
        raise ModelError(f"the filter gives {getattr(module, 'features', 'unnamed')} features, asked for {features}")
    solve = SOLVERS[solver] if isinstance(solver, str) else solver
    found = solve(problem, module, iterations)
    return Result(scaling.undo(found.filter, inputs.dtype), found.history, found.certificate, found.solver)


def _tasks(given: Tasks, inputs: Tensor, ridge: float, name: str) -> list[Task | ReconstructionTask]:
    """Tasks from labels, which are repeated over frames, or as they are."""
    if isinstance(given, np.ndarray):
        given = torch.as_tensor(given)
    if isinstance(given, Tensor):
        if len(given) != len(inputs):
            raise ModelError(f"{len(inputs)} inputs but {len(given)} {name} labels")
        if given.ndim == 1 and inputs.ndim == 3:
            given = given.repeat_interleave(inputs.shape[1])
        if given.numel() == 0 or given.is_floating_point():
            raise ModelError(f"{name} labels must be integers, got {given.dtype}; for numbers give a TargetTask")
        return [ClassTask(given, max(2, int(given.max()) + 1), ridge, name=name)]
    return list(given) if isinstance(given, Sequence) else [given]


def _made(name: str, problem: MinimaxProblem, features: int, start: str, seed: int) -> nn.Module:
    """A filter by name, at its start."""
    inputs = problem.inputs.shape[-1]
    if name == "linear":
        if start not in STARTS:
            raise ModelError(f"start must be one of {', '.join(STARTS)}, got {start!r}")
        if not 1 <= features <= inputs:
            raise ModelError(f"a linear filter of {inputs} inputs gives 1 to {inputs} features, got {features}")
        x = problem.inputs.flatten(0, -2)
        sides = [x, x] if start in {"random", "pca"} else [targets_of(problem.private), targets_of(problem.utility)]
        weight = STARTS[start](x, *sides, features, seed)
        return LinearFilter.of(weight / (x @ weight.mT).std(0, correction=0).clamp_min(1e-6).unsqueeze(-1))
    made: nn.Module
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if name == "sigmoid":
            made = SigmoidNetwork(inputs, features, features).to(problem.inputs)
            pretrain_(made, problem.inputs, seed=seed)
        elif name == "mlp":
            made = Mlp(inputs, [HIDDEN], features).to(problem.inputs)
        elif name == "convolution":
            made = TemporalConvolution(inputs, HIDDEN, features).to(problem.inputs)
        else:
            raise ModelError(f"shape must be linear, sigmoid, mlp, convolution or a module, got {name!r}")
    supervise_(made, problem.inputs, problem.utility)
    return made
