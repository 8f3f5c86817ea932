"""Inverting a linear filter: against least squares, and where the answer is known."""

import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.filters.attack.reconstruction import reconstruct, reconstruction_attack


def samples(count: int, seed: int) -> Tensor:
    """Correlated samples of six features with a mean."""
    mix = torch.randn(6, 6, generator=torch.Generator().manual_seed(99), dtype=torch.float64)
    drawn = torch.randn(count, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return drawn @ mix + torch.arange(6)


WEIGHT = torch.randn(2, 6, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
BIAS = torch.tensor([1.0, -2.0], dtype=torch.float64)


def test_the_best_guess_is_least_squares_from_filtered_to_inputs() -> None:
    known, asked = samples(200, 0), samples(50, 1)
    filtered = asked @ WEIGHT.mT + BIAS
    _, best = reconstruct(WEIGHT, BIAS, filtered, known)
    reference = LinearRegression().fit((known @ WEIGHT.mT + BIAS).numpy(), known.numpy())
    torch.testing.assert_close(best, torch.from_numpy(reference.predict(filtered.numpy())))


def test_what_was_published_is_told_exactly() -> None:
    known, asked = samples(200, 0), samples(50, 1)
    filtered = asked @ WEIGHT.mT + BIAS
    for guess in reconstruct(WEIGHT, BIAS, filtered, known):
        torch.testing.assert_close(guess @ WEIGHT.mT + BIAS, filtered)


def test_the_prediction_is_exact_on_samples_with_that_covariance() -> None:
    known = samples(200, 0)
    found = reconstruction_attack(WEIGHT, BIAS, known, known)
    assert found.regularized == pytest.approx(found.predicted, rel=1e-9)
    assert found.exposed == pytest.approx(1 - found.minimum_norm, rel=1e-9)
    assert found.regularized < found.minimum_norm
    assert found.rank == 2


def test_an_invertible_filter_hides_nothing_and_an_empty_one_everything() -> None:
    known, asked = samples(200, 0), samples(50, 1)
    square = torch.randn(6, 6, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    all_told = reconstruction_attack(square, None, asked, known)
    assert all_told.minimum_norm == pytest.approx(0, abs=1e-9)
    assert all_told.exposed == pytest.approx(1)
    nothing = reconstruction_attack(torch.zeros(2, 6), None, asked, known)
    assert (nothing.minimum_norm, nothing.regularized, nothing.rank) == (1.0, 1.0, 0)


@pytest.mark.parametrize(
    ("weight", "filtered", "known", "message"),
    [
        (torch.zeros(6), torch.zeros(3, 2), torch.zeros(4, 6), r"\(d, D\)"),
        (torch.zeros(2, 6), torch.zeros(3, 1), torch.zeros(4, 6), "does not fit"),
        (torch.zeros(2, 6), torch.zeros(3, 2), torch.zeros(4, 5), "does not fit"),
        (torch.zeros(2, 6), torch.zeros(3, 2), torch.zeros(1, 6), "at least two known"),
    ],
)
def test_bad_input_is_refused(weight: Tensor, filtered: Tensor, known: Tensor, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        reconstruct(weight, None, filtered, known)


def test_samples_that_do_not_vary_are_refused() -> None:
    with pytest.raises(ModelError, match="nothing to reconstruct"):
        reconstruction_attack(torch.ones(1, 2), None, torch.zeros(3, 2), torch.zeros(3, 2))
