"""Every convex module trains privately through one door."""

import math

import pytest
import torch
from torch import Tensor

from ppspeech.errors import PrivacyError
from ppspeech.models.gaussian.phi import svec
from ppspeech.models.linear import HuberSvm, LogisticRegression, SoftmaxRegression
from ppspeech.models.margin.gaussians import LargeMarginGaussians
from ppspeech.models.margin.loss import MarginLoss
from ppspeech.privacy import Relation
from ppspeech.privacy.convex.objective import ObjectivePerturbation, Perturbation
from ppspeech.privacy.convex.output import OutputPerturbation
from ppspeech.training.private.objective import ConvexModule, fit_privately, head_of, radius_of, theta_shape

CENTROIDS = torch.tensor([[[-0.5, 0.0], [-0.5, 0.5]], [[0.5, 0.0], [0.5, 0.5]]], dtype=torch.double)


def modules() -> dict[str, ConvexModule]:
    kinds = {"radius": 1.0, "dtype": torch.double}
    return {
        "logistic": LogisticRegression(2, **kinds),  # type: ignore[arg-type]
        "softmax": SoftmaxRegression(2, 2, **kinds),  # type: ignore[arg-type]
        "huber_svm": HuberSvm(2, **kinds),  # type: ignore[arg-type]
        "large_margin": LargeMarginGaussians(2, 2, **kinds),  # type: ignore[arg-type]
        "pooled": LargeMarginGaussians(2, 2, loss=MarginLoss(competitor="lse"), psd="projection", **kinds),  # type: ignore[arg-type]
        "mixture": LargeMarginGaussians(2, 2, components=2, **kinds),  # type: ignore[arg-type]
    }


def clouds(rows: int = 3000) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(rows) % 2
    x = 0.2 * torch.randn(rows, 2, generator=generator, dtype=torch.double)
    x[:, 0] += 0.5 * (2 * y - 1)
    return x, y


