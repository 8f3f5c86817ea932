"""Decoding graphs: states that emit, and weighted arcs between them that say which word begins.

A graph is drawn with `GraphBuilder`, which also has silent nodes to join things at, and compiled: nodes are
removed, so that every state of the result emits exactly one frame and a path is as long as the audio.
Builders for common tasks are in `task_graphs.py`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.models.hmm.bank import HiddenMarkovModel
from ppspeech.models.hmm.forward_backward import LOG_ZERO


@dataclass(frozen=True, slots=True)
class Unit:
    """A hidden Markov model as a part of a graph: a word, or something that is not one, such as silence.

    Attributes:
        word: what hearing it means; None for silence and garbage.
        pdfs: for each state, the column of the emission scores.
        log_exit: ln of the probability of leaving the unit after each state.
    """

    word: str | None
    pdfs: tuple[int, ...]
    log_initial: tuple[float, ...]
    log_transitions: tuple[tuple[float, ...], ...]
    log_exit: tuple[float, ...]


def units_of_bank(
    bank: HiddenMarkovModel, words: Mapping[str, str | None] | tuple[str, ...], leave: float = 0.2
) -> dict[str, Unit]:
    """Every model of a bank as a unit; the pdf of state s of model m is m * states + s.

    `words` are the models' names in the bank's order, or names to what they mean (None for silence, garbage). A bank's
    model never ends of itself: in a graph it is left with probability `leave` after its last state, or any of its final
    states where its topology has a constraint; what it does otherwise keeps its proportions. Raises ModelError if there
    are not as many names as models, or `leave` is not a probability.
    """
    meanings = dict(words) if isinstance(words, Mapping) else {word: word for word in words}
    if len(meanings) != bank.models or not 0 < leave < 1:
        raise ModelError(
            f"{bank.models} models need as many different names, and 0 < leave < 1; "
            f"got {len(meanings)} names and {leave}"
        )
    states = bank.states
    constrained = not all(bank.topology.final)
    ends = [f if constrained else s == states - 1 for s, f in enumerate(bank.topology.final)]
    initial, transitions = bank.log_initial().tolist(), bank.log_transitions().tolist()
    units = {}
    for m, (name, word) in enumerate(meanings.items()):
        stay = [math.log1p(-leave) if end else 0.0 for end in ends]
        units[name] = Unit(
            word,
            tuple(range(m * states, (m + 1) * states)),
            tuple(initial[m]),
            tuple(tuple(a + keep for a in row) for row, keep in zip(transitions[m], stay, strict=True)),
            tuple(math.log(leave) if end else LOG_ZERO for end in ends),
        )
    return units


@dataclass(frozen=True, slots=True, eq=False)
class DecodingGraph:
    """A compiled graph. Arcs are sorted by the state they lead to.

    Attributes:
        pdfs: the emission column of each state, `(states,)`.
        copies: which drawn copy of a unit each state belongs to, `(states,)`.
        entries: for arcs that begin a unit, its index in `words`; -1 inside a unit, `(arcs,)`.
        first_entries: the index in `words` of the unit that begins if a path begins in a state, `(states,)`.
    """

    pdfs: Tensor
    copies: Tensor
    sources: Tensor
    targets: Tensor
    log_weights: Tensor
    entries: Tensor
    log_initial: Tensor
    first_entries: Tensor
    log_final: Tensor
    words: tuple[str | None, ...]

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.pdfs)

    def dense_transitions(self) -> Tensor:
        """ln A as a matrix `(states, states)`, the best of parallel arcs, for the recursions of small graphs."""
        flat = self.log_weights.new_full((self.states * self.states,), LOG_ZERO)
        index = self.sources * self.states + self.targets
        return flat.scatter_reduce(0, index, self.log_weights, "amax").view(self.states, self.states)


@dataclass(frozen=True, slots=True)
class _Edge:
    target: int
    log_weight: float
    entry: int = -1  # the unit that begins here
    symbol: str | None = None  # what a failure edge beside this one must not offer again
    failure: bool = False


class GraphBuilder:
    """Draw a graph from nodes, weighted edges between them, and copies of units."""

    def __init__(self) -> None:
        self._edges: list[list[_Edge]] = []
        self._pdf: list[int | None] = []
        self._copy: list[int] = []
        self._copies = 0
        self._words: dict[str | None, int] = {}

    def node(self) -> int:
        """A new node, which emits nothing."""
        return self._vertex(None, -1)

    def edge(self, source: int, target: int, log_weight: float = 0.0, symbol: str | None = None) -> None:
        """Join two nodes. `symbol` names what is chosen, for failure edges to respect."""
        self._edges[source].append(_Edge(target, log_weight, symbol=symbol))

    def failure(self, source: int, target: int, log_weight: float = 0.0) -> None:
        """Join two nodes for what the source does not offer itself: symbols it has are blocked beyond this edge.

        This is what back-off means: the shorter history is asked only about words the longer one never saw.
        """
        self._edges[source].append(_Edge(target, log_weight, failure=True))

    def unit(self, source: int, target: int, unit: Unit, log_weight: float = 0.0) -> None:
        """Draw a copy of a unit between two nodes."""
        entry = self._words.setdefault(unit.word, len(self._words))
        states = [self._vertex(pdf, self._copies) for pdf in unit.pdfs]
        self._copies += 1
        for i, state in enumerate(states):
            if unit.log_initial[i] > LOG_ZERO / 2:
                self._edges[source].append(_Edge(state, log_weight + unit.log_initial[i], entry))
            for j, other in enumerate(states):
                if unit.log_transitions[i][j] > LOG_ZERO / 2:
                    self._edges[state].append(_Edge(other, unit.log_transitions[i][j]))
            if unit.log_exit[i] > LOG_ZERO / 2:
                self._edges[state].append(_Edge(target, unit.log_exit[i]))

    def compile(self, start: int, end: int) -> DecodingGraph:
        """Remove the nodes and all that no path from start to end takes. Raises ModelError if nothing is left."""
        emitting = [v for v, pdf in enumerate(self._pdf) if pdf is not None]
        follow = {v: self._beyond(v, end) for v in [start, *emitting]}
        ahead = _reachable({v: {t for t, _ in arcs} for v, (arcs, _) in follow.items()}, {start})
        behind: dict[int, set[int]] = {v: set() for v in follow}
        for v, (arcs, _) in follow.items():
            for target, _ in arcs:
                behind[target].add(v)
        useful = ahead & _reachable(behind, {v for v, (_, final) in follow.items() if final > LOG_ZERO / 2})
        kept = [v for v in emitting if v in useful]
        if not kept or start not in useful:
            raise ModelError(
                "no path leads from the start of the graph to its end through a state that emits: "
                "the grammar is empty or disconnected"
            )
        number = {v: i for i, v in enumerate(kept)}
        ordered = sorted(
            (number[target], number[v], entry, weight)
            for v in kept
            for (target, entry), weight in follow[v][0].items()
            if target in number
        )
        targets, sources, entries, weights = zip(*ordered, strict=True) if ordered else ((), (), (), ())
        initial, first = [LOG_ZERO] * len(kept), [-1] * len(kept)
        for (target, entry), weight in follow[start][0].items():
            if target in number:
                initial[number[target]], first[number[target]] = weight, entry
        exact = torch.float64
        return DecodingGraph(
            torch.tensor([self._pdf[v] for v in kept]),
            torch.tensor([self._copy[v] for v in kept]),
            torch.tensor(sources, dtype=torch.long),
            torch.tensor(targets, dtype=torch.long),
            torch.tensor(weights, dtype=exact),
            torch.tensor(entries, dtype=torch.long),
            torch.tensor(initial, dtype=exact),
            torch.tensor(first),
            torch.tensor([follow[v][1] for v in kept], dtype=exact),
            tuple(self._words),
        )

    def _vertex(self, pdf: int | None, copy: int) -> int:
        self._pdf.append(pdf)
        self._copy.append(copy)
        self._edges.append([])
        return len(self._edges) - 1

    def _beyond(self, origin: int, end: int) -> tuple[dict[tuple[int, int], float], float]:
        """Best weights from a vertex through nodes only: to each next state (with its entry), and to the end."""
        arcs: dict[tuple[int, int], float] = {}
        final = LOG_ZERO
        best = {(origin, frozenset[str]()): 0.0}
        waiting = [(origin, frozenset[str]())]
        limit = 1000 * (len(self._edges) + 1)
        steps = 0
        while waiting:
            steps += 1
            if steps > limit:
                raise ModelError("a loop of the graph that holds no unit gains weight: make its weights negative")
            place = waiting.pop()
            vertex, blocked = place
            weight = best[place]
            if vertex == end:
                final = max(final, weight)
            offered = {edge.symbol for edge in self._edges[vertex] if edge.symbol is not None}
            for edge in self._edges[vertex]:
                if edge.symbol in blocked:
                    continue
                total = weight + edge.log_weight
                if self._pdf[edge.target] is not None:
                    key = (edge.target, edge.entry)
                    arcs[key] = max(arcs.get(key, LOG_ZERO), total)
                    continue
                # Once a word is chosen, its choice is over: nothing is blocked beyond it.
                then = blocked | offered if edge.failure else frozenset[str]() if edge.symbol else blocked
                reached = (edge.target, then)
                if total > best.get(reached, LOG_ZERO):
                    best[reached] = total
                    waiting.append(reached)
        return arcs, final


def _reachable(edges: Mapping[int, set[int]], start: set[int]) -> set[int]:
    seen, waiting = set(start), list(start)
    while waiting:
        for target in edges[waiting.pop()] - seen:
            seen.add(target)
            waiting.append(target)
    return seen
