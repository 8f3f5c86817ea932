"""Questions about rows, as text: `age > 60 and word == "yes"`. Read by a small parser; nothing of it is ever run.

    question     statement, or statements joined by `and`, `or`, `not` and parentheses
    statement    COLUMN == VALUE, and != < <= > >=; 18 <= COLUMN < 60; COLUMN in (VALUE, VALUE, ...); a yes-or-no COLUMN
    VALUE        a number, or a text in quotes

What a statement says follows from its own text and the row it is about, never from other rows: beside a number a row's
value is a number, and not so where it is none; beside a text it is a text. An error that told of a value in some row
would be an answer that nobody pays for.
"""

import math
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ppspeech.data.layout import first_few
from ppspeech.errors import PpspeechError

LONGEST = 2000  # letters of a question
DEEPEST = 50  # parentheses and nots, one inside the other

ORDERS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}

TOKEN = re.compile(
    r"""\s*(?:(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])
          | "(?P<double>[^"]*)" | '(?P<single>[^']*)'
          | `(?P<quoted>[^`]+)` | (?P<name>[^\W\d]\w*)
          | (?P<sign>==|!=|<=|>=|<|>|\(|\)|,))""",
    re.VERBOSE,
)

Value = float | str
Column = Sequence[str] | NDArray[np.bool_]
Rows = Mapping[str, Column]
Test = Callable[[Rows], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


@dataclass(frozen=True)
class Predicate:
    """A question that was read: which columns it is about, and for rows by column, which of them are so."""

    text: str
    columns: frozenset[str]
    _test: Test

    def check(self, columns: Collection[str], *, statements: bool = False) -> None:
        """Refuse, without looking at any row, what cannot be asked of these columns: values, or `statements` that are
        so or not. Raises PpspeechError.
        """
        self({name: np.zeros(0, dtype=np.bool_) if statements else () for name in columns})

    def __call__(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows are so, bool `(rows,)`. Raises PpspeechError for a column that is not there."""
        missing = sorted(self.columns - set(rows))
        if missing:
            raise PpspeechError(
                f"the question {self.text!r} is about {first_few(missing)}, and there are {', '.join(rows)}"
            )
        return self._test(rows)


def parse_predicate(text: str) -> Predicate:
    """Read a question. Raises PpspeechError that says where it stops making sense.

    >>> rows = {"age": ["61", "20", ""], "word": ["yes", "no", "yes"]}
    >>> parse_predicate('age > 60 or not word == "yes"')(rows).tolist()
    [True, True, False]
    """
    if len(text) > LONGEST:
        raise PpspeechError(f"a question has at most {LONGEST:,} letters, got {len(text):,}")
    reader = _Reader(text)
    test = reader.read_any(0)
    if reader.token.kind != "end":
        reader.refuse("and, or, or the end")
    return Predicate(text.strip(), frozenset(reader.columns), test)


class _Reader:
    """Goes through the words of a question once, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self.token = next(self._tokens)
        self.columns: set[str] = set()

    def read_any(self, depth: int) -> Test:
        """Statements joined by `or`."""
        tests = [self._read_all(depth)]
        while self._takes("or"):
            tests.append(self._read_all(depth))
        return lambda rows: reduce(np.logical_or, (test(rows) for test in tests))

    def _read_all(self, depth: int) -> Test:
        tests = [self._read_one(depth)]
        while self._takes("and"):
            tests.append(self._read_one(depth))
        return lambda rows: reduce(np.logical_and, (test(rows) for test in tests))

    def _read_one(self, depth: int) -> Test:
        if depth > DEEPEST:
            self.refuse(f"at most {DEEPEST} parentheses and nots inside each other")
        if self._takes("not"):
            inner = self._read_one(depth + 1)
            return lambda rows: ~inner(rows)
        if self._takes("("):
            inner = self.read_any(depth + 1)
            if not self._takes(")"):
                self.refuse("a closing parenthesis")
            return inner
        if self.token.kind == "name":
            return self._read_column()
        value = self._read_value()
        first, name = self._read_order(value), self._read_name()
        tests = [_comparison(name, TURNED[first], value)]
        if self.token.text in ORDERS:
            tests.append(self._read_comparison(name))
        return lambda rows: reduce(np.logical_and, (test(rows) for test in tests))

    def _read_column(self) -> Test:
        name = self._read_name()
        if self._takes("in"):
            if not self._takes("("):
                self.refuse("a list in parentheses, such as (1, 2)")
            values = [self._read_value()]
            while self._takes(","):
                values.append(self._read_value())
            if not self._takes(")"):
                self.refuse("a comma, or a closing parenthesis")
            tests = [_comparison(name, "==", value) for value in values]
            return lambda rows: reduce(np.logical_or, (test(rows) for test in tests))
        if self.token.kind == "sign" and self.token.text in ORDERS:
            return self._read_comparison(name)
        return lambda rows: _truth(name, rows[name])

    def _read_comparison(self, name: str) -> Test:
        at, sign = self.token, self._read_order()
        value = self._read_value()
        if isinstance(value, str) and sign not in {"==", "!="}:
            self.token = at
            self.refuse("== or != beside a text")
        return _comparison(name, sign, value)

    def _read_order(self, beside: Value = 0.0) -> str:
        sign = self.token.text
        if self.token.kind != "sign" or sign not in ORDERS:
            self.refuse("a comparison, one of " + " ".join(ORDERS))
        if isinstance(beside, str) and sign not in {"==", "!="}:
            self.refuse("== or != beside a text")
        self._next()
        return sign

    def _read_name(self) -> str:
        if self.token.kind != "name":
            self.refuse("the name of a column")
        name = self.token.text
        self.columns.add(name)
        self._next()
        return name

    def _read_value(self) -> Value:
        token = self.token
        if token.kind not in {"number", "text"}:
            self.refuse('a number, or a text in quotes such as "yes"')
        self._next()
        if token.kind == "text":
            return token.text
        number = float(token.text)
        if not math.isfinite(number):
            self.token = token
            self.refuse("a number that is not too large")
        return number

    def _takes(self, text: str) -> bool:
        found = self.token.kind in {"sign", "word"} and self.token.text == text
        if found:
            self._next()
        return found

    def _next(self) -> None:
        self.token = next(self._tokens)

    def refuse(self, wanted: str) -> NoReturn:
        """Say where the question stops making sense, and what could stand there."""
        found = f"at {self.token.text!r} (letter {self.token.at + 1})" if self.token.kind != "end" else "at its end"
        raise PpspeechError(f"the question {self._text.strip()!r} makes no sense {found}: wanted is {wanted}")


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while text[at:].strip():
        match = TOKEN.match(text, at)
        if match is None:
            start = at + len(text[at:]) - len(text[at:].lstrip())
            raise PpspeechError(
                f"the question {text.strip()!r} makes no sense at {text[start : start + 8]!r} (letter {start + 1}): "
                'it has columns, numbers, "texts", and == != < <= > >= in and or not ( )'
            )
        kind, found = next((kind, found) for kind, found in match.groupdict().items() if found is not None)
        start = match.start(kind)
        if kind == "name" and found in {"and", "or", "not", "in"}:
            yield _Token("word", found, start)
        else:
            yield _Token({"double": "text", "single": "text", "quoted": "name"}.get(kind, kind), found, start)
        at = match.end()
    while True:
        yield _Token("end", "", len(text))


def _comparison(name: str, sign: str, value: Value) -> Test:
    order = ORDERS[sign]

    def test(rows: Rows) -> NDArray[np.bool_]:
        column = rows[name]
        if isinstance(column, np.ndarray):
            raise PpspeechError(f"{name} is so or not: write {name}, or not {name}")
        if isinstance(value, str):
            return np.array([order(each, value) for each in column], dtype=np.bool_)
        numbers = np.array([_number(each) for each in column])
        so: NDArray[np.bool_] = order(numbers, value) & ~np.isnan(numbers)
        return so

    return test


def _truth(name: str, column: Column) -> NDArray[np.bool_]:
    if not isinstance(column, np.ndarray):
        raise PpspeechError(f'{name} is a column of values: compare it, such as {name} == 1 or {name} == "yes"')
    return column


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
