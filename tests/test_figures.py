"""Figures with intervals: of means, shares and counts, in the table and in JSON."""

import json

import pytest
from scipy.stats import binomtest

from ppspeech.figures import Figure, show_figures
from ppspeech.intervals import SHARE, Mean, clopper_pearson


@pytest.mark.parametrize(("right", "trials"), [(0, 300), (1, 300), (297, 300), (300, 300), (5, 9), (1, 1)])
def test_a_share_has_the_exact_interval(right: int, trials: int) -> None:
    figure = Figure.share("words.accuracy", right, trials, "utterances", "peer", 0.5, note="three people")
    wanted = binomtest(right, trials).proportion_ci(0.95, "exact")
    assert (figure.low, figure.high) == pytest.approx((wanted.low, wanted.high), abs=1e-12)
    assert (figure.value, figure.peer, figure.peer_value) == (right / trials, "peer", 0.5)
    assert figure.note == f"three people; interval over {trials} utterances"


def test_the_interval_of_the_literature() -> None:
    """Of 5 in 10: 0.187 to 0.813 (Clopper and Pearson 1934; Agresti and Coull 1998)."""
    assert clopper_pearson(5, 10) == pytest.approx((0.1871, 0.8129), abs=5e-5)


def test_a_count_of_none_has_an_upper_bound() -> None:
    figure = Figure.count("flips", 0, 300, "clips")
    assert (figure.value, figure.low) == (0, 0.0)
    assert figure.high == pytest.approx(300 * (1 - 0.025 ** (1 / 300)))


def test_a_mean_stays_within_its_limits() -> None:
    mean = Mean.of([0.97, 0.98, 1.0])
    free, bound = Figure.mean("a", mean), Figure.mean("a", mean, limits=SHARE)
    assert (free.low, free.high) == pytest.approx((mean.value - mean.half_width, mean.value + mean.half_width))
    assert free.high is not None
    assert free.high > 1
    assert (bound.low, bound.high) == (free.low, 1.0)


def test_an_interval_of_a_bootstrap_is_widened_to_hold_the_value() -> None:
    figure = Figure("a", 0.5).between(0.6, 0.7)
    assert (figure.low, figure.high) == (0.5, 0.7)


def test_what_never_varied_is_not_called_certain() -> None:
    figure = Figure.mean("a", Mean.of([0.5, 0.5, 0.5]), note="three draws")
    assert (figure.low, figure.high, figure.note) == (None, None, "three draws; nothing varied: no interval")
    assert Figure.mean("a", Mean(1.0, 0.1), limits=SHARE).low == 0.9


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.1, None, "both ends"),
        (None, 0.9, "both ends"),
        (0.6, 0.9, "must hold its value"),
        (0.1, 0.4, "must hold its value"),
        (float("nan"), 0.9, "must hold its value"),
    ],
)
def test_a_wrong_interval_is_refused(low: float | None, high: float | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Figure("a", 0.5, low=low, high=high)


@pytest.mark.parametrize(("right", "trials"), [(3, 2), (-1, 2), (0, 0)])
def test_more_right_than_tried_is_refused(right: int, trials: int) -> None:
    with pytest.raises(ValueError, match=f"got {right} of {trials}"):
        clopper_pearson(right, trials)


def test_one_value_has_no_interval() -> None:
    with pytest.raises(ValueError, match="two values or more, got 1"):
        Mean.of([1.0])


def test_intervals_are_shown_where_there_are_any(capsys: pytest.CaptureFixture[str]) -> None:
    show_figures([Figure("a", 1.0), Figure("b", 0.5, "s").between(0.25, 0.75)], as_json=False)
    assert "0.25 to 0.75" in capsys.readouterr().out
    show_figures([Figure("a", 1.0)], as_json=False)
    assert "interval" not in capsys.readouterr().out
    show_figures([Figure("a", 1.0), Figure("b", 0.5).between(0.25, 0.75)], as_json=True)
    plain, ranged = map(json.loads, capsys.readouterr().out.splitlines())
    assert plain == {"metric": "a", "value": 1.0, "unit": ""}
    assert (ranged["low"], ranged["high"]) == (0.25, 0.75)
