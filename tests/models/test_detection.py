from itertools import pairwise

import matplotlib
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import det_curve as sklearn_det_curve
from sklearn.metrics import roc_curve

from ppspeech.errors import ModelError
from ppspeech.models.measures import (
    det_curve,
    equal_error_rate,
    equal_error_threshold,
    error_rates,
    minimum_dcf,
    plot_det,
)


def trials(seed: int = 0, count: int = 300, levels: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.rand(count, generator=generator) < 0.3
    labels[0], labels[1] = True, False
    scores = torch.randn(count, generator=generator, dtype=torch.float64) + 1.5 * labels
    return (scores if levels is None else (scores * levels).round() / levels), labels


def slow_rates(scores: torch.Tensor, labels: torch.Tensor, threshold: float) -> tuple[float, float]:
    pairs = list(zip(scores.tolist(), labels.tolist(), strict=True))
    targets = [score for score, target in pairs if target]
    impostors = [score for score, target in pairs if not target]
    miss = sum(score < threshold for score in targets) / len(targets)
    return miss, sum(score >= threshold for score in impostors) / len(impostors)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), count=st.integers(2, 40), levels=st.sampled_from([None, 1, 3]))
def test_rates_are_those_of_counting(seed: int, count: int, levels: int | None) -> None:
    scores, labels = trials(seed, count, levels)
    rates = error_rates(scores, labels)
    assert rates.threshold[:-1].tolist() == sorted(set(scores.tolist()))
    for index, threshold in enumerate(rates.threshold.tolist()):
        miss, false_alarm = slow_rates(scores, labels, threshold)
        assert float(rates.miss[index]) == pytest.approx(miss)
        assert float(rates.false_alarm[index]) == pytest.approx(false_alarm)
    assert (float(rates.miss[0]), float(rates.false_alarm[0])) == (0, 1)
    assert (float(rates.miss[-1]), float(rates.false_alarm[-1])) == (1, 0)


@pytest.mark.parametrize("levels", [None, 4])
def test_rates_are_scikit_learns(levels: int | None) -> None:
    scores, labels = trials(1, levels=levels)
    rates = error_rates(scores, labels)
    false_alarm, hit, threshold = roc_curve(labels.numpy(), scores.numpy(), drop_intermediate=False)
    np.testing.assert_allclose(rates.false_alarm.numpy(), false_alarm[::-1], atol=1e-12)
    np.testing.assert_allclose(rates.miss.numpy(), 1 - hit[::-1], atol=1e-12)
    np.testing.assert_allclose(rates.threshold.numpy(), threshold[::-1])
    # scikit-learn's DET curve is the same without the ends.
    theirs = np.stack(sklearn_det_curve(labels.numpy(), scores.numpy()), -1)
    ours = torch.stack([rates.false_alarm, rates.miss, rates.threshold], -1).numpy()
    for row in theirs:
        assert np.isclose(ours, row).all(-1).any()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), count=st.integers(2, 60), levels=st.sampled_from([None, 1, 2]))
def test_equal_error_rate_lies_on_the_curve_and_on_the_diagonal(seed: int, count: int, levels: int | None) -> None:
    scores, labels = trials(seed, count, levels)
    found = equal_error_rate(scores, labels)
    rates = error_rates(scores, labels)
    points = list(zip(rates.miss.tolist(), rates.false_alarm.tolist(), strict=True))
    crossings = []
    for (miss, alarm), (miss_next, alarm_next) in pairwise(points):
        if miss <= alarm and miss_next >= alarm_next:
            share = (alarm - miss) / ((alarm - miss) + (miss_next - alarm_next))
            crossings.append(miss + share * (miss_next - miss))
    assert found == pytest.approx(crossings[0], abs=1e-12)


