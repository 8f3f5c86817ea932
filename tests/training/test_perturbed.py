"""Learning from perturbed records: corrections are unbiased, models come near what they are without noise."""

import math

import pytest
import torch

from ppspeech.errors import ModelError, PrivacyError
from ppspeech.models import HuberSvm, LogisticRegression, SoftmaxRegression
from ppspeech.privacy.mechanisms import LocalRecords
from ppspeech.training.private import PerturbedRecords, discriminant, fit_perturbed

NOISE = LocalRecords(features=2, classes=3, radius=1.0, epsilon_vector=4.0, epsilon_label=3.0)


def made(count: int, classes: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(count) % classes
    angles = 2 * math.pi * torch.arange(classes).double() / classes
    centers = 0.6 * torch.stack([angles.cos(), angles.sin()], dim=1)
    return centers[y] + 0.15 * torch.randn(count, 2, generator=generator).double(), y


def test_moments_are_those_of_the_records_themselves() -> None:
    x, y = made(60_000)
    x = x * (1 / x.norm(dim=1, keepdim=True).clamp_min(1.0))
    found = PerturbedRecords.told(NOISE, x, y).moments()
    reach = 6 * math.sqrt(NOISE.variance * 2 / 20_000)
    assert torch.allclose(found.counts, torch.full((3,), 20_000.0).double(), atol=6 * math.sqrt(60_000))
    for each in range(3):
        assert torch.allclose(found.means[each], x[y == each].mean(0), atol=reach)
    noise = 6 * math.sqrt(3) * NOISE.moment_noise(60_000) + 0.02
    assert torch.allclose(found.total, x.mT.cov(), atol=noise)


@pytest.mark.parametrize("parties", [1, 4])
def test_models_of_pooled_records_are_good(parties: int) -> None:
    x, y = made(30_000)
    parts = zip(x.tensor_split(parties), y.tensor_split(parties), strict=True)
    told = PerturbedRecords.pooled([PerturbedRecords.told(NOISE, *part) for part in parts])
    softmax = SoftmaxRegression(2, 3, dtype=torch.double)
    fit_perturbed(softmax, told)
    for model in (discriminant(told.moments()), softmax):
        assert float((model.predict(x) == y).double().mean()) > 0.95


@pytest.mark.parametrize("model", [LogisticRegression(2, dtype=torch.double), HuberSvm(2, 10.0, dtype=torch.double)])
def test_two_classes(model: LogisticRegression | HuberSvm) -> None:
    x, y = made(20_000, 2)
    noise = LocalRecords(features=2, classes=2, radius=1.0, epsilon_vector=3.0, epsilon_label=1.0, delta=1e-5)
    fit_perturbed(model, PerturbedRecords.told(noise, x, y))
    assert float((model.predict(x) == y).double().mean()) > 0.95


def test_corrected_classes_have_the_minimum_of_true_ones_as_their_mean() -> None:
    """Softmax weights of corrected classes go to those of the classes themselves; of classes as told they do not."""
    x, y = made(30)
    x, y = x.repeat(2000, 1), y.repeat(2000)
    told = NOISE.label.release(y).value
    models = [SoftmaxRegression(2, 3, dtype=torch.double) for _ in range(3)]
    models[0].fit(x, y, quadratic=6e3, tolerance=1e-4)
    models[1].fit_shares(x, NOISE.label.inverse()[told], quadratic=6e3)
    models[2].fit(x, told, quadratic=6e3, tolerance=1e-4)
    right, corrected, plain = (model.weight.detach() for model in models)
    assert float((corrected - right).norm()) < 0.05 * float(right.norm())
    assert float((plain - right).norm()) > 0.1 * float(right.norm())


def test_doors() -> None:
    x, y = made(30)
    other = LocalRecords(features=2, classes=3, radius=1.0, epsilon_vector=1.0, epsilon_label=1.0)
    with pytest.raises(PrivacyError, match="one mechanism"):
        PerturbedRecords.pooled([PerturbedRecords.told(NOISE, x, y), PerturbedRecords.told(other, x, y)])
    with pytest.raises(ModelError, match="sum to 1"):
        SoftmaxRegression(2, 3).fit_shares(x, torch.zeros(30, 3), quadratic=1.0)
    with pytest.raises(ModelError, match="not convex"):
        HuberSvm(2).fit_shares(x, torch.full((30, 2), 0.5), quadratic=1.0)
