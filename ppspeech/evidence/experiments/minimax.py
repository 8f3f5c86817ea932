"""What the minimax experiments share: trials, baselines in the same run, attackers, figures and the paper's plot.

A trial divides the samples, learns every filter on its training part alone, and scores on the test part a logistic
classifier of the task and attackers on the person, each trained on the filtered training part. The logistic attacker
gives the figures of Hamm 2015; the worst of a few that see one vector stands beside it, taken over attackers trial by
trial. Stronger ones, and several clips of one person, are the matter of `minimax_clips`.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from ppspeech.errors import ModelError
from ppspeech.figures import Figure
from ppspeech.filters import BASELINES, Learning, LinearFilter
from ppspeech.filters.attack import Finding, Point, judge, plot_trade_off, reconstruction_attack
from ppspeech.intervals import SHARE, Mean
from ppspeech.progress import track

OURS = "minimax"
ONE_VECTOR = ("logistic", "svm", "trees", "mlp", "neighbors")
UNFILTERED = ("logistic", "svm", "mlp", "neighbors")
"""Attackers on no filter, which only sets the scale: trees on hundreds of inputs take longer than all else."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """One data set and what is asked of it.

    Other filters to learn (`networks`) take training inputs, private and task labels and a seed; `learn`, ours in place
    of `learning`, and the `baselines` at the main dimension take a dimension before the seed.
    """

    name: str  # of the metrics, `minimax.<name>.…`
    title: str
    inputs: Tensor  # `(samples, D)`
    private: Tensor  # who, `(samples,)`
    task: Tensor  # what, `(samples,)`
    split: Callable[[int], Tensor]  # trial number to samples to test on, bool `(samples,)`; no recording on both sides
    dimensions: tuple[int, ...]  # of the filters, one panel each
    main: int  # the dimension of the headline figures, one of `dimensions`
    learning: Learning = field(default_factory=Learning)
    networks: dict[str, Callable[[Tensor, Tensor, Tensor, int], nn.Module]] = field(default_factory=dict)
    learn: Callable[[Tensor, Tensor, Tensor, int, int], nn.Module] | None = None
    baselines: dict[str, Callable[[Tensor, Tensor, Tensor, int, int], nn.Module]] = field(default_factory=dict)
    unseen: Callable[[int], Tensor] | None = None  # of the rest, what attackers know and filters of `minimax_clips` not

    def __post_init__(self) -> None:
        if self.main not in self.dimensions:
            raise ModelError(f"the main dimension must be one of {self.dimensions}, got {self.main}")


@dataclass
class Found:
    """What trials have found so far, by method and dimension."""

    task: dict[tuple[str, int], list[float]] = field(default_factory=lambda: defaultdict(list))
    private: dict[tuple[str, int], list[float]] = field(default_factory=lambda: defaultdict(list))
    worst: dict[str, list[Finding]] = field(default_factory=lambda: defaultdict(list))
    reconstruction: list[float] = field(default_factory=list)

    def gaps(self, method: str, dimension: int) -> list[float]:
        """Task - private, trial by trial."""
        both = zip(self.task[method, dimension], self.private[method, dimension], strict=True)
        return [task - private for task, private in both]

    def gap(self, method: str, dimension: int) -> Mean:
        """Task - private."""
        return Mean.of(self.gaps(method, dimension))


def run_trials(experiment: Experiment, trials: int) -> Found:
    """Run the trials 0, 1, … one after another. Every filter is attacked by logistic regression; at the main dimension
    ours and the networks by those on one vector, and in the first trial no filter by `UNFILTERED`, for comparison.
    """
    found = Found()
    for trial in track(range(trials), f"Trials of {experiment.name}"):
        parts = Parts.of(experiment, experiment.split(trial))
        for method, dimension, module in _filters(experiment, parts, trial):
            attackers: tuple[str, ...] = ("logistic",)
            if dimension == experiment.main and (method == OURS or method in experiment.networks):
                attackers = ONE_VECTOR
            elif method == "none" and trial == 0:
                attackers = UNFILTERED
            evidence = judge(*parts.filtered(module), attackers, clips=(1,), seed=trial)
            found.task[method, dimension].append(evidence.task.accuracy)
            found.private[method, dimension].append(evidence.attacks["logistic"].accuracy)
            if attackers != ("logistic",):
                found.worst[method].append(evidence.attacks.worst)
            if method == OURS and dimension == experiment.main:
                found.reconstruction.append(_reconstruction(module, parts))
    return found


@dataclass(frozen=True, eq=False)
class Parts:
    """The training and test part of a trial."""

    inputs: tuple[Tensor, Tensor]
    private: tuple[Tensor, Tensor]
    task: tuple[Tensor, Tensor]

    @classmethod
    def of(cls, experiment: Experiment, is_test: Tensor) -> "Parts":
        """Divide the samples."""
        columns = (experiment.inputs, experiment.private, experiment.task)
        return cls(*((column[~is_test], column[is_test]) for column in columns))

    @torch.no_grad()
    def filtered(self, module: nn.Module) -> tuple[tuple[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]:
        """Both parts behind the filter, with their labels to keep and to hide, as `judge` takes them."""
        train, test = (module(inputs) for inputs in self.inputs)
        return (train, self.task[0], self.private[0]), (test, self.task[1], self.private[1])


def figures(experiment: Experiment, found: Found, folder: Path, chosen: str) -> list[Figure]:
    """The figures, with the plot in `folder`; `chosen` is what the settings were chosen on, for the notes."""
    name, main = f"minimax.{experiment.name}", experiment.main
    ours = f"{name}.linear"
    trials = len(found.task[OURS, main])
    picture = folder / f"minimax_{experiment.name}.png"
    points = {d: _points(found, d) for d in experiment.dimensions}
    plot_trade_off(points, experiment.title, picture)
    people = int(experiment.private.max()) + 1
    drawn = f"interval over {trials} trials, which draw from the same people"
    setting = f"d = {main} of {experiment.inputs.shape[1]}, chance {1 / people:.3f}; {chosen}; {drawn}"
    task, private = (Mean.of(values[OURS, main]) for values in (found.task, found.private))
    plain_task, plain_private = (Mean.of(values["none", main]) for values in (found.task, found.private))
    made = [
        Figure.mean(f"{ours}.task", task, note=setting, limits=SHARE),
        Figure.mean(f"{ours}.private", private, note=f"logistic attacker; {setting}", limits=SHARE),
        worst_figure(f"{ours}.private_worst", found.worst[OURS]),
        Figure.mean(f"{name}.no_filter.task", plain_task, note=drawn, limits=SHARE),
        Figure.mean(f"{name}.no_filter.private", plain_private, note=f"logistic attacker; {drawn}", limits=SHARE),
        worst_figure(f"{name}.no_filter.private_worst", found.worst["none"]),
        *_gap_figures(name, found, experiment),
        Figure.mean(
            f"{ours}.verification_eer",
            Mean.of([finding.eer for finding in found.worst[OURS]]),
            note="of the worst attacker, all test samples against all people; "
            f"no filter {found.worst['none'][0].eer:.3f}; {drawn}",
            limits=SHARE,
        ),
        Figure.mean(
            f"{ours}.linkability",
            Mean.of([finding.linkability.value for finding in found.worst[OURS]]),
            note=f"D_sys of the worst attacker; its bias {found.worst[OURS][0].linkability.chance:.3f}; "
            f"no filter {found.worst['none'][0].linkability.value:.3f}; {drawn}",
            limits=SHARE,
        ),
        Figure.mean(
            f"{ours}.reconstruction_error",
            Mean.of(found.reconstruction),
            note="squared error of the best linear guess at the standardized input, relative to guessing its mean; "
            f"{drawn}",
        ),
    ]
    for network in experiment.networks:
        for side, values in (("task", found.task), ("private", found.private)):
            mean = Mean.of(values[network, main])
            made.append(Figure.mean(f"{name}.{network}.{side}", mean, note=drawn, limits=SHARE))
        made.append(worst_figure(f"{name}.{network}.private_worst", found.worst[network]))
    return [*made, *_all_points(name, points, found, picture)]


def _filters(experiment: Experiment, parts: Parts, seed: int) -> list[tuple[str, int, nn.Module]]:
    """Every filter to compare, learned on the training part: method, dimension, filter."""
    train = parts.inputs[0], parts.private[0], parts.task[0]
    binary = int(experiment.private.max()) == 1 and int(experiment.task.max()) == 1
    made = []
    for dimension in experiment.dimensions:
        for method, fit in BASELINES.items():
            if (method != "ddd" or binary) and (method != "none" or dimension == experiment.main):
                made.append((method, dimension, fit(*train, dimension, seed=seed)))
        learn = experiment.learn or (lambda *given: experiment.learning.fit(*given).filter)
        made.append((OURS, dimension, learn(*train, dimension, seed)))
    made += [(name, experiment.main, fit(*train, experiment.main, seed)) for name, fit in experiment.baselines.items()]
    made += [(name, experiment.main, learn(*train, seed)) for name, learn in experiment.networks.items()]
    return made


def _reconstruction(module: nn.Module, parts: Parts) -> float:
    """Relative error of the best linear reconstruction, in units of each input's deviation."""
    assert isinstance(module, LinearFilter)
    train, test = (part.double() for part in parts.inputs)
    scale = train.std(0).clamp_min(1e-9)
    weight = module.weight.double() * scale
    return reconstruction_attack(weight, None, test / scale, train / scale).regularized


