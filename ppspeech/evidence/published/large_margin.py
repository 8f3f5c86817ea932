"""Pathak and Raj 2012's private large-margin Gaussians as published, the equation that breaks them, and their stated
bounds.

The sound algorithm is `private_convex.fit_privately` on a `LargeMarginGaussians`: independent
noise for every matrix, in the subspace where the gradients live, with the true constants and a certified solver.

Here is the other one. It adds *one* random matrix b to the objective of every class. The loss does not change when the
same matrix is added to every Phi_c, so its gradients sum to zero over the classes while the noise is the same for all:
with the constraint Phi_c >= 0, optimality leaves an equation without any noise in it,

    P_i (R_i - R_j) P_j = 0,     R_c = Lambda Phi_c + gamma_tot I_Phi + d loss / d Phi_c,

with P_c the projector on the range of Phi_c, which holds for the true data set and for no other.
`PublishedLargeMargin.residual` is its left-hand side. Corrections 1.21 and 1.22 in docs/theory/release.md.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.evidence.published.mechanisms import PublishedSharedNoise
from ppspeech.models.gaussian import smat, svec
from ppspeech.models.margin import LargeMarginGaussians, MarginLoss, sum_form
from ppspeech.privacy import Guarantee, Relation, check_count, check_probability
from ppspeech.privacy.accounting import NonPrivateEvent
from ppspeech.privacy.audit import AuditReport, audit_leak_identity

Rows = tuple[Tensor, Tensor]  # examples `(n, d)` in the unit ball and classes `(n,)`

SOLVED = 1e-7  # gradient norm the published objective is solved to
RANGE = 1e-6  # eigenvalues up to this part of the largest count as zero


@dataclass(frozen=True, kw_only=True)
class PublishedLargeMargin:
    """Pathak and Raj 2012, section 4: (1/n) sum loss + gamma tr + lambda |Phi|^2 + sum_c <b, Phi_c>, Phi_c >= 0.

    One deviation from the print: the sign of eq. (9), without which misclassified examples would cost nothing.

    `epsilon`: as stated by the paper for the noise; `classes`: C; `features`: d; `lam`: lambda; `gamma`: of the traces;
    `width`: h of the Huber hinge.
    """

    epsilon: float
    classes: int
    features: int
    lam: float
    gamma: float = 0.0
    width: float = 0.5

    @property
    def noise(self) -> PublishedSharedNoise:
        """One matrix for every class."""
        return PublishedSharedNoise(epsilon=self.epsilon, size=self.features + 1)

    @property
    def event(self) -> NonPrivateEvent:
        """Infinite epsilon."""
        return self.noise.event

    def guarantee(self, records: int) -> Guarantee:
        """Broken; what theorem 4.1 of the paper claims is epsilon + ln(1 + 1 / (n lambda))."""
        return Guarantee(
            kind="broken",
            relation=Relation("record", "add_remove"),
            claimed_epsilon=self.epsilon + math.log1p(1 / (check_count("records", records) * self.lam)),
            caveat=(
                "the same noise for every class cancels in their differences, which are released exactly; and one "
                "record's gradient is up to 2 sqrt(C (C - 1)), not 1"
            ),
        )

    def module(self) -> LargeMarginGaussians:
        """The untrained model."""
        return LargeMarginGaussians(
            self.classes, self.features, loss=MarginLoss(self.width), psd="projection", radius=1.0, dtype=torch.double
        )

    def fit(self, rows: Rows) -> LargeMarginGaussians:
        """Train with fresh noise."""
        x, y = rows
        form = sum_form(len(x), self.lam, self.gamma)
        shared = self.noise.noise(self.classes)
        # <b, Phi> sees the symmetric part of b only; the sum form is n times the paper's objective
        linear = len(x) * svec((shared + shared.mT) / 2)
        module = self.module()
        module.fit(x, y, quadratic=form.quadratic, gamma=form.gamma, linear=linear, tolerance=SOLVED * len(x))
        return module

    def residual(self, module: LargeMarginGaussians, rows: Rows) -> float:
        """The largest |P_i (R_i - R_j) P_j|, divided by n: zero up to the solver's accuracy for the data trained on."""
        x, y = rows
        form = sum_form(len(x), self.lam, self.gamma)
        objective = module.objective(x, y, quadratic=form.quadratic, gamma=form.gamma)
        phi = module.phi().detach()[:, 0].double()
        slope = smat(objective.at(svec(phi)).gradient)
        values, vectors = torch.linalg.eigh(phi)
        kept = (values > RANGE * values.amax()).to(vectors)
        project = (vectors * kept.unsqueeze(-2)) @ vectors.mT
        differences = slope.unsqueeze(1) - slope.unsqueeze(0)
        left = project.unsqueeze(1) @ differences @ project.unsqueeze(0)
        return float(torch.linalg.matrix_norm(left).amax()) / len(x)

    def audit(self, rows: Rows, runs: int, *, tolerance: float = 1e-5, confidence: float = 0.95) -> AuditReport:
        """Can an attacker tell from the released matrices whether the first record was there? By the equation, yes.

        `rows`: the data set; its neighbor lacks the first record. `runs`: on each of the two. `tolerance`: residuals up
        to this count as zero. `confidence`: of the lower bound on epsilon.
        """
        x, y = rows
        return audit_leak_identity(
            self.fit,
            rows,
            (x[1:], y[1:]),
            self.residual,
            runs,
            tolerance=tolerance,
            name="large_margin_published",
            stated=self.guarantee(len(x)),
            confidence=confidence,
        )


@dataclass(frozen=True)
class SeedBounds:
    """Pathak and Raj 2012's theorems 5.2 and 5.3, evaluated: how much worse the noisy model may be, with probability 1
    - delta.

    They speak about the published mechanism, which protects nothing, and do not vanish as n grows, because its noise
    ignores n. They are reported beside `trivial`, the excess that Phi = 0 is certain not to exceed: a bound above it
    says nothing.

    `empirical`: theorem 5.2, on the regularized empirical risk; `true`: theorem 5.3 as printed, on the true risk;
    `corrected`: theorem 5.3 with the factor 2 that its proof loses; `trivial`: the objective at Phi = 0.
    """

    empirical: float
    true: float
    corrected: float
    trivial: float

    @property
    def vacuous(self) -> bool:
        """Whether even the smaller bound is above the trivial one."""
        return self.empirical >= self.trivial


def published_bounds(published: PublishedLargeMargin, records: int, delta: float = 0.05) -> SeedBounds:
    """The bounds at these parameters.

    >>> bounds = published_bounds(PublishedLargeMargin(epsilon=1.0, classes=2, features=9, lam=0.31), 583)
    >>> bounds.vacuous, round(bounds.empirical / 1e7, 1)
    (True, 1.4)
    """
    check_probability("delta", delta)
    size, classes, lam = published.features + 1, published.classes, published.lam
    logarithm = math.log(published.features / delta)
    empirical = 8 * size**4 * classes * logarithm**2 / (published.epsilon**2 * lam)
    sampling = 16 / (lam * check_count("records", records)) * (32 + math.log(1 / delta))
    at_zero = (1 + published.width) ** 2 / (4 * published.width) if published.width >= 1 else 1.0
    return SeedBounds(empirical, empirical + sampling, 2 * empirical + sampling, (classes - 1) * at_zero)
