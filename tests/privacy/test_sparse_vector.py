"""The sparse vector technique: exact pattern probabilities, and the unsound variants they kill."""

import math
import pickle
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad

from ppspeech.errors import PrivacyError
from ppspeech.privacy import Relation, SparseVector
from ppspeech.privacy.mechanisms.sparse_vector import pattern_log_probabilities, possible_patterns, sparse_vector_audit

R: Any = {"relation": Relation("record", "add_remove")}


def made(**changes: Any) -> SparseVector:
    return SparseVector.calibrated(**{"epsilon": 1.0, "positives": 2, "sensitivity": 1.0, **R, **changes})


def test_the_budget_is_split_as_the_paper_says() -> None:
    mechanism = made(answers=0.25)
    assert mechanism.epsilon == pytest.approx(1.0)
    assert mechanism.epsilon_answers == 0.25
    assert mechanism.epsilon_queries / mechanism.epsilon_threshold == pytest.approx(4 ** (2 / 3))
    monotone = made(monotone=True)
    assert monotone.epsilon_queries / monotone.epsilon_threshold == pytest.approx(2 ** (2 / 3))


def test_patterns_are_all_there_is() -> None:
    mechanism = made()
    patterns = possible_patterns(mechanism, 5)
    total = np.exp(pattern_log_probabilities(mechanism, [0.4, -3.0, 5.0, 0.0, 1.0], 0.5, patterns)).sum()
    assert total == pytest.approx(1.0, abs=1e-9)


def test_patterns_against_quadrature_over_continuous_noise() -> None:
    """A 1-D integral over rho of a product of Laplace cdfs; the grid is 1/1024, so they agree to a few 1e-3."""
    mechanism = made()
    queries, pattern = [0.4, -1.0, 2.0], (False, True, False)
    outer, inner = 1 / mechanism.epsilon_threshold, 4 / mechanism.epsilon_queries
    rho, nu = stats.laplace(scale=outer), stats.laplace(scale=inner)

    def integrand(x: float) -> float:
        tails = [nu.sf(x - q) if above else nu.cdf(x - q) for q, above in zip(queries, pattern, strict=True)]
        return float(rho.pdf(x) * math.prod(tails))

    continuous = quad(integrand, -60, 60, points=[-1, 0, 0.4, 2.0], limit=400)[0]
    discrete = math.exp(pattern_log_probabilities(mechanism, queries, 0.0, [pattern])[0])
    assert discrete == pytest.approx(continuous, rel=4e-3)


def test_the_sampler_follows_the_pattern_law() -> None:
    """False-alarm rate 1e-6."""
    mechanism = made(epsilon=2.0, positives=1)
    queries = torch.tensor([0.5, -1.0, 1.5])
    patterns = possible_patterns(mechanism, 3)
    law = np.exp(pattern_log_probabilities(mechanism, queries.tolist(), 0.0, patterns))
    runs = [tuple(a.above for a in mechanism.release(queries, 0.0).value) for _ in range(800)]
    counts = [runs.count(pattern) for pattern in patterns]
    assert sum(counts) == 800
    assert stats.chisquare(counts, law / law.sum() * 800).pvalue > 1e-6


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("positives", [1, 3])
def test_the_sound_variant_is_tight_and_within_epsilon(positives: int, monotone: bool) -> None:
    loss = sparse_vector_audit(made(positives=positives, monotone=monotone)).sup_loss
    assert loss <= 1.0 + 1e-6
    assert loss > 0.9


@dataclass(frozen=True)
class Variant:
    """A mechanism whose real noise is not what its budget says, as the audit sees it."""

    sound: SparseVector
    threshold_factor: float = 1.0
    query_factor: float = 1.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sound, name)

    @property
    def threshold_scale(self) -> float:
        return float(self.sound.threshold_scale) * self.threshold_factor

    @property
    def query_scale(self) -> float:
        return float(self.sound.query_scale) * self.query_factor


