import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppspeech.errors import ModelError
from ppspeech.models.measures import WordErrors, total_word_errors, word_errors

words = st.lists(st.sampled_from("abc"), max_size=6)


def slow_distance(reference: list[str], hypothesis: list[str]) -> int:
    """The definition: drop words from both sides until equal lengths remain, count what differs."""
    best = len(reference) + len(hypothesis)
    for keep in range(min(len(reference), len(hypothesis)) + 1):
        for mine in itertools.combinations(reference, keep):
            for theirs in itertools.combinations(hypothesis, keep):
                edits = (
                    len(reference) + len(hypothesis) - 2 * keep + sum(a != b for a, b in zip(mine, theirs, strict=True))
                )
                best = min(best, edits)
    return best


@given(reference=words, hypothesis=words)
def test_edits_are_the_fewest(reference: list[str], hypothesis: list[str]) -> None:
    found = word_errors(reference, hypothesis)
    assert found.errors == slow_distance(reference, hypothesis)
    assert found.words == len(reference)
    assert len(hypothesis) - len(reference) == found.insertions - found.deletions


def test_kinds_of_error() -> None:
    assert word_errors(["a", "b", "c"], ["a", "c"]) == WordErrors(0, 1, 0, 3)
    assert word_errors(["a", "c"], ["a", "b", "c"]) == WordErrors(0, 0, 1, 2)
    assert word_errors(["a", "b"], ["b", "a"]) == WordErrors(2, 0, 0, 2)
    pooled = total_word_errors([(["a"], ["b"]), (["a", "b", "c"], ["a", "b", "c"])])
    assert pooled.rate == 0.25


def test_doors() -> None:
    with pytest.raises(ModelError, match="not defined"):
        _ = word_errors([], ["a"]).rate
    with pytest.raises(ModelError, match="split it"):
        word_errors("a b", ["a"])
