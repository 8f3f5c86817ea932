"""One convex model from parties who train apart: local minimizers, averaged with weights, with noise nobody knows.

    training = JointTraining(model="logistic", features=123, classes=2, radius=1.0, penalty=0.01, sizes=(6512, 8141),
                             epsilon=1.0, delta=1e-5)
    fit = train_jointly(training, PartySession(channel, 2, signatures).sum, x, y, place=0)

Pathak, Rane and Raj 2010 averages without weights and takes the noise of the smallest party. Here party j has the
weight omega_j = n_j / n, and one record moves the average by at most max_j omega_j Delta / Lambda_j:

- public sizes: Lambda_j = 2 n_j lambda, so that this is Delta / (2 n lambda), the same as for one party who holds
  all data, however uneven the sizes are; `replace`;
- private sizes: one Lambda for all and omega = 1 / K; `add_remove`, and nobody learns n_j.

Proof: Theorem 3.5 in docs/theory/together.md.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.models.gaussian import smat
from ppspeech.models.margin import LargeMarginGaussians
from ppspeech.privacy import MANY_ROWS, Adjacency, Relation, check_count, check_positive, gaussian_sigma
from ppspeech.privacy.convex import certified_minimum
from ppspeech.privacy.gradients import contribution_weights
from ppspeech.privacy.mechanisms import Law, shares_for
from ppspeech.protocols.sums import JointSum, Shares, WholeSum
from ppspeech.training.private.objective import ConvexModule, ModuleObjective, head_of, radius_of
from ppspeech.training.together.terms import JointFit, TableTerms

GOOD_NORM = 3.0
"""B of `balanced_penalty`: of 3, 10 and 30 the one with the fewest errors on parts held out of the *training* rows of
Adult and breast cancer, at epsilon 0.1 to 10."""


@dataclass(frozen=True, kw_only=True)
class JointTraining(TableTerms):
    """The public terms of an average of local minimizers, beside those of `TableTerms`.

    Public `sizes`, n_j of every party, go with `penalty`, lambda of the papers beside a loss averaged over n_j, by
    default `balanced_penalty`; private ones with `regularization`, Lambda of every party's sum-form objective, and the
    number of `parties`.
    `relative_tolerance`: of the solver, over the bound on one unit's gradient.

    With unit `speaker` sizes count speakers.
    """

    penalty: float | None = None
    sizes: tuple[int, ...] | None = None
    regularization: float | None = None
    parties: int | None = None
    relative_tolerance: float = 1e-6

    def __post_init__(self) -> None:
        if self.sizes is not None:
            object.__setattr__(self, "sizes", tuple(self.sizes))
            for size in self.sizes:
                check_count("a party's size", size)
        private = self.parties is not None and self.regularization is not None
        if (self.sizes is not None) == private or (self.sizes is None and self.penalty is not None):
            raise PrivacyError(
                "give sizes, and maybe a penalty (n_j public, weights n_j / n), or parties and regularization (n_j "
                "private, equal weights), and not both"
            )
        if self.regularization is not None and self.sizes is not None:
            raise PrivacyError("penalty belongs to public sizes, regularization to private ones")
        check_positive("relative_tolerance", self.relative_tolerance)
        super().__post_init__()
        if self.sizes is not None and self.penalty is None:
            object.__setattr__(self, "penalty", balanced_penalty(self))
        check_positive("penalty or regularization", self.regularization if private else self.penalty)

    @property
    def rounds(self) -> int:
        """One sum."""
        return 1

    def check(self, parties: int) -> None:
        """Refuse another number of parties than the terms are for."""
        if parties != self.count:
            raise PrivacyError(f"the terms are for {self.count} parties, the group has {parties}")

    def examine(self, place: int, *inputs: Any) -> None:
        """Refuse rows that do not fit, or are more or fewer than was agreed."""
        rows, *groups = inputs
        self.count_units(place, self.read(rows)[0], *map(torch.as_tensor, groups))

    def count_units(self, place: int, x: Tensor, groups: Tensor | None = None) -> None:
        """Refuse examples `(n_j, d)` of a party that are not as many units as the terms say."""
        if not 0 <= place < self.count:
            raise PrivacyError(f"there are {self.count} parties, numbered from 0, got {place}")
        units = self.tied(x, groups)
        if self.sizes is not None and units != self.sizes[place]:
            raise PrivacyError(f"the terms say {self.sizes[place]} units for party {place}, but there are {units}")

    def fit(self, add_up: WholeSum, parties: int, place: int, *inputs: Any) -> JointFit:  # noqa: ARG002
        """From rows, and for any unit but `record` whose each is."""
        rows, *groups = inputs
        return train_jointly(self, add_up, *self.read(rows), place, *map(torch.as_tensor, groups))

    @property
    def count(self) -> int:
        """K."""
        return len(self.sizes) if self.sizes is not None else self.parties or 0

    @property
    def adjacency(self) -> Adjacency:
        """`replace` where sizes are public, for then they cannot be what is hidden."""
        return "replace" if self.sizes is not None else "add_remove"

    @property
    def law(self) -> Law:
        """Skellam noise, or Polya for pure privacy."""
        return "skellam" if self.delta > 0 else "polya"

    def weight(self, place: int) -> float:
        """omega_j."""
        return 1 / self.count if self.sizes is None else self.sizes[place] / sum(self.sizes)

    def strength(self, place: int) -> float:
        """Lambda_j."""
        if self.sizes is None or self.penalty is None:
            assert self.regularization is not None
            return self.regularization
        return 2 * self.sizes[place] * self.penalty

    @property
    def tolerance(self) -> float:
        """tau: how large a gradient the solver may leave."""
        module = self.build()
        return self.relative_tolerance * head_of(module).sensitivity(radius_of(module), "add_remove")

    @property
    def sensitivity(self) -> float:
        """How far one unit moves the weighted average, l2: max_j omega_j (Delta + 2 tau) / Lambda_j."""
        module = self.build()
        moved = head_of(module).sensitivity(radius_of(module), self.adjacency) + 2 * self.tolerance
        return max(self.weight(place) * moved / self.strength(place) for place in range(self.count))

    def shares(self) -> Shares:
        """One party's part of the noise."""
        return shares_for(
            self.law,
            epsilon=self.epsilon,
            delta=self.delta,
            parties=self.count,
            sensitivity=self.sensitivity,
            dimension=self.dimension,
            relation=Relation(self.unit, self.adjacency),
            colluders=self.colluders,
        )