def test_equal_error_rate_of_two_normals() -> None:
    """Scores at exact normal quantiles, one apart: EER = Phi(-1/2)."""
    quantiles = torch.special.ndtri((torch.arange(2000, dtype=torch.float64) + 0.5) / 2000)
    scores = torch.cat([quantiles, quantiles + 1])
    labels = torch.arange(4000) >= 2000
    assert equal_error_rate(scores, labels) == pytest.approx(norm.cdf(-0.5), abs=1e-3)
    assert equal_error_threshold(scores, labels) == pytest.approx(0.5, abs=5e-3)


def test_the_ends_of_the_scale() -> None:
    labels = torch.tensor([0, 0, 1, 1])
    assert equal_error_rate(torch.tensor([1.0, 2, 3, 4]), labels) == 0
    assert equal_error_rate(torch.tensor([4.0, 3, 2, 1]), labels) == 1
    assert equal_error_rate(torch.ones(4), labels) == 0.5
    assert equal_error_threshold(torch.tensor([1.0, 2, 3, 4]), labels) == 3
    assert equal_error_rate(torch.tensor([-torch.inf, 2, 3, torch.inf]), labels) == 0
    assert minimum_dcf(torch.tensor([1.0, 2, 3, 4]), labels) == 0
    assert minimum_dcf(torch.ones(4), labels) == 1


@pytest.mark.parametrize(("p", "miss_cost", "alarm_cost"), [(0.01, 1, 1), (0.5, 1, 1), (0.01, 10, 1), (0.9, 1, 3)])
def test_minimum_dcf_is_the_least_of_all_thresholds(p: float, miss_cost: float, alarm_cost: float) -> None:
    scores, labels = trials(3)
    costs = []
    for threshold in [*scores.tolist(), float("inf")]:
        miss, false_alarm = slow_rates(scores, labels, threshold)
        costs.append(miss_cost * p * miss + alarm_cost * (1 - p) * false_alarm)
    expected = min(costs) / min(miss_cost * p, alarm_cost * (1 - p))
    found = minimum_dcf(scores, labels, p_target=p, c_miss=miss_cost, c_fa=alarm_cost)
    assert found == pytest.approx(expected)
    assert 0 < found <= 1


def test_det_curve_is_the_rates_on_probit_axes() -> None:
    scores, labels = trials(4)
    false_alarm, miss = det_curve(scores, labels)
    rates = error_rates(scores, labels)
    inside = (rates.miss > 0) & (rates.miss < 1) & (rates.false_alarm > 0) & (rates.false_alarm < 1)
    np.testing.assert_allclose(norm.cdf(miss.numpy()), rates.miss[inside].numpy(), rtol=1e-9)
    np.testing.assert_allclose(norm.cdf(false_alarm.numpy()), rates.false_alarm[inside].numpy(), rtol=1e-9)
    assert len(miss) > 100
    assert len(det_curve(torch.tensor([1.0, 2, 3]), torch.tensor([0, 1, 1]))[0]) == 0


def test_plot_has_the_curve_and_percentages() -> None:
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    scores, labels = trials(5)
    line = plot_det(axes, scores, labels, label="ours")
    np.testing.assert_allclose(line.get_ydata(), det_curve(scores, labels)[1].numpy())
    figure.canvas.draw()
    assert "10" in [text.get_text() for text in axes.get_xticklabels()]
    pyplot.close(figure)


def test_refusals() -> None:
    labels = torch.tensor([0, 1, 1])
    with pytest.raises(ModelError, match="1 of 3 scores are NaN"):
        error_rates(torch.tensor([0.0, torch.nan, 1.0]), labels)
    with pytest.raises(ModelError, match="3 targets and 0 impostors"):
        equal_error_rate(torch.zeros(3), torch.ones(3))
    with pytest.raises(ModelError, match="0 targets"):
        minimum_dcf(torch.zeros(3), torch.zeros(3))
    with pytest.raises(ModelError, match="differ in shape"):
        det_curve(torch.zeros(2), labels)
    for options in ({"p_target": 0.0}, {"p_target": 1.0}, {"c_miss": 0.0}, {"c_fa": -1.0}):
        with pytest.raises(ModelError, match="detection costs need"):
            minimum_dcf(torch.arange(3.0), labels, **options)
