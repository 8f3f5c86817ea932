"""Audits of objective perturbation: by the density of one weight, and by real releases of every kind of loss."""

import math
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from ppspeech.privacy.accounting.accountant import Accountant
from ppspeech.privacy.accounting.events import Event
from ppspeech.privacy.accounting.hockey_stick import gaussian_epsilon
from ppspeech.privacy.audit.catalogue import ONE_RECORD, exact_report, line, scored_report
from ppspeech.privacy.audit.exact import ExactAudit, audit_exact
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.convex.attack import released_losses
from ppspeech.privacy.convex.bounds import (
    HeadConstants,
    huber_svm_head,
    large_margin_head,
    logistic_head,
    softmax_head,
)
from ppspeech.privacy.convex.events import (
    LogisticObjectiveGaussianEvent,
    LogisticObjectivePureEvent,
    ObjectiveGaussianEvent,
    ObjectivePureEvent,
    SoftmaxObjectivePureEvent,
)
from ppspeech.privacy.convex.objective import ObjectivePerturbation, Perturbation
from ppspeech.privacy.guarantee import Guarantee
from ppspeech.privacy.mechanism import mechanism
from ppspeech.privacy.relation import Relation

LITTLE_CURVATURE = 1e3  # Lambda over R^2 of audits, where J is next to nothing: what is left is the noise
MOST_RUNS = 1_500  # every one is a solve: the most that an audit by name makes on each side
WORK = 5_000  # numbers that could be drawn in the time of one release

HEADS = ((logistic_head(), 1), (softmax_head(2), 2), (huber_svm_head(0.5), 1), (large_margin_head(2, 1, 0.5), 2))
"""The kinds of loss that are audited, with their outputs."""


def tilted_guarantee(plan: Perturbation) -> Guarantee:
    """What the tilted minimizer alone promises, before the noise for the solver's error."""
    account = Accountant(plan.relation)
    account.compose(plan.event.parts[0])
    return account.guarantee(plan.budget.delta)


def objective_logistic_audit(plan: Perturbation, noise: float = 1.0) -> ExactAudit:
    """The density with and without one record x = R: that of b, times |db / dtheta|; `noise` < 1 makes a mutant."""
    strength, radius = plan.regularization, plan.radius
    gaussian = plan.budget.delta > 0
    scale = noise * (plan.scale if gaussian else 1 / plan.scale)

    def log_density(theta: Tensor, present: float) -> Tensor:
        wrong = torch.sigmoid(-radius * theta)
        b = -(strength * theta - present * radius * wrong) / scale
        slope = strength + present * radius**2 * wrong * (1 - wrong)
        unit = -b.square() / 2 - math.log(2 * math.pi) / 2 if gaussian else -b.abs() - math.log(2)
        return unit - math.log(scale) + slope.log()

    points, step = line(40 * scale / strength)
    return audit_exact(log_density, 1.0, 0.0, points.squeeze(1), volumes=step)


def _with_noise_of(event: Event) -> Perturbation:
    """Objective perturbation that books this event, or one with the same noise for the same length of a gradient."""
    delta = 1e-5 if event.pure() is None else 0.0
    head, one = huber_svm_head(0.5), Relation(event.relation.unit, "add_remove")
    if isinstance(event, LogisticObjectivePureEvent | LogisticObjectiveGaussianEvent):
        head, radius, strength, jacobian = logistic_head(), event.radius, event.regularization, 0.0
    else:
        assert isinstance(event, ObjectivePureEvent | SoftmaxObjectivePureEvent | ObjectiveGaussianEvent)
        radius = _longest(event)
        strength = LITTLE_CURVATURE**2 * radius**2
        jacobian = head.jacobian(radius, strength)
    if isinstance(event, LogisticObjectivePureEvent | SoftmaxObjectivePureEvent | ObjectivePureEvent):
        epsilon = event.kappa * radius + jacobian
    else:
        epsilon = gaussian_epsilon(delta, radius / event.sigma) + jacobian
    share = ObjectivePerturbation.output_share
    budget = ObjectivePerturbation(epsilon=epsilon / (1 - share), delta=delta, relation=one, regularization=strength)
    return budget.for_head(head, radius, (1, 1))


def _longest(event: ObjectivePureEvent | SoftmaxObjectivePureEvent | ObjectiveGaussianEvent) -> float:
    """The length of one record's gradient that an event allows."""
    if isinstance(event, SoftmaxObjectivePureEvent):
        return softmax_head(2).sensitivity(event.radius, event.relation.adjacency)
    return event.sensitivity if isinstance(event, ObjectivePureEvent) else event.gradient


def released_audit(name: str, head: HeadConstants, outputs: int, delta: float, runs: int) -> list[AuditReport]:
    """Real releases with one record and without, from the real solver; the logistic head also by its density."""
    budget = ObjectivePerturbation(epsilon=1.0, delta=delta, relation=ONE_RECORD, regularization=LITTLE_CURVATURE)
    shown = budget if delta == 0 else replace(budget, epsilon=4.0)  # so few solves see little of less Gaussian noise
    plan = shown.for_head(head, 1.0, (outputs, 1))
    inside, outside = (released_losses(plan, min(runs, MOST_RUNS), present) for present in (True, False))
    note = f"{outputs} outputs"
    found = [scored_report(name, inside, outside, tilted_guarantee(plan), [(plan.event.parts[0], 1)], note)]
    if head.name == "logistic":
        # One weight, nobody against one record at the radius, Lambda as small as privacy allows: the hardest case.
        tight = replace(budget, regularization=1.02).for_head(head, 1.0, (1, 1))
        found.append(exact_report(name, objective_logistic_audit(tight), tilted_guarantee(tight), "one weight"))
    return found


def booked_losses(event: Event, runs: int, present: bool) -> Tensor:
    """Of releases with the event's noise, where one record's gradient is as long as the event allows."""
    return released_losses(_with_noise_of(event), runs, present)


for _head, _outputs in HEADS:
    for _law, _delta in (("pure", 0.0), ("gaussian", 1e-5)):
        _event: type = ObjectivePureEvent if _delta == 0 else ObjectiveGaussianEvent
        if _head.name == "logistic":
            _event = LogisticObjectivePureEvent if _delta == 0 else LogisticObjectiveGaussianEvent
        if _head.name == "softmax" and _delta == 0:
            _event = SoftmaxObjectivePureEvent
        _name = f"objective_{_head.name}_{_law}"
        _audit = partial(released_audit, _name, _head, _outputs, _delta)
        mechanism(_name, _event, audit=_audit, losses=booked_losses, work=WORK)(Perturbation)
