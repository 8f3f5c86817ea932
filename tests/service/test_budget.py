"""Budgets are shared by processes, counted before an answer, and kept from run to run."""

import multiprocessing
from pathlib import Path

import pytest

from ppspeech.errors import PpspeechError
from ppspeech.service import QueryBudget


def test_spending(tmp_path: Path) -> None:
    budget = QueryBudget(tmp_path / "deep" / "b.sqlite", limit=5)
    assert budget.left("m", "ann") == 5
    assert budget.spend("m", "ann", 3) == (True, 2)
    assert budget.spend("m", "ann", 3) == (False, 2)
    assert budget.spend("m", "bob", 5) == (True, 0)
    assert budget.spend("other", "ann", 5) == (True, 0)
    again = QueryBudget(tmp_path / "deep" / "b.sqlite", limit=4)
    assert again.left("m", "ann") == 1
    assert again.left("m", "bob") == 0
    free = QueryBudget(tmp_path / "deep" / "b.sqlite")
    assert free.spend("m", "bob", 1000) == (True, None)
    assert free.left("m", "bob") is None


def _spend(path: Path, times: int) -> int:
    budget = QueryBudget(path, limit=100)
    return sum(budget.spend("m", "ann", 1)[0] for _ in range(times))


def test_processes_never_spend_more_than_there_is(tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(3) as pool:
        spent = pool.starmap(_spend, [(tmp_path / "b.sqlite", 60)] * 3)
    assert sum(spent) == 100


def test_the_usual_budget_is_each_models_own(tmp_path: Path) -> None:
    budget = QueryBudget(tmp_path / "b.sqlite", limit="usual")
    assert budget.expect("small", 2) == 2
    assert budget.expect("large", 10**9) == 1_000_000
    assert budget.spend("small", "ann", 3) == (False, 2)
    assert budget.spend("large", "ann", 3) == (True, 999_997)
    assert budget.left("small", "ann") == 2
    assert QueryBudget(tmp_path / "c.sqlite").expect("small", 2) is None


def test_what_cannot_be_a_budget(tmp_path: Path) -> None:
    for limit in (-1, 10**9):
        with pytest.raises(PpspeechError, match="budget"):
            QueryBudget(tmp_path / "b.sqlite", limit)
    (tmp_path / "no.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(PpspeechError, match="cannot hold"):
        QueryBudget(tmp_path / "no.sqlite")
