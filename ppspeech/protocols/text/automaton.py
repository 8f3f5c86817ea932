"""Automata of patterns and of graphs: states, what a symbol does to them, and which of them accept.

Made in the clear by their owner. `finder` reads a line and what follows its end, and stays where it has found the
pattern; `beginnings` reads a line backward, and accepts wherever a match begins. Both take the smallest number of
states there is (by Moore's refinement), so that what is public, a power of two that holds them, says little.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppspeech.arrays import Bits, Whole
from ppspeech.errors import RangeError
from ppspeech.protocols.text.alphabet import END
from ppspeech.protocols.text.pattern import Edge, Either, Node, OneOf, PatternError, Repeat, Series, backward

MOST_STATES = 1 << 10
MOST_PARTS = 4_000
"""States of a pattern before they are made to know what follows."""


@dataclass(frozen=True, eq=False)
class Automaton:
    """`moves`: the state after each state and symbol, `(states, symbols)`. `accepts`: which states do, after any symbol
    and after the last of a row, `(2, states)`. `start`: the first.
    """

    moves: Whole
    accepts: Bits
    start: int

    @property
    def states(self) -> int:
        """How many."""
        return len(self.moves)

    def run(self, rows: Whole) -> Bits:
        """In the clear: whether it accepts after every symbol of `(lines, width)`."""
        state = np.full(len(rows), self.start)
        found = np.zeros(rows.shape, np.uint8)
        for at in range(rows.shape[1]):
            state = self.moves[state, rows[:, at]]
            found[:, at] = self.accepts[int(at == rows.shape[1] - 1), state]
        return found

    def padded(self, states: int) -> "Automaton":
        """With states that are never reached. Raises RangeError for fewer than there are."""
        if states < self.states:
            raise RangeError(f"the pattern has {self.states} states, and {states} were agreed on: agree on more")
        more = np.arange(self.states, states)
        moves = np.concatenate((self.moves, np.repeat(more[:, None], self.moves.shape[1], axis=1)))
        accepts = np.concatenate((self.accepts, np.zeros((2, len(more)), np.uint8)), axis=1)
        return Automaton(moves, accepts, self.start)

    def smallest(self) -> "Automaton":
        """The same with as few states as there can be."""
        _, kind = np.unique(self.accepts[0] + 2 * self.accepts[1].astype(np.int64), return_inverse=True)
        while True:
            _, finer = np.unique(np.column_stack((kind, kind[self.moves])), axis=0, return_inverse=True)
            if finer.max() == kind.max():
                break
            kind = finer.reshape(-1)
        _, first = np.unique(kind, return_index=True)
        return Automaton(kind[self.moves[first]], self.accepts[:, first], int(kind[self.start]))


def finder(node: Node, symbols: int) -> Automaton:
    """Whether a line has a match: what it accepts after a line's end. Raises PatternError for a pattern that every line
    has, RangeError for one of too many states.
    """
    parts = _Parts.of(node)
    if parts.matches_nothing(starts=True) or parts.matches_nothing(ends=True):
        raise PatternError("this pattern matches nothing at all, which every line has: ask for at least one symbol")
    found, ended, dead = "found", "found at the end", "not found"

    def move(state: Any, symbol: int) -> Any:
        if state in (found, dead):
            return state
        if state == ended:
            return ended if symbol == END else dead
        if symbol == END:
            return ended if parts.accepts(state, ends=True) else dead
        after = parts.after(state, symbol)
        return found if parts.accepts(after) else after

    return _explored(parts.initial(), move, lambda state, _: state in (found, ended), parts.alike(symbols))


def beginnings(node: Node, symbols: int) -> Automaton:
    """Where matches begin, of lines that are read backward, what follows their end first. Raises as `finder`."""
    parts = _Parts.of(backward(node))
    if parts.matches_nothing(starts=True, ends=True):
        raise PatternError("this pattern can match nothing at all, which begins everywhere: ask for a symbol at least")

    def move(state: Any, symbol: int) -> Any:
        return state if symbol == END else parts.after(state, symbol)

    return _explored(parts.initial(), move, lambda state, last: parts.accepts(state, ends=last), parts.alike(symbols))


def walks(
    edges: Sequence[tuple[int, int, int]], goals: Sequence[int], start: int, nodes: int, symbols: int
) -> Automaton:
    """A graph as an automaton: accepts walks that exist and end at a goal. `edges`: from, letter (from 1), to; a letter
    leads from a node to one other. Raises RangeError for what is no such graph.
    """
    arrived, lost = nodes, nodes + 1
    moves = np.full((nodes + 2, symbols), lost, np.int64)
    known = range(nodes)
    if start not in known or not all(goal in known for goal in goals):
        raise RangeError(f"nodes are numbered 0 to {nodes - 1}, got the start {start} and the goals {list(goals)}")
    for source, letter, target in edges:
        if source not in known or target not in known or not 1 <= letter < symbols:
            raise RangeError(f"an edge leads from node to node by a letter, got {source} by {letter} to {target}")
        if moves[source, letter] not in (lost, target):
            raise RangeError(f"letter {letter} leads from node {source} to two nodes: give them two letters")
        moves[source, letter] = target
    moves[list(goals), END] = arrived
    moves[arrived, END] = arrived
    accepts = np.zeros((2, nodes + 2), np.uint8)
    accepts[:, arrived] = 1
    return Automaton(moves, accepts, start).smallest()


class _Parts:
    """A pattern as states that a match goes through, several at a time (Thompson): sets of them are whole numbers, a
    bit for each. A set is told apart as that of a line's beginning, where `^` holds.
    """

    def __init__(self) -> None:
        self._free: list[list[tuple[int, bool | None]]] = []
        self._reads: list[tuple[int, int] | None] = []
        self._known: dict[tuple[int, bool, bool], int] = {}
        self._first = self._last = 0

    @classmethod
    def of(cls, node: Node) -> "_Parts":
        parts = cls()
        parts._first = parts._new()
        parts._last = parts._add(node, parts._first)
        return parts

    def initial(self) -> tuple[int, bool]:
        """At the beginning of a line."""
        return self._reach(1 << self._first, True, False), True

    def after(self, state: tuple[int, bool], symbol: int) -> tuple[int, bool]:
        """Having read a symbol; a match may begin after it too."""
        moved = 1 << self._first
        for each in _members(state[0]):
            read = self._reads[each]
            if read is not None and read[0] >> symbol & 1:
                moved |= 1 << read[1]
        return self._reach(moved, False, False), False

    def accepts(self, state: tuple[int, bool], ends: bool = False) -> bool:
        """Whether a match is complete, at the end of the line or before."""
        return bool(self._reach(state[0], state[1], ends) >> self._last & 1)

    def matches_nothing(self, starts: bool = False, ends: bool = False) -> bool:
        """Whether the empty text is a match, at the beginning of a line, at its end, or both."""
        return bool(self._reach(1 << self._first, starts, ends) >> self._last & 1)

    def alike(self, symbols: int) -> list[int]:
        """For every symbol the first that does the same everywhere: not all need to be tried."""
        reads = sorted({read[0] for read in self._reads if read is not None})
        first: dict[tuple[int, ...], int] = {}
        kinds = [(int(symbol == END), *(mask >> symbol & 1 for mask in reads)) for symbol in range(symbols)]
        return [first.setdefault(kind, symbol) for symbol, kind in enumerate(kinds)]

    def _new(self) -> int:
        if len(self._free) >= MOST_PARTS:
            raise PatternError("this pattern is too large: use smaller repeats")
        self._free.append([])
        self._reads.append(None)
        return len(self._free) - 1

    def _add(self, node: Node, at: int) -> int:
        """Lead from one state through a node; where that ends."""
        if isinstance(node, OneOf):
            end = self._new()
            here = self._new()
            self._free[at].append((here, None))
            self._reads[here] = node.symbols, end
            return end
        if isinstance(node, Edge):
            end = self._new()
            self._free[at].append((end, node.ends))
            return end
        if isinstance(node, Series):
            for part in node.parts:
                at = self._add(part, at)
            return at
        if isinstance(node, Either):
            end = self._new()
            for part in node.parts:
                self._free[self._add(part, at)].append((end, None))
            return end
        return self._repeat(node, at)

    def _repeat(self, node: Repeat, at: int) -> int:
        for _ in range(node.least):
            at = self._add(node.part, at)
        end = self._new()
        if node.most is None:
            self._free[at].append((end, None))
            self._free[self._add(node.part, end)].append((end, None))
            return end
        for _ in range(node.most - node.least):
            self._free[at].append((end, None))
            at = self._add(node.part, at)
        self._free[at].append((end, None))
        return end

    def _reach(self, states: int, starts: bool, ends: bool) -> int:
        """All that can be reached from a set without reading."""
        key = states, starts, ends
        if key not in self._known:
            found, todo = states, list(_members(states))
            while todo:
                for target, edge in self._free[todo.pop()]:
                    open_here = edge is None or (ends if edge else starts)
                    if open_here and not found >> target & 1:
                        found |= 1 << target
                        todo.append(target)
            self._known[key] = found
        return self._known[key]


def _explored(
    initial: Any, move: Callable[[Any, int], Any], accepts: Callable[[Any, bool], bool], alike: Sequence[int]
) -> Automaton:
    """All states that can be reached. Raises RangeError for too many."""
    number: dict[Any, int] = {initial: 0}
    reached, table = [initial], []
    tried = sorted(set(alike))
    for state in reached:
        row: Mapping[int, Any] = {symbol: move(state, symbol) for symbol in tried}
        for after in row.values():
            if after not in number:
                if len(number) >= 4 * MOST_STATES:
                    raise RangeError(f"the pattern has more than {MOST_STATES:,} states: make it shorter")
                number[after] = len(number)
                reached.append(after)
        table.append([number[row[symbol]] for symbol in alike])
    said = [[_said(accepts, state, last) for state in reached] for last in (False, True)]
    smallest = Automaton(np.array(table, np.int64), np.array(said, np.uint8), 0).smallest()
    if smallest.states > MOST_STATES:
        raise RangeError(f"the pattern has {smallest.states:,} states, more than {MOST_STATES:,}: make it shorter")
    return smallest


def _said(accepts: Callable[[Any, bool], bool], state: Any, last: bool) -> int:
    return int(accepts(state, last))


def _members(states: int) -> list[int]:
    found = []
    while states:
        low = states & -states
        found.append(low.bit_length() - 1)
        states ^= low
    return found
