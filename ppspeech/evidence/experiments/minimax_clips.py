"""What attackers make of filters from one clip of a person and from ten, and what noise makes certain.

A person speaks more than once, and a filter that is published is known. The filters of `minimax` (linear, sigmoid) are
judged here again beside filters of codes, by attackers that know the filter and what was said, and add up clips. They
have all of the training part; filters have less of it, so that attackers know clips as new to the filter as the tested
ones are: a filter has no mistakes on what it learned from. Intervals are of people, drawn again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ppspeech.evidence.experiments.minimax import Experiment, worst_figure
from ppspeech.figures import Figure
from ppspeech.filters import (
    CodeNoise,
    NamingTarget,
    NoisyFilter,
    Standardized,
    codes_of,
    learn_codes,
)
from ppspeech.filters.attack import FilterEvidence, KnownFilter, judge
from ppspeech.intervals import SHARE, Mean, clopper_pearson
from ppspeech.progress import track

CLIPS = (1, 10)
QUICK = ("plda", "lda", "codes", "logistic")
ATTACKERS = ("plda", "lda", "mean", "codes", "logistic", "neighbors")
"""Of comparisons; our filter meets every attacker there is."""
UNDONE = ("plda", "lda")
NOISE_RUNS = 20
FIRST = 10
"""The first trial of all data: those before were looked at for settings."""
CHOSEN = (
    "settings alike for all data; a network, not a linear model, before codes: seen on draws 0, 1 (100, 101 of HAR)"
)

Learn = Callable[[Tensor, Tensor, Tensor, int], nn.Module]
"""From training inputs, private and task labels and a seed."""


def code_filters(classes: int, multiples: Sequence[int] = (1, 2, 4)) -> dict[str, Learn]:
    """Filters of one code a class (`codes`) and of more, and the network before them, bare: the curve of what comes
    through. The network's last layer has fewer features than units before it, and cannot be undone either.
    """

    def made(count: int) -> Learn:
        return lambda x, _, task, seed: learn_codes(x, task, count * classes, seed=seed)

    named = {f"codes_{count}x" if count > 1 else "codes": made(count) for count in multiples}
    return {**named, "continuous": lambda x, _, task, seed: BeforeCodes(learn_codes(x, task, seed=seed))}


class BeforeCodes(nn.Module):
    """The features that a filter of codes would replace."""

    def __init__(self, whole: Standardized) -> None:
        super().__init__()
        self.whole = whole
        self.features = whole.features

    def forward(self, x: Tensor) -> Tensor:
        """Filter `(..., D)` to `(..., features)`."""
        before: Tensor = self.whole.filter.before((x - self.whole.mean) / self.whole.scale)  # type: ignore[operator]
        return before


@dataclass(frozen=True, eq=False)
class Drawn:
    """A trial: what filters are learned from, what attackers know besides, and what both are tested on."""

    inputs: Tensor
    private: Tensor
    task: Tensor
    is_test: Tensor
    is_unseen: Tensor  # known to attackers, not to filters

    @classmethod
    def of(cls, experiment: Experiment, trial: int) -> "Drawn":
        """Divide the samples."""
        is_test = experiment.split(trial)
        unseen = experiment.unseen(trial) if experiment.unseen else torch.zeros_like(is_test)
        return cls(experiment.inputs, experiment.private, experiment.task, is_test, unseen & ~is_test)

    def learn(self, learn: Learn, seed: int) -> nn.Module:
        """A filter of what filters may be learned from."""
        rows = ~self.is_test & ~self.is_unseen
        return learn(self.inputs[rows], self.private[rows], self.task[rows], seed)

    @torch.no_grad()
    def judged(
        self, module: nn.Module, attackers: Sequence[str] | None, seed: int, clips: Sequence[int]
    ) -> FilterEvidence:
        """What the task and attackers make of it."""
        train, test = (
            (module(self.inputs[rows]), self.task[rows], self.private[rows]) for rows in (~self.is_test, self.is_test)
        )
        known = KnownFilter(module)
        if attackers is not None:  # on what an undone filter shows, where it can be undone
            attackers = (*attackers, *(f"{view}.{name}" for view in known.views(train[0], seed) for name in UNDONE))
        with torch.enable_grad():
            return judge(train, test, attackers, known=known, clips=clips, seed=seed)


def run_clips(
    experiment: Experiment,
    filters: Mapping[str, Learn],
    trials: Sequence[int],
    attackers: Sequence[str] | None = None,
    clips: Sequence[int] = CLIPS,
) -> dict[str, list[FilterEvidence]]:
    """Judge no filter and others, each in one trial, and `codes` in all of them, by every attacker unless some are
    named.
    """
    found: dict[str, list[FilterEvidence]] = {}
    every: dict[str, Learn] = {"none": lambda *_: nn.Identity(), **filters}
    for number, trial in enumerate(track(trials, f"Clips of {experiment.name}")):
        drawn = Drawn.of(experiment, trial)
        for name, learn in every.items():
            if number == 0 or name == "codes":
                chosen = attackers or (None if name == "codes" else ATTACKERS)
                found.setdefault(name, []).append(drawn.judged(drawn.learn(learn, trial), chosen, trial, clips))
    return found


def clip_figures(experiment: Experiment, found: Mapping[str, list[FilterEvidence]], what: str = "clip") -> list[Figure]:
    """`task`, `worst_1` and `worst_10` of the filter of codes, and the same of the others below their names."""
    name, tested = f"minimax.{experiment.name}", int(experiment.split(FIRST).sum())
    made = []
    for method, evidence in found.items():
        label = {"codes": name, "none": f"{name}.no_filter"}.get(method, f"{name}.{method}")
        trials = "1 trial" if len(evidence) == 1 else f"{len(evidence)} trials"
        if method == "codes":
            note = f"{trials}; one code a class; no filter {found['none'][0].task.accuracy:.3f}; {CHOSEN}"
            made.append(_task(f"{label}.task", [e.task.accuracy for e in evidence], tested, note))
        elif method != "none":
            made.append(_task(f"{label}.clips.task", [evidence[0].task.accuracy], tested, trials))
        for clips in (clips for clips in CLIPS if clips in evidence[0].attacks.clips):
            worst = [e.attacks.worst_at(clips) for e in evidence]
            among = len({f.attacker for f in evidence[0].attacks.findings})
            note = (
                f"of {among}, from {clips} {what}{'s' if clips > 1 else ''}; "
                f"chance {1 / evidence[0].attacks.classes:.3f}; "
            )
            made.append(worst_figure(f"{label}.worst_{clips}", worst, note))
    return made


def _task(metric: str, values: Sequence[float], tested: int, note: str) -> Figure:
    """A mean over trials; of a single one, over the samples that were tested."""
    if len(values) == 1:
        ends = clopper_pearson(values[0] * tested, tested)
        return Figure(metric, values[0], note=f"{note}; interval over {tested:,} samples").between(*ends)
    return Figure.mean(metric, Mean.of(list(values)), note=f"{note}; interval over trials", limits=SHARE)


def certified_figures(experiment: Experiment, at_most: float, trial: int) -> list[Figure]:
    """Random codes with which nobody names anyone more often from ten clips, what the task keeps, and what counts keep:
    how far the share of a class, told of N random codes, is from the truth (one standard deviation).
    """
    name, people = f"minimax.{experiment.name}", int(experiment.private.max()) + 1
    drawn = Drawn.of(experiment, trial)
    module = drawn.learn(code_filters(int(experiment.task.max()) + 1)["codes"], trial)
    codes = codes_of(module)
    assert codes is not None
    noise = CodeNoise.for_naming(NamingTarget(at_most, people, 10), codes=codes)
    naming, noisy = noise.naming(people, 10), NoisyFilter(module, noise)
    # The likeliest class of what is told is its own.
    told = [noisy(drawn.inputs[drawn.is_test]) for _ in range(NOISE_RUNS)]
    own = torch.stack([(x.unsqueeze(1) == codes.to(x)).all(-1).double().argmax(-1) for x in told])
    kept = float((own == drawn.task[drawn.is_test]).double().mean())
    off = {count: (0.09 / count) ** 0.5 / noise.truth for count in (10_000, 1_000_000)}
    counted = ", ".join(f"{count:,} clips: {spread:.4f}" for count, spread in off.items())
    return [
        Figure(
            f"{name}.certified_10",
            naming.value,
            note=f"{naming}: random codes of epsilon {noise.epsilon:.3f} a clip; without noise kind none, no bound",
        ),
        Figure(
            f"{name}.certified_10.task", kept, note=f"from one clip, {NOISE_RUNS} draws; chance {1 / len(codes):.2f}"
        ),
        Figure(f"{name}.certified_10.share_error", off[1_000_000], note=f"of a class of share 0.1 among {counted}"),
    ]
