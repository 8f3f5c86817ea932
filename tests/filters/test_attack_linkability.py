"""D_sys against its integral, and at its ends."""

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from ppspeech.errors import ModelError
from ppspeech.filters.attack.linkability import linkability


@pytest.mark.parametrize(("shift", "omega"), [(0.5, 1.0), (1.0, 1.0), (2.0, 1.0), (1.0, 0.25)])
def test_it_is_the_integral_for_gaussian_scores(shift: float, omega: float) -> None:
    generator = torch.Generator().manual_seed(0)
    mated = torch.randn(40_000, generator=generator) + shift
    found = linkability(mated, torch.randn(80_000, generator=generator), omega=omega, shuffles=0)

    def integrand(score: float) -> float:
        ratio = omega * norm.pdf(score, shift) / norm.pdf(score)
        return norm.pdf(score, shift) * max(0.0, 2 * ratio / (1 + ratio) - 1)

    assert found.value == pytest.approx(quad(integrand, -8, 10, limit=200)[0], abs=0.01)


def test_scores_that_say_nothing_are_at_the_bias_of_the_estimate() -> None:
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(4_000, generator=generator)
    found = linkability(scores[:1_000], scores[1_000:])
    assert found.value == pytest.approx(found.chance, abs=0.03)
    assert 0 < found.chance < 0.1


def test_it_looks_at_the_order_of_scores_only() -> None:
    generator = torch.Generator().manual_seed(2)
    mated, others = torch.randn(300, generator=generator) + 1, torch.randn(900, generator=generator)
    assert linkability(mated, others) == linkability(mated.double().exp(), others.double().exp())


def test_equal_scores_link_nobody() -> None:
    found = linkability(torch.zeros(50), torch.zeros(50))
    assert found.value == found.chance == 0


@pytest.mark.parametrize(
    ("mated", "omega", "message"),
    [
        (torch.zeros(5), 1.0, "at least 20"),
        (torch.zeros(50), 0.0, "omega"),
        (torch.tensor([np.nan] * 50), 1.0, "50 of 100 scores are NaN"),
    ],
)
def test_bad_input_is_refused(mated: torch.Tensor, omega: float, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        linkability(mated, torch.zeros(50), omega=omega)
