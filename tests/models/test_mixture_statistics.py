import sys
from typing import get_args

import pytest
import torch

from ppspeech.errors import ModelError
from ppspeech.models.gaussian.gaussians import Covariance, Gaussians
from ppspeech.models.gaussian.statistics import MixtureStatistics, hard_statistics, mixture_statistics, monomial_columns
from tests.models.test_mixture import mixture

KINDS = get_args(Covariance)


def slow(kind: Covariance, share: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Count, first and second moments by the definition, for responsibilities `(frames, components)`."""
    count = torch.zeros(share.shape[1], dtype=torch.float64)
    first = torch.zeros(share.shape[1], x.shape[1], dtype=torch.float64)
    second = torch.zeros(share.shape[1], x.shape[1], x.shape[1], dtype=torch.float64)
    for r, frame in zip(share, x, strict=True):
        for k in range(len(r)):
            count[k] += r[k]
            first[k] += r[k] * frame
            second[k] += r[k] * torch.outer(frame, frame)
    if kind == "tied":
        second = second.sum(0, keepdim=True)
    elif kind != "full":
        second = second.diagonal(dim1=-2, dim2=-1)
        if kind == "spherical":
            second = second.sum(-1, keepdim=True)
    return count, first, second


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_are_the_sums_they_claim_to_be(kind: Covariance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[MixtureStatistics.__module__], "BLOCK_VALUES", 100)  # several blocks
    model = mixture(kind)
    x = torch.randn(40, 2, dtype=torch.float64) + 5
    weights = torch.rand(40, dtype=torch.float64)
    found = mixture_statistics(model, x, weights)
    share = model.responsibilities(x).detach() * weights.unsqueeze(-1)
    for ours, expected in zip((found.count, found.first, found.second), slow(kind, share, x), strict=True):
        torch.testing.assert_close(ours, expected)
    torch.testing.assert_close(found.log_likelihood, (model.log_prob(x) * weights).sum().detach())
    torch.testing.assert_close(found.frames, weights.sum())


@pytest.mark.parametrize("kind", KINDS)
def test_groups_and_batches_are_independent(kind: Covariance) -> None:
    models = mixture(kind, batch=(3,))
    x = torch.randn(4, 20, 2, dtype=torch.float64)
    mask = torch.rand(4, 20) < 0.7
    together = mixture_statistics(models, torch.where(mask.unsqueeze(-1), x, torch.nan), mask)
    assert together.count.shape == (4, 3, 3)
    assert together.frames.shape == together.log_likelihood.shape == (4, 3)
    for group in range(4):
        for restart in range(3):
            alone = mixture_statistics(models.select(restart), x[group][mask[group]])
            for name in ("count", "first", "second", "log_likelihood", "frames"):
                torch.testing.assert_close(getattr(together, name)[group, restart], getattr(alone, name))


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_add_up(kind: Covariance) -> None:
    model = mixture(kind)
    x = torch.randn(2, 30, 2, dtype=torch.float64)
    whole = mixture_statistics(model, x.reshape(-1, 2))
    parts = mixture_statistics(model, x[0]) + mixture_statistics(model, x[1])
    pooled = mixture_statistics(model, x).pooled()
    doubled = parts.scaled(2.0)
    for name in MixtureStatistics.__dataclass_fields__:
        torch.testing.assert_close(getattr(parts, name), getattr(whole, name))
        torch.testing.assert_close(getattr(pooled, name), getattr(whole, name))
        torch.testing.assert_close(getattr(doubled, name), 2 * getattr(whole, name))


def test_float32_statistics_far_from_zero() -> None:
    x = torch.randn(1000, 2, generator=torch.Generator().manual_seed(0)) + 300
    near, far = mixture("full"), mixture("full", dtype=torch.float32)
    with torch.no_grad():
        near.gaussians.mean += 300
        far.gaussians.mean.copy_(near.gaussians.mean)
    exact, found = mixture_statistics(near, x.double()), mixture_statistics(far, x)
    assert found.second.dtype == torch.float64
    torch.testing.assert_close(found.count, exact.count, rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(found.second, exact.second, rtol=1e-4, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_the_monomials(kind: Covariance) -> None:
    gaussians = Gaussians((1,), 4, kind, dtype=torch.float64)
    x = torch.randn(3, 6, 4, dtype=torch.float64)
    torch.testing.assert_close(monomial_columns(gaussians, x).mT, gaussians.monomials(x))


@pytest.mark.parametrize("kind", KINDS)
def test_hard_statistics_are_those_of_one_hot_responsibilities(kind: Covariance) -> None:
    x = torch.randn(25, 2, dtype=torch.float64)
    labels = torch.randint(3, (25,))
    found = hard_statistics(mixture(kind), x, labels)
    for ours, expected in zip(
        (found.count, found.first, found.second), slow(kind, torch.eye(3).double()[labels], x), strict=True
    ):
        torch.testing.assert_close(ours, expected)


def test_refusals() -> None:
    model = mixture()
    with pytest.raises(ModelError, match="1 of 2 frames are not finite"):
        mixture_statistics(model, torch.tensor([[0.0, 0.0], [torch.nan, 0.0]]))
    with pytest.raises(ModelError, match="too far"):
        mixture_statistics(mixture(dtype=torch.float32), torch.full((1, 2), 1e30))
    for x in (torch.zeros(0, 2), torch.zeros(3, 3), torch.zeros(2)):
        with pytest.raises(ModelError, match="frames must have shape"):
            mixture_statistics(model, x)
    with pytest.raises(ModelError, match=">= 0"):
        mixture_statistics(model, torch.zeros(2, 2), -torch.ones(2))
    full, diagonal = (mixture_statistics(mixture(kind), torch.zeros(2, 2)) for kind in ("full", "diagonal"))
    with pytest.raises(ModelError, match="do not add up"):
        full + diagonal
