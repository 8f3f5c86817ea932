from typing import get_args

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, multivariate_normal

from ppspeech.errors import ModelError
from ppspeech.models.gaussian import mixture as module
from ppspeech.models.gaussian.gaussians import Covariance
from ppspeech.models.gaussian.mixture import GaussianMixture

KINDS = get_args(Covariance)


def mixture(
    kind: Covariance = "diagonal", batch: tuple[int, ...] = (), dtype: torch.dtype = torch.float64
) -> GaussianMixture:
    model = GaussianMixture(3, 2, kind, 0.01, batch, dtype)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += torch.randn(parameter.shape, generator=generator, dtype=dtype)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_log_prob_is_the_log_of_the_sum(kind: Covariance) -> None:
    model = mixture(kind)
    x = torch.randn(7, 2, dtype=torch.float64)
    weights = model.log_weights().exp().detach().numpy()
    means, covariances = model.gaussians.mean.detach().numpy(), model.gaussians.covariances().detach().numpy()
    parts = np.stack(
        [w * multivariate_normal(m, c).pdf(x.numpy()) for w, m, c in zip(weights, means, covariances, strict=True)],
        -1,
    )
    np.testing.assert_allclose(model.log_prob(x).detach().numpy(), np.log(parts.sum(-1)), rtol=1e-10)
    expected = parts / parts.sum(-1, keepdims=True)
    np.testing.assert_allclose(model.responsibilities(x).detach().numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_its_members(kind: Covariance) -> None:
    models = mixture(kind, batch=(4,))
    x = torch.randn(5, 6, 2, dtype=torch.float64)
    together = models.log_prob(x)
    assert together.shape == (5, 6, 4)
    for index in (0, 3, -1):
        torch.testing.assert_close(together[..., index], models.select(index).log_prob(x))


def test_frames_beyond_the_lengths_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    models = mixture(batch=(2,))
    x = torch.randn(3, 8, 2, dtype=torch.float64)
    lengths = torch.tensor([8, 1, 5])
    padded = x.clone()
    for index, length in enumerate(lengths.tolist()):
        padded[index, length:] = torch.nan
    slow = torch.stack([models.log_prob(u[:n]).mean(0) for u, n in zip(x, lengths.tolist(), strict=True)])
    torch.testing.assert_close(models.average_log_prob(padded, lengths), slow)
    assert not models.log_prob(padded, lengths)[1, 1:].any()
    monkeypatch.setattr(module, "BLOCK_VALUES", 40)  # blocks of two frames
    torch.testing.assert_close(models.average_log_prob(padded, lengths), slow)
    gradient = torch.autograd.grad(models.average_log_prob(padded, lengths).sum(), list(models.parameters()))
    assert all(g.isfinite().all() for g in gradient)
    torch.testing.assert_close(models.average_log_prob(x), models.log_prob(x).mean(1))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_logsumexp(kind: Covariance) -> None:
    model = mixture(kind)
    x = torch.randn(5, 2, dtype=torch.float64)
    ours = torch.autograd.grad(model.log_prob(x).sum(), list(model.parameters()))
    theirs = torch.autograd.grad(model.joint(x).logsumexp(-1).sum(), list(model.parameters()))
    for mine, reference in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, reference)


def test_far_frames_stay_finite() -> None:
    model = mixture(dtype=torch.float32)
    assert model.log_prob(torch.full((1, 2), 1e4)).isfinite().all()


def test_samples_have_the_mixtures_distribution() -> None:
    """Chi-square over cells of the two features at a false-alarm rate of 1e-4."""
    model = mixture("full")
    drawn = model.sample(20_000, torch.Generator().manual_seed(0))
    assert drawn.shape == (20_000, 2)
    weights = model.log_weights().exp().detach()
    mean = (weights.unsqueeze(-1) * model.gaussians.mean).sum(0)
    direction = torch.tensor([0.6, 0.8], dtype=torch.float64)
    place = model.gaussians.mean @ direction
    scale = torch.einsum("i,kij,j->k", direction, model.gaussians.covariances(), direction).sqrt()
    edges = torch.linspace(-3, 3, 19, dtype=torch.float64) + mean @ direction
    cumulative = (weights * torch.special.ndtr((edges.unsqueeze(-1) - place) / scale)).sum(-1)
    ends = torch.tensor([0.0], dtype=torch.float64), torch.tensor([1.0], dtype=torch.float64)
    probability = torch.cat([ends[0], cumulative, ends[1]]).diff().detach().numpy()
    counts = torch.bincount(torch.bucketize(drawn @ direction, edges), minlength=20).numpy()
    assert chisquare(counts, probability / probability.sum() * counts.sum()).pvalue > 1e-4


def test_samples_of_a_batch_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    models = mixture(batch=(2, 3))
    whole = models.sample(7, torch.Generator().manual_seed(1))
    assert whole.shape == (7, 2, 3, 2)
    monkeypatch.setattr(module, "BLOCK_VALUES", 50)
    torch.testing.assert_close(models.sample(7, torch.Generator().manual_seed(1)), whole)


def test_refusals() -> None:
    with pytest.raises(ModelError, match="positive shape"):
        GaussianMixture(0, 2)
    with pytest.raises(ModelError, match="no mixture 0"):
        mixture().select(0)
    with pytest.raises(ModelError, match="no mixture 4"):
        mixture(batch=(4,)).select(4)
    with pytest.raises(ModelError, match="frames have 3 features"):
        mixture().log_prob(torch.zeros(1, 3, dtype=torch.float64))
    x = torch.zeros(2, 5, 2, dtype=torch.float64)
    for lengths in ([0, 5], [6, 5], [5]):
        with pytest.raises(ModelError, match="needs a length"):
            mixture().average_log_prob(x, torch.tensor(lengths))
    with pytest.raises(ModelError, match="utterances, frames, features"):
        mixture().average_log_prob(x[0])
