"""Counts, sums, means, quantiles and the most frequent: exact values, brute-force sensitivities, laws, and peers.

Statistical tests have a false-alarm rate of 1e-6 each.
"""

import math
from dataclasses import replace
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from ppspeech.errors import PrivacyError
from ppspeech.privacy import Budget, Count, Mean, NoisyMax, Quantile, Relation, Sum
from ppspeech.privacy.audit.catalogue import released_report
from ppspeech.privacy.mechanisms.discrete_gaussian import DiscreteGaussian
from ppspeech.privacy.mechanisms.whole_numbers import Bounds, kept_rows

ALARM = 1e-6
RECORD, SWAPPED = Relation("record", "add_remove"), Relation("record", "replace")
SPEAKER, OTHER = Relation("speaker", "add_remove"), Relation("speaker", "replace")
SURE = 1e7  # an epsilon with which there is no noise to speak of


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_what_is_released_without_noise() -> None:
    values, who = column(1, 2, 9, -9, math.nan), torch.tensor([0, 0, 0, 1, 2])
    inside = {"lower": -1.0, "upper": 4.0, "epsilon": SURE}
    assert Count(epsilon=SURE, relation=RECORD).release(values > 1).value == 2
    assert Count(epsilon=SURE, relation=SPEAKER).release(values > 1, who).value == 1  # people, not rows
    assert Count(epsilon=SURE, relation=SPEAKER, most=2).release(values > 0, who).value == 2
    assert Sum(relation=RECORD, **inside).release(values).value == pytest.approx(1 + 2 + 4 - 1 + 0, abs=1e-4)
    for relation in (RECORD, SWAPPED):
        assert Mean(relation=relation, **inside).release(values).value == pytest.approx(6 / 5, abs=1e-4)
    assert Mean(relation=OTHER, most=3, **inside).release(values, who).value == pytest.approx(6 / 5, abs=1e-4)
    quantiles = {"lower": 0.0, "upper": 10.0, "candidates": 11, "epsilon": SURE, "relation": RECORD}
    assert Quantile(alpha=0.5, **quantiles).release(column(1, 3, 7)).value == 3
    assert Quantile(alpha=0.9, **quantiles).release(column(*range(11))).value == 9
    assert NoisyMax(bins=3, epsilon=SURE, relation=RECORD).release(torch.tensor([0, 2, 2, 9, -1])).value == 2


def test_nobody_is_nobody_and_says_no_more_than_noise() -> None:
    none = column()
    assert 0 <= Mean(lower=0, upper=1, epsilon=1.0, relation=RECORD).release(none).value <= 1
    assert isinstance(Sum(lower=0, upper=1, epsilon=1.0, relation=RECORD).release(none).value, float)
    assert Quantile(alpha=0.5, lower=0, upper=1, epsilon=1.0, relation=RECORD).release(none).value <= 1
    with pytest.raises(PrivacyError, match="number is public"):
        Mean(lower=0, upper=1, epsilon=1.0, relation=SWAPPED).release(none)


WORST = (-7.0, -2.0, -0.5, 0.0, 1.0, 3.0, 50.0)


def held(most: int, least: int) -> list[torch.Tensor]:
    """All that one unit may have, of values at and beyond the bounds."""
    sizes = range(least, most + 1)
    return [column(*values) for size in sizes for values in combinations_with_replacement(WORST, size)]


