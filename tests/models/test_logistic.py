"""Linear classifiers against scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression as SklearnLogistic

from ppspeech.errors import ModelError
from ppspeech.models.linear import HuberSvm, LogisticRegression, SoftmaxRegression


def blobs(classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(classes)
    y = torch.randint(classes, (150,), generator=generator)
    centers = 1.5 * torch.randn(classes, 4, generator=generator, dtype=torch.double)
    return centers[y] + torch.randn(150, 4, generator=generator, dtype=torch.double), y


@pytest.mark.parametrize("classes", [2, 4])
def test_coefficients_equal_scikit_learn(classes: int) -> None:
    x, y = blobs(classes)
    if classes == 2:
        model: LogisticRegression | SoftmaxRegression = LogisticRegression(4, dtype=torch.double)
    else:
        model = SoftmaxRegression(4, classes, dtype=torch.double)
    model.fit(x, y, quadratic=2.0)
    reference = SklearnLogistic(C=0.5, fit_intercept=False, tol=1e-10, max_iter=2000)
    reference.fit(np.c_[x.numpy(), np.ones(len(x))], y.numpy())
    np.testing.assert_allclose(model.weight.detach().numpy(), reference.coef_, atol=1e-5)
    assert (model.predict(x).numpy() == reference.predict(np.c_[x.numpy(), np.ones(len(x))])).all()


def test_no_intercept_without_a_constant() -> None:
    x, y = blobs(2)
    model = LogisticRegression(4, constant=0.0)
    model.fit(x, y, quadratic=1.0)
    assert model.weight[0, -1] == 0


def test_huber_svm_separates_and_narrow_width_nears_the_hinge() -> None:
    x, y = blobs(2)
    model = HuberSvm(4, width=0.5, dtype=torch.double)
    model.fit(x, y, quadratic=1.0)
    assert (model.predict(x) == y).double().mean() > 0.85
    objectives = [HuberSvm(4, width=h).fit(x, y, quadratic=1.0).certificate.objective for h in (0.5, 0.05, 0.005)]
    assert objectives == sorted(objectives, reverse=True)
    assert objectives[1] - objectives[2] < 0.05 / 4 * 150


def test_autograd_training_reaches_the_same_minimum() -> None:
    x, y = blobs(3)
    fitted = SoftmaxRegression(4, 3, dtype=torch.double)
    certificate = fitted.fit(x, y, quadratic=5.0).certificate
    model = SoftmaxRegression(4, 3, dtype=torch.double)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=100, line_search_fn="strong_wolfe")

    def total() -> torch.Tensor:
        optimizer.zero_grad()
        value = model.loss(x, y).sum() + 2.5 * model.weight.square().sum()
        value.backward()
        return value

    assert optimizer.step(total).item() > certificate.objective
    assert total().item() == pytest.approx(certificate.objective, rel=1e-8)
    torch.testing.assert_close(model.weight, fitted.weight, atol=1e-4, rtol=0)


def test_clipping_bounds_the_features() -> None:
    model = LogisticRegression(2, radius=1.0, constant=0.5)
    rows = model.features(torch.tensor([[3.0, 4.0], [0.3, 0.4]]))
    torch.testing.assert_close(rows, torch.tensor([[0.6, 0.8, 0.5], [0.3, 0.4, 0.5]]))


def test_refusals() -> None:
    x, y = blobs(2)
    model = LogisticRegression(4)
    with pytest.raises(ModelError, match=r"0\.\.1"):
        model.fit(x, y + 1, quadratic=1.0)
    with pytest.raises(ModelError, match="integers"):
        model.loss(x, y.double())
    with pytest.raises(ModelError, match="features"):
        model.fit(x[:, :2], y, quadratic=1.0)
    with pytest.raises(ModelError, match="radius"):
        LogisticRegression(4, radius=-1.0)
    with pytest.raises(ModelError, match="width"):
        HuberSvm(4, width=0.0)
    with pytest.raises(ModelError, match="classes"):
        SoftmaxRegression(4, 1)
    with pytest.raises(ModelError, match="finite"):
        model.fit(x * torch.inf, y, quadratic=1.0)
