"""The published large-margin mechanism gives its data away; the sound one does not."""

import pytest
import torch

from ppspeech.evidence.published.large_margin import PublishedLargeMargin, Rows, published_bounds
from ppspeech.evidence.published.mechanisms import PublishedSharedNoise
from ppspeech.models.gaussian.phi import svec
from ppspeech.models.margin.gaussians import LargeMarginGaussians, sum_form
from ppspeech.models.margin.loss import MarginLoss
from ppspeech.privacy import Relation
from ppspeech.privacy.accounting.accountant import Accountant
from ppspeech.privacy.audit import audit_leak_identity
from ppspeech.privacy.convex.objective import ObjectivePerturbation
from ppspeech.training.private.objective import fit_privately

PUBLISHED = PublishedLargeMargin(epsilon=1.0, classes=2, features=2, lam=0.05, gamma=0.001)


def rows(count: int = 60) -> Rows:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(count) % 2
    x = 0.3 * torch.randn(count, 2, generator=generator, dtype=torch.double)
    x[:, 0] += 0.3 * (2 * y - 1)
    return x / x.norm(dim=1, keepdim=True).clamp_min(1.0), y


def test_the_equation_flags_the_published_noise() -> None:
    report = PUBLISHED.audit(rows(), runs=40)
    assert (report.tpr, report.verdict) == (1.0, "violated")
    assert report.eps_lower > report.eps_stated == pytest.approx(1.0 + 0.28768, abs=1e-4)


def test_the_same_equation_says_nothing_about_sound_noise() -> None:
    strength = sum_form(60, PUBLISHED.lam).quadratic

    def sound(data: Rows) -> LargeMarginGaussians:
        module = LargeMarginGaussians(2, 2, loss=MarginLoss(0.5), psd="projection", radius=1.0, dtype=torch.double)
        hook = ObjectivePerturbation(epsilon=1.0, relation=Relation("record", "add_remove"), regularization=strength)
        fit_privately(module, *data, hook)
        return module

    x, y = rows()
    report = audit_leak_identity(
        sound, (x, y), (x[1:], y[1:]), PUBLISHED.residual, 20,
        tolerance=1e-5, name="sound", stated=PUBLISHED.guarantee(60),
    )  # fmt: skip
    assert report.eps_lower == 0


def test_without_the_constraint_differences_of_classes_carry_no_noise() -> None:
    """Unconstrained, Phi_1 - Phi_2 is the same in every run, and another one without a row; Phi_1 alone is not."""
    x, y = rows()
    form = sum_form(60, PUBLISHED.lam)

    def fit(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        module = LargeMarginGaussians(2, 2, loss=MarginLoss(0.5), radius=1.0, dtype=torch.double)
        shared = PUBLISHED.noise.noise(2)
        linear = 60 * svec((shared + shared.mT) / 2)
        module.fit(x, y, quadratic=form.quadratic, linear=linear, tolerance=1e-9)
        return module.phi()[:, 0].detach()

    one, again, without = fit(x, y), fit(x, y), fit(torch.cat([x[:1], x[2:]]), torch.cat([y[:1], y[2:]]))
    assert ((one[0] - one[1]) - (again[0] - again[1])).norm() < 1e-8 < (one[0] - again[0]).norm()
    assert float(((one[0] - one[1]) - (without[0] - without[1])).norm()) == pytest.approx(0.058, abs=1e-3)


@pytest.mark.parametrize(("features", "share"), [(1, 0.854), (3, 0.997), (10, 1.0)])
def test_without_an_l2_term_the_objective_falls_without_end(features: int, share: float) -> None:
    """Along a matrix v v' in all classes, where the noise's form of v is negative; false alarm about 1e-6."""
    noise = PublishedSharedNoise(epsilon=1.0, size=features + 1)
    drawn = torch.stack([noise.noise(1)[0] for _ in range(2000)])
    negative = torch.linalg.eigvalsh((drawn + drawn.mT) / 2)[:, 0] < 0
    assert float(negative.double().mean()) == pytest.approx(share, abs=5 * (share * (1 - share) / 2000) ** 0.5 + 1e-3)


def test_nothing_published_enters_an_account() -> None:
    guarantee = PUBLISHED.guarantee(60)
    assert (guarantee.kind, guarantee.proven) == ("broken", False)
    account = Accountant(Relation("record", "add_remove"))
    account.compose(PUBLISHED.event)
    assert account.epsilon(1e-5) == float("inf")


def test_the_seeds_bounds_are_what_they_are() -> None:
    few, many = published_bounds(PUBLISHED, 100), published_bounds(PUBLISHED, 10**9)
    assert few.empirical == many.empirical  # does not vanish with n
    assert few.corrected - few.true == pytest.approx(few.empirical)
    assert few.vacuous
    assert few.trivial == 1.0
