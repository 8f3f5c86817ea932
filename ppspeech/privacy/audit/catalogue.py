"""The audits of the shipped mechanisms: what `ppspeech audit` runs, and a registry that other rooms add theirs to."""

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.accountant import Accountant
from ppspeech.privacy.accounting.hockey_stick import smallest_epsilon
from ppspeech.privacy.audit.densities import (
    discrete_gaussian_log_pmf,
    discrete_laplace_log_pmf,
    gamma_norm_log_density,
    gaussian_log_density,
    laplace_log_density,
)
from ppspeech.privacy.audit.exact import ExactAudit, audit_exact
from ppspeech.privacy.audit.patterns import pattern_log_probabilities
from ppspeech.privacy.audit.report import AuditReport
from ppspeech.privacy.audit.sampling import audit_sampling, stated_epsilon
from ppspeech.privacy.convex.bounds import logistic_head
from ppspeech.privacy.convex.objective import ObjectivePerturbation, Perturbation
from ppspeech.privacy.guarantee import Guarantee
from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussian
from ppspeech.privacy.mechanisms.discrete_laplace import DiscreteLaplace
from ppspeech.privacy.mechanisms.exponential import Exponential
from ppspeech.privacy.mechanisms.gamma_norm import GammaNorm
from ppspeech.privacy.mechanisms.gaussian import Gaussian
from ppspeech.privacy.mechanisms.laplace import Laplace
from ppspeech.privacy.mechanisms.permute_and_flip import PermuteAndFlip
from ppspeech.privacy.mechanisms.sparse_vector import SparseVector
from ppspeech.privacy.relation import Relation
from ppspeech.registry import Registry

Audit = Callable[[int], list[AuditReport]]
"""runs -> reports; `runs` is how often sampling audits run the mechanism on each data set."""

AUDITS: Registry[Audit] = Registry("audit", "ppspeech.privacy.audit.catalogue", error=PrivacyError)

CONFIDENCE = 0.999
"""Of the sampling audits: a sound mechanism raises a false alarm once in a thousand audits."""

UTILITIES = (torch.tensor([0.0, -1, -2, -4, -16]), torch.tensor([-1.0, -2, -3, -5, -15]))
"""Candidates' utilities on two neighboring data sets: an unlikely one rises by the sensitivity, the others fall."""


register_audit = AUDITS.register


def run_audits(names: Sequence[str] | None = None, *, runs: int = 2000) -> list[AuditReport]:
    """Audit the named mechanisms, or all.

    Raises:
        PrivacyError: for a name that is not registered.
    """
    chosen = [AUDITS[name] for name in names or AUDITS.names()]
    return [report for audit in chosen for report in audit(runs)]


def exact_report(name: str, found: ExactAudit, stated: Guarantee, note: str = "") -> AuditReport:
    """The report of an exact audit: the largest loss at delta = 0, else the epsilon that delta really needs."""
    lower = found.sup_loss if stated.delta == 0 else smallest_epsilon(found.delta, stated.delta)
    return AuditReport(
        mechanism=name,
        method="exact",
        relation=stated.relation,
        eps_stated=stated_epsilon(stated),
        eps_lower=lower,
        delta=stated.delta,
        note=note,
    )


def line(reach: float, dimension: int = 1, points: int = 40_001) -> tuple[Tensor, float]:
    """Points on the first axis from -reach to reach, `(points, dimension)`, and their distance."""
    x = torch.linspace(-reach, reach, points, dtype=torch.float64)
    return torch.nn.functional.pad(x.unsqueeze(1), (0, dimension - 1)), 2 * reach / (points - 1)


def _sampled(
    name: str,
    mechanism: Laplace | Gaussian | GammaNorm | DiscreteLaplace | DiscreteGaussian,
    runs: int,
) -> AuditReport:
    """End to end, on one number that moves by the whole sensitivity."""
    return audit_sampling(
        lambda value: mechanism.release(value).value,
        torch.zeros(1, dtype=torch.float64) + mechanism.sensitivity,
        torch.zeros(1, dtype=torch.float64),
        float,
        runs,
        name=name,
        stated=mechanism.guarantee,
        confidence=CONFIDENCE,
    )


