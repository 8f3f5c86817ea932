"""One model from parties whose data differ in kind: sums of clipped gradients, round by round (Pathak 2010, 5.1.3).

The average of local minimizers need not be near the minimizer for all data, however much data there is: two parties
with different distributions are enough. A sum of gradients is the gradient of the sum, so descending along it, all
parties together move to where one party with all data would.

In every round each record's gradient is clipped to norm C, the parties' sums are added with noise that nobody knows,
and everyone takes the same step: R sums of l2 sensitivity C (add_remove; 2 C for replace), booked by the accountant.
What all parties learn together, w_0, may be made personal by each on its own, w_j = w_0 + v_j, and v_j never leaves.
Proof: Theorem 3.7 in docs/theory/together.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.models import HuberSvm, LogisticRegression, SoftmaxRegression
from ppspeech.models.margin import LargeMarginGaussians
from ppspeech.privacy import MANY_ROWS, Adjacency, Relation, Unit, check_count, check_positive, check_single_rows
from ppspeech.privacy.gradients import clip_norm, unit_means
from ppspeech.privacy.mechanisms import shares_for
from ppspeech.protocols.sums import JointSum, Shares, WholeSum
from ppspeech.training.together.terms import JointFit, TableTerms

Linear = LogisticRegression | SoftmaxRegression | HuberSvm
Sum = Callable[[Tensor], Tensor]
"""From our vector to the sum of all parties': a `JointSum`, or a `PlainSum` without privacy."""


@dataclass(frozen=True, kw_only=True)
class JointDescent:
    """The public terms of a descent; the same for all parties.

        terms = JointDescent(rounds=30, step=1e-3, clip=1.0, regularization=10.0)
        total = JointSum(session.sum, terms.shares(module, epsilon=1.0, delta=1e-5, parties=5))
        descend_jointly_(module, total, x, y, terms)

    Attributes:
        rounds: R, fixed in advance.
        step: of every round, relative to the gradient's sum: w <- w - step (sum of gradients + Lambda w).
        clip: C, the largest norm of one unit's gradient.
        regularization: Lambda, in sum form.
        momentum: of the steps, in [0, 1): post-processing.
        averaged: the result is the mean of so many last iterates, which takes noise out: post-processing.
        unit: whose gradient is clipped: that of a `record`, or of an `utterance`, which has one row; or the average
            over the rows of a `speaker`. For any but the first `descend_jointly_` asks whose each row is.
    """

    rounds: int
    step: float
    clip: float
    regularization: float
    momentum: float = 0.9
    averaged: int = 1
    unit: Unit = "record"

    def __post_init__(self) -> None:
        check_count("rounds", self.rounds)
        check_positive("step", self.step)
        check_positive("clip", self.clip)
        check_positive("regularization", self.regularization)
        if not 0 <= self.momentum < 1:
            raise PrivacyError(f"momentum must be in [0, 1), got {self.momentum}")
        check_count("averaged", self.averaged)
        if self.averaged > self.rounds:
            raise PrivacyError(f"only {self.rounds} iterates can be averaged, got averaged = {self.averaged}")

    def shares(
        self,
        module: Linear,
        *,
        epsilon: float,
        delta: float,
        parties: int,
        adjacency: Adjacency = "add_remove",
        colluders: int = 1,
    ) -> Shares:
        """One party's part of the noise of every round, so that all rounds together are (epsilon, delta)-DP."""
        return shares_for(
            "skellam" if delta > 0 else "polya",
            epsilon=epsilon,
            delta=delta,
            parties=parties,
            sensitivity=self.clip * (1 if adjacency == "add_remove" else 2),
            dimension=module.weight.numel(),
            relation=Relation(self.unit, adjacency),
            colluders=colluders,
            releases=self.rounds,
        )


@dataclass(frozen=True, kw_only=True)
class DescentTraining(JointDescent, TableTerms):
    """The public terms of a joint descent on rows: those of `TableTerms`, and those of `JointDescent`.

    `adjacency`: `replace` doubles the noise. `personal`: Lambda of the weights that every party then fits for itself
    (`personalize`); None for none.
    """

    adjacency: Adjacency = "add_remove"
    personal: float | None = None

    def __post_init__(self) -> None:
        TableTerms.__post_init__(self)
        if self.model == "large_margin":
            raise PrivacyError("a descent is for logistic, softmax and huber_svm: large_margin is trained by average")
        JointDescent.__post_init__(self)

    def check(self, parties: int) -> None:
        """Any number of parties may descend."""

    def fit(self, add_up: WholeSum, parties: int, place: int, *inputs: Any) -> JointFit:  # noqa: ARG002
        """From rows, and for any unit but `record` whose each is."""
        rows, *groups = inputs
        x, y = self.read(rows)
        module = self.build()
        assert not isinstance(module, LargeMarginGaussians)
        budget: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta, "colluders": self.colluders}
        shares = self.shares(module, parties=parties, adjacency=self.adjacency, **budget)
        total = JointSum(add_up, shares)
        descend_jointly_(module, total, x, y, self, *map(torch.as_tensor, groups))
        own = None if self.personal is None else personalize(module, x, y, self.personal).weight.detach()
        return JointFit(module, total.guarantee(self.delta), total.account(), module.weight.detach(), own)