def balanced_penalty(training: JointTraining) -> float:
    """lambda at which noise and regularization are about equally bad, from public terms alone.

    Noise of deviation sigma = Delta c / Lambda raises the average loss by up to T R^2 sigma^2 / 2 (T the trace of the
    loss's curvature, R the largest norm), a regularization of Lambda = 2 n lambda by up to Lambda B^2 / 2 n, with B a
    guess at the norm of good weights. The sum is least where Lambda^3 = 2 n T (R Delta c / B)^2.
    """
    module, rows, parties = training.build(), sum(training.sizes or ()), training.count
    head, radius = head_of(module), radius_of(module)
    moved = head.sensitivity(radius, training.adjacency)
    pure = math.sqrt(2 * training.dimension) / training.epsilon  # of Laplace noise, sqrt(d) as much in l1 as in l2
    noise = gaussian_sigma(training.epsilon, training.delta) if training.delta > 0 else pure
    square = noise**2 * parties / max(parties - training.colluders, 1)
    strength = (2 * rows * head.trace * (radius * moved / GOOD_NORM) ** 2 * square) ** (1 / 3)
    return float(strength / (2 * rows))


def local_minimizer(training: JointTraining, x: Tensor, y: Tensor, place: int, groups: Tensor | None = None) -> Tensor:
    """One party's own minimizer, certified with its rounding, `(heads, features)`. **Private**: it must not leave.

    From examples `(n_j, d)` and classes `(n_j,)`; `groups`: whose each is, `(n_j,)`, for any unit but `record`.
    """
    training.count_units(place, x, groups)
    weights = contribution_weights(groups, 1.0) if groups is not None and training.unit in MANY_ROWS else None
    module = training.build()
    problem = ModuleObjective(module, x.double(), y, {"weights": weights})
    bounds = (head_of(module), radius_of(module))
    return certified_minimum(problem, None, training.strength(place), training.tolerance, *bounds)


def train_jointly(
    training: JointTraining, add_up: WholeSum, x: Tensor, y: Tensor, place: int, groups: Tensor | None = None
) -> JointFit:
    """Be one party: train, take part in the sum (`PartySession.sum`), and hold the released model; see
    `local_minimizer`. Raises `RoundEndedError` if a party is missing; nothing is released then.
    """
    joint = JointSum(add_up, training.shares())
    theta = joint(training.weight(place) * local_minimizer(training, x, y, place, groups))
    return JointFit(_model_of(training, theta), joint.guarantee(training.delta), joint.account(), theta)


@torch.no_grad()
def _model_of(training: JointTraining, theta: Tensor) -> ConvexModule:
    """The model with released parameters `(heads, features)`."""
    module = training.build()
    if isinstance(module, LargeMarginGaussians):
        module.set_phi_(smat(theta.view(module.classes, module.components, -1)))
        module.project_()  # post-processing
    else:
        module.weight.copy_(theta)
    return module
