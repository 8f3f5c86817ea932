"""Plots: private against task accuracy, with lines of equal trade-off (Hamm 2015), and naming against clips."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ppspeech.filters.attack.report import AttackReport
from ppspeech.intervals import Mean
from ppspeech.pictures import blank, save

MARKERS = {"none": "k*", "random": "C7v", "pca": "C0s", "ppls": "C1^", "ddd": "C2D", "minimax": "C3o"}
MOST_CURVES = 8
LEVEL = 0.1  # between two lines of equal task - private


@dataclass(frozen=True)
class Point:
    """A method at one dimension."""

    method: str
    task: Mean
    private: Mean


def plot_trade_off(panels: Mapping[int, Sequence[Point]], title: str, path: Path) -> None:
    """Save the plot, a panel for the points of each dimension: top left is best, the task kept and the person lost."""
    picture = blank(1 + 3.2 * len(panels), 4)
    row = picture.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    everyone = [point for points in panels.values() for point in points]
    low = min(point.task.value for point in everyone) - 0.05
    for axes, (dimension, points) in zip(row, panels.items(), strict=True):
        for step in range(-10, 11):
            axes.axline((0.0, LEVEL * step), slope=1.0, color="0.85", linewidth=0.8, linestyle=":", zorder=0)
        for point in points:
            axes.errorbar(
                point.private.value,
                point.task.value,
                xerr=point.private.half_width,
                yerr=point.task.half_width,
                fmt=MARKERS.get(point.method, "C4P"),
                capsize=2,
                label=point.method,
            )
        axes.set(title=f"d = {dimension}", xlabel="private accuracy", xlim=(0, 1), ylim=(max(0.0, low), 1))
    row[0].set_ylabel("task accuracy")
    row[-1].legend(fontsize="small")
    picture.suptitle(title)
    save(picture, path)


def plot_clips(report: AttackReport, title: str, path: Path) -> None:
    """Save how often people are named against the number of their clips: the worst attacker with its interval, and the
    attackers that are strongest somewhere.
    """
    picture = blank(7, 4.5)
    axes = picture.subplots()
    best: dict[str, float] = {}
    for found in report.findings:
        best[found.attacker] = max(best.get(found.attacker, 0.0), found.accuracy)
    for name in sorted(best, key=lambda each: -best[each])[:MOST_CURVES]:
        own = [found for found in report.findings if found.attacker == name]
        places = [found.clips for found in own]
        axes.plot(places, [found.accuracy for found in own], ".-", linewidth=0.8, alpha=0.7, label=name)
    worst = list(report.headline.values())
    rates = [found.accuracy for found in worst]
    errors = [[f.accuracy - f.low for f in worst], [f.high - f.accuracy for f in worst]]
    axes.errorbar([f.clips for f in worst], rates, errors, fmt="ko-", capsize=3, label="worst of all", zorder=3)
    axes.axhline(report.chance, color="0.6", linestyle=":", label="chance")
    axes.set_xscale("log")
    axes.set_xticks([f.clips for f in worst], [str(f.clips) for f in worst])
    axes.minorticks_off()
    axes.set(title=title, xlabel="clips of one person", ylabel=f"named, of {report.classes} people", ylim=(0, 1.02))
    axes.legend(fontsize="x-small", ncols=2)
    save(picture, path)
