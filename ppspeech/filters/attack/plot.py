"""The plot of Hamm 2015: private accuracy against task accuracy, with lines of equal trade-off, a panel a dimension."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ppspeech.intervals import Mean
from ppspeech.pictures import blank, save

MARKERS = {"none": "k*", "random": "C7v", "pca": "C0s", "ppls": "C1^", "ddd": "C2D", "minimax": "C3o"}
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
