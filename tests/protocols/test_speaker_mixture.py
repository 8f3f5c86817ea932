"""Mixtures as weights of monomials: log-densities of scipy, padding that cancels, ranges that are kept."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from ppspeech.errors import ModelError, RangeError
from ppspeech.protocols.scores.mixture import Covariance, MixturePlan, Mixtures, MixtureScorer
from tests.protocols.speaker_meeting import ask

generator = np.random.default_rng(2)


def mixtures(count: int, components: int, d: int, covariance: Covariance = "diagonal") -> Mixtures:
    weights = generator.dirichlet(np.full(components, 5.0), size=count)
    means = generator.normal(size=(count, components, d))
    if covariance == "diagonal":
        return Mixtures(np.log(weights), means, generator.uniform(0.4, 1.5, size=means.shape))
    roots = generator.normal(size=(count, components, d, d)) * 0.3
    return Mixtures(np.log(weights), means, roots @ roots.swapaxes(-1, -2) + 0.5 * np.eye(d))


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_products_are_log_densities(covariance: Covariance) -> None:
    plan = MixturePlan(frames=7, dimensions=3, components=4, models=2, covariance=covariance)
    bank = mixtures(2, 4, 3, covariance)
    x = generator.normal(size=(7, 3))
    found = np.einsum("tf,fmk->tmk", plan.rows(x), bank.weights(covariance))
    for model, part in np.ndindex(2, 4):
        spread = bank.covariances[model, part]
        matrix = np.diag(spread) if covariance == "diagonal" else spread
        wanted = multivariate_normal(bank.means[model, part], matrix).logpdf(x) + bank.log_weights[model, part]
        assert np.allclose(found[:, model, part], wanted)


def test_padding_is_a_row_of_zeros() -> None:
    plan = MixturePlan(frames=5, dimensions=2, components=3)
    expanded = plan.rows(np.array([[1.0, -2.0]]))
    assert expanded[0].tolist() == [1.0, 4.0, 1.0, -2.0, 1.0]
    assert not expanded[1:].any()
    assert expanded.shape == (5, plan.features) == (5, 5)


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_encrypted_log_densities_are_within_the_bound(covariance: Covariance) -> None:
    """Both parties' shares, joined: for this test only."""
    plan = MixturePlan(frames=7, dimensions=3, components=4, models=2, covariance=covariance, norm=6.0)
    background, speakers = mixtures(1, 4, 3, covariance), mixtures(2, 4, 3, covariance)
    scorer = MixtureScorer.of(plan, background, speakers, 0.0)
    frames = plan.rows(generator.normal(size=(5, 3)))
    one, other, *_ = ask(
        lambda met: met.multiply(plan.product, frames), lambda met: met.multiply(plan.product, scorer.weights)
    )
    got = plan.scale.decode(plan.ring.to_signed(plan.ring.join(one, other)))
    weights = np.concatenate([each.weights(covariance) for each in (background, speakers)], axis=1)
    assert np.abs(got - frames @ weights.reshape(plan.features, -1)).max() <= scorer.bound.total + 2.0**-8
    assert scorer.bound.total < 0.1


@pytest.mark.parametrize(
    "frames", [np.zeros((0, 2)), np.zeros((6, 2)), np.zeros((3, 3)), np.full((2, 2), 20.0), np.full((2, 2), np.nan)]
)
def test_frames_that_cannot_be_are_refused(frames: np.ndarray) -> None:
    with pytest.raises(RangeError):
        MixturePlan(frames=5, dimensions=2, components=3).rows(frames)


@pytest.mark.parametrize(
    "wrong",
    [
        {"frames": 0},
        {"components": 0},
        {"cohort": 1},
        {"covariance": "tied"},
        {"joined": "mean"},
        {"norm": 0.0},
        {"reach": 20},
    ],
)
def test_plans_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises((ModelError, RangeError)):
        MixturePlan(**{"frames": 4, "dimensions": 2, "components": 3, **wrong})  # type: ignore[arg-type]


def test_models_that_do_not_fit_are_refused() -> None:
    plan = MixturePlan(frames=4, dimensions=2, components=3, models=2, norm=5.0)
    background, speakers = mixtures(1, 3, 2), mixtures(2, 3, 2)
    MixtureScorer.of(plan, background, speakers, 0.1)
    with pytest.raises(ModelError, match="not those of"):
        MixtureScorer.of(plan, background, mixtures(3, 3, 2), 0.1)
    with pytest.raises(ModelError, match="not those of"):
        MixtureScorer.of(plan, background, speakers, 0.1, cohort=mixtures(2, 3, 2))
    with pytest.raises(ModelError, match="covariances"):
        MixtureScorer.of(plan, background, mixtures(2, 3, 2, "full"), 0.1)
    with pytest.raises(ModelError, match="spread > 0"):
        MixtureScorer.of(plan, background, speakers, 0.1, std=np.array([1.0, 0.0]))
    normed = MixturePlan(frames=4, dimensions=2, components=3, models=2, cohort=2, norm=5.0)
    with pytest.raises(ModelError, match="factor of 64"):
        MixtureScorer.of(normed, background, speakers, 1.0, cohort=speakers, std=np.array([1.0, 1.0, 1.0, 100.0]))
    with pytest.raises(ModelError, match="finite"):
        MixtureScorer.of(plan, background, speakers, float("inf"))
    narrow = Mixtures(speakers.log_weights, speakers.means, np.full_like(speakers.means, 1e-3))
    with pytest.raises(RangeError, match="larger variances"):
        MixtureScorer.of(plan, background, narrow, 0.1)
