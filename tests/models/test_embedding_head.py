"""The head on an embedding: a logistic one is scikit-learn's, scales are of public speech, none exceeds a radius."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from ppspeech.errors import ModelError
from ppspeech.models import EmbeddingHead, LargeMarginGaussians, SoftmaxRegression

CLASSES, FEATURES = 3, 12


def blobs(count: int = 120) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    y = torch.arange(count) % CLASSES
    centers = 3 * torch.randn(CLASSES, FEATURES, generator=generator)
    return 5 + centers[y] + torch.randn(count, FEATURES, generator=generator), y


def test_a_logistic_head_is_scikit_learns() -> None:
    x, y = blobs()
    head = EmbeddingHead(CLASSES, FEATURES, "logistic", radius=100.0)
    head.scale_(x)
    assert isinstance(head.head, SoftmaxRegression)
    head.head.fit(head.embed(x), y, quadratic=0.5)
    scaled = ((x - x.mean(0)) / (x.std(0) * FEATURES**0.5)).numpy()
    reference = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-10, max_iter=5_000)
    reference.fit(np.c_[scaled, np.ones(len(x))], y.numpy())
    np.testing.assert_allclose(head.head.weight.detach().numpy(), reference.coef_, atol=1e-4)
    with torch.no_grad():
        found = head(x).softmax(-1).numpy()
    np.testing.assert_allclose(found, reference.predict_proba(np.c_[scaled, np.ones(len(x))]), atol=1e-4)


@pytest.mark.parametrize("kind", ["logistic", "margin"])
def test_public_speech_is_scaled_to_length_one_whatever_its_units(kind: str) -> None:
    x, _ = blobs()
    heads = []
    for factor in (1.0, 250.0):
        head = EmbeddingHead(CLASSES, FEATURES, kind)  # type: ignore[arg-type]
        head.scale_(factor * x)
        heads.append(head)
        assert head.scaled(factor * x).square().sum(-1).mean() == pytest.approx(1.0, rel=0.02)
        assert head.embed(factor * x).square().sum(-1).mean() == pytest.approx(1.0, rel=0.02)
    torch.testing.assert_close(heads[0].scaled(x), heads[1].scaled(250.0 * x), atol=1e-4, rtol=1e-3)
    constant = x.clone()
    constant[:, 0] = 7.0  # a number that never changes must not blow up
    heads[0].scale_(constant)
    assert heads[0].scaled(constant + 1.0).isfinite().all()


@pytest.mark.parametrize("kind", ["logistic", "margin"])
def test_nothing_counts_for_more_than_the_radius(kind: str) -> None:
    """What privacy rests on: an outlier is brought to the radius before the head sees it."""
    x, y = blobs()
    head = EmbeddingHead(CLASSES, FEATURES, kind, radius=0.5)  # type: ignore[arg-type]
    head.scale_(x)
    z = head.embed(1e6 * x)
    phi = head.head.features(z)
    most = 0.5**2 + 1 if kind == "margin" else (0.5**2 + 1) ** 0.5
    assert z.norm(dim=-1).min() > 1e3
    assert phi.norm(dim=-1).max() <= most * (1 + 1e-5)
    head.head.fit(head.embed(x), y, quadratic=0.1, tolerance=1e-3)
    with torch.no_grad():
        torch.testing.assert_close(head(1e4 * x + head.mean), head(1e6 * x + head.mean), atol=1e-2, rtol=1e-2)


def test_large_margin_gaussians_look_along_what_public_speech_varies_in() -> None:
    generator = torch.Generator().manual_seed(0)
    wide = torch.randn(400, 40, generator=generator) @ torch.diag(torch.linspace(1, 4, 40))
    mixed = wide @ torch.linalg.qr(torch.randn(40, 40, generator=generator)).Q
    head = EmbeddingHead(2, 40, "margin")
    head.scale_(mixed)
    assert isinstance(head.head, LargeMarginGaussians)
    assert head.projection.shape == (24, 40)
    gram = head.projection @ head.projection.mT
    torch.testing.assert_close(gram, 40 / 24 * torch.eye(24), atol=1e-4, rtol=1e-4)
    kept = head.embed(mixed).var(dim=0).sum() / (40 / 24)
    assert kept > 24 / 40 * head.scaled(mixed).var(dim=0).sum()


def test_what_is_added_to_the_background_is_a_buffer_of_its_own() -> None:
    x, _ = blobs()
    head = EmbeddingHead(CLASSES, FEATURES)
    head.scale_(x)
    before = head(x)
    head.reject.fill_(3.0)
    torch.testing.assert_close(head(x), before)  # who decides adds it
    assert head.state_dict()["reject"] == 3.0
    torch.testing.assert_close(head(x.unsqueeze(1)), head(x))  # frames of a batch


BAD = [
    (lambda: EmbeddingHead(1, 4), "two classes"),
    (lambda: EmbeddingHead(2, 0), "two classes"),
    (lambda: EmbeddingHead(2, 4, radius=0.0), "radius"),
    (lambda: EmbeddingHead(2, 4).scale_(torch.zeros(1, 4)), "two vectors or more"),
    (lambda: EmbeddingHead(2, 4).scale_(torch.zeros(5, 3)), "of 4 numbers"),
    (lambda: EmbeddingHead(2, 4)(torch.zeros(5, 3)), "must match"),
]


@pytest.mark.parametrize(("make", "words"), BAD)
def test_sizes_that_cannot_be_are_refused(make: object, words: str) -> None:
    with pytest.raises((ModelError, RuntimeError), match=words):
        make()  # type: ignore[operator]
