"""Finite grammars: which words may be said in which order.

A grammar is a word (a string) or one of four combinations. They can be written as text:

    play (one | two [more])+       brackets: optional; +: once or more; *: any number of times; ?: optional
"""

import itertools
import re
from dataclasses import dataclass
from typing import Union

from ppspeech.errors import ModelError

MOST_NESTED = 32  # brackets inside one another, and marks after a word

Grammar = Union[str, "InOrder", "OneOf", "Maybe", "Repeated"]


@dataclass(frozen=True, slots=True)
class InOrder:
    """All parts, one after the other."""

    parts: tuple[Grammar, ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    """Exactly one of the parts, all equally probable."""

    parts: tuple[Grammar, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise ModelError("OneOf needs at least one part, got none")


@dataclass(frozen=True, slots=True)
class Maybe:
    """The part, with the given probability, or nothing."""

    part: Grammar
    probability: float = 0.5

    def __post_init__(self) -> None:
        _check(self.probability)


@dataclass(frozen=True, slots=True)
class Repeated:
    """The part once or more; after each time it goes on with the given probability."""

    part: Grammar
    probability: float = 0.5

    def __post_init__(self) -> None:
        _check(self.probability)


def words_of(grammar: Grammar) -> frozenset[str]:
    """Every word the grammar names."""
    match grammar:
        case str():
            return frozenset({grammar})
        case InOrder(parts) | OneOf(parts):
            return frozenset().union(*(words_of(part) for part in parts))
        case Maybe(part) | Repeated(part):
            return words_of(part)


def parse_grammar(text: str) -> Grammar:
    """Read a grammar from text.

    >>> parse_grammar("play (one | two)+ [please]")
    InOrder(parts=('play', Repeated(part=OneOf(parts=('one', 'two')), probability=0.5), Maybe(part='please',
    probability=0.5)))

    Raises ModelError saying where the text stops being a grammar, or nests beyond all use.
    """
    tokens = re.findall(r"[()\[\]|+*?]|[^\s()\[\]|+*?]+", text)
    depths = itertools.accumulate((each in {"(", "["}) - (each in {")", "]"}) for each in tokens)
    marks = re.findall(r"[+*?](?:\s*[+*?])*", text)
    if max((*depths, *map(len, marks), 0)) > MOST_NESTED:
        raise ModelError(f"a grammar nests at most {MOST_NESTED} brackets or marks, got {text!r:.80}")
    grammar, rest = _choice(tokens)
    if rest:
        raise ModelError(f"unexpected {rest[0]!r} in the grammar {text!r}, before {' '.join(rest[1:]) or 'its end'!r}")
    return grammar


def _choice(tokens: list[str]) -> tuple[Grammar, list[str]]:
    parts = []
    while True:
        part, tokens = _sequence(tokens)
        parts.append(part)
        if not tokens or tokens[0] != "|":
            return (parts[0] if len(parts) == 1 else OneOf(tuple(parts))), tokens
        tokens = tokens[1:]


def _sequence(tokens: list[str]) -> tuple[Grammar, list[str]]:
    parts: list[Grammar] = []
    while tokens and tokens[0] not in {"|", ")", "]"}:
        part, tokens = _item(tokens)
        parts.append(part)
    if not parts:
        raise ModelError(f"a grammar needs a word here, before {' '.join(tokens) or 'its end'!r}")
    return (parts[0] if len(parts) == 1 else InOrder(tuple(parts))), tokens


def _item(tokens: list[str]) -> tuple[Grammar, list[str]]:
    head, tokens = tokens[0], tokens[1:]
    part: Grammar
    if head in {"(", "["}:
        part, tokens = _choice(tokens)
        close = ")" if head == "(" else "]"
        if not tokens or tokens[0] != close:
            raise ModelError(f"a grammar opens {head!r} and never closes it with {close!r}")
        tokens = tokens[1:]
        part = Maybe(part) if head == "[" else part
    elif head in {"+", "*", "?"}:
        raise ModelError(f"{head!r} in a grammar must follow a word or a bracket")
    else:
        part = head
    while tokens and tokens[0] in {"+", "*", "?"}:
        mark, tokens = tokens[0], tokens[1:]
        part = Repeated(part) if mark in {"+", "*"} else part
        part = Maybe(part) if mark in {"*", "?"} else part
    return part, tokens


def _check(probability: float) -> None:
    if not 0 < probability < 1:
        raise ModelError(f"a probability in a grammar must lie strictly between 0 and 1, got {probability}")
