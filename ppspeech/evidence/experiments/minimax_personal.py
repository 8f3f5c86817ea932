"""Personal filters (UCI HAR, 15 people each with a filter of their own): activity kept, weighted subject risk (fig. 5).

In every trial 15 of the 30 people are drawn: they are the public (domain 1), on whom the common filter and the
baselines are learned. The other 15 (domain 2) start from the common filter and learn their own by Algorithm 3, on half
of their recordings; the other half is for the test, and no recording is divided. The private figures are the weighted
binary risk of eq. 7, averaged over people: for each an attacker is trained anew on everyone's filtered training
samples, to tell that person's from the others'; guessing is right half of the time. The paper divides by window, where
overlapping windows stand on both sides.

Personal filters that shift one's features are the headline; those with a whole affine map stand beside, and show that
an adversary who is not linear recognizes the map itself.

Needs the table har; --quick takes about 40 s.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from ppspeech.data import hold_out
from ppspeech.data.tables import Table, load_har
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.figures import Figure
from ppspeech.filters import (
    BASELINES,
    Learning,
    LinearFilter,
    PersonalFilter,
    PersonalSettings,
    improve_all_,
    weighted_risks,
    worst_risks,
)
from ppspeech.filters.attack import attack
from ppspeech.intervals import SHARE, Mean
from ppspeech.pictures import blank, save
from ppspeech.progress import track

PEOPLE = 15
FEATURES = 20
ROUNDS = 3
SETTINGS = PersonalSettings(rho=2.0, steps=3)
COMMON = Learning(rho=1.0, iterations=5)
ATTACKERS = ("logistic", "svm", "trees", "mlp", "neighbors")
QUICK_ATTACKERS = ("logistic", "neighbors")
ATTACKED_TRIALS = 3
"""Trials in which every attacker is trained, for each person anew; the others take logistic regression alone."""
CHOSEN = (
    "rho, steps and rounds were chosen on another draw (seed 100) of the same 30 people; shifts were preferred to "
    "affine maps after the attackers of trials 0 and 1 had been seen"
)


@dataclass
class Found:
    """What trials have found, by method; the rounds of the personal filters one after another."""

    task: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    private: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    worst: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    identified: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    attackers: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def mean(self, side: dict[str, list[float]], method: str) -> float:
        """Over trials."""
        return sum(side[method]) / len(side[method])

    def gap(self, method: str) -> float:
        """Task - private."""
        return self.mean(self.task, method) - self.mean(self.private, method)


@dataclass(frozen=True, eq=False)
class Domain:
    """The people who learn filters of their own: training and test samples, by person."""

    train: list[tuple[Tensor, Tensor]]
    test: list[tuple[Tensor, Tensor]]
    classes: int

    @classmethod
    def of(cls, table: Table, seed: int) -> "Domain":
        """Divide half of each person's recordings of each activity."""
        people, owners = _numbered(table)
        cells = owners * len(table.label_names) + table.labels
        is_test = hold_out(cells, table.extra["recording"], 0.5, seed)
        parts = []
        for rows in (~is_test, is_test):
            chosen = [rows & (owners == person) for person in range(people)]
            parts.append([(table.features[rows].double(), table.labels[rows]) for rows in chosen])
        return cls(parts[0], parts[1], len(table.label_names))