@register_audit("laplace")
def audit_laplace(runs: int) -> list[AuditReport]:
    """Real Laplace noise."""
    mechanism = Laplace(epsilon=1.0, sensitivity=1.0, relation=Relation("record", "add_remove"))
    points, _ = line(20.0)
    found = audit_exact(partial(laplace_log_density, mechanism), torch.zeros(1), torch.ones(1), points)
    return [exact_report("laplace", found, mechanism.guarantee), _sampled("laplace", mechanism, runs)]


@register_audit("gaussian")
def audit_gaussian(runs: int) -> list[AuditReport]:
    """Real Gaussian noise."""
    mechanism = Gaussian.calibrated(epsilon=1.0, delta=1e-5, sensitivity=1.0, relation=Relation("record", "add_remove"))
    points, step = line(35.0)
    density = partial(gaussian_log_density, mechanism)
    found = audit_exact(density, torch.zeros(1), torch.ones(1), points, volumes=step)
    return [exact_report("gaussian", found, mechanism.guarantee), _sampled("gaussian", mechanism, runs)]


@register_audit("gamma_norm")
def audit_gamma_norm(runs: int) -> list[AuditReport]:
    """Noise of gamma-distributed length, in five dimensions, along the direction of the shift."""
    mechanism = GammaNorm(epsilon=1.0, sensitivity=1.0, relation=Relation("record", "add_remove"))
    points, _ = line(20.0, 5)
    shift = torch.tensor([1.0, 0, 0, 0, 0])
    found = audit_exact(partial(gamma_norm_log_density, mechanism), torch.zeros(5), shift, points)
    return [exact_report("gamma_norm", found, mechanism.guarantee), _sampled("gamma_norm", mechanism, runs)]


@register_audit("discrete_laplace")
def audit_discrete_laplace(runs: int) -> list[AuditReport]:
    """Whole Laplace noise on a grid."""
    mechanism = DiscreteLaplace(epsilon=1.0, sensitivity=1.0, dimension=1, relation=Relation("record", "add_remove"))
    reach = math.ceil(20 / mechanism.grid.step)
    points = torch.arange(-reach, reach + 1).unsqueeze(1)
    density = partial(discrete_laplace_log_pmf, mechanism)
    found = audit_exact(density, torch.zeros(1), torch.ones(1), points, volumes=1.0)
    return [exact_report("discrete_laplace", found, mechanism.guarantee), _sampled("discrete_laplace", mechanism, runs)]


@register_audit("discrete_gaussian")
def audit_discrete_gaussian(runs: int) -> list[AuditReport]:
    """Whole Gaussian noise on a grid."""
    mechanism = DiscreteGaussian.calibrated(
        epsilon=1.0, delta=1e-5, sensitivity=1.0, dimension=1, relation=Relation("record", "add_remove")
    )
    reach = math.ceil(35 / mechanism.grid.step)
    points = torch.arange(-reach, reach + 1).unsqueeze(1)
    density = partial(discrete_gaussian_log_pmf, mechanism)
    found = audit_exact(density, torch.zeros(1), torch.ones(1), points, volumes=1.0)
    report = exact_report("discrete_gaussian", found, mechanism.guarantee)
    return [report, _sampled("discrete_gaussian", mechanism, runs)]


@register_audit("exponential")
def audit_exponential(runs: int) -> list[AuditReport]:  # noqa: ARG001
    """The exponential mechanism's exact probabilities."""
    mechanism = Exponential(epsilon=1.0, sensitivity=1.0, relation=Relation("record", "add_remove"))
    return [_chosen("exponential", mechanism)]


