"""Personal minimax filters (Hamm 2015 section 3): each contributor hides among the others with a filter of its own.

All share the task; each has its own filter u_s and faces its own adversary v_s, who tells its samples from everyone
else's. The sum of all (16) is minimized a contributor at a time (19), the others' filtered samples held fixed. Here is
the mathematics of one such step; `ppspeech.protocols.filters.personal_filters` is the conversation around it.
Proposition 4.13 in docs/theory/filters.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

import torch
from torch import Tensor, nn

from ppspeech.errors import ModelError
from ppspeech.filters.attack.attackers import VECTOR_ATTACKERS, Attacker
from ppspeech.filters.modules import LinearFilter, Scaling
from ppspeech.filters.problem import MinimaxProblem
from ppspeech.filters.solvers.alternating import solve_alternating
from ppspeech.filters.tasks import ClassTask

Family = Literal["shift", "affine"]

INNER_TOLERANCE = 1e-6
"""On the gradients of the inner solves: a step of the filter needs no more, and the others move anyway."""


@dataclass(frozen=True, eq=False)
class Filtered:
    """What a contributor shows: filtered samples `(n, d)` and their task labels `(n,)`, integers from 0."""

    features: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or self.labels.shape != self.features.shape[:1]:
            raise ModelError(
                f"filtered samples are (n, d) with a label each, got {tuple(self.features.shape)} and "
                f"{tuple(self.labels.shape)}"
            )

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class PersonalSettings:
    """How a contributor improves its filter; the same for all."""

    rho: float = 2.0  # what the task weighs against being recognized, > 0
    steps: int = 1  # of the filter in one turn (T_s of Algorithm 3), >= 1
    private_ridge: float = 1e-3  # of the adversary's parameters, > 0
    task_ridge: float = 1e-2  # of the aggregator's parameters, > 0

    def __post_init__(self) -> None:
        if not self.rho > 0 or not self.private_ridge > 0 or not self.task_ridge > 0 or self.steps < 1:
            raise ModelError(f"rho and ridges must be > 0 and steps >= 1, got {self}")


class PersonalFilter(nn.Module):
    """The common filter, then a map of one's own: x to turn g(x) + shift.

    `shift` learns where one's samples lie, d numbers; `affine` the whole map, d (d + 1) numbers. Both are few where a
    filter from the inputs on has d D, which one person's samples cannot pay for; and whoever keeps the samples of every
    round learns nothing that the common filter's features do not hold. More freedom is not more privacy: a linear
    adversary cannot follow a person's own turn, but that turn marks all of the person's samples, and others can
    (`ppspeech reproduce minimax-personal` measures both).

    Shape: `(..., D)` to `(..., d)`. `common` was learned from public data; it is copied and stays as it is.
    """

    def __init__(self, common: LinearFilter, family: Family = "shift") -> None:
        super().__init__()
        if family not in get_args(Family):
            raise ModelError(f"family must be one of {', '.join(get_args(Family))}, got {family!r}")
        self.features = common.features
        self.common = LinearFilter.of(common.weight.detach(), common.bias.detach()).requires_grad_(False)
        self.turn = nn.Parameter(torch.eye(self.features).to(common.weight), requires_grad=family == "affine")
        # The shift plus 1: solvers take the length of what they move as the measure of a first step, and 0 has none.
        self.place = nn.Parameter(torch.ones(self.features).to(common.weight))

    def forward(self, x: Tensor) -> Tensor:
        """Filter `(..., D)` to `(..., d)`."""
        return nn.functional.linear(cast(Tensor, self.common(x)), self.turn, self.shift)

    @property
    def shift(self) -> Tensor:
        """Where one's samples are moved, `(d,)`; 0 at the start."""
        return self.place - 1

    @torch.no_grad()
    def merged(self) -> LinearFilter:
        """The same filter as one projection."""
        return LinearFilter.of(self.turn @ self.common.weight, self.turn @ self.common.bias + self.shift)


def weighted_membership(own: int, others: int) -> tuple[Tensor, Tensor]:
    """Labels and weights of the weighted binary loss (7) for samples of one's own, followed by the others'.

    The paper weighs one's own samples S - 1 times; with differing numbers of samples that is `others / own`. Both sides
    then weigh the same, and guessing is right half of the time. Returns labels 1 (own) and 0, and weights, each
    `(own + others,)`. Raises ModelError if either side is empty: there is nothing to tell apart.

    >>> labels, weights = weighted_membership(1, 2)
    >>> labels.tolist(), weights.tolist()
    ([1, 0, 0], [2.0, 1.0, 1.0])
    """
    if own < 1 or others < 1:
        raise ModelError(f"hiding needs samples of one's own and of others, got {own} and {others}")
    labels = torch.arange(own + others) < own
    weights = torch.ones(own + others, dtype=torch.float64)
    weights[:own] = others / own
    return labels.long(), weights


