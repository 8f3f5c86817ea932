"""The search itself: a pattern of one party in the text of the other, on shares; and what is told of it.

The seeker, the first party, has a pattern; the keeper, the second, a text as rows of symbols.

    classes      1. for every symbol, the keeper asks a table of 2^bits with one bit for each of the pattern's classes
                 2. both      the and of the bits [symbol p + j is in class j], for every place p: two rounds
    automaton    1. for every symbol, of all lines at once: the state is shared by exclusive or, q = x ⊕ m. The keeper
                 asks for place (m, symbol) of row x of the seeker's table, where δ(x ⊕ m, symbol) stands
    garbled      1. the keeper asks for keys of its symbols; 2. the seeker sends a garbled automaton (`crypto.garbled`)
    then         shares of whether each line, or place, matches; they are opened, or their or, or their sum

Nobody sees a state, a bit or a sum that is not told. Theorem 2.26 in docs/theory/asking.md.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ppspeech.arrays import Bits, Residues, Whole
from ppspeech.channel import Channel
from ppspeech.crypto import Ring
from ppspeech.crypto.garbled import offer_automaton, read_automaton
from ppspeech.crypto.shares import (
    Cost,
    RowShape,
    SecretTable,
    Shared,
    SharedBits,
    ShareEngine,
    all_bits,
    look_up_secret,
    record,
)
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.protocols.text.alphabet import Alphabet
from ppspeech.protocols.text.automaton import Automaton, beginnings, finder
from ppspeech.protocols.text.pattern import PatternError, literal_of, read_pattern
from ppspeech.protocols.text.shape import (
    GROUP,
    LEAST_STATES,
    MOST_CLASSES,
    MOST_ON_SHARES,
    Receiver,
    Tells,
    TextShape,
    Way,
)


@dataclass(frozen=True, eq=False)
class Sought:
    """A pattern as its owner uses it: classes of symbols, a bit each, or an automaton."""

    classes: tuple[int, ...] | None
    automaton: Automaton | None

    @classmethod
    def of(cls, pattern: str, alphabet: Alphabet, tells: Tells, way: Way | None = None) -> "Sought":
        """From a pattern: as classes where it is nothing but a series of them, and no other way is asked for. Raises
        PatternError for one that cannot be read or that every line has, RangeError for one of too many states.
        """
        node = read_pattern(pattern, alphabet)
        classes = literal_of(node)
        if classes and len(classes) <= MOST_CLASSES and way in (None, "classes"):
            return cls(tuple(classes), None)
        if way == "classes":
            raise PatternError(f"{pattern!r:.80} is no series of 1 to {MOST_CLASSES} classes: it needs an automaton")
        build = beginnings if tells == "places" else finder
        return cls(None, build(node, 1 << alphabet.bits))

    @property
    def size(self) -> int:
        """What is public of it: classes or states, rounded up."""
        if self.classes is not None:
            return -(-len(self.classes) // GROUP) * GROUP
        assert self.automaton is not None
        return max(LEAST_STATES, 1 << (self.automaton.states - 1).bit_length())

    @property
    def way(self) -> Way:
        """The way that fits it: on shares as far as they go."""
        if self.classes is not None:
            return "classes"
        return "automaton" if self.size <= MOST_ON_SHARES else "garbled"

    def shape(
        self, lines: int, width: int, bits: int, tells: Tells, to: Receiver = "seeker", way: Way | None = None
    ) -> TextShape:
        """Of a search for it in such a text."""
        return TextShape(lines, width, bits, way or self.way, self.size, tells, to)


@dataclass(frozen=True, eq=False)
class _Tables:
    """What the seeker offers: of classes; of steps, the last one apart, and of acceptance; or a padded automaton."""

    steps: tuple[SecretTable, ...] = ()
    accepts: SecretTable | None = None
    automaton: Automaton | None = None

    @classmethod
    def of(cls, shape: TextShape, sought: Sought) -> "_Tables":
        """Raises RangeError for a pattern that is not of this size."""
        if shape.way == "classes":
            if sought.classes is None or len(sought.classes) > shape.size:
                raise RangeError(f"a series of up to {shape.size} classes was agreed on, and this pattern is none")
            wanted = [*sought.classes, *[~0] * (shape.size - len(sought.classes))]
            entries = [
                sum((mask >> symbol & 1) << at for at, mask in enumerate(wanted)) for symbol in range(1 << shape.bits)
            ]
            return cls((SecretTable.of(np.array([entries], np.uint64), shape.size),))
        if sought.automaton is None or sought.automaton.moves.shape[1] != 1 << shape.bits:
            raise RangeError(f"an automaton of {1 << shape.bits} symbols was agreed on, and this pattern has none")
        padded = sought.automaton.padded(shape.size)
        if shape.way == "garbled":
            return cls(automaton=padded)
        states = np.arange(shape.size)
        turned = states[:, None] ^ states
        after = padded.moves[turned].reshape(shape.size, -1).astype(np.uint64)
        told = np.zeros((2, *after.shape), np.uint64)
        width = shape.state_bits
        if shape.tells == "places":
            told = padded.accepts[:, after.astype(np.int64)].astype(np.uint64) << np.uint64(width)
            width += 1
        steps = tuple(SecretTable.of(after | said, width) for said in told)
        return cls(steps, SecretTable.of(padded.accepts[1][turned].astype(np.uint64), 1), padded)


@lru_cache(maxsize=64)
def scan_cost(shape: TextShape) -> Cost:
    """Of one portion, without what is told."""
    return record(lambda engine: _scan(engine, shape, None, np.zeros((shape.lines, shape.width), np.int64)))


@lru_cache(maxsize=64)
def tell_cost(shape: TextShape) -> Cost:
    """Of what is told of all portions."""
    size = (shape.lines, shape.width) if _by_place(shape) else (shape.lines,)
    return record(lambda engine: _tell(engine, shape, np.zeros(size, np.uint8)))


@lru_cache(maxsize=64)
def search_costs(shape: TextShape) -> tuple[Cost, ...]:
    """Of each portion, the last with what is told."""
    *before, last = (scan_cost(portion) for portion in shape.portions)
    return (*before, last + tell_cost(shape))


def prepare(channel: Channel, setup: PairSetup, shape: TextShape) -> ShareEngine:
    """Offline, both parties at the same time: for the first portion."""
    return ShareEngine(channel, setup, search_costs(shape)[0])


def search(
    channel: Channel, setup: PairSetup, shape: TextShape, own: Sought | Whole, engine: ShareEngine | None = None
) -> Residues | None:
    """Either party's side, in a session of the setup: what the receiver is told (`read_found`), None for the other.
    `own`: the first party's pattern, or the second's text `(lines, width)`. Raises RangeError before anything is sent,
    for what is not of the shape.
    """
    tables, text = None, np.zeros((shape.lines, shape.width), np.int64)
    if isinstance(own, Sought):
        tables = _Tables.of(shape, own)
    else:
        text = own
        if text.shape != (shape.lines, shape.width) or text.min() < 0 or text.max() >= 1 << shape.bits:
            raise RangeError(f"a text of ({shape.lines}, {shape.width}) symbols was agreed on, got {text.shape}")
    if (tables is not None) != (setup.party is Side.FIRST):
        raise PpspeechError("the first party seeks a pattern, the second keeps the text")
    at, found = 0, []
    engine = engine or prepare(channel, setup, shape)
    for number, (portion, cost) in enumerate(zip(shape.portions, search_costs(shape), strict=True)):
        engine = ShareEngine(channel, setup, cost) if number else engine
        found.append(_scan(engine, portion, tables, text[at : at + portion.lines]))
        at += portion.lines
    return _tell(engine, shape, np.concatenate(found))


def _by_place(shape: TextShape) -> bool:
    return shape.tells == "places" or shape.way == "classes"


def _scan(engine: ShareEngine, shape: TextShape, tables: _Tables | None, text: Whole) -> Bits:
    """Shares of whether each line matches, `(lines,)`, or a match begins at each place, `(lines, width)`."""
    if shape.way == "classes":
        return _by_classes(engine, shape, tables, text)
    rows = text[:, ::-1] if shape.backward else text
    if shape.way == "automaton":
        return _by_automaton(engine, shape, tables, rows)
    if engine.is_first:
        assert tables is not None
        assert tables.automaton is not None
        own = tables.automaton
        found = offer_automaton(engine, own.moves, own.accepts, own.start, shape.lines, shape.width, shape.bits)
    else:
        found = read_automaton(engine, rows, shape.size, shape.bits)
    return found[:, ::-1] if shape.backward else found[:, -1]


def _by_classes(engine: ShareEngine, shape: TextShape, tables: _Tables | None, text: Whole) -> Bits:
    """A row is followed by the next: what ends a line is in no class, so that no match goes on there."""
    count, size = shape.symbols, shape.size
    own = np.zeros(count + size, np.int64)
    own[:count] = text.reshape(-1)
    table = tables.steps[0] if tables is not None else None
    inside = look_up_secret(engine, RowShape(shape.bits, size), table, own)
    bits = np.empty((count, size), np.uint8)
    for j in range(size):
        bits[:, j] = (inside[j : count + j] >> np.uint64(j)) & np.uint64(1)
    return all_bits(engine, bits).reshape(shape.lines, shape.width)


def _by_automaton(engine: ShareEngine, shape: TextShape, tables: _Tables | None, rows: Whole) -> Bits:
    places, width = shape.tells == "places", shape.state_bits
    step = RowShape(width + shape.bits, width + places)
    state = np.zeros(shape.lines, np.int64)
    if tables is not None and tables.automaton is not None:
        state[:] = tables.automaton.start
    found = np.zeros((shape.lines, shape.width), np.uint8)
    for at in range(shape.width):
        own = state if engine.is_first else state << shape.bits | rows[:, at]
        table = tables.steps[int(at == shape.width - 1)] if tables is not None else None
        after = look_up_secret(engine, step, table, own)
        state = (after & np.uint64(shape.size - 1)).astype(np.int64)
        found[:, at] = after >> np.uint64(width)
    if places:
        return found[:, ::-1]
    accepts = tables.accepts if tables is not None else None
    return look_up_secret(engine, RowShape(width, 1), accepts, state).astype(np.uint8)


def _tell(engine: ShareEngine, shape: TextShape, found: Bits) -> Residues | None:
    """From shares of bits: what is told, to the receiver."""
    receiver = Side.FIRST if shape.to == "seeker" else Side.SECOND
    if shape.tells != "places" and found.ndim == 2:
        found = _any(engine, found)
    if shape.tells == "found":
        found = _any(engine, found[None])
    if shape.tells != "count":
        told = SharedBits(engine, found).open_to(receiver)
        return None if told is None else told.astype(np.uint64)
    ring = Ring((shape.lines + 1).bit_length())
    ones = Shared(engine, engine.public(np.ones(shape.lines, np.uint64)), ring)
    return (SharedBits(engine, found) * ones).reshape(1, -1).sum(axis=1).open_to(receiver)


def _any(engine: ShareEngine, bits: Bits) -> Bits:
    """Shares of the or of each row."""
    return engine.flip(all_bits(engine, engine.flip(bits)))


def read_found(shape: TextShape, told: Residues) -> Any:
    """What a receiver was told: whether, how many, which lines, or which lines and places in them; from 0."""
    if shape.tells == "found":
        return bool(told[0])
    if shape.tells == "count":
        return int(told[0])
    if shape.tells == "lines":
        return np.flatnonzero(told).tolist()
    return [(int(line), int(place)) for line, place in np.argwhere(told)]


def find_in_clear(pattern: str, lines: list[str], alphabet: Alphabet, tells: Tells) -> Any:
    """The same by somebody who has both: what a receiver would be told. Raises as `Sought.of`."""
    sought = Sought.of(pattern, alphabet, tells, "automaton")
    assert sought.automaton is not None
    longest = max((len(alphabet.fold(line)) for line in lines), default=0)
    rows = alphabet.rows(lines, longest + 2, len(lines) or 1)
    shape = TextShape(len(rows), rows.shape[1], alphabet.bits, "classes", GROUP, tells)
    if tells == "places":
        return read_found(shape, sought.automaton.run(rows[:, ::-1])[:, ::-1].astype(np.uint64))
    found = sought.automaton.run(rows)[:, -1].astype(np.uint64)
    return read_found(shape, found if tells == "lines" else np.array([found.sum()]))
