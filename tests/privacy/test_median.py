"""The median mechanism: exact transcripts, errors within what is stated, and sessions that end."""

import copy
import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ppspeech.errors import PrivacyError
from ppspeech.privacy import DiscreteLaplace, MedianMechanism, MedianSession, Relation, SparseVector
from ppspeech.privacy.mechanisms.median import Alive, histograms, median_audit, transcript_log_probability

RECORD = Relation("record", "replace")


def made(**changes: Any) -> MedianMechanism:
    return MedianMechanism(
        **{"epsilon": 1.0, "cells": 4, "rows": 20_000, "relation": RECORD, "grain": 24, "questions": 300} | changes
    )


def cells_of(parts: list[float], rows: int = 20_000) -> torch.Tensor:
    counts = (np.array(parts) * rows).round().astype(int)
    return torch.repeat_interleave(torch.arange(len(parts)), torch.from_numpy(counts))


def stream(count: int, cells: int = 4, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).uniform(size=(count, cells)).round(1))


def nearest(part: Any, grain: int) -> Any:
    """The hypothesis nearest to a histogram `(cells,)` that adds up to 1, by largest remainders."""
    steps = np.floor(part * grain + 1e-9)
    missing = round(grain - steps.sum())
    steps[np.argsort(steps - part * grain, kind="stable")[:missing]] += 1
    return steps / grain


@pytest.mark.parametrize(("cells", "grain"), [(2, 5), (3, 4), (4, 3)])
def test_hypotheses_are_all_histograms(cells: int, grain: int) -> None:
    found = histograms(cells, grain)
    assert len(found) == len({tuple(row) for row in found.tolist()}) == math.comb(grain + cells - 1, cells - 1)
    assert (found.sum(axis=1) == grain).all()
    assert (found >= 0).all()
    assert made(cells=cells, grain=grain).hypotheses == len(found)


def test_some_hypothesis_is_as_near_as_stated_and_no_nearer() -> None:
    """|X| / 4m for any table and any weights: against the worst predicate of random tables, and of the worst table."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for cells, grain in ((2, 3), (3, 5), (4, 7), (8, 4)):
        tables = [*rng.dirichlet(np.ones(cells), 300), np.full(cells, 1 / cells)]
        tables += [np.array([(1 + (grain - 1) * (i == 0)) / grain for i in range(cells)])]
        if cells % 2 == 0:  # half a step too much in every cell of one half, half a step too little in the other
            tables += [np.concatenate([[(grain - cells / 2 + 0.5) / grain], np.full(cells - 1, 0.5 / grain)])]
        for part in tables:
            part = part / part.sum()
            off = part - nearest(part, grain)
            reach = max(off[off > 0].sum(), -off[off < 0].sum()) / (cells / (4 * grain))
            assert reach <= 1 + 1e-9
            worst = max(worst, reach)
    assert worst > 0.99


def test_the_budget_is_that_of_its_parts() -> None:
    one = made()
    run, answers = one.comparisons, one.answers
    assert (run.positives, run.sensitivity, run.epsilon_answers) == (one.hard, 1.0, 0.0)
    assert run.epsilon + one.hard * answers.event.pure() == pytest.approx(1.0, rel=1e-6)
    assert one.event.pure() <= 1 + 1e-12
    assert one.guarantee.float_safe
    assert one.hard == math.ceil(math.log2(one.hypotheses))


def test_the_hardest_transcript_costs_nearly_all_and_no_more() -> None:
    one = MedianMechanism(epsilon=1.0, cells=3, rows=20_000, grain=1, questions=10**6, relation=RECORD)
    loss = median_audit(one).sup_loss
    assert 0.99 < loss <= 1 + 1e-9
    doubled = replace(one, epsilon=2.0)
    assert median_audit(doubled).sup_loss > 1.9  # half the noise


def test_sessions_answer_as_the_exact_law_says() -> None:
    """How often the first of two questions is hard; 5 deviations."""
    one = made(cells=2, rows=400, grain=2, epsilon=2.0, questions=2, beta=0.5)
    counts = np.array([80.0, 320.0])
    about = [np.array([0.0, 1.0])] * 2
    neither = math.exp(transcript_log_probability(one, counts, about, [None, None]))
    data, runs = torch.tensor([0] * 80 + [1] * 320), 300
    drawn = sum(
        not any(told.hard for told in one.release(data, torch.tensor(np.array(about))).value) for _ in range(runs)
    )
    assert 0.05 < neither < 0.95
    assert abs(drawn / runs - neither) < 5 * math.sqrt(neither * (1 - neither) / runs)


def test_errors_and_hard_questions_stay_within_what_is_stated() -> None:
    """With beta = 1e-7, so that a run fails once in five million."""
    one = made(beta=1e-7, rows=100_000)
    for parts, seed in (([0.25] * 4, 0), ([1.0, 0, 0, 0], 1), ([0.05, 0.6, 0.3, 0.05], 2), ([0.5, 0, 0, 0.5], 3)):
        data, asked = cells_of(parts, one.rows), stream(300, seed=seed)
        asked[::3] = asked[::3].round()  # predicates among them
        told = one.release(data, asked).value
        assert len(told) == 300
        assert sum(each.hard for each in told) <= one.hard
        truths = (asked @ torch.tensor(parts, dtype=torch.float64)).tolist()
        assert max(abs(each.value - truth) for each, truth in zip(told, truths, strict=True)) <= one.error
    assert any(each.hard for each in told)


def test_a_hard_answer_drops_half_and_never_the_nearest() -> None:
    """Whatever noise within its bounds does: here as unkind as it can be, for the answer and for the comparison."""
    one = made(rows=10**6)
    rng = np.random.default_rng(0)
    for _ in range(20):
        part, alive = rng.dirichlet(np.ones(4)), Alive(one)
        best = nearest(part, one.grain)
        for weights in stream(60, seed=int(rng.integers(1000))).numpy():
            truth, guess, before = float(weights @ part), alive.guess(weights), alive.count
            if abs(truth - guess) * one.rows < one.threshold - one.comparison_error:
                continue
            alive.learn(weights, truth + np.sign(guess - truth) * one.answer_error / one.rows)  # toward the guess
            assert 0 < alive.count <= before / 2
            assert abs(float(weights @ best) - truth) <= one.grain_error / one.rows + 1e-9
            assert (np.abs(alive._histograms - best).max(axis=1) < 1e-9).any()


@pytest.mark.parametrize(("ours", "left"), [(True, 0.5), (False, 0.75)])
def test_a_larger_radius_would_not_drop_half(ours: bool, left: float) -> None:
    """T the largest of its parts and a radius of T / 2, instead of a sum and a_d + a_a: the median's side stays."""
    a_s, a_a, a_d = 0.04, 0.02, 0.005
    threshold = a_s + 2 * a_a + a_d if ours else max(2 * a_s, 4 * a_a, 4 * a_d)
    radius = a_d + a_a if ours else threshold / 2
    alive = histograms(2, 4000)[:, 1] / 4000
    alive = alive[np.abs(alive - 0.5) <= 0.04]  # after earlier answers
    guess = float(np.median(alive))
    answer = guess + (threshold + 1e-6 - a_s) - a_a  # the smallest gap that is hard, and noise toward the guess
    kept = np.abs(alive - answer) <= radius
    assert (kept.mean() <= 0.5) == ours
    assert kept.mean() == pytest.approx(left, abs=0.2)


