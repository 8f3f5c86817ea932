"""Pictures: drawn without a display, saved whole or not at all."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppspeech.errors import PpspeechError
from ppspeech.storage import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ppspeech.intervals import Mean

SUFFIXES = (".png", ".pdf", ".svg")


def blank(width: float, height: float) -> "Figure":
    """An empty picture, in inches; nothing is left open when it is forgotten."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(picture: "Figure", path: str | Path, dpi: int = 150) -> None:
    """Save as .png, .pdf or .svg, by the suffix; missing folders are made.

    Raises:
        PpspeechError: for another suffix; nothing is written.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise PpspeechError(f"a picture is saved as .png, .pdf or .svg, got {path}")
    _make_readable(picture)
    with atomic_write(path) as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)  # a box stands for the letter
        picture.savefig(temporary, dpi=dpi)


def shortened(name: str, most: int = 24) -> str:
    """A name for an axis, where long ones leave no room for what is drawn."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _make_readable(picture: "Figure") -> None:
    """Numbers along logarithmic axes as people write them, and text as it was written: a $ begins no formula."""
    from matplotlib.text import Text
    from matplotlib.ticker import FuncFormatter, LogFormatter, NullFormatter

    plain = FuncFormatter(lambda value, _: f"{value:g}")
    for axes in picture.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() == "log" and isinstance(axis.get_major_formatter(), LogFormatter):
                low, high = sorted(axis.get_view_interval())
                axis.set_major_formatter(plain)
                axis.set_minor_formatter(plain if high < 10 * low else NullFormatter())
    for text in picture.findobj(Text):
        text.set_parse_math(False)


def curve(axes: "Axes", points: "Mapping[float, Mean]", label: str, **style: Any) -> None:
    """Draw means with their intervals."""
    means = points.values()
    looks: dict[str, Any] = {"marker": "o", "capsize": 3} | style
    axes.errorbar(list(points), [m.value for m in means], [m.half_width for m in means], label=label, **looks)


def save_curves(
    curves: "Mapping[str, Mapping[float, Mean]]",
    path: Path,
    *,
    title: str,
    ylabel: str,
    nonprivate: float | None = None,
    dashed: frozenset[str] | set[str] = frozenset(),
) -> None:
    """Save one panel of curves against epsilon for one record.

    Args:
        curves: by the name in the legend: means by epsilon.
        path: of the picture.
        title: over it.
        ylabel: what the means are of.
        nonprivate: a level to compare with.
        dashed: names of those that are only there to compare with.
    """
    picture = blank(7, 5)
    axes = picture.subplots()
    if nonprivate is not None:
        axes.axhline(nonprivate, color="black", linestyle="--", label="without privacy")
    for name, points in curves.items():
        curve(axes, points, name, linestyle="--" if name in dashed else "-")
    axes.set(xscale="log", xlabel="epsilon, one record", ylabel=ylabel, title=title)
    axes.legend(fontsize="small")
    save(picture, path)