def _points(found: Found, dimension: int) -> list[Point]:
    """What is drawn in the panel of a dimension: no filter has its place in every panel."""
    chosen = [key for key in found.task if key[1] == dimension or key[0] == "none"]
    return [Point(key[0], Mean.of(found.task[key]), Mean.of(found.private[key])) for key in chosen]


def _gap_figures(name: str, found: Found, experiment: Experiment) -> list[Figure]:
    """Ours (task - private) minus the best baseline's, at the main dimension and at the worst one."""
    gaps = {}
    compared = {*BASELINES, *experiment.baselines}
    for dimension in experiment.dimensions:
        places = [key for key in found.task if key[0] in compared and (key[1] == dimension or key[0] == "none")]
        best = max(places, key=lambda key: found.gap(*key).value)
        ours = found.gap(OURS, dimension)
        gaps[dimension] = ours.value - found.gap(*best).value, best[0], ours
    value, best_name, ours = gaps[experiment.main]
    least = min(gaps, key=lambda dimension: gaps[dimension][0])
    pairs = zip(found.gaps(OURS, experiment.main), found.gaps(best_name, experiment.main), strict=True)
    paired = Mean.of([own - other for own, other in pairs])
    note = (
        f"ours {ours.value:.3f}, {ours.low:.3f} to {ours.high:.3f}; best baseline: {best_name}; interval of the "
        "difference trial by trial"
    )
    return [
        Figure(f"{name}.best_baseline_gap", value, note=note).between(paired.low, paired.high),
        Figure(
            f"{name}.least_baseline_gap", gaps[least][0], note=f"over all dimensions: at d = {least}, {gaps[least][1]}"
        ),
    ]


