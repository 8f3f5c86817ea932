"""Questions as text: what they mean, where they stop making sense, and that no row changes what is said about them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.data.tables import parse_predicate
from ppspeech.data.tables.predicate import LONGEST
from ppspeech.errors import PpspeechError

ROWS: Any = {
    "age": ["61", "20", "", "sixty", "60.0", "-3"],
    "word": ["yes", "no", "yes", "", "it's", 'say "yes"'],
    "blood type": ["a", "b", "a", "0", "0", "0"],
}


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("age > 60", [0]),
        ("60<age", [0]),
        ("age >= 6e1", [0, 4]),
        ("age == 60", [4]),
        ("age != 60", [0, 1, 5]),  # what is no number is not so
        ("not age > 60", [1, 2, 3, 4, 5]),
        ("age < -2.5", [5]),
        ("20 <= age < 61", [1, 4]),
        ('word == "yes"', [0, 2]),
        ("word == 'say \"yes\"'", [5]),
        ('word == "it\'s"', [4]),
        ('word != "yes"', [1, 3, 4, 5]),
        ('word == ""', [3]),
        ('"no" == word', [1]),
        ('age == "61"', [0]),
        ('word in ("no", "yes") and age in (20, 61)', [0, 1]),
        ('age > 60 or word == "no" and age == 20', [0, 1]),
        ('(age > 60 or word == "no") and not (age == 20)', [0]),
        ("not not age > 60", [0]),
        ("`blood type` == 'b' or age>60 and word=='yes'", [0, 1]),
        ("`blood type` == 0", [3, 4, 5]),
    ],
)
def test_what_a_question_means(question: str, rows: list[int]) -> None:
    assert np.flatnonzero(parse_predicate(question)(ROWS)).tolist() == rows


def test_statements_are_combined_by_name() -> None:
    rows = {"old": np.array([True, True, False]), "yes": np.array([True, False, False])}
    assert parse_predicate("old and not yes")(rows).tolist() == [False, True, False]
    with pytest.raises(PpspeechError, match="old is so or not"):
        parse_predicate("old == 1")(rows)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("", "at its end"),
        ("age", "age is a column of values: compare it"),
        ("age >", "at its end: wanted is a number"),
        ("age = 60", r"'= 60' \(letter 5\)"),
        ("age >> 3", r"at '>' \(letter 6\)"),
        ("age > old", "at 'old'.*a number, or a text in quotes"),
        ("age > 60 word == 'yes'", "at 'word'.*and, or, or the end"),
        ("(age > 60", "at its end: wanted is a closing parenthesis"),
        ("age > 60)", r"at '\)'"),
        ("word > 'yes'", "== or != beside a text"),
        ("'yes' < word", "== or != beside a text"),
        ("60 60", "a comparison, one of"),
        ("age in 60", "a list in parentheses"),
        ("age in ()", "wanted is a number"),
        ("age in (1 2)", "a comma, or a closing parenthesis"),
        ("age > 1e999", "not too large"),
        ("height > 1 and weight < 2", "about height, weight, and there are age, word, blood type"),
        ("age > 60; import os", "';'|'; import'"),
        ("__import__('os').system('true')", "makes no sense|there are age"),
        ("age > 60 and " * 200 + "age > 60", f"at most {LONGEST:,} letters"),
        ("(" * 300 + "age > 60" + ")" * 300, "at most 50 parentheses"),
        ("not " * 300 + "age > 60", "at most 50 parentheses"),
        ("word == 'yes", r"\"'yes\""),
    ],
)
def test_where_a_question_stops_making_sense(question: str, words: str) -> None:
    with pytest.raises(PpspeechError, match=words):
        parse_predicate(question)(ROWS)


PIECES = st.sampled_from(
    ["age", "word", "60", "'yes'", "==", "<", ">=", "(", ")", "and", "or", "not", "in", ",", "`", "é"]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=14).map(" ".join) | st.text(max_size=40))
def test_any_text_is_a_question_or_is_refused_in_words_whatever_the_rows_are(text: str) -> None:
    """An error that depended on rows would tell of them: with other rows, and with none, it is the same."""
    others: Any = {name: ["x", "1"] for name in ROWS}
    said = []
    for rows in (ROWS, others, {name: [] for name in ROWS}):
        try:
            found = parse_predicate(text)(rows)
            assert found.dtype == np.bool_
            assert len(found) == len(rows["age"])
            said.append("")
        except PpspeechError as refused:
            said.append(str(refused))
    assert len(set(said)) == 1


def test_a_question_is_checked_without_rows() -> None:
    parse_predicate("age > 60").check(ROWS)
    parse_predicate("old").check(["old"], statements=True)
    for question, statements in (("height > 1", False), ("age", False), ("age > 1", True)):
        with pytest.raises(PpspeechError):
            parse_predicate(question).check(ROWS, statements=statements)