def budget(epsilon: float = 2.0, **changes: object) -> ObjectivePerturbation:
    given: dict[str, object] = {"relation": Relation("record", "add_remove"), "regularization": 30.0}
    return ObjectivePerturbation(epsilon=epsilon, **(given | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(set(modules()) - {"mixture"}))
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_private_models_classify(name: str, delta: float) -> None:
    module = modules()[name]
    x, y = clouds()
    fit = fit_privately(module, x, y, budget(delta=delta))
    assert (module.predict(x) == y).double().mean() > 0.9
    assert (fit.guarantee.epsilon, fit.guarantee.delta) == (2.0, delta)
    assert fit.solution.certificate.residual <= budget().relative_tolerance * 10
    assert fit.event == fit.plan.event


@pytest.mark.parametrize("name", list(modules()))
def test_constants_bound_the_gradients_of_the_module(name: str) -> None:
    """Autograd's per-record gradients at wild parameters never exceed G, and clipping bounds the features."""
    module = modules()[name]
    head, radius = head_of(module), radius_of(module)
    x = 5 * torch.randn(40, 2, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    y = torch.arange(40) % 2
    assert module.features(x).norm(dim=1).max() <= radius
    (parameter,) = module.parameters()
    with torch.no_grad():
        parameter.copy_(
            3 * torch.randn(parameter.shape, dtype=torch.double, generator=torch.Generator().manual_seed(2))
        )
    terms = {"m": torch.zeros_like(y)} if name == "mixture" else {}
    objective = module.objective(x, y, quadratic=1.0, **terms)
    flat = svec(module.phi()).detach() if isinstance(module, LargeMarginGaussians) else parameter.detach()
    slopes = objective.at(flat.reshape(theta_shape(module))).expansion.slopes
    sizes = slopes.norm(dim=1) * module.features(x).norm(dim=1)
    bound = head.sensitivity(radius, "add_remove")
    assert sizes.max() <= bound * (1 + 1e-9)
    assert sizes.max() > 0.4 * bound


def test_noise_reaches_the_differences_between_classes() -> None:
    """What Pathak and Raj 2012's shared matrix never touches: var(Phi_1 - Phi_2) > 0, at the size that kappa
    promises."""
    x, y = clouds(200)
    found = []
    for _ in range(60):
        module = modules()["large_margin"]
        assert isinstance(module, LargeMarginGaussians)
        fit = fit_privately(module, x, y, budget(epsilon=0.2, regularization=1e4))
        found.append(svec(module.phi()[0, 0] - module.phi()[1, 0]).detach())
    spread = torch.stack(found).var(0).sum().sqrt()
    plan = fit.plan
    assert isinstance(plan, Perturbation)
    # the centered b has E|b|^2 = N (N + 1) / kappa^2, and b_1 - b_2 twice that
    expected = math.sqrt(2 * 6 * 7) / plan.scale / plan.regularization
    assert float(spread) == pytest.approx(expected, rel=0.4)


def test_speakers_count_once() -> None:
    """Ten thousand copies of one speaker's wrong labels weigh as much as one."""
    x, y = clouds(400)
    groups = torch.arange(400)
    liar = torch.cat([x, x[:1].expand(20_000, -1)]), torch.cat([y, (1 - y[:1]).expand(20_000)])
    whose = torch.cat([groups, torch.full((20_000,), 400)])
    hook = budget(epsilon=1e4, relation=Relation("speaker", "add_remove"), regularization=1.0)
    honest, lied = modules()["logistic"], modules()["logistic"]
    fit = fit_privately(honest, x, y, hook, groups)
    fit_privately(lied, *liar, hook, whose)
    assert isinstance(honest, LogisticRegression)
    assert isinstance(lied, LogisticRegression)
    assert (honest.weight - lied.weight).norm() < radius_of(honest) / 1.0 + 0.05
    assert fit.guarantee.unit == "speaker"
    assert any("average" in line for line in fit.guarantee.assumptions)


def test_one_row_an_utterance_is_as_good_as_one_row_a_record() -> None:
    x, y = clouds(40)
    found = []
    for unit, groups in (("record", None), ("utterance", torch.arange(40))):
        fit = fit_privately(modules()["logistic"], x, y, budget(relation=Relation(unit, "add_remove")), groups)  # type: ignore[arg-type]
        assert isinstance(fit.plan, Perturbation)
        assert not fit.plan.averaged
        found.append((fit.plan.scale, fit.guarantee.epsilon))
    assert found[0] == found[1]


def test_what_the_solver_found_is_not_printed() -> None:
    """The minimizer before the noise is in the fit, for whoever trains; not in what a log would show."""
    module, (x, y) = modules()["softmax"], clouds()
    hook = OutputPerturbation(epsilon=2.0, delta=1e-5, relation=Relation("record", "replace"), regularization=30.0)
    fit = fit_privately(module, x, y, hook)
    assert "solution" not in repr(fit)
    assert "theta" not in repr(fit)
    for value in fit.solution.theta.flatten().tolist():
        assert f"{value:.4f}"[:6] not in repr(fit)


def test_output_perturbation_goes_through_the_same_door() -> None:
    module = modules()["softmax"]
    x, y = clouds()
    hook = OutputPerturbation(epsilon=2.0, delta=1e-5, relation=Relation("record", "replace"), regularization=30.0)
    fit = fit_privately(module, x, y, hook)
    assert (module.predict(x) == y).double().mean() > 0.9
    assert fit.guarantee.float_safe
    assert fit.plan.regularization == 30.0


def test_what_cannot_be_private_is_refused() -> None:
    x, y = clouds(20)
    with pytest.raises(PrivacyError, match="radius"):
        fit_privately(LogisticRegression(2), x, y, budget())
    for unit in ("speaker", "utterance", "party"):
        hook = budget(relation=Relation(unit, "add_remove"))
        with pytest.raises(PrivacyError, match=f"give groups, the {unit} of every row"):
            fit_privately(modules()["logistic"], x, y, hook)
    frames = torch.arange(20) // 5  # of four utterances
    with pytest.raises(PrivacyError, match="one utterance has up to 5 rows"):
        fit_privately(modules()["logistic"], x, y, budget(relation=Relation("utterance", "add_remove")), frames)
    with pytest.raises(PrivacyError, match="one Gaussian a class, got 2"):
        fit_privately(modules()["mixture"], x, y, budget())
    with pytest.raises(PrivacyError, match="belongs to large-margin"):
        fit_privately(modules()["softmax"], x, y, budget(), gamma=1.0)
