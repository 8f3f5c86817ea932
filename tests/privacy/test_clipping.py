"""Bounds on contributions hold for every input, and match slow loops."""

import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ppspeech.errors import PrivacyError
from ppspeech.privacy.gradients.clipping import (
    clip_norm,
    clipped_unit_sums,
    contribution_weights,
    limit_contributions,
    unit_means,
    unit_sums,
)

IDS = torch.tensor([7, 3, 7, 7, 9, 3])


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=20),
    st.floats(1e-3, 1e3),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_no_norm_exceeds_the_bound(values: list[float], bound: float, dtype: torch.dtype) -> None:
    x = torch.tensor(values, dtype=dtype)
    clipped = clip_norm(x, bound)
    exact = math.sqrt(math.fsum(v * v for v in clipped.tolist()))
    assert exact <= bound
    if math.sqrt(math.fsum(v * v for v in x.tolist())) <= bound * (1 - 1e-6):
        assert torch.equal(clipped, x)
    elif bool((x != 0).any()):
        assert exact >= bound * (1 - 1e-5)


def test_matrices_are_clipped_whole() -> None:
    x = torch.ones(3, 2, 2)
    assert torch.linalg.vector_norm(clip_norm(x, 1.0, dims=2), dim=(1, 2)).tolist() == pytest.approx(
        [1.0] * 3, rel=1e-5
    )
    assert torch.equal(clip_norm(torch.zeros(4), 1.0), torch.zeros(4))


def test_clipping_refuses_what_it_cannot_bound() -> None:
    with pytest.raises(PrivacyError, match="NaN"):
        clip_norm(torch.tensor([1.0, math.nan]), 1.0)
    with pytest.raises(PrivacyError, match="bound"):
        clip_norm(torch.ones(2), 0.0)
    with pytest.raises(PrivacyError, match="dims"):
        clip_norm(torch.ones(2), 1.0, dims=2)


def test_sums_and_means_against_a_loop() -> None:
    values = torch.randn(6, 4, 2, dtype=torch.float64)
    groups = [values[unit == IDS] for unit in (3, 7, 9)]
    assert torch.allclose(unit_sums(values, IDS), torch.stack([group.sum(0) for group in groups]))
    assert torch.allclose(unit_means(values, IDS), torch.stack([group.mean(0) for group in groups]))
    with pytest.raises(PrivacyError, match="unit ids"):
        unit_sums(values[:5], IDS)
    with pytest.raises(PrivacyError, match="one vector"):
        limit_contributions(IDS.reshape(2, 3), 1)


def test_adding_or_removing_any_unit_moves_the_total_by_at_most_the_bound() -> None:
    values = torch.randn(6, 5, dtype=torch.float64) * 100
    total = clipped_unit_sums(values, IDS, 2.0).sum(0)
    for unit in (3, 7, 9):
        rest = unit != IDS
        assert (clipped_unit_sums(values[rest], IDS[rest], 2.0).sum(0) - total).norm() <= 2.0 + 1e-12


def test_weights_of_a_unit_sum_to_at_most_the_bound() -> None:
    ids = torch.cat([torch.zeros(1_000_000, dtype=torch.int64), torch.ones(3, dtype=torch.int64)])
    weights = contribution_weights(ids, 10.0)
    assert float(weights[ids == 0].sum()) == pytest.approx(10.0)
    assert weights[ids == 1].tolist() == [1.0, 1.0, 1.0]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(1, 5))
def test_every_unit_keeps_exactly_what_it_may(ids: list[int], most: int) -> None:
    kept = limit_contributions(torch.tensor(ids), most).tolist()
    assert kept == sorted(set(kept))
    assert Counter(ids[i] for i in kept) == {unit: min(count, most) for unit, count in Counter(ids).items()}


def test_the_subset_is_uniform() -> None:
    """False-alarm rate 1e-6."""
    drawn = Counter(tuple(limit_contributions(torch.zeros(4), 2).tolist()) for _ in range(1200))
    assert len(drawn) == 6
    assert stats.chisquare(list(drawn.values())).pvalue > 1e-6
