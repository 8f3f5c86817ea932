"""Faces (GENKI): expression kept, gender hidden, by linear minimax filters of d = 50 to 200 (Hamm 2015, figure 2).

Ridge and iterations are chosen in every trial anew, by draws within its training part (`choose`), and the baseline DDD
may choose in the same way: the faces that a trial tests on have no part in it. The form of the filter and the grid were
laid out on such draws too, within the training parts of trials 0 and 1, which hold faces that other trials test on.

Needs the table genki; --quick takes about 25 s.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn

from ppspeech.data import hold_out
from ppspeech.data.tables import load_genki
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments.minimax import Experiment, figures, run_trials
from ppspeech.evidence.experiments.minimax_clips import QUICK, clip_figures, code_filters, run_clips
from ppspeech.figures import Figure
from ppspeech.filters import BASELINES, ClassTask, LinearFilter, Scaling, learn_filter, opponent
from ppspeech.filters.attack import attack

MAIN = 50
DRAWS, DRAW_SHARE = 3, 0.25
CHOSEN = (
    f"ridge and iterations of 8 settings chosen in each trial by {DRAWS} draws of a quarter of its training part; "
    "ddd_chosen: dimension and shrinkage of 6 likewise"
)
RIDGES, ITERATIONS = (0.01, 0.03, 0.1, 0.3), (0, 3)
SHRINKS = (1e-2, 1e-3, 1e-4)
RHO, TASK_RIDGE, PRIVATE_RIDGE = 1.0, 1e-2, 1e-5
OPPONENT_RIDGE = 1e-3  # of the aggregator whose mistakes tell which further features it has no use for

Setting = TypeVar("Setting")
Learn = Callable[[Tensor, Tensor, Tensor, Setting], nn.Module]


@dataclass(frozen=True)
class Smooth:
    """A setting of our filter: the ridge of its start and the solver's iterations from there."""

    ridge: float
    iterations: int


@dataclass(frozen=True)
class Shrunk:
    """A setting of DDD."""

    shrink: float
    features: int


