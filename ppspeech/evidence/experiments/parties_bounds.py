"""The bounds of Pathak, Rane and Raj 2010 (theorems 4.2 to 4.4) beside what is measured, and two parties who break the
first.

On Adult, whose rows are of one kind, the averages stay below the claimed numbers. Two parties whose rows point in
directions 30 degrees apart and have opposite labels do not: their average is 2.9 away from the minimizer of all rows
at any size, where the theorem claims a distance that falls as 1 / n. Sums of gradients have no such error.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ppspeech.evidence.published.parties_bounds import AggregateBounds
from ppspeech.figures import Figure
from ppspeech.models import LogisticRegression
from ppspeech.pictures import blank, save
from ppspeech.training.together import JointDescent, descend_jointly_

PENALTY = 0.01
SIZES = (50, 500, 5000)


@dataclass(frozen=True)
class Excess:
    """What averaging and the paper's noise add to the regularized risk at each epsilon.

    Theorem 4.3 claims `claimed` for these rows, theorem 4.4 `claimed_true` for the distribution they come from.
    """

    measured: Mapping[float, float]
    claimed: Mapping[float, float]
    claimed_true: Mapping[float, float]


def two_kinds(records: int) -> list[tuple[Tensor, Tensor]]:
    """Rows `(records, 2)` and labels of two parties whose data differ in kind."""
    angle = math.pi / 6
    along = torch.tensor([[1.0, 0.0], [math.cos(angle), math.sin(angle)]], dtype=torch.double)
    return [(along[place].repeat(records, 1), torch.full((records,), 1 - place)) for place in range(2)]


def minimizer(x: Tensor, y: Tensor, penalty: float = PENALTY) -> Tensor:
    """The paper's local classifier, without an intercept, `(d,)`."""
    module = LogisticRegression(x.shape[1], constant=0.0, dtype=torch.double)
    module.fit(x, y, quadratic=2 * len(x) * penalty, tolerance=1e-7)
    return module.weight.detach()[0, :-1]


def descended(parts: Sequence[tuple[Tensor, Tensor]], rounds: int = 400) -> Tensor:
    """Where sums of gradients lead, without noise: every record's gradient is at most 1, so nothing is clipped."""
    records = sum(len(x) for x, _ in parts)
    x, y = (torch.cat(part) for part in zip(*parts, strict=True))
    module = LogisticRegression(x.shape[1], constant=0.0, dtype=torch.double)
    terms = JointDescent(rounds=rounds, step=2 / records, clip=1.0, regularization=2 * records * PENALTY, momentum=0.9)
    descend_jointly_(module, lambda gradient: gradient, x, y, terms)
    return module.weight.detach()[0, :-1]


def counterexample() -> list[Figure]:
    """How far the average of two kinds is from the minimizer of all rows, beside theorem 4.2 and sums of gradients."""
    figures = []
    for records in SIZES:
        parts = two_kinds(records)
        pooled = minimizer(torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts]))
        average = torch.stack([minimizer(x, y) for x, y in parts]).mean(0)
        bounds = AggregateBounds(parties=2, smallest=records, penalty=PENALTY, dimension=2)
        descent = float((descended(parts) - pooled).norm())
        metric, apart = f"parties.two_kinds.n{records}.distance", float((average - pooled).norm())
        note = f"what holds: {bounds.distance(0.5):g}; sums of gradients end {descent:.1e} away"
        figures.append(Figure(metric, apart, "", "theorem 4.2, false", bounds.claimed_distance, note=note))
    return figures


def excess_risk(x: Tensor, y: Tensor, pooled: Tensor, draws: Mapping[float, Tensor], bounds: AggregateBounds) -> Excess:
    """The 95 % quantile of what draws `(runs, d)` at each epsilon add to J, beside theorem 4.3 (failure 0.05)."""
    signs = (2 * y - 1).to(x)

    def risk(weights: Tensor) -> Tensor:
        losses = torch.nn.functional.softplus(-(x @ weights.mT) * signs.unsqueeze(1)).mean(0)
        return losses + bounds.penalty * weights.square().sum(1)

    least = risk(pooled.unsqueeze(0))
    measured = {at: float((risk(drawn) - least).quantile(0.95)) for at, drawn in draws.items()}
    return Excess(
        measured,
        {at: bounds.claimed_excess(at) for at in draws},
        {at: bounds.claimed_true_excess(at, len(y)) for at in draws},
    )


def plot_bounds(excesses: Mapping[str, Excess], figures: Sequence[Figure], path: Path) -> None:
    """Theorems 4.3 and 4.4 and what is measured on Adult; theorem 4.2 and the two kinds that break it."""
    picture = blank(12, 5)
    left, right = picture.subplots(1, 2)
    for name, excess in excesses.items():
        measured = excess.measured
        (line,) = left.plot(list(measured), list(measured.values()), marker=".", label=f"{name}, measured")
        for theorem, style, claimed in (("4.3", "--", excess.claimed), ("4.4", ":", excess.claimed_true)):
            said = f"{name}, theorem {theorem}: no proof"
            left.plot(list(claimed), list(claimed.values()), style, color=line.get_color(), label=said)
    left.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="excess regularized risk", title="Adult, one kind")
    left.legend(fontsize="small")
    right.plot(SIZES, [figure.value for figure in figures], marker="o", label="average, measured")
    right.plot(SIZES, [figure.peer_value or 0.0 for figure in figures], "--", label="theorem 4.2: does not hold here")
    right.set(xscale="log", yscale="log", xlabel="rows of each party", ylabel="distance to the minimizer of all rows")
    right.set_title("two parties whose rows differ in kind")
    right.legend(fontsize="small")
    save(picture, path)