@pytest.mark.parametrize(
    "variant",
    [
        Variant(made(positives=3), query_factor=1 / 3),  # noise not scaled by c
        Variant(made(positives=3), query_factor=1 / 2),  # half the noise
        Variant(made(positives=3), threshold_factor=1 / 2),
        Variant(made(positives=3), query_factor=1e-3),  # no noise on the queries
        Variant(replace(made(positives=3, monotone=True), monotone=True), query_factor=1 / 2),
    ],
)
def test_unsound_noise_is_caught(variant: Any) -> None:
    assert sparse_vector_audit(variant).sup_loss > 1.05


def test_no_cut_off_is_caught() -> None:
    """Calibrated for one positive and let run on: eight positives cost far more than the stated epsilon."""
    endless = replace(made(positives=1), positives=8)
    still = Variant(endless, query_factor=1 / 8)
    assert sparse_vector_audit(still).sup_loss > 2.0  # type: ignore[arg-type]


def test_releasing_the_compared_value_is_caught() -> None:
    """q + nu shown after a positive reveals that the threshold's noise lies below it: no common law is left.

    With "below" answered to a query that sits at the threshold, then value v for the next: the density is an integral
    over rho < v - T. Moving the first query up by the sensitivity and the second down costs more than epsilon.
    """
    mechanism = made(positives=1)
    outer, inner = 1 / mechanism.epsilon_threshold, 2 / mechanism.epsilon_queries
    rho, nu = stats.laplace(scale=outer), stats.laplace(scale=inner)

    def density(value: float, below: list[float], query: float) -> float:
        inside = quad(lambda x: rho.pdf(x) * math.prod(nu.cdf(x - q) for q in below), -400, value, limit=800)[0]
        return float(inside * nu.pdf(value - query))

    value = -30.0
    one, two = density(value, [0.0] * 20, value), density(value, [1.0] * 20, value - 1)
    assert math.log(one / two) > 1.05


def test_numbers_come_with_fresh_noise_only_for_positives() -> None:
    answers = (
        made(answers=0.5, epsilon=50.0, positives=2).release(torch.tensor([-100.0, 100.0, -100.0, 90.0]), 0.0).value
    )
    assert [a.above for a in answers] == [False, True, False, True]
    assert answers[0].value is None
    assert answers[1].value == pytest.approx(100.0, abs=5)


def test_a_run_ends_and_looks_at_nothing_more() -> None:
    run = made(epsilon=100.0, positives=1).open()
    assert run.ask(50.0, 0.0).above
    assert run.over

    class Forbidden(float):
        def __truediv__(self, other: Any) -> Any:
            raise AssertionError("the query was looked at")

    with pytest.raises(PrivacyError, match="used up"):
        run.ask(Forbidden(1.0), 0.0)


def test_a_run_cannot_be_stored_or_printed() -> None:
    run = made().open()
    assert repr(run) == "SparseVectorRun(positives_left=2)"
    with pytest.raises(PrivacyError):
        pickle.dumps(run)


@pytest.mark.parametrize(
    "change", [{"epsilon": 0.0}, {"positives": 0}, {"sensitivity": -1.0}, {"answers": 1.0}, {"relation": "x"}]
)
def test_bad_parameters_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(PrivacyError):
        _ = made(**change).guarantee


def test_queries_that_are_not_finite_are_refused() -> None:
    with pytest.raises(PrivacyError, match="query"):
        made().open().ask(math.nan, 0.0)


def test_monotone_queries_under_replace_exceed_the_budget_and_are_refused() -> None:
    """Queries answered below rise on the neighbor while those answered above fall, which replacing allows."""
    mechanism = made(monotone=True)
    pattern = (False,) * 300 + (True,) * 2
    at = [
        pattern_log_probabilities(mechanism, [move] * 300 + [-60.0 - move] * 2, 0.0, [pattern])[0]
        for move in (0.0, 1.0)
    ]
    assert abs(at[0] - at[1]) > 1.3 * mechanism.epsilon
    with pytest.raises(PrivacyError, match="under replace"):
        made(monotone=True, relation=Relation("record", "replace"))
    assert made(relation=Relation("record", "replace")).guarantee.float_safe