@EXPERIMENTS.register("minimax-genki")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Learn filters, attack them and save the plot as `minimax_genki.png` in `folder`.

    A trial tests on 200 of the 1,940 faces, 50 of each combination of labels, drawn at random; the author tests on one
    fixed draw, which is measured too. Settings are chosen at d = 50 and kept at the other dimensions, and for
    `minimax.genki.one_feature`, the first feature alone: all that the task needs, and less for other attackers. Quick
    is two trials at d = 50 instead of ten at d = 50, 100, 150 and 200.
    """
    dimensions = (MAIN,) if quick else (MAIN, 100, 150, 200)
    experiment = faces(dimensions)
    made = figures(experiment, run_trials(experiment, 2 if quick else 10), folder, CHOSEN)
    others = code_filters(2, (1,) if quick else (1, 2, 4))
    clips = run_clips(experiment, others, (10,) if quick else (10, 11, 12, 13, 14), QUICK if quick else None, (1,))
    made += clip_figures(experiment, clips, "face")  # nobody has two
    return [*made, *_published(faces((MAIN,), published=True))]


def faces(dimensions: tuple[int, ...], published: bool = False) -> Experiment:
    """The experiment at some dimensions, 50 among them, on random draws or on the published one."""
    table = load_genki()
    female, smile = table.extra["female"], table.extra["smile"]
    is_test, rows = table.is_test, torch.arange(len(table))
    assert is_test is not None
    chosen: dict[int, Smooth] = {}

    def ours(inputs: Tensor, private: Tensor, task: Tensor, dimension: int, seed: int) -> nn.Module:
        if seed not in chosen:
            grid = [Smooth(ridge, iterations) for iterations, ridge in product(ITERATIONS, RIDGES)]
            learn = partial(smooth_filter, dimension=MAIN)
            chosen[seed] = choose(learn, grid, inputs, private, task, seed)
        return smooth_filter(inputs, private, task, chosen[seed], dimension)

    def one_feature(inputs: Tensor, private: Tensor, task: Tensor, seed: int) -> nn.Module:
        return ours(inputs, private, task, 1, seed)

    return Experiment(
        name="genki",
        title="GENKI: expression against gender",
        inputs=table.features,
        private=female,
        task=smile,
        split=lambda trial: is_test if published else hold_out(2 * smile + female, rows, 200 / 1940, trial),
        dimensions=dimensions,
        main=MAIN,
        learn=ours,
        networks={} if published else {"one_feature": one_feature},
        baselines={} if published else {"ddd_chosen": chosen_ddd},
    )


def choose(
    learn: Learn[Setting], grid: Sequence[Setting], inputs: Tensor, private: Tensor, task: Tensor, seed: int
) -> Setting:
    """The setting with the largest task - private on draws of the training part; of equals the first. An attacker below
    chance counts as chance: luck on a few hundred faces is no merit of a filter.
    """
    rows = torch.arange(len(inputs))
    draws = [hold_out(2 * task + private, rows, DRAW_SHARE, 1_000 + DRAWS * seed + k) for k in range(DRAWS)]

    def score(setting: Setting) -> float:
        found = [_scores(learn, setting, inputs, private, task, held) for held in draws]
        kept, seen = (sum(side) / DRAWS for side in zip(*found, strict=True))
        return float(round(kept - max(seen, 0.5), 9))

    return max(grid, key=score)


def smooth_filter(inputs: Tensor, private: Tensor, task: Tensor, setting: Smooth, dimension: int) -> nn.Module:
    """Our filter at one setting: a smooth start, and the solver from there if it is to take steps."""
    scaling = Scaling(inputs)
    start = LinearFilter.of(smooth_start(scaling(inputs).double(), private, task, setting.ridge, dimension))
    if setting.iterations == 0:
        return scaling.undo(start, inputs.dtype)
    hide = opponent(private, "least squares", PRIVATE_RIDGE)
    return learn_filter(
        inputs, hide, ClassTask(task, 2, TASK_RIDGE), features=dimension, rho=RHO, shape=start,
        iterations=setting.iterations,
    ).filter  # fmt: skip


def smooth_start(x: Tensor, private: Tensor, task: Tensor, ridge: float, features: int) -> Tensor:
    """The minimax filter against least-squares opponents as rho goes to 0, in closed form, `(features, D)`.

    The aggregator predicts by w'x with a ridge on w; the adversary is to gain nothing, which for two balanced classes
    means equal class means (then the logistic adversary's best response is 0 as well):

        min_w w'(T + ridge I) w / 2 - w'm_task  with  w'm_private = 0,

    m the differences of the class means and T the covariance. One direction is all that two classes of one task need.
    Further features are directions that neither opponent has a use for on this data: equal means of the secret, no
    correlation with w'x or with the mistakes of the logistic aggregator on w'x. Of these, the ones of least variance
    say least about the face to anyone else. Inputs `x` `(n, D)` are standardized, labels `(n,)` are 0 or 1, `ridge` > 0
    is in units of the variance of an input, and `features` 1 to D - 3.
    """
    covariance = x.mT @ x / len(x)
    means = torch.stack([x[side == 1].mean(0) - x[side == 0].mean(0) for side in (task, private)], dim=1)
    smooth = covariance + ridge * torch.eye(x.shape[1]).to(x)
    to_task, to_private = torch.linalg.solve(smooth, means).unbind(1)
    hidden = means[:, 1]
    direction: Tensor = to_task - to_private * (hidden @ to_task) / (hidden @ to_private)
    direction = direction / (direction @ covariance @ direction).sqrt()
    if features == 1:
        return direction.unsqueeze(0)
    feature = (x @ direction).unsqueeze(-1)
    response = ClassTask(task, 2, OPPONENT_RIDGE).best_response(feature).parameters
    believed = (feature @ response[:, :-1].mT + response[:, -1]).softmax(-1)[:, 1]
    used = torch.stack([hidden, covariance @ direction, x.mT @ (task - believed) / len(x)], dim=1)
    basis: Tensor = torch.linalg.qr(used).Q
    keep = torch.eye(x.shape[1]).to(x) - basis @ basis.mT
    # The first eigenvectors are the three directions that were taken out.
    further: Tensor = torch.linalg.eigh(keep @ covariance @ keep).eigenvectors[:, 3 : features + 2].mT
    return torch.cat([direction.unsqueeze(0), further / (x @ further.mT).std(0, correction=0).unsqueeze(-1)])


def chosen_ddd(inputs: Tensor, private: Tensor, task: Tensor, dimension: int, seed: int) -> nn.Module:
    """DDD with the dimension and the shrinkage that it does best with on draws of the training part."""

    def learn(inputs: Tensor, private: Tensor, task: Tensor, setting: Shrunk) -> nn.Module:
        return BASELINES["ddd"](inputs, private, task, setting.features, shrink=setting.shrink)

    grid = [Shrunk(shrink, features) for features, shrink in product((1, dimension), SHRINKS)]
    return learn(inputs, private, task, choose(learn, grid, inputs, private, task, seed))


def _scores(
    learn: Learn[Setting], setting: Setting, inputs: Tensor, private: Tensor, task: Tensor, held: Tensor
) -> tuple[float, float]:
    """Accuracy of logistic classifiers of the task and of the secret on what was held back."""
    filter = learn(inputs[~held], private[~held], task[~held], setting)
    with torch.no_grad():
        train, test = filter(inputs[~held]), filter(inputs[held])
    kept, seen = (
        attack(train, s[~held], test, s[held], ("logistic",), clips=(1,)).worst.accuracy for s in (task, private)
    )
    return kept, seen


def _published(experiment: Experiment) -> list[Figure]:
    """The author's own draw, at the main dimension."""
    found = run_trials(experiment, 1)
    key = ("minimax", experiment.main)
    faces = int(experiment.split(0).sum())
    note = "the published split; the author's stored result: expression 0.88, gender 0.49"
    return [
        Figure.share(f"minimax.genki.published.{side}", round(values[key][0] * faces), faces, "faces", note=note)
        for side, values in (("task", found.task), ("private", found.private))
    ]