@register_audit("permute_and_flip")
def audit_permute_and_flip(runs: int) -> list[AuditReport]:  # noqa: ARG001
    """Permute-and-flip's exact probabilities."""
    mechanism = PermuteAndFlip(epsilon=1.0, sensitivity=1.0, relation=Relation("record", "add_remove"))
    return [_chosen("permute_and_flip", mechanism)]


@register_audit("sparse_vector")
def audit_sparse_vector(runs: int) -> list[AuditReport]:  # noqa: ARG001
    """Exact probabilities of the hardest answer patterns."""
    mechanism = SparseVector.calibrated(
        epsilon=1.0, positives=2, sensitivity=1.0, relation=Relation("record", "add_remove")
    )
    return [exact_report("sparse_vector", sparse_vector_audit(mechanism), mechanism.guarantee)]


@register_audit("objective_logistic_pure")
def audit_objective_logistic_pure(runs: int) -> list[AuditReport]:  # noqa: ARG001
    """Objective perturbation of logistic regression by gamma-norm noise."""
    return [_objective_logistic("objective_logistic_pure", delta=0.0)]


@register_audit("objective_logistic_gaussian")
def audit_objective_logistic_gaussian(runs: int) -> list[AuditReport]:  # noqa: ARG001
    """Objective perturbation of logistic regression by Gaussian noise."""
    return [_objective_logistic("objective_logistic_gaussian", delta=1e-5)]


def _objective_logistic(name: str, delta: float) -> AuditReport:
    """One weight, nobody against one record at the radius, Lambda as small as privacy allows: the hardest case."""
    hook = ObjectivePerturbation(
        epsilon=1.0, delta=delta, relation=Relation("record", "add_remove"), regularization=1.02
    )
    plan = hook.for_head(logistic_head(), 1.0, (1, 1))
    return exact_report(name, objective_logistic_audit(plan), hook_guarantee(plan), "one weight")


def hook_guarantee(plan: Perturbation) -> Guarantee:
    """What the tilted minimizer alone promises, before the noise for the solver's error."""
    account = Accountant(plan.budget.relation)
    account.compose(plan.events[0])
    return account.guarantee(plan.budget.delta)


def objective_logistic_audit(plan: Perturbation, noise: float = 1.0) -> ExactAudit:
    """The minimizer's density with and without one record x = R: that of b = -gradient, times |db / dtheta|.

    Args:
        plan: of a logistic head with one weight.
        noise: a factor on the plan's noise; less than 1 is a mutant that must be caught.
    """
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


def sparse_vector_audit(mechanism: SparseVector, below: int = 300) -> ExactAudit:
    """The hardest patterns known: many answers "below" and then all the positives, each against its odds.

    Queries answered "below" rise by the sensitivity on the neighbor, those answered "above" fall (monotone ones
    cannot, and stay) from far below the threshold; many of the former make its noise yield a whole sensitivity.
    """
    move = mechanism.sensitivity
    far = 30.0 * move * mechanism.positives / mechanism.epsilon_queries
    pattern = (False,) * below + (True,) * mechanism.positives

    def log_density(levels: Tensor, moved: bool) -> Tensor:
        found = []
        for level in levels.tolist():
            high = [level + move * moved] * below
            fall = 0.0 if mechanism.monotone else move * moved
            low = [-far - fall] * mechanism.positives
            found.append(pattern_log_probabilities(mechanism, high + low, 0.0, [pattern])[0])
        return torch.tensor(found, dtype=torch.float64)

    spread = float(mechanism.query_scale) * mechanism.grid.step
    return audit_exact(log_density, False, True, torch.tensor([-2.0, 0.0, 2.0]) * spread)


def _chosen(name: str, mechanism: Exponential | PermuteAndFlip) -> AuditReport:
    found = audit_exact(
        lambda _, utilities: mechanism.probabilities(utilities).log(),
        UTILITIES[0],
        UTILITIES[1],
        torch.arange(5),
        volumes=1.0,
    )
    return exact_report(name, found, mechanism.guarantee)
