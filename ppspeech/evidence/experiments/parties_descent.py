"""Adult at five parties who add up clipped gradients, beside one party who holds all rows.

The one party puts noise in the objective (`adult-central`), which has far fewer errors than noise on the minimizer but
needs all rows in one place. The parties descend together instead: 40 secure sums, each with noise that nobody knows.
The sum of gradients does not depend on who holds which row, so there is one curve for every split, up to rounding.

- The step is relative to the sum of gradients and a constant, so that the number of rows is not used: `add_remove`, as
  in `adult-central`.
- Clip 2 epsilon^0.3, step 1.5e-4 epsilon^0.48, 40 rounds, the last 10 averaged: picked at epsilon 0.1 and 1 from about
  280 settings at each, on four splits of the *training* rows; other epsilons follow the rule. That look is not part of
  the epsilon stated. A record's gradient can be as long as 3.3: the clip takes part of what rows far on the wrong side
  say, and of the noise.
- Noise in the objective got no such search, so the price of being apart is shown by itself: the same descent by one
  party, whose noise is that of four shares, not five.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ppspeech.evidence.experiments.adult_central import Split, objective_accuracy
from ppspeech.figures import Figure
from ppspeech.intervals import SHARE, Mean, repeated
from ppspeech.models import LogisticRegression
from ppspeech.pictures import save_curves
from ppspeech.privacy.accounting import Accountant
from ppspeech.privacy.samplers import Grid
from ppspeech.progress import track
from ppspeech.protocols.sums import Shares
from ppspeech.training.together import JointDescent, clipped_gradient, descend_jointly_

PARTIES = 5
DELTA = 1e-5
CHUNK = 25  # descents at once: their slopes, one a row and descent, must stay in the cache

Noise = Callable[[], Tensor]  # what every round adds to the sum of gradients, in whole steps of the grid


def terms(epsilon: float) -> JointDescent:
    """The public terms of the descent at one epsilon."""
    return JointDescent(
        rounds=40, step=1.5e-4 * epsilon**0.48, clip=2 * epsilon**0.3, regularization=1.0, momentum=0.8, averaged=10
    )


def noise_shares(split: Split, epsilon: float) -> Shares:
    """One party's part of the noise, so that all rounds together are (epsilon, delta)-DP."""
    return terms(epsilon).shares(_untrained(split), epsilon=epsilon, delta=DELTA, parties=PARTIES)


def spent(shares: Shares, rounds: int) -> float:
    """The epsilon that the accountant finds for all rounds together."""
    account = Accountant(shares.relation)
    account.compose(shares.event, rounds)
    return account.guarantee(DELTA).epsilon


def noise_of(shares: Shares, parties: int, runs: int) -> Noise:
    """Fresh noise of so many parties together for so many descents, `(runs, d)` in steps of the grid."""
    return lambda: torch.from_numpy(shares.share(parties * runs)).view(parties, runs, -1).sum(0)


@torch.no_grad()
def descents(split: Split, descent: JointDescent, grid: Grid, noise: Noise) -> Tensor:
    """`descend_jointly_` for many draws of the noise at once, `(runs, d)`; the sum of all rows is rounded to the grid.

    Equal rows with equal labels have equal gradients, so each is computed once and counted.
    """
    rows = torch.cat([_untrained(split).features(split.x), split.y.unsqueeze(1)], dim=1)
    distinct, counts = torch.unique(rows, dim=0, return_counts=True)
    z, y = distinct[:, :-1], distinct[:, -1:]
    largest = descent.clip / z.norm(dim=1, keepdim=True)
    times = counts.unsqueeze(1).double()
    first = noise()
    weights, speed, late = (torch.zeros(first.shape, dtype=torch.double) for _ in range(3))
    for done in range(1, descent.rounds + 1):
        slopes = torch.sigmoid(z @ weights.mT).sub_(y)
        slopes = torch.minimum(torch.maximum(slopes, -largest, out=slopes), largest, out=slopes).mul_(times)
        total = ((slopes.mT @ z / grid.step).round() + (first if done == 1 else noise())) * grid.step
        speed = descent.momentum * speed - descent.step * (total + descent.regularization * weights)
        weights = weights + speed
        if done > descent.rounds - descent.averaged:
            late += weights / descent.averaged
    return late


@torch.no_grad()
def descent_of_parts(split: Split, sizes: Sequence[int], descent: JointDescent, grid: Grid, noise: Noise) -> Tensor:
    """One descent of parties with so many rows each, `(d,)`: every party rounds its own sum, as over the network."""
    module = _untrained(split)
    parts = list(zip(torch.split(split.x, list(sizes)), torch.split(split.y, list(sizes)), strict=True))

    def everyone(_: Tensor) -> Tensor:
        rounded = [grid.to_steps(clipped_gradient(module, x, y, descent.clip)) for x, y in parts]
        return (torch.stack(rounded).sum(0) + noise()).double() * grid.step

    descend_jointly_(module, everyone, split.x[:1], split.y[:1], descent)
    return module.weight.detach()[0]


