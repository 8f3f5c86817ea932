r"""Regular expressions of a small dialect, read in the clear by whoever has them.

    abc        these symbols                       x*  x+  x?        any number, at least one, at most one
    .          any symbol                          x{2}  x{2,5}      so many
    [a-f]      one of these    [^a-f]  any other   x|y  (x)  (?:x)   either, together
    \d \w \s   digits, letters and digits, space   ^  $              the line begins, ends
    \.         the symbol itself

They find what Python's `re` finds in the folded text. Look-around, references, `\b` and lazy repeats are refused: the
first three are no regular languages or none of one line, and lazy ones find the same lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ppspeech.errors import RangeError
from ppspeech.protocols.text.alphabet import OTHER, Alphabet

LONGEST = 1_000
"""Characters of a pattern."""
DEEPEST = 50
"""Groups within groups."""
MOST_REPEATS = 255
MOST_OF_RANGE = 1_000
SPECIAL = set("|*+?{}()[]^$.\\")


class PatternError(RangeError):
    """A pattern that cannot be read, or that this dialect does not have."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some symbols: bit c of `symbols` for symbol c."""

    symbols: int


@dataclass(frozen=True, slots=True)
class Series:
    """One after the other; nothing at all, if there are none."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Either:
    """Any one of them."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """So many times; `most`: None for any number."""

    part: "Node"
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Edge:
    """Where a line begins, or where it ends."""

    ends: bool


Node: TypeAlias = OneOf | Series | Either | Repeat | Edge


def read_pattern(pattern: str, alphabet: Alphabet) -> Node:
    """A pattern as a tree. Raises PatternError, with the place, for one that cannot be read."""
    if len(pattern) > LONGEST:
        raise PatternError(f"a pattern has up to {LONGEST:,} characters, got {len(pattern):,}")
    return _Reader(pattern, alphabet).whole()


def backward(node: Node) -> Node:
    """The same, read from the end of a line to its beginning."""
    if isinstance(node, Series):
        return Series(tuple(map(backward, reversed(node.parts))))
    if isinstance(node, Either):
        return Either(tuple(map(backward, node.parts)))
    if isinstance(node, Repeat):
        return Repeat(backward(node.part), node.least, node.most)
    return Edge(not node.ends) if isinstance(node, Edge) else node


def literal_of(node: Node) -> list[int] | None:
    """The classes of a pattern that is nothing but a series of them; None for another."""
    if isinstance(node, OneOf):
        return [node.symbols]
    if isinstance(node, Repeat) and node.least == node.most:
        inner = literal_of(node.part)
        return None if inner is None or len(inner) * node.least > LONGEST else inner * node.least
    if isinstance(node, Series):
        parts = [literal_of(part) for part in node.parts]
        return None if None in parts else [each for part in parts for each in part or ()]
    if isinstance(node, Either) and len(node.parts) == 1:
        return literal_of(node.parts[0])
    return None


class _Reader:
    """A pattern and a place in it."""

    def __init__(self, pattern: str, alphabet: Alphabet) -> None:
        self._pattern, self._alphabet = pattern, alphabet
        self._at = self._depth = 0
        self._any = sum(1 << number for number in alphabet.numbers.values())

    def whole(self) -> Node:
        node = self._either()
        if self._at < len(self._pattern):
            raise self._wrong("a ) without its (")
        return node

    def _either(self) -> Node:
        parts = [self._series()]
        while self._peek() == "|":
            self._at += 1
            parts.append(self._series())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _series(self) -> Node:
        parts: list[Node] = []
        while (here := self._peek()) and here not in "|)":
            if self._alphabet.spaced and here.isspace():
                self._at += 1
                continue
            # Of what one character folds to, ß to ss, only the last symbol is repeated, as in the folded pattern.
            *before, last = self._atom()
            parts += [*before, self._repeated(last)]
        return parts[0] if len(parts) == 1 else Series(tuple(parts))

    def _atom(self) -> Sequence[Node]:
        here = self._take()
        if here == "(":
            return [self._group()]
        if here == "[":
            return [OneOf(self._class())]
        if here == ".":
            return [OneOf(self._any)]
        if here in "^$":
            return [Edge(here == "$")]
        if here == "\\":
            return [OneOf(self._escaped())]
        if here in SPECIAL and here != "}" and here != "]":
            raise self._wrong(f"nothing before {here} to repeat; write \\{here} for the symbol itself")
        return [OneOf(1 << each) for each in self._folded(here)]

    def _group(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._wrong(f"more than {DEEPEST} groups within each other")
        if self._peek() == "?":
            self._at += 1
            if self._take() != ":":
                raise self._wrong("(?…) other than (?:…) is no part of this dialect")
        node = self._either()
        if self._take() != ")":
            raise self._wrong("a ( without its )")
        self._depth -= 1
        return node

    def _repeated(self, node: Node) -> Node:
        here = self._peek()
        counts = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(here) if here else None
        if counts:
            self._at += 1
        elif here == "{":
            counts = self._counts()
        if counts is None:
            return node
        if isinstance(node, Edge):
            raise self._wrong("where a line begins or ends is not repeated")
        if (after := self._peek()) and after in "*+?{":
            raise self._wrong("a repeat of a repeat: put the first in ( ); lazy ones find the same lines")
        return Repeat(node, *counts)

    def _counts(self) -> tuple[int, int | None]:
        end = self._pattern.find("}", self._at)
        least, comma, most = self._pattern[self._at + 1 : max(end, self._at + 1)].partition(",")
        if end < 0 or not all(not each or (each.isascii() and each.isdigit()) for each in (least, most)):
            raise self._wrong("a repeat is {2}, {2,} or {2,5}; write \\{ for the symbol itself")
        if not least and not most:
            raise self._wrong("a repeat says how often")
        counts = int(least or 0), (int(most) if most else None) if comma else int(least)
        if max(counts[0], counts[1] or 0) > MOST_REPEATS or (counts[1] is not None and counts[1] < counts[0]):
            raise self._wrong(f"a repeat is from few to more, at most {MOST_REPEATS}")
        self._at = end + 1
        return counts

    def _class(self) -> int:
        inverted = self._peek() == "^"
        self._at += inverted
        symbols, first = 0, True
        while first or self._peek() != "]":
            if self._alphabet.spaced and (self._peek() or "").isspace():
                self._at += 1
                continue
            symbols |= self._member()
            first = False
        self._at += 1
        return self._any & ~symbols if inverted else symbols

    def _member(self) -> int:
        here = self._take()
        if not here:
            raise self._wrong("a [ without its ]")
        if here == "\\":
            return self._escaped()
        following = self._pattern[self._at + 1 : self._at + 2]
        if self._alphabet.spaced or self._peek() != "-" or following in ("]", ""):
            (symbol,) = self._single(here)
            return 1 << symbol
        self._at += 1
        last = self._take()
        if last == "\\" or ord(last) < ord(here) or ord(last) - ord(here) > MOST_OF_RANGE:
            raise self._wrong(f"{here}-{last} is no range of characters")
        symbols = 0
        for code in range(ord(here), ord(last) + 1):
            symbols |= 1 << self._single(chr(code))[0]
        return symbols

    def _escaped(self) -> int:
        here = self._take()
        kinds = {"d": str.isdigit, "w": _is_word, "s": str.isspace}
        if here.lower() in kinds:
            of_kind = kinds[here.lower()]
            symbols = sum(1 << number for each, number in self._alphabet.numbers.items() if of_kind(each))
            return symbols if here.islower() else self._any & ~symbols
        if not here or here.isalnum():
            raise self._wrong(f"\\{here} is no part of this dialect")
        (symbol,) = self._single(here)
        return 1 << symbol

    def _single(self, here: str) -> list[int]:
        found = self._folded(here)
        if len(found) != 1:
            raise self._wrong(f"{here!r} is folded to {len(found)} symbols, and one is needed here")
        return found

    def _folded(self, here: str) -> list[int]:
        """The symbols of a character, or of the name that it begins. Raises PatternError if the alphabet has none."""
        if self._alphabet.spaced:
            while (after := self._peek()) and after.isalnum():
                here += self._take()
        found: list[int] = self._alphabet.fold(here).tolist()
        if self._alphabet.numbers[OTHER] in found or not found:
            raise self._wrong(
                f"{here!r} is not in the alphabet {self._alphabet.name!r} ({self._alphabet.about}): write . for any"
            )
        return found

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self) -> str:
        here = self._peek()
        self._at += 1
        return here

    def _wrong(self, why: str) -> PatternError:
        return PatternError(f"the pattern {self._pattern!r:.80} cannot be read at character {self._at}: {why}")


def _is_word(symbol: str) -> bool:
    return symbol.isalnum() or symbol == "_"
