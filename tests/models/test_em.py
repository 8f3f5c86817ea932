from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.mixture import GaussianMixture as SklearnMixture

from ppspeech.errors import ModelError
from ppspeech.models.gaussian.em import fit_mixture, run_em, start_mixture_, update_mixture_
from ppspeech.models.gaussian.gaussians import Covariance
from ppspeech.models.gaussian.mixture import GaussianMixture
from ppspeech.models.gaussian.statistics import MixtureStatistics, mixture_statistics

KINDS = get_args(Covariance)
SKLEARN = {"full": "full", "tied": "tied", "diagonal": "diag", "spherical": "spherical"}


def frames(count: int = 400, features: int = 3, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    middle = 3 * torch.randn(4, features, generator=generator, dtype=torch.float64)
    shape = torch.randn(4, features, features, generator=generator, dtype=torch.float64)
    which = torch.randint(4, (count,), generator=generator)
    noise = torch.randn(count, features, generator=generator, dtype=torch.float64)
    return middle[which] + (shape[which] @ noise.unsqueeze(-1)).squeeze(-1)


def started(kind: Covariance, x: torch.Tensor, components: int = 4, **options: object) -> GaussianMixture:
    model = GaussianMixture(components, x.shape[-1], kind, dtype=x.dtype, **options)  # type: ignore[arg-type]
    start_mixture_(model, x, generator=torch.Generator().manual_seed(1))
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_em_is_scikit_learns_from_the_same_start(kind: Covariance) -> None:
    x = frames()
    model = started(kind, x, floor=1e-6)
    variances = model.gaussians.variances().detach()
    precisions = torch.linalg.inv(variances) if kind in {"full", "tied"} else 1 / variances
    precisions = precisions.squeeze(0) if kind == "tied" else precisions.squeeze(-1)
    theirs = SklearnMixture(
        4,
        covariance_type=SKLEARN[kind],
        tol=0,
        reg_covar=0,
        max_iter=8,
        weights_init=model.log_weights().exp().detach().numpy(),
        means_init=model.gaussians.mean.detach().numpy(),
        precisions_init=precisions.numpy(),
        init_params="random_from_data",
    )
    # It warns that it did not converge, whatever the tolerance.
    with pytest.warns(UserWarning, match="converge"):
        theirs.fit(x.numpy())
    found = run_em(model, x, iterations=8, tolerance=-1)
    np.testing.assert_allclose(model.gaussians.mean.detach().numpy(), theirs.means_, rtol=1e-6)
    ours = model.gaussians.variances().detach().numpy()
    np.testing.assert_allclose(ours.reshape(theirs.covariances_.shape), theirs.covariances_, rtol=1e-6)
    assert float(found.log_likelihood[-1]) == pytest.approx(theirs.score(x.numpy()), abs=1e-8)
    assert float(found.log_likelihood[-2]) == pytest.approx(theirs.lower_bound_, abs=1e-8)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31), kind=st.sampled_from(KINDS), floor=st.sampled_from([1e-4, 0.3, 3.0]))
def test_likelihood_never_falls_with_the_floor_active_too(seed: int, kind: Covariance, floor: float) -> None:
    x = frames(120, seed=seed)
    model = started(kind, x, components=3, floor=floor, batch=(2,))
    history = run_em(model, x, iterations=12, tolerance=-1).log_likelihood
    assert history.shape == (13, 2)
    assert (history.diff(dim=0) > -1e-9).all()


@pytest.mark.parametrize("kind", KINDS)
def test_restarts_run_side_by_side_and_the_best_wins(kind: Covariance) -> None:
    x = frames()
    models = started(kind, x, components=5, batch=(4,))
    starts = [models.select(index) for index in range(4)]
    found = run_em(models, x, iterations=10, tolerance=-1)
    alone = torch.stack([run_em(start, x, iterations=10, tolerance=-1).log_likelihood for start in starts], 1)
    torch.testing.assert_close(found.log_likelihood, alone)
    best = found.best()
    assert best.batch == ()
    assert float(best.log_prob(x).mean().detach()) == pytest.approx(float(alone[-1].max()))


def test_weights_count_as_repetitions() -> None:
    x = frames(100)
    weights = torch.randint(0, 3, (100,), generator=torch.Generator().manual_seed(2))
    one, other = started("full", x), started("full", x)
    run_em(one, torch.where(weights.unsqueeze(-1) > 0, x, torch.inf), weights, iterations=5, tolerance=-1)
    run_em(other, x.repeat_interleave(weights, dim=0), iterations=5, tolerance=-1)
    for mine, reference in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, reference)


def test_frames_of_no_weight_may_hold_anything_from_the_start() -> None:
    x = frames(100)
    weights = (torch.arange(100) < 80).double()
    broken = torch.where(weights.unsqueeze(-1) > 0, x, torch.nan)
    one, other = (fit_mixture(y, 3, weights=weights, iterations=3) for y in (broken, x))
    for mine, reference in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, reference)


def test_it_stops_when_it_gains_no_more() -> None:
    x = frames()
    model = started("diagonal", x)
    found = run_em(model, x, iterations=500, tolerance=1e-5)
    assert found.converged
    assert len(found.log_likelihood) < 400
    assert float(found.log_likelihood[-1]) == pytest.approx(float(model.log_prob(x).mean().detach()))
    assert not run_em(started("diagonal", x), x, iterations=1, tolerance=0).converged


