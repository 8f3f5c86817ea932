"""One order of monomials: frames and weights here are those of `models.gaussian`, and their products log-densities."""

import numpy as np
import pytest
import torch

from ppspeech.models.gaussian import Gaussians
from ppspeech.models.gaussian.gaussians import Covariance
from ppspeech.protocols.scores.monomials import (
    Terms,
    count_monomials,
    degrees,
    form_weights,
    gaussian_weights,
    monomials_of,
    scaled_weights,
)

generator = np.random.default_rng(0)


def made_gaussians(kind: Covariance) -> Gaussians:
    made = Gaussians((2, 3), 4, kind, dtype=torch.float64)
    with torch.no_grad():
        made.mean.copy_(torch.tensor(generator.normal(size=made.mean.shape)))
        made.spread.add_(torch.tensor(generator.normal(0, 0.3, size=made.spread.shape)))
    return made


@pytest.mark.parametrize(
    ("kind", "terms"), [("diagonal", "diagonal"), ("spherical", "diagonal"), ("full", "full"), ("tied", "full")]
)
@torch.no_grad()
def test_monomials_and_weights_are_those_of_the_gaussians(kind: Covariance, terms: Terms) -> None:
    """`svec` spreads a factor of two between monomial and weight; here it is the weight's."""
    bank, x = made_gaussians(kind), generator.normal(size=(7, 4))
    logs = generator.normal(size=(2, 3))
    spread = bank.covariances() if terms == "full" else bank.variances().expand(2, 3, 4)
    weights = gaussian_weights(logs, bank.mean.numpy(), spread.numpy())
    twice = np.ones(len(weights))
    if terms == "full":
        twice[np.not_equal(*np.triu_indices(5))] = np.sqrt(2)
    theirs = bank.coefficients(torch.tensor(logs), torch.zeros(4, dtype=torch.float64)).numpy()
    assert np.allclose(monomials_of(x, terms) * twice, bank.monomials(torch.tensor(x)).numpy())
    assert np.allclose(np.moveaxis(weights, 0, -1) / twice, theirs)
    assert np.allclose(form_weights(-bank.phi(torch.tensor(logs)).numpy(), terms), weights)
    density = bank.log_density(torch.tensor(x), torch.tensor(logs)).numpy()
    assert np.allclose(np.tensordot(monomials_of(x, terms), weights, axes=1), density)


@pytest.mark.parametrize("terms", ["full", "diagonal", "linear"])
def test_degrees_are_how_monomials_grow(terms: Terms) -> None:
    x = generator.uniform(0.5, 1.5, size=(3, 5))
    grown = monomials_of(2 * x, terms) / monomials_of(x, terms)
    assert np.allclose(grown, 2.0 ** degrees(5, terms))
    assert grown.shape[1] == count_monomials(5, terms)


@pytest.mark.parametrize("terms", ["full", "diagonal", "linear"])
def test_weights_of_scaled_frames_give_the_same_scores(terms: Terms) -> None:
    x, center, spread = generator.normal(size=(6, 4)), generator.normal(size=4), generator.uniform(0.1, 9, size=4)
    weights = generator.normal(size=(count_monomials(4, terms), 3))
    scaled = scaled_weights(weights, terms, center, spread)
    found = monomials_of((x - center) / spread, terms) @ scaled
    assert np.allclose(found, monomials_of(x, terms) @ weights)