@torch.no_grad()
def clipped_gradient(module: Linear, x: Tensor, y: Tensor, clip: float, groups: Tensor | None = None) -> Tensor:
    """The sum of the records' loss gradients, each clipped to norm `clip`, `(heads, features)`.

    A linear model's gradient is an outer product of slopes and features, whose norm is the product of both norms: no
    record's gradient is ever written out. With `groups` `(n,)` it is the average over each group that is clipped.
    """
    check_positive("clip", clip)
    features = module.features(x.to(module.weight.dtype))
    slopes = module.head(y)(features.double() @ module.weight.double().mT).slopes
    if groups is not None:
        each = slopes.unsqueeze(2) * features.double().unsqueeze(1)
        return clip_norm(unit_means(each, groups), clip, dims=2).sum(0)
    norms = slopes.norm(dim=-1) * features.double().norm(dim=-1)
    # A hair below, so that rounding keeps every norm within the bound.
    kept = (clip * (1 - 1e-12) / norms.clamp_min(torch.finfo(torch.double).tiny)).clamp_max(1.0)
    total: Tensor = (slopes * kept.unsqueeze(-1)).mT @ features.double()
    return total


@torch.no_grad()
def descend_jointly_(
    module: Linear, total: Sum, x: Tensor, y: Tensor, descent: JointDescent, groups: Tensor | None = None
) -> None:
    """Be one party of a descent; all parties end with the same weights in their modules.

    The module is in double precision, with the same public start everywhere. `groups` `(n,)` say whose each row is, for
    any unit but `record`. Raises `RoundEndedError` if a party is missing; `PrivacyError` if rows are not tied to the
    unit, if the noise of `total` is for another unit or a smaller clip, or if the sums grew beyond all bounds: the step
    is too long.
    """
    check_single_rows(descent.unit, len(x), groups)
    _check_noise(total, descent)
    together = groups if descent.unit in MANY_ROWS else None
    speed, late = torch.zeros_like(module.weight), torch.zeros_like(module.weight)
    for done in range(1, descent.rounds + 1):
        slope = total(clipped_gradient(module, x, y, descent.clip, together)) + descent.regularization * module.weight
        speed = descent.momentum * speed - descent.step * slope
        module.weight.add_(speed)
        if not bool(torch.isfinite(module.weight).all()):
            raise PrivacyError(f"the weights are no longer finite: a step of {descent.step} is too long")
        if done > descent.rounds - descent.averaged:
            late += module.weight / descent.averaged
    module.weight.copy_(late)


def _check_noise(total: Sum, descent: JointDescent) -> None:
    """Refuse noise that was made for other terms."""
    if not isinstance(total, JointSum):
        return
    relation = total.shares.relation
    moved = descent.clip * (1 if relation.adjacency == "add_remove" else 2)
    if relation.unit != descent.unit or total.shares.sensitivity < moved:
        raise PrivacyError(
            f"the noise is for {relation} that moves a sum by {total.shares.sensitivity:.6g}, the descent for one "
            f"{descent.unit} that moves it by {moved:.6g}: take the shares that its own terms give"
        )


def personalize(module: Linear, x: Tensor, y: Tensor, regularization: float) -> Linear:
    """w_j = w_0 + v_j on our own data alone: the minimizer of our losses and (Lambda / 2) |w - w_0|^2.

    It stays with us: nothing protects our records in it. The module holds the common w_0, and is not changed.
    """
    check_positive("regularization", regularization)
    own = _copy(module)
    common = module.weight.detach().double()
    tolerance = 1e-8 * max(1.0, math.sqrt(len(x)))
    own.fit(x.double(), y, quadratic=regularization, linear=-regularization * common, tolerance=tolerance)
    return own


def _copy(module: Linear) -> Linear:
    features, dtype = module.weight.shape[1] - 1, module.weight.dtype
    if isinstance(module, SoftmaxRegression):
        return SoftmaxRegression(features, module.classes, module.radius, module.constant, dtype)
    if isinstance(module, HuberSvm):
        return HuberSvm(features, module.width, module.radius, module.constant, dtype)
    return LogisticRegression(features, module.radius, module.constant, dtype)