@pytest.mark.parametrize("kind", KINDS)
def test_dead_components_split_the_heaviest(kind: Covariance) -> None:
    x = frames()
    model = started(kind, x)
    found = mixture_statistics(model, x)
    count, first = found.count.clone(), found.first.clone()
    dead = int(count.argmin())
    count[dead], first[dead] = -1e-3, 0.0  # as noise may leave it
    heaviest = int(count.argmax())
    update_mixture_(model, MixtureStatistics(count, first, found.second, found.log_likelihood, found.frames))
    mean = first[heaviest] / count[heaviest]
    deviation = model.gaussians.covariances()[heaviest].diagonal().sqrt()
    torch.testing.assert_close(model.gaussians.mean[dead].detach(), mean + 0.2 * deviation.detach())
    torch.testing.assert_close(model.gaussians.mean[heaviest].detach(), mean - 0.2 * deviation.detach())
    weights = model.log_weights().exp().detach()
    assert float(weights[dead]) == pytest.approx(float(weights[heaviest]))
    assert float(weights[dead] + weights[heaviest]) == pytest.approx(float(count[heaviest] / count.clamp_min(0).sum()))
    assert float(run_em(model, x, iterations=3).log_likelihood[-1]) > -20


def test_many_dead_components_go_round_the_living() -> None:
    model = GaussianMixture(6, 1, "diagonal", dtype=torch.float64)
    count = torch.tensor([0.0, 3.0, 0.0, 0.0, 6.0, 0.0], dtype=torch.float64)
    first = torch.tensor([[0.0], [3.0], [0.0], [0.0], [60.0], [0.0]], dtype=torch.float64)
    second = torch.tensor([[0.0], [6.0], [0.0], [0.0], [606.0], [0.0]], dtype=torch.float64)
    total = count.sum()
    update_mixture_(model, MixtureStatistics(count, first, second, -total, total))
    torch.testing.assert_close(
        model.gaussians.mean.squeeze(-1).detach().sort().values,
        torch.tensor([0.8, 1.2, 1.4, 9.8, 10.2, 10.4], dtype=torch.float64),
    )
    torch.testing.assert_close(
        model.log_weights().exp().detach().sort().values,
        torch.tensor([1, 1, 1, 2, 2, 2], dtype=torch.float64) / 9,
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("x", [frames(3), torch.full((20, 3), 2.5), torch.full((1, 3), -1.0)])
def test_too_few_and_identical_frames_give_a_finite_model(kind: Covariance, x: torch.Tensor) -> None:
    model = fit_mixture(x, 5, kind, floor=0.01, restarts=2)
    assert model.log_prob(x).isfinite().all()
    assert float(model.log_weights().exp().sum().detach()) == pytest.approx(1, abs=1e-5)
    assert (torch.linalg.eigvalsh(model.gaussians.covariances()) >= 0.0099).all()


@pytest.mark.parametrize("kind", KINDS)
def test_one_component_is_the_sample_mean_and_covariance(kind: Covariance) -> None:
    x = frames()
    model = fit_mixture(x, 1, kind, floor=1e-6)
    torch.testing.assert_close(model.gaussians.mean[0].detach(), x.mean(0))
    covariance = x.T.cov(correction=0)
    if kind == "diagonal":
        covariance = covariance.diag().diag()
    elif kind == "spherical":
        covariance = covariance.diag().mean() * torch.eye(3, dtype=torch.float64)
    torch.testing.assert_close(model.gaussians.covariances()[0].detach(), covariance)


def test_a_seed_gives_the_same_model() -> None:
    x = frames()
    one, same, other = (fit_mixture(x, 6, iterations=2, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one.gaussians.mean, same.gaussians.mean)
    assert not torch.allclose(one.gaussians.mean, other.gaussians.mean)


def test_refusals() -> None:
    x = frames()
    model = started("diagonal", x)
    bad = x.clone()
    bad[7, 1] = torch.nan
    with pytest.raises(ModelError, match="1 of 400 frames are not finite"):
        run_em(model, bad)
    with pytest.raises(ModelError, match="1 of 400 frames are not finite"):
        fit_mixture(bad, 2)
    with pytest.raises(ModelError, match="iterations >= 0"):
        run_em(model, x, iterations=-1)
    deep = GaussianMixture(2, 3, batch=(2, 2), dtype=torch.float64)
    with pytest.raises(ModelError, match="one axis of restarts"):
        run_em(deep, x)
    with pytest.raises(ModelError, match="one axis of restarts"):
        start_mixture_(deep, x)
    found = mixture_statistics(model, x)
    with pytest.raises(ModelError, match="do not fit a full mixture"):
        update_mixture_(started("full", x), found)
    with pytest.raises(ModelError, match="nothing to learn from"):
        update_mixture_(model, found.scaled(0.0))
    for broken in (found.scaled(float("nan")), replace(found, first=found.first * torch.inf)):
        with pytest.raises(ModelError, match="nothing to learn from"):
            update_mixture_(model, broken)
