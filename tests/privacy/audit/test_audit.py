"""The audit itself: gold values, that it passes what is sound, and that it catches what is not.

Sampling audits of sound mechanisms raise a false alarm with probability at most 1e-3 each by design; the tests below
use a confidence of 1 - 1e-6 where a false alarm would fail the build.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ppspeech.errors import PrivacyError
from ppspeech.evidence.published.mechanisms import PublishedSharedNoise
from ppspeech.privacy import (
    Accountant,
    DiscreteGaussian,
    DiscreteGaussianEvent,
    DiscreteLaplace,
    Exponential,
    GammaNorm,
    Gaussian,
    GaussianEvent,
    Guarantee,
    Laplace,
    LaplaceEvent,
    NonPrivateEvent,
    PermuteAndFlip,
    Relation,
    SampledDiscreteGaussianEvent,
    SampledGaussianEvent,
    SkellamEvent,
)
from ppspeech.privacy.accounting.events import EVENTS
from ppspeech.privacy.audit import (
    audit_account,
    audit_exact,
    audit_leak_identity,
    audit_one_run,
    audit_sampling,
    catalogue,
    epsilon_lower_bound,
    one_run_epsilon,
    one_run_p_value,
)
from ppspeech.privacy.audit.catalogue import audited, exact_report, line, run_audits
from ppspeech.privacy.convex.audit import objective_logistic_audit, tilted_guarantee
from ppspeech.privacy.convex.bounds import logistic_head
from ppspeech.privacy.convex.objective import ObjectivePerturbation
from ppspeech.privacy.mechanism import MECHANISMS as LISTED
from ppspeech.privacy.mechanisms import selection
from ppspeech.privacy.samplers.randomness import standard_normal

R: Any = {"relation": Relation("record", "add_remove")}
SURE = 1 - 1e-6
PURE = Guarantee(kind="pure", epsilon=1.0, **R)


@pytest.mark.parametrize(("trials", "bound"), [(400, 4.68), (1500, 6.01), (150, 3.69)])
def test_clopper_pearson_gold(trials: int, bound: float) -> None:
    assert epsilon_lower_bound(trials, 0, trials) == pytest.approx(bound, abs=6e-3)
    assert epsilon_lower_bound(0, trials, trials) == 0.0
    assert epsilon_lower_bound(trials, 0, trials, delta=0.999) == 0.0


def test_clopper_pearson_covers() -> None:
    """A mechanism with a true epsilon of ln 2 (TPR .5, FPR .25): the bound exceeds it in at most 5 % of the audits."""
    generator = np.random.default_rng(0)
    hits, alarms = generator.binomial(300, 0.5, 1000), generator.binomial(300, 0.25, 1000)
    wrong = sum(epsilon_lower_bound(int(a), int(b), 300) > math.log(2) for a, b in zip(hits, alarms, strict=True))
    assert wrong <= 50 + 5 * math.sqrt(47.5)


@pytest.mark.parametrize(
    ("m", "r", "v", "delta", "bound"),
    [(1000, 100, 100, 0, 3.493), (1000, 100, 90, 1e-5, 1.626), (1000, 1000, 1000, 1e-5, 5.782)],
)
def test_one_run_gold(m: int, r: int, v: int, delta: float, bound: float) -> None:
    assert one_run_epsilon(m, r, v, delta=delta) == pytest.approx(bound, abs=6e-4)


def test_one_run_p_value_against_a_loop() -> None:
    epsilon, delta, m, r, v = 0.7, 1e-3, 50, 20, 16
    q = math.exp(epsilon) / (1 + math.exp(epsilon))
    pmf = [math.comb(r, k) * q**k * (1 - q) ** (r - k) for k in range(r + 1)]
    worst = max(sum(pmf[v - i : v]) / i for i in range(1, v + 1))
    assert one_run_p_value(epsilon, delta, m, r, v) == pytest.approx(sum(pmf[v:]) + 2 * m * delta * worst)
    assert one_run_epsilon(50, 20, 8) == 0.0


@pytest.mark.parametrize("arguments", [(10, 20, 5), (10, 5, 6), (0, 1, 1), (10, 5, -1)])
def test_one_run_refuses_impossible_counts(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(PrivacyError):
        one_run_epsilon(*arguments)


@pytest.fixture(scope="module")
def reports() -> dict[tuple[str, str], Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "CONFIDENCE", SURE)
        return {(report.mechanism, report.method): report for report in run_audits(runs=200)}


def test_every_sound_mechanism_passes_and_the_exact_audits_are_tight(reports: dict[tuple[str, str], Any]) -> None:
    for (name, method), report in reports.items():
        assert (report.verdict == "violated") == name.startswith("published"), report
        if method == "exact" and not name.startswith("published"):
            assert 0.99 < report.eps_lower / report.eps_stated <= 1 + 1e-6
    assert {name for name, _ in reports} == set(audited())


def test_the_seeds_laplace_noise_is_flagged(reports: dict[tuple[str, str], Any]) -> None:
    """sqrt(64) / 2 = 4 times the stated epsilon."""
    report = reports["published_output_laplace", "exact"]
    assert report.eps_lower == pytest.approx(4.0)
    assert report.verdict == "violated"


def exact_lower(mechanism: Any, stated: Guarantee) -> float:
    """What audit_exact finds for a mechanism that is held to a statement."""
    if isinstance(mechanism, DiscreteLaplace | DiscreteGaussian):
        reach = math.ceil(35 / mechanism.grid.step)
        points = torch.arange(-reach, reach + 1).unsqueeze(1)
        volumes = 1.0
    else:
        points, volumes = line(35.0)
    density = mechanism.log_density
    found = audit_exact(density, torch.zeros(1), torch.ones(1), points, volumes=volumes)
    assert float((found.log_p.exp() * volumes).sum()) == pytest.approx(1.0, abs=1e-4)
    return exact_report("x", found, stated).eps_lower


MECHANISMS: list[Any] = [
    Laplace(epsilon=1.0, sensitivity=1.0, **R),
    GammaNorm(epsilon=1.0, sensitivity=1.0, **R),
    DiscreteLaplace(epsilon=1.0, sensitivity=1.0, dimension=1, **R),
    Gaussian.calibrated(epsilon=1.0, delta=1e-5, sensitivity=1.0, **R),
    DiscreteGaussian.calibrated(epsilon=1.0, delta=1e-5, sensitivity=1.0, dimension=1, **R),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_half_the_noise_is_caught_exactly(mechanism: Any) -> None:
    halved = (
        replace(mechanism, sigma=mechanism.sigma / 2)
        if hasattr(mechanism, "sigma")
        else replace(mechanism, epsilon=2 * mechanism.epsilon)
    )
    assert exact_lower(mechanism, mechanism.guarantee) <= 1 + 1e-6
    assert exact_lower(halved, mechanism.guarantee) > 1.9


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_half_the_randomness_of_a_choice_is_caught_exactly(kind: Any) -> None:
    for factor, caught in ((1.0, False), (2.0, True)):
        mechanism = kind(epsilon=factor, sensitivity=1.0, **R)
        found = audit_exact(
            lambda _, u, mechanism=mechanism: mechanism.probabilities(u).log(), *selection.UTILITIES, torch.arange(5)
        )
        assert (exact_report("choice", found, PURE).verdict == "violated") == caught


def test_the_classic_gaussian_formula_is_caught_at_large_epsilon() -> None:
    """sqrt(2 ln(1.25/delta)) / epsilon holds below 1 only; at epsilon 6 and delta .1 it is not enough."""
    sigma = math.sqrt(2 * math.log(1.25 / 0.1)) / 6
    mechanism = Gaussian(sigma=sigma, sensitivity=1.0, delta=0.1, **R)
    assert mechanism.guarantee.epsilon > 6


@pytest.mark.parametrize("mechanism", MECHANISMS[:3], ids=lambda m: type(m).__name__)
def test_sampling_catches_a_tenth_of_the_noise_and_passes_the_whole(mechanism: Any) -> None:
    for factor, caught in ((1.0, False), (10.0, True)):
        real = replace(mechanism, epsilon=mechanism.epsilon * factor)
        report = audit_sampling(
            lambda value, real=real: real.release(value).value,
            torch.ones(1, dtype=torch.float64),
            torch.zeros(1, dtype=torch.float64),
            float,
            240,
            name="laplace",
            stated=mechanism.guarantee,
            confidence=SURE,
        )
        assert (report.verdict == "violated") == caught
        assert report.eps_lower <= report.power


def test_sampling_chooses_its_threshold_without_the_test_half() -> None:
    """A score that is pure luck: the bound must stay at zero although some threshold fits half A perfectly."""
    values = iter([*([1.0] * 20 + [0.0] * 20), *([0.0] * 20 + [1.0] * 20)])
    report = audit_sampling(lambda _: next(values), 0, 1, float, 40, name="luck", stated=PURE)
    assert report.eps_lower == 0.0
    assert (report.tpr, report.fpr) == (0.0, 1.0)


def sum_of_canaries(noise: float) -> Any:
    """The mean-estimation game: every canary is its own axis, the mechanism releases a noisy sum."""

    def mechanism(inside: Any) -> torch.Tensor:
        total = noise * standard_normal((200,))
        for canary in inside:
            total[canary] += 1
        return total

    return mechanism


@pytest.mark.parametrize("caught", [True, False])
def test_one_run_with_canaries(caught: bool) -> None:
    """False-alarm rate at most 1e-3."""
    sound = Gaussian.calibrated(epsilon=1.0, delta=1e-7, sensitivity=1.0, **R)
    stated = sound.guarantee
    report = audit_one_run(
        sum_of_canaries(0.05 if caught else sound.sigma),
        range(200),
        lambda output, canary: float(output[canary]),
        100,
        name="sum",
        stated=stated,
        confidence=0.999,
    )
    assert (report.verdict == "violated") == caught
    with pytest.raises(PrivacyError, match="even"):
        audit_one_run(sum_of_canaries(1.0), range(10), lambda *_: 0.0, 3, name="sum", stated=stated)


def test_shared_noise_is_broken_by_its_identity_and_independent_noise_is_not() -> None:
    """One matrix for all classes cancels in their differences, which then identify the data set."""
    shared = PublishedSharedNoise(epsilon=0.1, size=3)
    sound = GammaNorm(epsilon=0.1, sensitivity=1.0, symmetric=True, centered=True, **R)

    def heads(data: float) -> torch.Tensor:
        return torch.stack([data * torch.eye(3, dtype=torch.float64), torch.zeros(3, 3, dtype=torch.float64)])

    def identity(output: torch.Tensor, data: float) -> float:
        exact = heads(data)
        return float((output[0] - output[1] - exact[0] + exact[1]).norm())

    arguments: dict[str, Any] = {"tolerance": 1e-6, "name": "large_margin", "stated": shared.guarantee}
    broken = audit_leak_identity(lambda d: heads(d) + shared.noise(2), 1.0, 1.01, identity, 400, **arguments)
    assert (broken.tpr, broken.fpr, broken.verdict) == (1.0, 0.0, "violated")
    assert broken.eps_lower == pytest.approx(4.68, abs=6e-3)
    held = audit_leak_identity(lambda d: sound.release(heads(d)).value, 1.0, 1.01, identity, 400, **arguments)
    assert (held.eps_lower, held.verdict) == (0.0, "no violation found")


def test_exact_audit_refuses_what_it_cannot_judge() -> None:
    with pytest.raises(PrivacyError, match="volume"):
        audit_exact(lambda x, d: x - d, 0.0, 1.0, torch.zeros(3)).delta(1.0)
    with pytest.raises(PrivacyError, match="NaN"):
        audit_exact(lambda x, d: x * math.nan, 0.0, 1.0, torch.zeros(3))
    with pytest.raises(PrivacyError, match="vectors"):
        audit_exact(lambda x, d: x, 0.0, 1.0, torch.zeros(3, 3))


def test_outputs_possible_on_one_side_only_are_an_infinite_loss() -> None:
    laws = (torch.tensor([-1.0, -1.0, -math.inf]), torch.tensor([0.0, -math.inf, -math.inf]))
    found = audit_exact(lambda _, d: laws[d], 0, 1, torch.arange(3))
    assert found.sup_loss == math.inf


def test_the_catalogue_refuses_unknown_and_doubled_names() -> None:
    with pytest.raises(PrivacyError, match="known are "):
        run_audits(["magic"])
    with pytest.raises(PrivacyError, match="no audit is registered"):
        run_audits(["skellam"])


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_objective_perturbation_is_tight_and_half_its_noise_is_caught(delta: float) -> None:
    hook = ObjectivePerturbation(
        epsilon=1.0, delta=delta, relation=Relation("record", "add_remove"), regularization=1.02
    )
    plan = hook.for_head(logistic_head(), 1.0, (1, 1))
    stated = tilted_guarantee(plan)
    sound = exact_report("objective", objective_logistic_audit(plan), stated)
    assert 0.9 * sound.eps_stated < sound.eps_lower <= sound.eps_stated * (1 + 1e-3)
    mutant = exact_report("objective", objective_logistic_audit(plan, noise=0.5), stated)
    assert mutant.eps_lower > 1.5 * mutant.eps_stated


RECORD = Relation("record", "add_remove")
BOOKED: list[Any] = [
    GaussianEvent(1.0, RECORD),
    LaplaceEvent(0.5, RECORD),
    DiscreteGaussianEvent(40.0, 40.0, 40.0, 1, RECORD),
    SkellamEvent(1e4, 100.0, 100.0, 1, RECORD),
    SampledGaussianEvent(0.8, 0.2, 10, RECORD),
    SampledDiscreteGaussianEvent(0.8 * 2**40, 2.0**40, 2**28, 0.2, 10, RECORD),
    SampledGaussianEvent(2.0, 0.5, 4, Relation("record", "replace")),
]


@pytest.mark.parametrize("event", BOOKED, ids=lambda event: event.type_name)
def test_an_account_is_attacked_at_its_own_parameters(event: Any) -> None:
    """The truth stands, with a bound that is worth something; half of it is refuted."""
    account = Accountant(event.relation)
    account.compose(event, 2)
    truth = account.guarantee(1e-5)
    found = audit_account(account.events, truth, 20_000, confidence=SURE)
    assert found
    for report in found:
        assert report.verdict == "no violation found", report
        assert report.eps_lower > truth.epsilon / 2, report  # which refutes half of it


def test_every_type_of_event_is_attacked_or_proves_nothing() -> None:
    attacked = {event for one in LISTED.values() if one.losses for event in one.events}
    unattacked = {name for name in EVENTS.names() if not attacked & {EVENTS[name]}}
    assert unattacked == {"composed", "non_private"}  # booked by its parts; promises nothing


def test_an_account_that_nothing_attacks_is_said_to_be_so() -> None:
    account = Accountant(RECORD)
    account.compose(NonPrivateEvent("plain training", RECORD))
    assert audit_account(account.events, account.guarantee(1e-5), 100, confidence=SURE) == []
