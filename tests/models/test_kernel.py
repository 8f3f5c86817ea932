"""Random Fourier features: of norm 1, like the kernel, and what is learned with them in private and in the clear."""

import math

import pytest
import torch

from ppspeech.errors import ModelError
from ppspeech.models import KernelClassifier
from ppspeech.models.kernel import orthogonal_frequencies
from ppspeech.privacy import ObjectivePerturbation, Relation
from ppspeech.training.private import fit_privately, radius_of


def circles(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A ring around a disk, which no line tells apart."""
    generator = torch.Generator().manual_seed(0)
    angle = 2 * math.pi * torch.rand(count, generator=generator).double()
    inside = torch.arange(count) % 2
    radius = torch.where(inside == 1, 0.3, 1.0).double()
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), inside


def test_features_have_norm_1_whatever_comes() -> None:
    model = KernelClassifier(3, 2, 20, width=0.5, dtype=torch.double)
    x = torch.tensor([[0.0, 0.0, 0.0], [1e6, -3.0, 2.0], [1e-9, 5.0, 1.0]], dtype=torch.double)
    assert torch.allclose(model.embed(x).norm(dim=1), torch.ones(3, dtype=torch.double), atol=1e-12)
    assert radius_of(model.linear) == pytest.approx(math.sqrt(2))


def test_inner_products_are_the_kernel_up_to_one_over_root_m() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(30, 4, generator=generator).double()
    exact = (-torch.cdist(x, x).square() / (2 * 1.5**2)).exp()
    wrong = []
    for pairs in (100, 1600):
        phi = KernelClassifier(4, 2, pairs, width=1.5, dtype=torch.double).embed(x)
        wrong.append(float((phi @ phi.mT - exact).square().mean().sqrt()))
    assert wrong[0] < 1 / math.sqrt(100)
    assert wrong[1] < wrong[0] / 2


def test_frequencies_are_public_and_at_right_angles() -> None:
    drawn = orthogonal_frequencies(8, 4, 2.0, seed=3)
    assert torch.equal(drawn, orthogonal_frequencies(8, 4, 2.0, seed=3))
    block = torch.nn.functional.normalize(drawn[:4], dim=1)
    assert torch.allclose(block @ block.mT, torch.eye(4, dtype=torch.double), atol=1e-9)


def test_a_ring_is_told_from_a_disk_in_the_clear_and_in_private() -> None:
    x, y = circles(2000)
    model = KernelClassifier(2, 2, 20, width=0.7, constant=0.1, dtype=torch.double)
    model.linear.fit(model.embed(x), y, quadratic=1.0)
    assert float((model.predict(x) == y).double().mean()) == 1.0
    private = KernelClassifier(2, 2, 20, width=0.7, constant=0.1, dtype=torch.double)
    hook = ObjectivePerturbation(
        epsilon=1.0, delta=1e-5, relation=Relation("record", "add_remove"), regularization=1.0, norm=10.0
    )
    fit = fit_privately(private.linear, private.embed(x), y, hook)
    assert fit.guarantee.epsilon == pytest.approx(1.0)
    assert float((private.predict(x) == y).double().mean()) > 0.9


def test_several_classes_and_refusals() -> None:
    model = KernelClassifier(2, 3, 4)
    assert model(torch.zeros(5, 2)).shape == (5, 3)
    for wrong in ((0, 2, 4), (2, 2, 0)):
        with pytest.raises(ModelError, match="pairs"):
            KernelClassifier(*wrong)
    with pytest.raises(ModelError, match="width"):
        KernelClassifier(2, 2, 4, width=0.0)