def distance_between_splits(split: Split, sizes: Sequence[Sequence[int]], epsilon: float) -> tuple[float, float]:
    """How far apart the weights of different splits end under the same noise, and the norm of the weights."""
    descent, shares = terms(epsilon), noise_shares(split, epsilon)
    drawn = [noise_of(shares, PARTIES, 1)() for _ in range(descent.rounds)]
    fast = descents(split, descent, shares.grid, iter(drawn).__next__)[0]
    ends = [descent_of_parts(split, each, descent, shares.grid, iter(drawn).__next__) for each in sizes]
    return max(float((end - fast).norm()) for end in ends), float(fast.norm())


@dataclass(frozen=True)
class Beside:
    """Test errors at one epsilon: of five parties, and of one with all rows, by descent and by noise in the objective.

    `spent` is the epsilon that the accountant finds for the descent.
    """

    descent: Mean
    central_descent: Mean
    central: Mean
    spent: float


def compare(split: Split, epsilons: Sequence[float], runs: int, fits: int) -> dict[float, Beside]:
    """Descend `runs` times and minimize `fits` times at every epsilon."""
    found = {}
    for at in track(epsilons, "descent"):
        descent, shares = terms(at), noise_shares(split, at)
        errors = {
            parties: _errors(split, descent, shares, parties, runs) for parties in (PARTIES, PARTIES - shares.colluders)
        }
        accuracy = repeated(fits, objective_accuracy, split, at, DELTA)
        found[at] = Beside(
            descent=errors[PARTIES],
            central_descent=errors[PARTIES - shares.colluders],
            central=Mean(1 - accuracy.value, accuracy.half_width),
            spent=spent(shares, descent.rounds),
        )
    return found


def figures_of(found: Mapping[float, Beside], apart: tuple[float, float], note: str) -> list[Figure]:
    """The figures of `compare` and `distance_between_splits`."""
    about = f"largest distance of weights of norm {apart[1]:.2f} between splits under the same noise: rounding"
    figures = [Figure("parties.adult.descent.split_distance", apart[0], note=about)]
    for at, beside in found.items():
        name = f"parties.adult.descent.eps{at:g}"
        ours, central = beside.descent, beside.central
        said = (
            f"interval over descents, the peer's {central.low:.4f} to {central.high:.4f} over fits; "
            f"{terms(at).rounds} sums, one record, add_remove, epsilon {beside.spent:.4f} by the accountant at delta "
            f"{DELTA:g}, one colluder; {note}"
        )
        peer = "central, noise in the objective"
        figures += [
            Figure.mean(f"{name}.error", ours, "", peer, central.value, note=said, limits=SHARE),
            _gap(f"{name}.gap_to_central", beside.descent, beside.central, "noise in the objective (adult-central)"),
            _gap(f"{name}.gap_to_central_descent", beside.descent, beside.central_descent, "the same descent"),
        ]
    return figures


def plot_descent(found: Mapping[float, Beside], average: Mapping[str, Mapping[float, Mean]], path: Path) -> None:
    """All of them against epsilon, beside noise on minimizers, averaged or not: `average`, by name."""
    curves = {
        "descent, 5 parties": {at: beside.descent for at, beside in found.items()},
        "descent, one party": {at: beside.central_descent for at, beside in found.items()},
        "noise in the objective, one party": {at: beside.central for at, beside in found.items()},
        **average,
    }
    save_curves(curves, path, title=f"Adult, delta {DELTA:g}", ylabel="test error", dashed=set(average))


def _gap(metric: str, ours: Mean, theirs: Mean, meant: str) -> Figure:
    gap = Mean(ours.value - theirs.value, math.hypot(ours.half_width, theirs.half_width))
    said = f"the same at every split; central: {theirs.value:.4f}, {meant}, add_remove; interval over runs of both"
    return Figure.mean(metric, gap, note=said)


def _errors(split: Split, descent: JointDescent, shares: Shares, parties: int, runs: int) -> Mean:
    found: list[float] = []
    test = _untrained(split).features(split.test_x)
    while len(found) < runs:
        noise = noise_of(shares, parties, min(CHUNK, runs - len(found)))
        weights = descents(split, descent, shares.grid, noise)
        wrong = (test @ weights.mT > 0) != split.test_y.bool().unsqueeze(1)
        found += wrong.double().mean(0).tolist()
    return Mean.of(found)


def _untrained(split: Split) -> LogisticRegression:
    return LogisticRegression(split.x.shape[1], radius=split.norm, constant=1.0, dtype=torch.double)