def _all_points(name: str, points: dict[int, list[Point]], found: Found, picture: Path) -> list[Figure]:
    made = []
    for dimension, point in ((d, point) for d, panel in points.items() for point in panel if point.method != "none"):
        task, secret = point.task, point.private
        note = (
            f"task {task.value:.3f}, {task.low:.3f} to {task.high:.3f}; private {secret.value:.3f}, {secret.low:.3f} "
            f"to {secret.high:.3f}"
        )
        label = f"{name}.d{dimension}.{point.method}.trade_off"
        made.append(Figure.mean(label, found.gap(point.method, dimension), note=f"{note}; {picture}"))
    return made


def worst_figure(metric: str, findings: Sequence[Finding], note: str = "") -> Figure:
    """Of the worst attacker, the mean over trials; the people are the same in all of them, and so the ends of the
    interval, which is over people, are means as well.
    """
    names = " or ".join(sorted({finding.attacker for finding in findings}))
    value, low, high = (
        sum(getattr(finding, end) for finding in findings) / len(findings) for end in ("accuracy", "low", "high")
    )
    trials = "1 trial" if len(findings) == 1 else f"{len(findings)} trials"
    said = f"worst attacker: {names}; {note}{trials}, interval over people"
    return Figure(metric, value, note=said).between(low, high)