@EXPERIMENTS.register("minimax-personal")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Learn common and personal filters, attack them, and save the curves as `minimax_personal.png` in `folder`. Quick
    is two trials and fewer attackers, in the first alone, instead of ten.
    """
    table = load_har()
    trials = 2 if quick else 10
    found = Found()
    attackers = QUICK_ATTACKERS if quick else ATTACKERS
    for trial in track(range(trials), "Trials of personal filters"):
        run_trial(found, table, trial, PEOPLE, attackers if trial < (1 if quick else ATTACKED_TRIALS) else ())
    return figures(found, trials, folder)


def run_trial(
    found: Found, table: Table, seed: int, people: int, attackers: Sequence[str] = (), features: int = FEATURES
) -> None:
    """Draw `people` for the public, learn, and score everything on the others.

    The table has people as groups and `extra["recording"]`. The worst of the attackers stands beside logistic
    regression, and the affine maps beside the shifts; no attackers leaves both out.
    """
    assert table.groups is not None
    everyone = torch.tensor(sorted(set(table.groups.tolist())))
    drawn = everyone[torch.randperm(len(everyone), generator=torch.Generator().manual_seed(seed))]
    is_public = torch.isin(table.groups, drawn[:people])
    public, domain = table.select(is_public), Domain.of(table.select(~is_public), seed)
    _, owners = _numbered(public)
    sides = public.features, owners, public.labels
    common = COMMON.fit(*sides, features, seed).filter.double()
    assert isinstance(common, LinearFilter)
    for method, fit in BASELINES.items():
        if method != "ddd":  # binary labels only
            _score(found, method, [fit(*sides, features, seed=seed).double()] * len(domain.train), domain)
    _score(found, "common", [common] * len(domain.train), domain, attackers)
    personal = [PersonalFilter(common) for _ in domain.train]
    for number in range(1, ROUNDS + 1):
        improve_all_(personal, domain.train, domain.classes, SETTINGS)
        last = number == ROUNDS
        _score(found, "personal" if last else f"round{number}", personal, domain, attackers if last else ())
    if attackers:
        affine = [PersonalFilter(common, "affine") for _ in domain.train]
        for _ in range(ROUNDS):
            improve_all_(affine, domain.train, domain.classes, SETTINGS)
        _score(found, "affine", affine, domain, QUICK_ATTACKERS)  # neighbors already name nearly everyone


def figures(found: Found, trials: int, folder: Path) -> list[Figure]:
    """The figures, with the picture saved."""
    picture = folder / "minimax_personal.png"
    _plot(found, picture)
    setting = f"d = {FEATURES}, {ROUNDS} rounds of {SETTINGS.steps} steps, {trials} trials; {CHOSEN}"
    risk = "weighted binary risk, chance 0.5"
    linear = f"{risk}; logistic attacker"
    rivals = [method for method in found.task if method in BASELINES or method == "common"]
    best = max(rivals, key=found.gap)
    gain = found.mean(found.task, "personal") - found.mean(found.task, "common")
    return [
        _figure("task", found.task["personal"], f"paper 0.946; {setting}"),
        _figure("private", found.private["personal"], f"{linear}; paper 0.538; {setting}"),
        *_worst(found, "personal", "", risk),
        _figure("common.task", found.task["common"], "the filter all start from; paper 0.936"),
        _figure("common.private", found.private["common"], f"{linear}; paper 0.674"),
        *_worst(found, "common", "common.", risk),
        _figure("affine.task", found.task["affine"], "personal maps with d (d + 1) numbers instead of d"),
        _figure("affine.private", found.private["affine"], linear),
        *_worst(found, "affine", "affine.", risk),
        _figure("no_filter.task", found.task["none"], "all 561 inputs"),
        _figure("no_filter.private", found.private["none"], linear),
        Figure(
            "minimax.personal.best_baseline_gap",
            found.gap("personal") - found.gap(best),
            note=f"task - private of ours {found.gap('personal'):.3f}, of the best of {', '.join(rivals)}: {best}",
        ),
        Figure("minimax.personal.task_gain", gain, note=f"over the common filter; {picture}"),
    ]


def _figure(name: str, values: list[float], note: str) -> Figure:
    """A mean over trials; a single one has no interval."""
    if len(values) == 1:
        return Figure(f"minimax.personal.{name}", values[0], note=f"first trial; {note}")
    over = f"{note}; interval over {len(values)} trials, which draw from the same people"
    return Figure.mean(f"minimax.personal.{name}", Mean.of(values), note=over, limits=SHARE)


def _worst(found: Found, method: str, prefix: str, risk: str) -> list[Figure]:
    who = " or ".join(sorted(found.attackers[method]))
    return [
        _figure(f"{prefix}private_worst", found.worst[method], f"{risk}; worst attacker: {who}"),
        _figure(
            f"{prefix}identified_worst", found.identified[method], "whose sample it is, closed set, worst attacker"
        ),
    ]


def _numbered(table: Table) -> tuple[int, Tensor]:
    """How many people, and each row's as 0, 1 and so on."""
    assert table.groups is not None
    names, owners = torch.unique(table.groups, return_inverse=True)
    return len(names), owners


@torch.no_grad()
def _score(
    found: Found, method: str, filters: Sequence[nn.Module], domain: Domain, attackers: Sequence[str] = ()
) -> None:
    """Score filters, one a person, by what is learned from everyone's filtered training samples."""
    (train, train_task, train_owners), (test, test_task, test_owners) = (
        _joined(filters, part) for part in (domain.train, domain.test)
    )
    report = attack(train, train_task, test, test_task, ("logistic",), clips=(1,))
    found.task[method].append(report.worst.accuracy)
    found.private[method].append(float(weighted_risks(train, train_owners, test, test_owners).mean()))
    if not attackers:
        return
    found.identified[method].append(
        attack(train, train_owners, test, test_owners, attackers, clips=(1,)).worst.accuracy
    )
    risks, attacker = worst_risks(train, train_owners, test, test_owners, attackers)
    found.worst[method].append(float(risks.mean()))
    found.attackers[method].add(attacker)


def _joined(filters: Sequence[nn.Module], part: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Everyone's filtered samples, task labels and owners."""
    features = torch.cat([filter(x) for filter, (x, _) in zip(filters, part, strict=True)])
    owners = torch.cat([torch.full((len(z),), owner) for owner, (_, z) in enumerate(part)])
    return features, torch.cat([z for _, z in part]), owners


def _plot(found: Found, path: Path) -> None:
    """Both accuracies over the rounds, as figure 5 draws them."""
    methods = ["common", *(f"round{number}" for number in range(1, ROUNDS)), "personal"]
    picture = blank(7, 4)
    axes = picture.subplots()
    for label, results, style in (("activity", found.task, "C0o-"), ("subject risk (weighted)", found.private, "C3s-")):
        means = [Mean.of(results[method]) for method in methods]
        errors = [mean.half_width for mean in means]
        axes.errorbar(range(len(methods)), [mean.value for mean in means], errors, fmt=style, capsize=3, label=label)
    axes.axhline(0.5, color="0.6", linestyle=":", label="chance of the subject risk")
    axes.set(xlabel="rounds of Algorithm 3", ylabel="test accuracy", title="UCI HAR: personal filters", ylim=(0.4, 1))
    axes.set_xticks(range(len(methods)))
    axes.legend()
    save(picture, path)