@pytest.mark.parametrize(("relation", "most"), [(RECORD, 1), (SWAPPED, 1), (SPEAKER, 2), (OTHER, 2)])
@pytest.mark.parametrize(("lower", "upper"), [(-2.0, 3.0), (1.0, 3.0), (-2.0, -0.5)])
def test_sums_and_means_move_as_far_as_the_worst_unit_moves_them(
    relation: Relation, most: int, lower: float, upper: float
) -> None:
    terms: dict[str, Any] = {"lower": lower, "upper": upper, "epsilon": 1.0, "relation": relation, "most": most}
    bounds, (low, high) = Bounds(lower, upper), Bounds(lower, upper).whole
    having = held(most, least=1)
    others = having if relation.adjacency == "replace" else [column()]
    moves = [bounds.steps(one).sum() - bounds.steps(other).sum() for one, other in product(having, others)]
    assert Sum(**terms).sensitivity == max(abs(int(move)) for move in moves)

    def both(values: torch.Tensor) -> torch.Tensor:
        steps = bounds.steps(values)
        return torch.stack([(steps - low).sum(), (high - steps).sum()])

    mean = Mean(**terms)
    pairs = [(both(one) - both(other)).double() for one, other in product(having, others)]
    if not mean.counted:
        pairs = [pair[:1] for pair in pairs]
    assert mean.mechanism.sensitivity == max(float(pair.norm(1)) for pair in pairs)
    gaussian = Mean(**terms | {"delta": 1e-5}).mechanism
    assert isinstance(gaussian, DiscreteGaussian)
    assert gaussian.sensitivity == pytest.approx(max(float(pair.norm(2)) for pair in pairs))


@pytest.mark.parametrize(("relation", "most"), [(RECORD, 1), (SWAPPED, 1), (SPEAKER, 2), (OTHER, 2)])
@pytest.mark.parametrize("alpha", [0.5, 0.25, 0.9])
def test_choices_move_as_far_as_the_worst_unit_moves_them(relation: Relation, most: int, alpha: float) -> None:
    one = Quantile(alpha=alpha, lower=-2, upper=3, epsilon=1.0, relation=relation, candidates=6, most=most)
    most_frequent = NoisyMax(bins=2, epsilon=1.0, relation=relation, most=most)
    having = [each for each in held(most, least=1) if set(each.tolist()) <= {-7.0, -0.5, 1.0, 50.0}]
    others = having if relation.adjacency == "replace" else [column()]
    rest = [column(), column(-0.5, -0.5, 0.5), column(1.5, 1.5, 1.5, 1.5)]
    moved, counted = 0.0, []
    for one_has, other, base in product(having, others, rest):
        with_one, without = torch.cat([base, one_has]), torch.cat([base, other])
        moved = max(moved, float((one.utilities(with_one) - one.utilities(without)).abs().max()))
        counted.append(most_frequent.counts((with_one > 0).long()) - most_frequent.counts((without > 0).long()))
    assert one.choice.sensitivity == moved
    assert most_frequent.choice.sensitivity == max(float(move.abs().max()) for move in counted)
    assert most_frequent.choice.monotone == (not any(float(move.max() * move.min()) < 0 for move in counted))


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_noise_has_its_law(delta: float) -> None:
    one = Count(epsilon=1.0, relation=RECORD, delta=delta)
    drawn = np.array([one.release(torch.ones(1000, dtype=torch.bool)).value for _ in range(800)]) - 1000
    grid = np.arange(-60, 61)
    law = np.exp(-np.abs(grid)) if delta == 0 else np.exp(-(grid**2) / (2 * one.mechanism.sigma**2))  # type: ignore[union-attr]
    inside = np.abs(grid) <= (3 if delta == 0 else 8)
    expected = np.append(law[inside], law[~inside].sum()) / law.sum() * len(drawn)
    seen = [int((drawn == k).sum()) for k in grid[inside]]
    assert stats.chisquare([*seen, len(drawn) - sum(seen)], expected).pvalue > ALARM
    far = np.abs(drawn) > one.within(0.95)
    assert far.mean() <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / len(drawn))


LINEAR: list[Any] = [
    (Count(epsilon=1.0, relation=RECORD), torch.ones(50, dtype=torch.bool), 50.0, 1 / math.sinh(1)),
    (Sum(lower=-1, upper=2, epsilon=1.0, relation=RECORD), column(0.5, 9), 2.5, 2.0),
    (Mean(lower=-40, upper=40, epsilon=1.0, relation=SWAPPED), column(*[1.0] * 80), 1.0, 1.0),
]


@pytest.mark.parametrize(("one", "data", "truth", "scale"), LINEAR, ids=["count", "sum", "mean"])
def test_noise_is_as_large_as_a_unit_moves_the_value(one: Any, data: torch.Tensor, truth: float, scale: float) -> None:
    """At epsilon 1 the mean |noise| is the sensitivity, of whole numbers 1 / sinh(1); .32 is 5 deviations."""
    drawn = torch.tensor([one.release(data).value - truth for _ in range(400)]).abs().double()
    assert 0.68 < float(drawn.mean()) / scale < 1.32


