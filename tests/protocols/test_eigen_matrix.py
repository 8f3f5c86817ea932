"""Squaring and scaling a shared matrix: against whole numbers, within the error stated, on shares that look uniform."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from ppspeech.arrays import Residues
from ppspeech.crypto.numbers import Ring, exact_product
from ppspeech.crypto.randomness import uniform_residues
from ppspeech.crypto.shares import record
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.network import run_together
from ppspeech.protocols.eigen.matrix import (
    LIMB,
    LIMBS,
    NARROW,
    NARROW_FRACTION,
    START,
    START_FRACTION,
    WIDE,
    WIDE_FRACTION,
    Met,
    limbs,
    moved,
    normalize,
    project,
    square,
    squaring_shift,
    upper,
    whole,
    widen,
)
from ppspeech.protocols.meeting import meet_as_client, meet_as_server
from tests.protocols.eigen_problems import problem, spectrum


def shared(values: NDArray[np.float64], ring: Ring, fraction: int) -> tuple[Residues, Residues]:
    """Both parties' shares of real numbers; of a symmetric matrix, symmetric ones."""
    words = ring.from_signed(np.rint(np.ldexp(values, fraction)).astype(np.int64))
    mask = uniform_residues(words.shape, ring.bits)
    if words.ndim == 2:
        mask = whole(upper(mask), len(mask))
    return ring.reduce(words - mask), mask


def on_both(job: Callable[[Met, int], Any]) -> tuple[Any, Any]:
    """Run one job as two parties who have met; the second argument says which of them."""
    return run_together(lambda c: job(meet_as_server(c), 0), lambda c: job(meet_as_client(c), 1))


def on_engines(job: Callable[[ShareEngine, int], Any]) -> tuple[Any, Any]:
    cost = record(lambda engine: job(engine, 1))

    def run(met: Met, own: int) -> Any:
        with met.session():
            return job(ShareEngine(met.channel, met.setup, cost), own)

    return on_both(run)


def moments(features: int, seed: int = 0, *, flat: bool = False) -> NDArray[np.float64]:
    """A matrix without negative eigenvalues and of trace 0.9."""
    values = spectrum(features, flat=flat)
    frames, _ = problem(0.9 * values / values.sum(), seed, parties=1)
    return frames[0].T @ frames[0]


@given(st.lists(st.integers(0, 2**60 - 1), min_size=1, max_size=8))
def test_limbs_and_moved_words_make_the_word_again(numbers: list[int]) -> None:
    words = np.array([numbers], np.uint64)
    cut = limbs(words).reshape(LIMBS, -1)
    assert np.abs(cut).max() <= 1 << (LIMB - 1)
    for number, parts in zip(numbers, cut.T.tolist(), strict=True):
        assert sum(part << (LIMB * place) for place, part in enumerate(parts)) % 2**60 == number
    real = moved(words).reshape(LIMBS, -1)
    for place in range(LIMBS):
        expected = WIDE.to_signed(WIDE.reduce(words[0] << np.uint64(LIMB * place))) / 2.0**58
        assert np.abs(real[place] - expected).max() <= 2.0**-40


def test_upper_and_whole_are_each_others_inverse() -> None:
    matrix = whole(np.arange(10, dtype=np.uint64), 4)
    assert (matrix == matrix.T).all()
    assert upper(matrix).tolist() == list(range(10))


@pytest.mark.parametrize("features", [2, 39])
def test_a_square_is_that_of_whole_numbers_within_the_error_stated(features: int) -> None:
    matrix = moments(features)
    integers = np.rint(np.ldexp(matrix, WIDE_FRACTION)).astype(np.int64)
    shares = shared(matrix, WIDE, WIDE_FRACTION)
    results = on_both(lambda met, own: square(met, shares[own]))
    found = NARROW.to_signed(NARROW.join(*results))
    twin = exact_product(integers, integers)
    error = found * 2.0**-NARROW_FRACTION - (twin.astype(np.float64) * 2.0 ** (-2 * WIDE_FRACTION))
    # Standard deviation 2^-26 off the diagonal and 2^-25.5 on it.
    assert np.abs(error).max() < 6 * 2.0**-25.5
    assert error[np.triu_indices(features)].std() < 2.5 * 2.0**-26
    assert (results[0] == results[0].T).all()


def test_shares_of_a_square_look_uniform_and_their_sum_does_not() -> None:
    """Chi-square at 1e-4 on the low and the high byte of what either party holds, for one matrix squared again."""
    shares = shared(moments(6), WIDE, WIDE_FRACTION)
    above = np.triu_indices(6, 1)
    runs = 120

    def job(met: Met, own: int) -> Residues:
        return np.stack([square(met, shares[own])[above] for _ in range(runs)])

    first, second = on_both(job)
    for words in (first, second):
        for byte in (words & np.uint64(255), words >> np.uint64(24)):
            assert stats.chisquare(np.bincount(byte.astype(np.int64).ravel(), minlength=256)).pvalue > 1e-4
        assert abs(np.corrcoef(words[:, 0], words[:, 1])[0, 1]) < 4 / np.sqrt(runs)
    total = NARROW.join(first, second) >> np.uint64(24)
    assert stats.chisquare(np.bincount(total.astype(np.int64).ravel(), minlength=256)).pvalue < 1e-4


def test_scaling_brings_the_trace_above_one_half() -> None:
    features, most = 5, squaring_shift(39)
    matrices = [trace * moments(features) / 0.9 for trace in (1.0, 0.75, 0.5, 0.3, 2.0**-6.5, 1 / 78)]
    shares = [shared(matrix, NARROW, NARROW_FRACTION) for matrix in matrices]

    def job(engine: ShareEngine, own: int) -> list[Residues]:
        return [normalize(engine, upper(pair[own]), features, NARROW, NARROW_FRACTION, most) for pair in shares]

    results = on_engines(job)
    for matrix, first, second in zip(matrices, *results, strict=True):
        found = NARROW.to_signed(NARROW.join(first, second)) * 2.0**-NARROW_FRACTION
        powers = 2.0 ** np.arange(most + 1)
        (power,) = powers[np.isclose(found[0], powers * matrix[0, 0], rtol=1e-4)]
        assert np.abs(found - power * matrix[np.triu_indices(features)]).max() < 2.0**-20
        assert 0.5 - 1e-6 <= power * np.trace(matrix) <= 1 + 1e-6


def test_widening_keeps_the_value() -> None:
    matrix = moments(7)
    shares = [upper(share) for share in shared(matrix, NARROW, NARROW_FRACTION)]
    results = on_engines(lambda engine, own: widen(engine, shares[own], 7))
    found = WIDE.to_signed(WIDE.join(*results)) * 2.0**-WIDE_FRACTION
    assert np.abs(found - matrix).max() <= 2 * 2.0**-WIDE_FRACTION


def test_projection_takes_directions_out_of_shares() -> None:
    matrix = moments(9)
    directions = np.linalg.eigh(matrix)[1].T[::-1][:2]
    results = [project(share, directions) for share in shared(matrix, WIDE, WIDE_FRACTION)]
    found = whole(START.join(*results), 9)
    projection = np.eye(9) - directions.T @ directions
    real = START.to_signed(found) * 2.0**-START_FRACTION
    assert np.abs(real - projection @ matrix @ projection).max() < 2e-4
    assert np.abs(real @ directions.T).max() < 2e-4


@pytest.mark.parametrize("features", [2, 3, 39, 64, 65])
def test_the_shift_covers_the_flattest_spectrum(features: int) -> None:
    assert 0.25 / features * 2.0 ** squaring_shift(features) >= 0.5