def test_hard_answers_have_noise_for_all_of_them() -> None:
    """The mean |noise| is c / (epsilon / 2) rows: 5 deviations of 60 draws are two thirds of it."""
    one = made(cells=2, grain=64, rows=100_000)
    assert one.hard == 7
    data = torch.tensor([1] * 30_000 + [0] * 70_000)
    told = [one.open(data).ask([0.0, 1.0]) for _ in range(60)]
    assert all(each.hard for each in told)
    mean = np.mean([abs(each.value * one.rows - 30_000) for each in told])
    assert 14 * 0.35 < mean < 14 * 1.65
    assert len({each.value for each in told}) > 30


def test_a_session_ends_and_looks_at_nothing_more() -> None:
    one = made(cells=2, grain=2, rows=10_000, epsilon=50.0)
    session = one.open(torch.tensor([0] * 9_000 + [1] * 1_000))
    assert one.hard == 2
    asked = 0
    while not session.over and asked < 50:
        session._guesses = Alive(one)  # never learns, so that all are hard
        assert session.ask([1.0, 0.0]).hard
        asked += 1
    assert (session.over, session.hard_left, asked) == (True, 0, 2)
    session._counts = None  # type: ignore[assignment]
    with pytest.raises(PrivacyError, match="the session is over: 2 of 2 hard"):
        session.ask([1.0, 0.0])


def test_answers_that_contradict_each_other_end_it() -> None:
    session = made().open(cells_of([0.25] * 4))
    session._guesses.learn(np.array([1.0, 0, 0, 0]), 0.9)
    session._guesses.learn(np.array([1.0, 0, 0, 0]), 0.1)
    assert session.over
    assert session.hard_left == made().hard


def test_a_session_cannot_be_stored_or_printed() -> None:
    session = made().open(cells_of([0.25] * 4))
    assert repr(session) == f"MedianSession(asked=0, hard_left={made().hard})"
    for store in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(PrivacyError):
            store(session)


def test_the_parts_are_audited_mechanisms() -> None:
    assert isinstance(made().comparisons, SparseVector)
    assert isinstance(made().answers, DiscreteLaplace)
    assert isinstance(made().open(cells_of([0.25] * 4)), MedianSession)


REFUSED: list[Any] = [
    (lambda: made(relation=Relation("record", "add_remove")), "whose number is public"),
    (lambda: made(cells=20, grain=20), "fewer cells"),
    (lambda: made(cells=1), "cells"),
    (lambda: made(epsilon=0.0), "epsilon"),
    (lambda: made().open(torch.zeros(3, dtype=torch.int64)), "made for 20000 rows"),
    (lambda: made(rows=2).open(torch.tensor([0, 4])), "from 0 to 3"),
    (lambda: made().open(cells_of([0.25] * 4)).ask([1.0, 0.0]), "each of 4 cells"),
    (lambda: made().open(cells_of([0.25] * 4)).ask([2.0, 0, 0, 0]), "from 0 to 1"),
    (lambda: made().open(cells_of([0.25] * 4)).ask([math.nan, 0, 0, 0]), "from 0 to 1"),
]


@pytest.mark.parametrize(("door", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_cannot_be_is_refused(door: Any, words: str) -> None:
    with pytest.raises(PrivacyError, match=words):
        door()


def test_the_finest_grain_is_chosen() -> None:
    assert made(grain=0).grain == 104
    assert made(grain=0, cells=8).grain == 15
