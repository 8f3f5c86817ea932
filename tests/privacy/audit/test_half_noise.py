"""Half the noise of any release is noticed by the audit of what it books, at the parameters it books."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from torch import Tensor

from ppspeech.privacy import (
    Accountant,
    DiscreteGaussian,
    DiscreteGaussianEvent,
    DiscreteLaplace,
    Gaussian,
    GaussianEvent,
    Laplace,
    LaplaceEvent,
    ObjectivePerturbation,
    Relation,
    SampledGaussianEvent,
    SkellamEvent,
)
from ppspeech.privacy.audit import attacks_on, audit_account
from ppspeech.privacy.audit.sampling import audit_scores
from ppspeech.privacy.convex import huber_svm_head, large_margin_head, logistic_head, softmax_head
from ppspeech.privacy.convex.attack import attacked, released_losses
from ppspeech.privacy.convex.objective import Perturbation
from ppspeech.privacy.gradients import GradientPlan
from ppspeech.privacy.mechanisms import (
    AnalyzeGauss,
    JohnsonLindenstrauss,
    Moments,
    PolyaShares,
    ProjectionEvent,
    ShiftRelease,
    SkellamShares,
    UnitSums,
)
from ppspeech.privacy.mechanisms.discrete_laplace import DiscreteLaplaceEvent

RECORD, SPEAKER = Relation("record", "add_remove"), Relation("speaker", "add_remove")
SURE = 1 - 1e-6


def halved(release: Callable[..., Any]) -> Callable[..., Any]:
    """A release that goes half the way back to what was to be released."""

    def half(self: Any, value: Tensor, *more: Any) -> Any:
        told = release(self, value, *more)
        return replace(told, value=(told.value + value) / 2)

    return half


def half_sums(released: Callable[[UnitSums], Moments]) -> Callable[[UnitSums], Moments]:
    """Of silence, where all that is released is noise."""
    return lambda self: Moments(*(part / 2 for part in released(self).parts))


def half_value(release: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a release of nobody."""

    def half(self: Any, *given: Any) -> Any:
        told = release(self, *given)
        value = [part / 2 for part in told.value] if isinstance(told.value, list) else told.value / 2
        return replace(told, value=value)

    return half


def half_floor(release: Callable[..., Any]) -> Callable[..., Any]:
    """A projection on half the floor w, booked as if on the whole."""
    return lambda self, rows: release(replace(self, floor=self.floor / 4), rows)


def half_share(share: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, count=1: share(self, count) // 2


BOOKED: list[Any] = [
    ("gaussian", GaussianEvent(3.73, RECORD), Gaussian, "release", halved),
    ("statistics", DiscreteGaussianEvent(373.0, 100.0, 100.0, 1, SPEAKER), UnitSums, "released", half_sums),
    (
        "statistics",
        DiscreteGaussianEvent(100.0, 100.0, 100.0, 1, Relation("utterance", "replace")),
        UnitSums,
        "released",
        half_sums,
    ),
    ("discrete_gaussian", DiscreteGaussianEvent(373.0, 100.0, 100.0, 1, RECORD), DiscreteGaussian, "release", halved),
    ("shifts", DiscreteGaussianEvent(373.0, 100.0, 100.0, 1, SPEAKER), ShiftRelease, "release", half_value),
    ("analyze_gauss", DiscreteGaussianEvent(373.0, 100.0, 100.0, 1, RECORD), AnalyzeGauss, "release", half_value),
    ("laplace", LaplaceEvent(1.0, RECORD), Laplace, "release", halved),
    ("discrete_laplace", DiscreteLaplaceEvent(100.0, 100, RECORD), DiscreteLaplace, "release", halved),
    ("polya", DiscreteLaplaceEvent(100.0, 100, RECORD), PolyaShares, "share", half_share),
    ("skellam", SkellamEvent(373.0**2, 100.0, 100.0, 1, RECORD), SkellamShares, "share", half_share),
    ("johnson_lindenstrauss", ProjectionEvent(20, 0.07, False, RECORD), JohnsonLindenstrauss, "release", half_floor),
    ("sampled_gaussian", SampledGaussianEvent(0.8, 0.2, 10, RECORD), GradientPlan, "release", half_value),
    (
        "sampled_gaussian",
        SampledGaussianEvent(2.0, 0.5, 4, Relation("record", "replace")),
        GradientPlan,
        "release",
        half_value,
    ),
]


@pytest.mark.parametrize(
    ("name", "event", "kind", "method", "half"), BOOKED, ids=[f"{b[0]}-{b[1].relation}" for b in BOOKED]
)
def test_half_the_noise_of_a_release_is_noticed(
    name: str, event: Any, kind: Any, method: str, half: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = Accountant(event.relation)
    account.compose(event)
    stated = account.guarantee(0.0 if event.pure() is not None else 1e-5)
    assert name in attacks_on(event)
    for noise, verdict in (("whole", "no violation found"), ("half", "violated")):
        if noise == "half":
            monkeypatch.setattr(kind, method, half(getattr(kind, method)))
        reports = {
            report.mechanism: report for report in audit_account(account.events, stated, 20_000, confidence=SURE)
        }
        assert reports[name].verdict == verdict, reports[name]


PURE, APPROXIMATE = (0.0, 1.0, 2400), (1e-5, 8.0, 800)
HEADS: list[Any] = [  # each head and each noise in every run, the other pairs of them with the slow ones
    pytest.param(*case, id=f"{case[0].name}-{case[2]}", marks=[pytest.mark.slow] if later else [])
    for case, later in (
        ((logistic_head(), 1, *PURE), False),
        ((softmax_head(2), 2, *APPROXIMATE), False),
        ((huber_svm_head(0.5), 1, *APPROXIMATE), False),
        ((large_margin_head(2, 1, 0.5), 2, *PURE), False),
        ((logistic_head(), 1, *APPROXIMATE), True),
        ((softmax_head(2), 2, *PURE), True),
        ((huber_svm_head(0.5), 1, *PURE), True),
        ((large_margin_head(2, 1, 0.5), 2, *APPROXIMATE), True),
    )
]


@pytest.mark.parametrize(("head", "outputs", "delta", "epsilon", "runs"), HEADS)
def test_half_the_noise_of_any_objective_is_noticed(
    head: Any, outputs: int, delta: float, epsilon: float, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the real solver's releases, with the record and without."""
    budget = ObjectivePerturbation(epsilon=epsilon, delta=delta, relation=RECORD, regularization=1e3)
    plan = budget.for_head(head, 1.0, (outputs, 1))
    account = Accountant(RECORD)
    account.compose(plan.event.parts[0])
    noise = Perturbation.noise
    monkeypatch.setattr(Perturbation, "noise", lambda self, like=None: noise(self, like) / 2)
    inside, outside = (released_losses(plan, runs, present).numpy() for present in (True, False))
    terms: dict[str, Any] = {"stated": account.guarantee(delta), "confidence": 0.999, "entries": account.events}
    report = audit_scores(inside, outside, name=head.name, **terms)
    assert report.verdict == "violated", report


def test_a_head_without_a_known_loss_is_refused() -> None:
    with pytest.raises(Exception, match="no record is known"):
        attacked(large_margin_head(3, 2, 0.5), 6)
