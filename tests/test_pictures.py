"""Pictures are saved whole, by their suffix, or not at all."""

from pathlib import Path

import pytest

from ppspeech.errors import PpspeechError
from ppspeech.intervals import Mean
from ppspeech.pictures import SUFFIXES, blank, curve, save, save_curves

MAGIC = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_suffix_chooses_the_format(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "new" / f"picture{suffix}"
    save(blank(2, 1), path)
    assert path.read_bytes().startswith(MAGIC[suffix])
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_another_suffix_is_refused_and_nothing_written(tmp_path: Path) -> None:
    with pytest.raises(PpspeechError, match=r"\.png, \.pdf or \.svg, got .*picture\.gif"):
        save(blank(2, 1), tmp_path / "picture.gif")
    assert not list(tmp_path.iterdir())


def test_a_curve_has_its_means_and_intervals() -> None:
    axes = blank(2, 1).subplots()
    curve(axes, {0.1: Mean(0.5, 0.1), 1.0: Mean(0.7, 0.2)}, "ours")
    assert axes.lines[0].get_xydata().tolist() == [[0.1, 0.5], [1.0, 0.7]]  # type: ignore[attr-defined]
    ((low, high), _) = axes.containers[0].lines[2][0].get_segments()  # type: ignore[attr-defined]
    assert (low[1], high[1]) == pytest.approx((0.4, 0.6))


def test_curves_are_saved_with_the_level_without_privacy(tmp_path: Path) -> None:
    path = tmp_path / "curves.svg"
    save_curves({"a": {1.0: Mean(0.5, 0.1)}}, path, title="title", ylabel="error", nonprivate=0.4, dashed={"a"})
    assert path.stat().st_size > 1000


def test_numbers_on_logarithmic_axes_are_plain(tmp_path: Path) -> None:
    picture = blank(4, 3)
    axes = picture.subplots()
    axes.plot([0.1, 1, 10], [2, 3, 4])
    axes.set(xscale="log", yscale="log", title="x^2 costs $5 and $6")
    save(picture, tmp_path / "a.svg")
    drawn = [label.get_text() for which in ("major", "minor") for label in axes.get_xticklabels(which=which)]
    drawn += [label.get_text() for which in ("major", "minor") for label in axes.get_yticklabels(which=which)]
    assert {"0.1", "1", "10", "2", "3", "4"} <= set(drawn)
    assert not [text for text in drawn if "$" in text or "times" in text]


def test_letters_that_no_font_has_are_no_warning(tmp_path: Path) -> None:
    picture = blank(2, 1)
    picture.subplots().set_title("はい $x_1$ 名前")
    save(picture, tmp_path / "a.png")  # warnings are errors here
