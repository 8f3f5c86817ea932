"""Convex models trained privately: where the modules of `models` meet the mechanisms of `privacy.convex`.

    one_record = Relation("record", "add_remove")
    hook = ObjectivePerturbation(epsilon=1.0, delta=1e-5, relation=one_record, regularization=10.0)
    fit = fit_privately(LogisticRegression(features=9, radius=1.0), x, y, hook)
    print(fit.guarantee)

The same call trains logistic and softmax regression, the Huber support vector machine and large-margin Gaussians,
with noise in the objective or on the output.
"""

import math
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast

import pytorch_lightning as lightning
import torch
from pytorch_lightning.utilities import rank_zero_info
from torch import Tensor

from ppspeech.bundle import DataTouch
from ppspeech.errors import PrivacyError
from ppspeech.models import ConvexObjective, HuberSvm, LogisticRegression, SoftmaxRegression, Solution, minimize
from ppspeech.models.gaussian import smat
from ppspeech.models.margin import LargeMarginGaussians
from ppspeech.privacy import MANY_ROWS, Guarantee, Relation, Released, check_single_rows
from ppspeech.privacy.accounting import Accountant, Event
from ppspeech.privacy.convex import (
    HeadConstants,
    Minimum,
    ObjectivePerturbation,
    TiltableObjective,
    huber_svm_head,
    large_margin_head,
    logistic_head,
    softmax_head,
)
from ppspeech.privacy.gradients import contribution_weights
from ppspeech.training.private.record import counts_touch

ConvexModule = LogisticRegression | SoftmaxRegression | HuberSvm | LargeMarginGaussians

ROUNDING = 1e-12  # what rounding may add to a clipped norm, relative


class PlannedRelease(Protocol):
    """A hook made for one kind of loss."""

    @property
    def regularization(self) -> float:
        """Lambda."""

    @property
    def event(self) -> Event:
        """What one release costs."""

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""

    def release(self, objective: TiltableObjective, /) -> Released[Tensor]:
        """Theta that may be published."""


class ConvexHook(Protocol):
    """What `ObjectivePerturbation` and `OutputPerturbation` have in common."""

    @property
    def relation(self) -> Relation:
        """What is protected, and what neighboring means."""

    @property
    def delta(self) -> float:
        """0 for pure privacy."""

    def for_head(
        self, head: HeadConstants, radius: float, shape: tuple[int, int], *, averaged: bool = False
    ) -> PlannedRelease:
        """The hook for one kind of loss."""


@dataclass(frozen=True, eq=False)
class PrivateFit:
    """What private training did.

    `event` is to be composed with whatever else touches the same data; `plan` is the hook as it was used. The solver's
    own point and certificate, `solution`, is **private**: it is not what was released, and must not leave.
    """

    guarantee: Guarantee
    event: Event
    plan: PlannedRelease
    solution: Solution = field(repr=False)


def fit_privately(
    module: ConvexModule, x: Tensor, y: Tensor, hook: ConvexHook, groups: Tensor | None = None, *, gamma: float = 0.0
) -> PrivateFit:
    """Train a module to the guarantee of a hook, and set its parameters to what may be released.

    Examples x `(n, d)` of classes y `(n,)` are scaled by public constants and clipped to the module's public `radius`.
    `groups` `(n,)` tell which unit each is of, for every unit but `record`. A speaker or party counts once, as the
    average over its examples; an utterance has one example. `gamma` is gamma_tot of the trace regularizer of
    large-margin models, a public constant. Raises PrivacyError for a module without a radius, rows that are not tied to
    the unit, or several components a class; ModelError for bad labels or values, or if the solver fails; the module
    then stays as it was.
    """
    check_single_rows(hook.relation.unit, len(x), groups)
    averaged = hook.relation.unit in MANY_ROWS
    weights = contribution_weights(groups, 1.0) if groups is not None and averaged else None
    terms: dict[str, Any] = {"weights": weights}
    if isinstance(module, LargeMarginGaussians):
        if module.components > 1:
            raise PrivacyError(
                f"private training takes one Gaussian a class, got {module.components}: which of several an example "
                "belongs to would be decided by private data (Pathak and Raj 2012 take it from EM)"
            )
        terms |= {"gamma": gamma}
    elif gamma != 0:
        raise PrivacyError("gamma belongs to large-margin models")
    plan = hook.for_head(head_of(module), radius_of(module), theta_shape(module), averaged=averaged)
    problem = ModuleObjective(module, x, y, terms)
    _set(module, plan.release(problem).value)
    assert problem.solution is not None
    return PrivateFit(plan.guarantee, plan.event, plan, problem.solution)


def head_of(module: ConvexModule) -> HeadConstants:
    """The constants of a module's loss."""
    if isinstance(module, LargeMarginGaussians):
        sizes, margin = (module.classes, module.components), module.margin
        rival: Literal["lse", "sum"] = "lse" if margin.competitor == "lse" else "sum"
        return large_margin_head(*sizes, margin.width, competitor=rival, class_average=margin.class_average)
    if isinstance(module, HuberSvm):
        return huber_svm_head(module.width)
    if isinstance(module, SoftmaxRegression):
        return softmax_head(module.classes)
    if isinstance(module, LogisticRegression):
        return logistic_head()
    raise PrivacyError(f"no constants are known for the loss of {type(module).__name__}")