def test_half_the_noise_is_noticed_by_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 800 runs, and not by luck: whole noise is let pass."""
    monkeypatch.setattr("ppspeech.privacy.audit.catalogue.CONFIDENCE", 1 - ALARM)
    one, rows = Count(epsilon=1.0, relation=RECORD), torch.ones(3, dtype=torch.bool)
    for noisy, verdict in ((one, "no violation found"), (replace(one, epsilon=2.0), "violated")):
        report = released_report("count", one, lambda given, m=noisy: m.release(given).value, rows, rows[:2], 800)
        assert report.verdict == verdict
    for chosen in (NoisyMax(bins=2, epsilon=1.0, relation=RECORD), Quantile(alpha=0.5, lower=0, upper=1, **ONE)):
        stated = chosen.guarantee
        for made, caught in ((chosen, False), (replace(chosen, epsilon=2.0), True)):
            assert (loss_of(made) > stated.epsilon * (1 + 1e-6)) == caught


ONE: Any = {"epsilon": 1.0, "relation": RECORD, "candidates": 5}


def loss_of(made: Any) -> float:
    """The largest loss where an unlikely candidate gains and the likely one loses."""
    if isinstance(made, NoisyMax):
        data = made.counts(torch.tensor([0] * 16 + [1])), made.counts(torch.tensor([0] * 16))
    else:
        rest = column(*[0.2] * 16, *[0.6] * 16)
        data = made.utilities(torch.cat([rest, column(1)])), made.utilities(rest)
    one, other = (made.choice.probabilities(each).log() for each in data)
    return float((one - other).abs().max())


def test_of_a_person_with_many_rows_random_ones_are_kept() -> None:
    rows, who = torch.arange(40), torch.tensor([0] * 39 + [1])
    kept = [kept_rows(rows, who, SPEAKER, 1).tolist() for _ in range(60)]
    assert all(len(each) == 2 and 39 in each for each in kept)
    assert len({each[0] for each in kept}) > 10  # equal with a probability below 1e-20


def test_a_budget_pays_for_them() -> None:
    budget = Budget(RECORD, epsilon=1.0)
    values = column(1, 2, 3)
    budget.release(Sum(lower=0, upper=4, epsilon=0.4, relation=RECORD), values)
    budget.release(Quantile(alpha=0.5, lower=0, upper=4, epsilon=0.4, relation=RECORD), values)
    with pytest.raises(PrivacyError, match="nothing was released"):
        budget.release(Mean(lower=0, upper=4, epsilon=0.4, relation=RECORD), values)
    assert budget.guarantee().float_safe


REFUSED: list[Any] = [
    (lambda: Sum(lower=1, upper=1, epsilon=1.0, relation=RECORD), "lower < upper"),
    (lambda: Sum(lower=0, upper=math.inf, epsilon=1.0, relation=RECORD), "upper"),
    (lambda: Sum(lower=1e30, upper=1e30 + 1e15, epsilon=1.0, relation=RECORD), "subtract a public number"),
    (lambda: Mean(lower=0, upper=1, epsilon=0.0, relation=RECORD), "epsilon"),
    (lambda: Count(epsilon=1.0, relation=RECORD, most=2), "a record is one value"),
    (lambda: Count(epsilon=1.0, relation=RECORD).release(torch.ones(3)), "bool"),
    (lambda: Count(epsilon=1.0, relation=SPEAKER).release(torch.ones(3, dtype=torch.bool)), "which speaker"),
    (lambda: Quantile(alpha=1.0, lower=0, upper=1, epsilon=1.0, relation=RECORD), "alpha"),
    (lambda: Quantile(alpha=math.pi / 4, lower=0, upper=1, epsilon=1.0, relation=RECORD), "fraction of whole"),
    (lambda: NoisyMax(bins=2, epsilon=1.0, relation=RECORD).release(column(1)), "whole numbers"),
    (lambda: Sum(lower=0, upper=1, epsilon=1.0, relation=RECORD).release(torch.ones(2, 2)), "one value a row"),
]


@pytest.mark.parametrize(("door", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_cannot_be_is_refused(door: Any, words: str) -> None:
    with pytest.raises(PrivacyError, match=words):
        door()


def test_opendp_says_the_same() -> None:
    """Sensitivities, scores and epsilons at the same noise, for neighbors that add, and that replace, one record."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    whole, changed = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    count = Count(epsilon=0.5, relation=RECORD)
    noisy = (whole, changed) >> dp.t.then_count() >> dp.m.then_laplace(scale=count.mechanism.event.scale)  # type: ignore[union-attr]
    assert noisy.map(1) == pytest.approx(count.event.pure(), rel=1e-9)
    for relation, domain, apart in ((RECORD, whole, 1), (SWAPPED, dp.vector_domain(dp.atom_domain(T=int), size=5), 2)):
        theirs = (domain, changed) >> dp.t.then_clamp((-3, 8)) >> dp.t.then_sum()
        ours = Sum(lower=-3, upper=8, epsilon=1.0, relation=relation)
        assert theirs.map(apart) == ours.sensitivity * ours.bounds.step
        assert theirs([1, 20, -5, 4, 4]) == ours.bounds.steps(column(1, 20, -5, 4, 4)).sum() * ours.bounds.step
    reals = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    values = [0.1, 0.3, 0.3, 0.9, 0.25]
    scores = dp.t.make_quantile_score_candidates(reals, changed, candidates=[0.0, 0.25, 0.5, 0.75, 1.0], alpha=0.25)
    quantile = Quantile(alpha=0.25, lower=0, upper=1, epsilon=1.0, relation=RECORD, candidates=5)
    assert (-quantile.utilities(column(*values))).tolist() == scores(values)
    assert quantile.choice.sensitivity == scores.map(1)
    for relation, monotone in ((RECORD, True), (SWAPPED, False)):
        chosen = NoisyMax(bins=3, epsilon=0.5, relation=relation).choice
        metric = dp.linf_distance(T=float, monotonic=monotone)
        theirs = dp.m.make_noisy_max(reals, metric, dp.max_divergence(), scale=float(1 / chosen.rate))
        assert theirs.map(1.0) == pytest.approx(0.5)


