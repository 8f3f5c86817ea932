"""Analyze Gauss: its sensitivity is attained, its noise has the law stated, and its doors hold."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.privacy import Relation
from ppspeech.privacy.accounting.accountant import Accountant
from ppspeech.privacy.accounting.hockey_stick import gaussian_sigma
from ppspeech.privacy.mechanisms.pca import (
    AnalyzeGauss,
    moment_sensitivity,
    pack_symmetric,
    principal_directions,
    unpack_symmetric,
    without_negative,
)
from ppspeech.privacy.relation import Adjacency


def mechanism(
    features: int, sigma: float = 1.0, adjacency: Adjacency = "add_remove", radius: float = 1.0
) -> AnalyzeGauss:
    return AnalyzeGauss(
        sigma=sigma, radius=radius, features=features, delta=1e-6, relation=Relation("record", adjacency)
    )


def moments(*rows: list[float]) -> Tensor:
    a = torch.tensor(rows, dtype=torch.double)
    return a.mT @ a


@given(st.lists(st.floats(-3, 3), min_size=6, max_size=6))
def test_packing_keeps_lengths_and_can_be_undone(entries: list[float]) -> None:
    matrix = unpack_symmetric(torch.tensor(entries, dtype=torch.double), 3)
    assert torch.equal(matrix, matrix.mT)
    packed = pack_symmetric(matrix)
    assert torch.allclose(packed, torch.tensor(entries, dtype=torch.double))
    assert math.isclose(float(packed.norm()), float(torch.linalg.matrix_norm(matrix)), abs_tol=1e-12)


@pytest.mark.parametrize("radius", [0.5, 1.0, 3.0])
def test_the_sensitivity_is_attained(radius: float) -> None:
    """By one row at an axis, added or removed; by two rows at right angles, exchanged: sqrt(2) R^2 and not 2 R^2."""
    one, other = moments([radius, 0.0]), moments([0.0, radius])
    assert float(one.norm()) == pytest.approx(moment_sensitivity(radius, "add_remove"))
    assert float((one - other).norm()) == pytest.approx(moment_sensitivity(radius, "replace"))


@settings(max_examples=200)
@given(st.lists(st.floats(-10, 10), min_size=8, max_size=8))
def test_no_pair_of_rows_exceeds_it(numbers: list[float]) -> None:
    one, other = torch.tensor(numbers, dtype=torch.double).reshape(2, 4)
    one, other = (row / max(1.0, float(row.norm())) for row in (one, other))
    move = one.outer(one) - other.outer(other)
    assert float(move.norm()) <= moment_sensitivity(1.0, "replace") * (1 + 1e-12)


def test_noise_has_half_the_variance_off_the_diagonal() -> None:
    chosen = mechanism(60, sigma=3.0)
    noise = torch.stack([chosen.release(torch.zeros(0, 60)).value for _ in range(10)])
    diagonal = noise.diagonal(dim1=1, dim2=2).reshape(-1).numpy()
    above = noise[:, *torch.triu_indices(60, 60, 1)].reshape(-1).numpy()
    assert stats.kstest(diagonal, stats.norm(scale=3.0).cdf).pvalue > 1e-4
    assert stats.kstest(above, stats.norm(scale=3.0 / math.sqrt(2)).cdf).pvalue > 1e-4
    assert stats.kstest(above, stats.norm(scale=3.0).cdf).pvalue < 1e-4


def test_the_largest_eigenvalue_of_the_noise_is_at_the_edge_of_the_semicircle() -> None:
    noise = mechanism(300, sigma=2.0).release(torch.zeros(0, 300)).value
    assert float(torch.linalg.eigvalsh(noise)[-1]) == pytest.approx(2.0 * math.sqrt(2 * 300), rel=0.08)


def test_calibration_costs_little_more_than_the_real_gaussian() -> None:
    chosen = AnalyzeGauss.calibrated(
        epsilon=0.5, delta=1e-6, radius=2.0, features=10, relation=Relation("record", "replace")
    )
    real = math.sqrt(2) * 4 * gaussian_sigma(0.5, 1e-6)
    assert real * 0.999 < chosen.sigma < 1.01 * real
    assert chosen.guarantee.epsilon == pytest.approx(0.5, rel=1e-4)
    assert chosen.guarantee.float_safe
    assert chosen.guarantee.rho == pytest.approx((math.sqrt(2) * 4 / chosen.sigma) ** 2 / 2, rel=0.01)


def test_half_the_noise_would_break_the_promise() -> None:
    promised = AnalyzeGauss.calibrated(
        epsilon=1.0, delta=1e-6, radius=1.0, features=4, relation=Relation("record", "add_remove")
    )
    mutant = mechanism(4, sigma=promised.sigma / 2)
    assert mutant.event.delta(1.0) > 10 * promised.event.delta(1.0)


def test_an_accountant_takes_the_event() -> None:
    account = Accountant(Relation("record", "add_remove"))
    account.compose(mechanism(4, sigma=10.0).release(torch.zeros(1, 4)).event)
    assert 0 < account.epsilon(1e-6) < 1


def test_long_rows_are_clipped_and_short_ones_kept() -> None:
    chosen = mechanism(2, sigma=1e-3)
    released = chosen.release(torch.tensor([[30.0, 40.0], [0.1, 0.0]])).value
    assert torch.allclose(released, moments([0.6, 0.8], [0.1, 0.0]), atol=0.02)
    assert released.dtype == torch.float64
    assert torch.equal(released, released.mT)


def test_all_rows_of_a_unit_together_move_it_by_no_more_than_one_row() -> None:
    chosen = AnalyzeGauss(sigma=1e-3, radius=1.0, features=2, delta=1e-6, relation=Relation("speaker", "add_remove"))
    rows = torch.cat([torch.tensor([[1.0, 0.0]]).expand(1000, 2), torch.tensor([[0.0, 1.0]])])
    ids = torch.cat([torch.zeros(1000), torch.ones(1)])
    released = chosen.release(rows, ids).value
    assert torch.allclose(released, torch.eye(2, dtype=torch.double), atol=0.02)


def test_frames_without_their_utterance_would_move_the_sum_beyond_the_bound() -> None:
    """Fifty frames of one utterance, each of the largest norm: what untied rows would add is fifty times the bound."""
    chosen = AnalyzeGauss(sigma=1e-3, radius=1.0, features=2, delta=1e-6, relation=Relation("utterance", "add_remove"))
    frames = torch.tensor([[1.0, 0.0]]).expand(50, 2)
    assert float((frames.mT @ frames).norm()) == 50 * moment_sensitivity(1.0, "add_remove")
    with pytest.raises(PrivacyError, match="which utterance it is of"):
        chosen.release(frames)
    moved = chosen.release(frames, torch.zeros(50)).value
    assert float(moved.norm()) == pytest.approx(1.0, abs=0.02)


def test_directions_of_many_rows_are_right_at_epsilon_1() -> None:
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(rng.normal(size=(50_000, 6)) * np.array([0.5, 0.3, 0.1, 0.1, 0.1, 0.1]))
    chosen = AnalyzeGauss.calibrated(
        epsilon=1.0, delta=1e-6, radius=1.0, features=6, relation=Relation("record", "add_remove")
    )
    found = principal_directions(chosen.release(rows).value, 2)
    assert found.shape == (2, 6)
    assert abs(float(found[0, 0])) > 0.999
    assert abs(float(found[1, 1])) > 0.99


def test_directions_are_those_of_the_svd() -> None:
    rows = torch.from_numpy(np.random.default_rng(1).normal(size=(30, 5)))
    expected = torch.linalg.svd(rows).Vh[:3]
    found = principal_directions(rows.mT @ rows, 3)
    assert torch.allclose((found * expected).sum(1).abs(), torch.ones(3, dtype=torch.double))


def test_without_negative_is_the_nearest() -> None:
    drawn = torch.from_numpy(np.random.default_rng(2).normal(size=(5, 5)))
    matrix = drawn + drawn.mT
    kept = without_negative(matrix)
    assert float(torch.linalg.eigvalsh(kept)[0]) > -1e-12
    positive = torch.linalg.eigvalsh(matrix).clamp(max=0)
    assert float((kept - matrix).norm()) == pytest.approx(float(positive.norm()))


def test_doors() -> None:
    chosen = mechanism(3)
    with pytest.raises(PrivacyError, match="3 features"):
        chosen.release(torch.zeros(2, 4))
    with pytest.raises(PrivacyError, match="3 features"):
        chosen.release(torch.zeros(3))
    with pytest.raises(PrivacyError, match="NaN"):
        chosen.release(torch.full((2, 3), torch.nan))
    with pytest.raises(PrivacyError, match="radius"):
        mechanism(3, radius=0.0)
    with pytest.raises(PrivacyError, match="features"):
        mechanism(0)
    with pytest.raises(PrivacyError, match="sigma"):
        mechanism(3, sigma=-1.0)
    for unit in ("utterance", "speaker", "party"):
        tied = AnalyzeGauss(sigma=1.0, radius=1.0, features=3, delta=1e-6, relation=Relation(unit, "add_remove"))
        with pytest.raises(PrivacyError, match=f"nothing here says which {unit} it is of"):
            tied.release(torch.zeros(2, 3))
        with pytest.raises(PrivacyError, match="2 rows need as many"):
            tied.release(torch.zeros(2, 3), torch.zeros(3))
    with pytest.raises(PrivacyError, match="4 directions"):
        principal_directions(torch.eye(3), 4)
