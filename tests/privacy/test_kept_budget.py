"""A budget in a file: what one process spent, the next one has not."""

import multiprocessing
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest
import torch

from ppspeech.errors import PpspeechError, PrivacyError
from ppspeech.privacy import Count, ExactPureEvent, KeptBudget, Relation

ONE = Relation("record", "replace")
ROWS = torch.ones(10, dtype=torch.bool)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "budget.sqlite"


def test_who_comes_later_goes_on_with_what_is_left(path: Path) -> None:
    first = KeptBudget(path, "calls", ONE, epsilon=1.0)
    first.release(Count(epsilon=0.6, relation=ONE), ROWS)
    second = KeptBudget(path, "calls")
    assert (second.epsilon, round(second.left, 6), second.releases) == (1.0, 0.4, 1)
    second.release(Count(epsilon=0.4, relation=ONE), ROWS)
    for budget in (first, second, KeptBudget(path, "calls")):
        with pytest.raises(PrivacyError, match="nothing was released"):
            budget.release(Count(epsilon=0.1, relation=ONE), ROWS)
    assert KeptBudget(path, "others", ONE, epsilon=1.0).left == 1.0
    assert first.guarantee().epsilon == 1.0


def test_what_fails_afterwards_has_been_paid_for(path: Path) -> None:
    budget = KeptBudget(path, "calls", ONE, epsilon=1.0)
    with pytest.raises(PrivacyError, match="bool"):
        budget.release(Count(epsilon=0.25, relation=ONE), torch.ones(3))
    assert KeptBudget(path, "calls").left == pytest.approx(0.75)


def test_the_cost_is_on_the_disk_before_the_value_is_looked_at(path: Path) -> None:
    budget = KeptBudget(path, "calls", ONE, epsilon=1.0)
    seen: list[float] = []

    class Looked:
        event = ExactPureEvent(0.5, ONE)

        def release(self, *value: Any) -> Any:
            seen.append(KeptBudget(path, "calls").left)

    budget.release(Looked(), ROWS)
    assert seen == [0.5]


def spend_often(path: Path, results: Any) -> None:
    budget, paid = KeptBudget(path, "calls"), 0
    for _ in range(12):
        try:
            budget.spend(ExactPureEvent(0.1, ONE))
            paid += 1
        except PrivacyError:
            pass
    results.put(paid)


def test_processes_at_the_same_time_spend_no_more_than_there_is(path: Path) -> None:
    KeptBudget(path, "calls", ONE, epsilon=1.0)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    processes = [context.Process(target=spend_often, args=(path, results)) for _ in range(3)]
    for process in processes:
        process.start()
    assert sum(results.get(timeout=60) for _ in processes) == 10
    for process in processes:
        process.join()
    assert KeptBudget(path, "calls").releases == 10


@pytest.mark.parametrize(
    ("relation", "terms", "words"),
    [
        (ONE, {"epsilon": 2.0}, "epsilon = 1.0, as it was fixed at first, not 2.0"),
        (Relation("speaker", "replace"), {}, "one record .* not one speaker"),
        (ONE, {"delta": 1e-5}, "delta"),
    ],
)
def test_terms_are_fixed_by_who_came_first(path: Path, relation: Relation, terms: Any, words: str) -> None:
    KeptBudget(path, "calls", ONE, epsilon=1.0)
    with pytest.raises(PrivacyError, match=words) as refused:
        KeptBudget(path, "calls", relation, **terms)
    assert f"remove {path}" in str(refused.value)


def test_the_first_has_to_say_how_much(path: Path) -> None:
    with pytest.raises(PrivacyError, match="give the epsilon"):
        KeptBudget(path, "calls", ONE)
    assert KeptBudget(path, "calls", ONE, epsilon=1.0).left == 1.0  # nothing was fixed by the one that failed


def test_the_file_is_its_owners_and_holds_no_answer(path: Path) -> None:
    budget = KeptBudget(path, "calls", ONE, epsilon=1.0)
    told = budget.release(Count(epsilon=1.0, relation=ONE), torch.ones(123_457, dtype=torch.bool)).value
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    held = path.read_bytes()
    assert b"123457" not in held
    assert str(told).encode() not in held


@pytest.mark.parametrize(
    "row", ["nonsense", "{}", '{"type": "exact_pure"}', '{"type": "exact_pure", "stated_epsilon": 9}']
)
def test_a_file_that_somebody_changed_is_refused(path: Path, row: str) -> None:
    KeptBudget(path, "calls", ONE, epsilon=1.0)
    with sqlite3.connect(path) as database:
        database.execute("INSERT INTO spent (data, count, written) VALUES ('calls', 1, ?)", (row,))
    with pytest.raises(PrivacyError, match="no cost that fits"):
        KeptBudget(path, "calls")
    with sqlite3.connect(path) as database:
        database.execute("UPDATE spent SET written = ?", (row,))
    with pytest.raises(PrivacyError, match="terms of a budget"):
        KeptBudget(path, "calls")
    path.write_text("no database at all, but long enough to be taken for one" * 20)
    with pytest.raises(PpspeechError, match="cannot hold what was spent"):
        KeptBudget(path, "calls", ONE, epsilon=1.0)