def personal_problem(
    inputs: Tensor, labels: Tensor, others: Filtered, classes: int, settings: PersonalSettings
) -> MinimaxProblem:
    """Problem (19) of one contributor. Its filter must be wrapped in `Among` the others' samples. Inputs are one's own,
    `(n, D)`, scaled as the common filter takes them, with task labels `(n,)`.
    """
    membership, weights = weighted_membership(len(inputs), len(others))
    everyone = torch.cat([labels, others.labels.to(labels)])
    hide = ClassTask(membership.to(labels.device), 2, settings.private_ridge, weights.to(inputs.device), name="own")
    keep = ClassTask(everyone, classes, settings.task_ridge, name="task")
    return MinimaxProblem(inputs, [hide], [keep], settings.rho, ridge=0.0)


class Among(nn.Module):
    """One's own filtered samples, followed by those of the others, which do not move. `others` are `(m, d)`."""

    others: Tensor

    def __init__(self, module: nn.Module, others: Tensor) -> None:
        super().__init__()
        self.filter = module
        self.register_buffer("others", others.detach())

    def forward(self, x: Tensor) -> Tensor:
        """`(n, D)` to `(n + m, d)`."""
        return torch.cat([cast(Tensor, self.filter(x)), self.others])


def improve_(
    module: nn.Module, inputs: Tensor, labels: Tensor, others: Filtered, classes: int, settings: PersonalSettings
) -> tuple[float, ...]:
    """Take one contributor's turn: a few steps on (19). The filter is changed in place and becomes double precision.

    Returns Phi before and after every step; it never goes up while the others hold still. Raises ModelError if there is
    nobody to hide among, or sizes do not fit.
    """
    problem = personal_problem(inputs, labels, others, classes, settings)
    result = solve_alternating(problem, Among(module, others.features), settings.steps, inner_tolerance=INNER_TOLERANCE)
    return result.history


def improve_all_(
    filters: Sequence[nn.Module], own: Sequence[tuple[Tensor, Tensor]], classes: int, settings: PersonalSettings
) -> None:
    """One round of Algorithm 3 with everyone in one place, in order: what the protocol computes, for experiments. `own`
    are each contributor's inputs `(n, D)` and task labels `(n,)`; the filters are changed in place.
    """
    with torch.no_grad():
        shown = [Filtered(module(x), z) for module, (x, z) in zip(filters, own, strict=True)]
    for turn, (module, (x, z)) in enumerate(zip(filters, own, strict=True)):
        others = shown[:turn] + shown[turn + 1 :]
        everyone = Filtered(torch.cat([o.features for o in others]), torch.cat([o.labels for o in others]))
        improve_(module, x, z, everyone, classes, settings)
        with torch.no_grad():
            shown[turn] = Filtered(module(x), z)


def weighted_risks(
    train: Tensor, train_owners: Tensor, test: Tensor, test_owners: Tensor, attacker: str = "logistic"
) -> Tensor:
    """How often an attacker is right about whether a sample is a contributor's, both answers weighed alike; for each.

    The attacker is trained anew for each contributor on everyone's filtered training samples. For the weights of eq. 7
    it is shown that contributor's samples as often as it takes for both sides to be as many. Chance is 0.5. Samples are
    `(n, d)`, each by its owner's filter, owners `(n,)` 0 to S - 1; those of the test are from other recordings. The
    attacker is `logistic` as in the paper, or another on vectors. Returns `(S,)`. Raises ModelError for an unknown
    attacker, or a contributor without samples in either part.
    """
    learn = VECTOR_ATTACKERS[attacker]
    scaling = Scaling(train)
    known, asked = scaling(train), scaling(test)
    found = []
    for owner in range(int(train_owners.max()) + 1):
        own, truth = train_owners == owner, test_owners == owner
        if not own.any() or not truth.any():
            raise ModelError(f"contributor {owner} has no samples in one of the parts")
        guess = _guess(learn, known[own], known[~own], asked)
        found.append((guess[truth].double().mean() + (~guess[~truth]).double().mean()) / 2)
    return torch.stack(found)


def worst_risks(
    train: Tensor, train_owners: Tensor, test: Tensor, test_owners: Tensor, attackers: Sequence[str]
) -> tuple[Tensor, str]:
    """The risks of the attacker that does best on average, `(S,)`, and its name."""
    risks = {name: weighted_risks(train, train_owners, test, test_owners, name) for name in attackers}
    worst = max(risks, key=lambda name: float(risks[name].mean()))
    return risks[worst], worst


def _guess(learn: Attacker[Tensor], own: Tensor, others: Tensor, asked: Tensor) -> Tensor:
    """Whether a newly trained attacker takes each asked sample for one's own, bool `(m,)`."""
    times = -(-len(others) // len(own))
    shown = torch.cat([own.repeat(times, 1)[: max(len(own), len(others))], others])
    labels = (torch.arange(len(shown), device=shown.device) < len(shown) - len(others)).long()
    scores = learn(shown, labels, 2, 0)(asked)
    return scores[:, 1] > scores[:, 0]