def test_diffprivlib_says_the_same() -> None:
    """Where its noise is none, values; else the variance of its noise, from its own formula, beside that of ours."""
    from diffprivlib import tools  # type: ignore[import-untyped]
    from diffprivlib.mechanisms import Geometric, Laplace  # type: ignore[import-untyped]

    values = [0.1, 0.45, 0.9, 1.7, -0.3]
    terms: dict[str, Any] = {"lower": 0.0, "upper": 1.0, "epsilon": SURE}
    peer = {"epsilon": SURE, "bounds": (0, 1)}
    ours = column(*values)
    assert Mean(relation=SWAPPED, **terms).release(ours).value == pytest.approx(tools.mean(values, **peer), abs=1e-4)
    assert Sum(relation=RECORD, **terms).release(ours).value == pytest.approx(tools.sum(values, **peer), abs=1e-4)
    assert Count(epsilon=SURE, relation=RECORD).release(ours > 0.2).value == tools.count_nonzero(
        [value > 0.2 for value in values], epsilon=SURE
    )
    between = Quantile(alpha=0.5, relation=RECORD, candidates=1001, **terms).release(ours).value
    assert abs(between - 0.45) <= 0.001
    assert 0.1 <= tools.quantile(values, 0.5, **peer) <= 0.9  # anywhere between neighbors of the median, as it is made
    q = math.exp(-1 / float(Count(epsilon=1.0, relation=SPEAKER, most=3).mechanism.event.scale))  # type: ignore[union-attr]
    assert 2 * q / (1 - q) ** 2 == pytest.approx(Geometric(epsilon=1.0, sensitivity=3).variance(0))
    mean = Mean(lower=0.0, upper=10.0, epsilon=1.0, relation=SWAPPED)
    ours_scale = mean.mechanism.event.scale * mean.bounds.step / 50  # type: ignore[union-attr]
    assert 2 * ours_scale**2 == pytest.approx(Laplace(epsilon=1.0, sensitivity=10 / 50).variance(0), rel=1e-5)