def radius_of(module: ConvexModule) -> float:
    """The largest norm of a module's features phi, from its public clip."""
    if module.radius is None:
        raise PrivacyError("give the module a radius: without a clip, one example can move the model without bound")
    square = (module.radius**2 + module.constant**2) * (1 + ROUNDING)
    return square if isinstance(module, LargeMarginGaussians) else math.sqrt(square)


def theta_shape(module: ConvexModule) -> tuple[int, int]:
    """Heads and features of a module's Theta."""
    if isinstance(module, LargeMarginGaussians):
        return module.classes * module.components, module.size * (module.size + 1) // 2
    return module.weight.shape[0], module.weight.shape[1]


class ModuleObjective:
    """A module's loss on some examples, as the hooks see it."""

    def __init__(self, module: ConvexModule, x: Tensor, y: Tensor, terms: dict[str, Any]) -> None:
        self.module, self.x, self.y, self.terms = module, x, y, terms
        self.shape = theta_shape(module)
        self.records = len(x)
        self.solution: Solution | None = None

    def minimize(self, linear: Tensor | None, quadratic: float, tolerance: float) -> Minimum:
        """The tilted and regularized minimum, to this norm of the gradient."""
        objective: ConvexObjective = self.module.objective(
            self.x, self.y, quadratic=quadratic, linear=linear, **self.terms
        )
        self.solution = minimize(objective, tolerance=tolerance)
        return Minimum(self.solution.theta, self.solution.certificate.residual)


@torch.no_grad()
def _set(module: ConvexModule, theta: Tensor) -> None:
    if isinstance(module, LargeMarginGaussians):
        module.set_phi_(smat(theta.view(module.classes, module.components, -1)))
        if module.psd == "projection":
            module.project_()  # post-processing
    else:
        module.weight.copy_(theta)


class HasObjective(Protocol):
    """A recipe that ends in one certified solve, which asks `privacy` and says in `private_fit` what it did."""

    label: str
    quadratic: float
    privacy: ConvexHook | None
    private_fit: PrivateFit | None


class ObjectivePrivacy:
    """Objective perturbation for a recipe with a convex objective.

    The regularization is the recipe's `quadratic`, raised where privacy needs more. What the guarantee does not cover:
    validation and test results, which look at other utterances, and the choice of the recipe itself. `relation`: for
    one utterance, or one speaker: then every speaker counts once, as the average over utterances; `norm`: a public
    guess of the length of the weights; see `ObjectivePerturbation`.
    """

    planned = 1

    def __init__(self, relation: Relation, epsilon: float, delta: float = 0.0, norm: float | None = None) -> None:
        self.relation, self.epsilon, self.delta, self.norm = relation, epsilon, delta, norm
        self._module: HasObjective | None = None
        self._budget(regularization=1.0)  # refuses bad parameters before anything is trained

    @property
    def spent(self) -> int:
        """Solves made."""
        return int(self.done is not None)

    @spent.setter
    def spent(self, solves: int) -> None:
        if solves:
            raise PrivacyError("the solve of this checkpoint was released: another one needs a budget of its own")

    @property
    def touches(self) -> tuple[DataTouch, ...]:
        """The regularization is a constant: the number of examples enters nowhere else."""
        return (counts_touch(self.relation),)

    @property
    def done(self) -> PrivateFit | None:
        """What was done, once it was."""
        return None if self._module is None else self._module.private_fit

    @property
    def terms(self) -> dict[str, Any]:
        """What a resumed run must agree on."""
        one = {"unit": self.relation.unit, "adjacency": self.relation.adjacency}
        return {**one, "epsilon": self.epsilon, "delta": self.delta, "norm": self.norm}

    def _budget(self, regularization: float) -> ObjectivePerturbation:
        terms: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta, "relation": self.relation}
        return ObjectivePerturbation(regularization=regularization, norm=self.norm, **terms)

    def attach(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        """Give the budget to the module's solver; refused are several solves, and hiding a speaker the model names."""
        convex = cast(HasObjective, module)
        if trainer.max_epochs != 1:
            raise PrivacyError(f"every epoch releases a model: set trainer.max_epochs to 1, got {trainer.max_epochs}")
        if convex.label == "speaker" and self.relation.unit == "speaker":
            raise PrivacyError("a model that tells speakers apart cannot hide that a speaker was there: use utterance")
        convex.privacy = self._budget(convex.quadratic)
        self._module = convex

    def after_backward(self) -> None:
        """Nothing: there are no gradients."""

    def finish(self, module: lightning.LightningModule) -> None:  # noqa: ARG002
        """Say what was promised."""
        if self.done is not None:
            rank_zero_info(str(self.done.guarantee))

    def account(self) -> Accountant:
        """The solve, as events."""
        account = Accountant(self.relation)
        if self.done is not None:
            account.compose(self.done.event)
        return account

    def guarantee(self) -> Guarantee:
        """What the solve promises."""
        return self.account().guarantee(self.delta) if self.done is None else self.done.guarantee
