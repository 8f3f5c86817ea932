"""Graphs of what may be said: as drawn, with nodes that emit nothing, and compiled for the decoder.

A `WordGraph` is a value: vertices that emit (with the column of the emission scores) or are nodes, and weighted edges
that say what begins, or ended, where. No loop of it consists of nodes alone, so a frame can be computed vertex by
vertex: this is what a trellis on shares runs on. `compile` removes the nodes: every state of a `DecodingGraph` emits
exactly one frame, and a path is as long as the audio. Both hold the same paths with the same weights.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.models.hmm.forward_backward import LOG_ZERO

NOTHING = -1  # nothing begins here, or nothing is told of what ends
LATER = -2  # a word begins of which only its end tells which

MOST_LOOPED = 512  # nodes of a loop without a unit
MOST_EXPANDED = 1 << 16  # edges that take the place of back-offs

EMPTY = (
    "no path leads from the start of the graph to its end through a state that emits: "
    "the grammar is empty or disconnected"
)
GAINS = "a loop of the graph that holds no unit gains weight: make its weights negative"


@dataclass(frozen=True, slots=True)
class Edge:
    """A weighted step between two vertices.

    Attributes:
        entry: index in `WordGraph.words` of what begins with the step; `NOTHING` inside a word and between nodes;
            `LATER` for a word that an edge further on tells.
        said: index of the word that ends here, where its beginning did not tell; else `NOTHING`.
        symbol: what is chosen, which a failure edge from the same source must not offer again.
        failure: whether the step is taken only for symbols that the source does not offer itself (back-off).
    """

    source: int
    target: int
    log_weight: float
    entry: int = NOTHING
    said: int = NOTHING
    symbol: str | None = None
    failure: bool = False


@dataclass(frozen=True, slots=True)
class WordGraph:
    """A graph as drawn. Raises ModelError for an edge or word that is not there, or a loop of nodes alone.

    Attributes:
        pdfs: of each vertex, the column of the emission scores; None for a node, which emits nothing.
        copies: which drawn copy of a unit each vertex belongs to; -1 for nodes.
        words: what may be said; None for silence and garbage.
    """

    pdfs: tuple[int | None, ...]
    copies: tuple[int, ...]
    edges: tuple[Edge, ...]
    start: int
    end: int
    words: tuple[str | None, ...]

    def __post_init__(self) -> None:
        size, words = len(self.pdfs), range(LATER, len(self.words))
        for edge in (*self.edges, Edge(self.start, self.end, 0.0)):
            if not (0 <= edge.source < size and 0 <= edge.target < size):
                raise ModelError(f"{edge} is none of a graph of {size} vertices")
            if edge.entry not in words or edge.said not in words or edge.said == LATER:
                raise ModelError(f"{edge} names none of the {len(self.words)} words")
        if self.pdfs[self.start] is not None or self.pdfs[self.end] is not None:
            raise ModelError("a graph starts and ends in nodes, which emit nothing")
        if _node_loops(self.pdfs, self.edges):
            raise ModelError("a loop of the graph consists of nodes alone: draw it with GraphBuilder, which removes it")

    @property
    def has_failures(self) -> bool:
        """Whether some edge is a back-off that excludes what its source offers: no recursion over frames knows that."""
        return any(edge.failure for edge in self.edges)

    def plain(self) -> "WordGraph":
        """The same graph with failure edges as plain ones: a back-off may then also be taken for a word that the longer
        history has, where that is more probable.
        """
        return replace(self, edges=tuple(replace(edge, symbol=None, failure=False) for edge in self.edges))

    def without_failures(self) -> "WordGraph":
        """The same best paths with plain edges alone, for what knows no back-off: a trellis.

        A back-off may stay as a plain edge where nothing is gained by it: where every symbol that its source offers
        leads to the same node from the shorter history, and weighs no more by way of it. (So it is for bigrams that
        interpolate, as `estimate_ngrams` makes them.) Elsewhere the source is given an edge of its own for every symbol
        that it only has by the shorter history. Raises ModelError for more than `MOST_EXPANDED` of these, or a back-off
        to a node that leads on without a symbol.
        """
        if not self.has_failures:
            return self
        leaving, offers = _leaving(self.edges), dict[int, dict[str, Edge]]()
        kept = [edge for edge in self.edges if not edge.failure]

        def offered_at(vertex: int) -> dict[str, Edge]:
            """Every symbol of a history, its own and those of shorter ones, with what it weighs and leads to there."""
            if vertex in offers:
                return offers[vertex]
            failures = [edge for edge in leaving[vertex] if edge.failure]
            own = {edge.symbol: edge for edge in leaving[vertex] if not edge.failure and edge.symbol is not None}
            if len(own) + len(failures) < len(leaving[vertex]) or len(failures) > 1:
                raise ModelError("a history leads on without a symbol, or backs off twice: draw it with ngram_graph")
            offers[vertex] = dict(own)
            for failure in failures:
                shorter = {
                    symbol: replace(way, source=vertex, log_weight=failure.log_weight + way.log_weight)
                    for symbol, way in offered_at(failure.target).items()
                }
                again = [(way, shorter[symbol]) for symbol, way in own.items() if symbol in shorter]
                harmless = all(way.target == by.target and way.log_weight >= by.log_weight for way, by in again)
                offers[vertex] = shorter | own
                more = [way for symbol, way in shorter.items() if symbol not in own]
                kept.extend([replace(failure, failure=False)] if harmless else more)
            if len(kept) > MOST_EXPANDED + len(self.edges):
                raise ModelError(
                    f"back-offs of this model take more than {MOST_EXPANDED:,} edges to be followed exactly: take an "
                    "interpolated bigram, as estimate_ngrams makes them, or fewer words"
                )
            return offers[vertex]

        for edge in self.edges:
            if edge.failure:
                offered_at(edge.source)
        return replace(self, edges=tuple(replace(edge, symbol=None) for edge in kept))

    def shortened(self) -> "WordGraph":
        """The same paths without nodes that only one edge leads to and no word begins at: what leads on from there sets
        out from its source. Trees of words, whose nodes stand between any two units, lose half of their vertices.
        """
        leaving, pairs = _leaving(self.edges), {(edge.source, edge.target) for edge in self.edges}
        arriving = {edge.target: edge for edge in self.edges}
        count = Counter(edge.target for edge in self.edges)
        gone: set[int] = set()
        for vertex, pdf in enumerate(self.pdfs):
            if pdf is not None or vertex in (self.start, self.end) or count[vertex] != 1:
                continue
            into, onward = arriving[vertex], leaving[vertex]
            if any(edge.entry != NOTHING or edge.failure or edge.symbol is not None for edge in (into, *onward)):
                continue
            if any((into.source, way.target) in pairs or into.source == way.target for way in onward) or (
                into.said != NOTHING and any(way.said != NOTHING for way in onward)
            ):
                continue
            joined = [
                Edge(into.source, way.target, into.log_weight + way.log_weight, said=max(into.said, way.said))
                for way in onward
            ]
            gone.add(vertex)
            leaving[into.source] = [edge for edge in leaving[into.source] if edge is not into] + joined
            pairs.update((way.source, way.target) for way in joined)
            arriving.update((way.target, way) for way in joined if count[way.target] == 1)
        if not gone:
            return self
        left = [vertex for vertex in range(len(self.pdfs)) if vertex not in gone]
        number = {vertex: place for place, vertex in enumerate(left)}
        edges = tuple(
            replace(edge, source=number[edge.source], target=number[edge.target])
            for vertex in left
            for edge in leaving[vertex]
        )
        columns, owners = tuple(self.pdfs[v] for v in left), tuple(self.copies[v] for v in left)
        return WordGraph(columns, owners, edges, number[self.start], number[self.end], self.words)

    def node_order(self) -> tuple[int, ...]:
        """The nodes, each after all nodes that lead to it directly."""
        inside = [edge for edge in self.edges if self.pdfs[edge.source] is None and self.pdfs[edge.target] is None]
        waiting = defaultdict[int, int](int)
        for edge in inside:
            waiting[edge.target] += 1
        ready = [vertex for vertex, pdf in enumerate(self.pdfs) if pdf is None and not waiting[vertex]]
        leaving = _leaving(inside)
        ordered: list[int] = []
        while ready:
            ordered.append(ready.pop())
            for edge in leaving[ordered[-1]]:
                waiting[edge.target] -= 1
                if not waiting[edge.target]:
                    ready.append(edge.target)
        return tuple(ordered)

    def compile(self) -> "DecodingGraph":
        """Remove the nodes; of several ways between two states that mean the same the best one stays."""
        leaving = _leaving(self.edges)
        emitting = [v for v, pdf in enumerate(self.pdfs) if pdf is not None]
        follow = {v: self._beyond(v, leaving) for v in [self.start, *emitting]}
        ahead = _reachable({v: {way.target for way in beyond.arcs} for v, beyond in follow.items()}, {self.start})
        behind: dict[int, set[int]] = {v: set() for v in follow}
        for v, beyond in follow.items():
            for way in beyond.arcs:
                behind[way.target].add(v)
        useful = ahead & _reachable(behind, {v for v, beyond in follow.items() if beyond.final > LOG_ZERO / 2})
        kept = [v for v in emitting if v in useful]
        if not kept or self.start not in useful:
            raise ModelError(EMPTY)
        number = {v: i for i, v in enumerate(kept)}
        ordered = sorted(
            (number[way.target], number[v], way.entry, way.said, weight)
            for v in kept
            for way, weight in follow[v].arcs.items()
            if way.target in number
        )
        targets, sources, entries, said, weights = zip(*ordered, strict=True) if ordered else ((),) * 5
        initial, first = [LOG_ZERO] * len(kept), [NOTHING] * len(kept)
        for way, weight in follow[self.start].arcs.items():
            if way.target in number and weight > initial[number[way.target]]:
                initial[number[way.target]], first[number[way.target]] = weight, way.entry
        exact = torch.float64
        return DecodingGraph(
            torch.tensor([self.pdfs[v] for v in kept]),
            torch.tensor([self.copies[v] for v in kept]),
            torch.tensor(sources, dtype=torch.long),
            torch.tensor(targets, dtype=torch.long),
            torch.tensor(weights, dtype=exact),
            torch.tensor(entries, dtype=torch.long),
            torch.tensor(said, dtype=torch.long),
            torch.tensor(initial, dtype=exact),
            torch.tensor(first),
            torch.tensor([follow[v].final for v in kept], dtype=exact),
            torch.tensor([follow[v].last_said for v in kept]),
            self.words,
            self,
        )

    def _beyond(self, origin: int, leaving: Mapping[int, Sequence[Edge]]) -> "_Beyond":
        """Best weights from a vertex through nodes only: to each next state (with what begins and ended), and the end.

        A failure edge blocks the symbols that its source offers until one is chosen.
        """
        arcs: dict[_Way, float] = {}
        final, last_said = LOG_ZERO, NOTHING
        first = (origin, NOTHING, frozenset[str]())
        best, waiting = {first: 0.0}, [first]
        while waiting:
            place = waiting.pop()
            vertex, said, blocked = place
            weight = best[place]
            if vertex == self.end and weight > final:
                final, last_said = weight, said
            offered = {edge.symbol for edge in leaving[vertex] if edge.symbol is not None}
            for edge in leaving[vertex]:
                if edge.symbol in blocked:
                    continue
                if said != NOTHING and edge.said != NOTHING:
                    raise ModelError("two words end at once: a word of the graph has no unit of its own")
                told, total = max(said, edge.said), weight + edge.log_weight
                if self.pdfs[edge.target] is not None:
                    way = _Way(edge.target, edge.entry, told)
                    arcs[way] = max(arcs.get(way, LOG_ZERO), total)
                    continue
                # Once a word is chosen, its choice is over: nothing is blocked beyond it.
                then = blocked | offered if edge.failure else frozenset[str]() if edge.symbol else blocked
                reached = (edge.target, told, then)
                if total > best.get(reached, LOG_ZERO):
                    best[reached] = total
                    waiting.append(reached)
        return _Beyond(arcs, final, last_said)


@dataclass(frozen=True, slots=True, eq=False)
class DecodingGraph:
    """A compiled graph. Arcs are sorted by the state they lead to.

    Attributes:
        pdfs: the emission column of each state, `(states,)`.
        copies: which drawn copy of a unit each state belongs to, `(states,)`.
        entries: for arcs that begin a unit, its index in `words`, or `LATER`; `NOTHING` inside a unit, `(arcs,)`.
        said: for arcs that end a word of which its beginning did not tell, its index in `words`, `(arcs,)`.
        first_entries: as `entries`, if a path begins in a state, `(states,)`.
        last_said: as `said`, if a path ends in a state, `(states,)`.
        drawn: the graph that this was compiled from.
    """

    pdfs: Tensor
    copies: Tensor
    sources: Tensor
    targets: Tensor
    log_weights: Tensor
    entries: Tensor
    said: Tensor
    log_initial: Tensor
    first_entries: Tensor
    log_final: Tensor
    last_said: Tensor
    words: tuple[str | None, ...]
    drawn: WordGraph

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.pdfs)

    def dense_transitions(self) -> Tensor:
        """ln A as a matrix `(states, states)`, the best of parallel arcs, for the recursions of small graphs."""
        flat = self.log_weights.new_full((self.states * self.states,), LOG_ZERO)
        index = self.sources * self.states + self.targets
        return flat.scatter_reduce(0, index, self.log_weights, "amax").view(self.states, self.states)


Drawn = tuple[tuple[int | None, ...], tuple[int, ...], tuple[Edge, ...], int, int]
"""Columns, copies, edges, start and end of a graph that may still have loops of nodes."""


def acyclic(
    pdfs: tuple[int | None, ...], copies: tuple[int, ...], edges: tuple[Edge, ...], start: int, end: int
) -> Drawn:
    """The same best paths without loops of nodes alone, as repeating what may be empty draws them.

    The nodes of a loop become two each: in one a path arrives, from the other it leaves, and between them stand the
    best weights d(i, j) of all ways inside the loop; going round once more gains nothing. Raises ModelError where it
    would, and for a loop through which words or back-offs lead.
    """
    loops = _node_loops(pdfs, edges)
    if not loops:
        return pdfs, copies, edges, start, end
    if max(map(len, loops)) > MOST_LOOPED:
        raise ModelError(f"a repetition holds more than {MOST_LOOPED} parts that may all be empty: divide it")
    loop_of = {vertex: i for i, loop in enumerate(loops) for vertex in loop}
    leave = {vertex: len(pdfs) + i for i, vertex in enumerate(loop_of)}
    within = [e for e in edges if e.source in loop_of and loop_of[e.source] == loop_of.get(e.target)]
    if any(e.failure or e.symbol is not None or e.said != NOTHING for e in within):
        raise ModelError("a loop of the graph holds no unit, and tells words or backs off: give it a unit")
    inside = set(within)
    kept = [replace(e, source=leave.get(e.source, e.source)) for e in edges if e not in inside]
    for loop in loops:
        place = {vertex: i for i, vertex in enumerate(loop)}
        best = np.full((len(loop), len(loop)), -np.inf)
        np.fill_diagonal(best, 0.0)
        for e in within:
            if e.source in place:
                i, j = place[e.source], place[e.target]
                best[i, j] = max(best[i, j], e.log_weight)
        for k in range(len(loop)):
            best = np.maximum(best, best[:, k : k + 1] + best[k : k + 1])
        if np.diagonal(best).max() > 0:
            raise ModelError(GAINS)
        kept += [Edge(i, leave[j], float(best[place[i], place[j]])) for i in loop for j in loop]
    more = len(leave)
    return (*pdfs, *[None] * more), (*copies, *[-1] * more), tuple(kept), start, leave.get(end, end)


def trimmed(
    pdfs: tuple[int | None, ...],
    copies: tuple[int, ...],
    edges: tuple[Edge, ...],
    start: int,
    end: int,
    words: tuple[str | None, ...],
) -> WordGraph:
    """The graph without vertices that no path from start to end takes. Raises ModelError if none emits."""
    ahead: dict[int, set[int]] = defaultdict(set)
    behind: dict[int, set[int]] = defaultdict(set)
    for edge in edges:
        ahead[edge.source].add(edge.target)
        behind[edge.target].add(edge.source)
    useful = _reachable(ahead, {start}) & _reachable(behind, {end})
    kept = [v for v in range(len(pdfs)) if v in useful]
    if not {start, end} <= useful or all(pdfs[v] is None for v in kept):
        raise ModelError(EMPTY)
    number = {v: i for i, v in enumerate(kept)}
    left = tuple(
        replace(edge, source=number[edge.source], target=number[edge.target])
        for edge in edges
        if edge.source in number and edge.target in number
    )
    columns, owners = tuple(pdfs[v] for v in kept), tuple(copies[v] for v in kept)
    return WordGraph(columns, owners, left, number[start], number[end], words)


class _Way(NamedTuple):
    """To which state, what begins there, and which word ended on the way."""

    target: int
    entry: int
    said: int


class _Beyond(NamedTuple):
    arcs: dict[_Way, float]
    final: float
    last_said: int


def _node_loops(pdfs: Sequence[int | None], edges: Sequence[Edge]) -> list[list[int]]:
    """The nodes that lead back to themselves without a frame, in groups that lead to one another."""
    inside = [(e.source, e.target) for e in edges if pdfs[e.source] is None and pdfs[e.target] is None]
    rows, columns = zip(*inside, strict=True) if inside else ((), ())
    size = len(pdfs)
    joined = coo_array((np.ones(len(inside)), (np.array(rows, int), np.array(columns, int))), shape=(size, size))
    _, group = connected_components(joined, connection="strong")
    found: dict[int, list[int]] = defaultdict(list)
    for vertex, pdf in enumerate(pdfs):
        if pdf is None:
            found[int(group[vertex])].append(vertex)
    alone = {source for source, target in inside if source == target}
    return [loop for loop in found.values() if len(loop) > 1 or loop[0] in alone]


def _leaving(edges: Sequence[Edge]) -> dict[int, list[Edge]]:
    found: dict[int, list[Edge]] = defaultdict(list)
    for edge in edges:
        found[edge.source].append(edge)
    return found


def _reachable(edges: Mapping[int, set[int]], start: set[int]) -> set[int]:
    seen, waiting = set(start), list(start)
    while waiting:
        for target in edges[waiting.pop()] - seen:
            seen.add(target)
            waiting.append(target)
    return seen
