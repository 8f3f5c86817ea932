"""Drawing graphs: units (hidden Markov models of words, of phones, of silence) between nodes that emit nothing.

Builders for common tasks are in `tasks.py`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import torch

from ppspeech.errors import ModelError
from ppspeech.models.decoding.graph import LATER, NOTHING, DecodingGraph, Edge, WordGraph, acyclic, trimmed
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
    bank: HiddenMarkovModel,
    words: Mapping[str, str | None] | tuple[str, ...],
    leave: float = 0.2,
    rarest: float = LOG_ZERO / 2,
) -> dict[str, Unit]:
    """Every model of a bank as a unit; the pdf of state s of model m is m * states + s.

    `words` are the models' names in the bank's order, or names to what they mean (None for silence, garbage). A bank's
    model never ends of itself: in a graph it is left with probability `leave` after its last state, or any of its final
    states where its topology has a constraint; what it does otherwise keeps its proportions. What the topology allows
    counts as no rarer than e^`rarest`. Raises ModelError if there are not as many names as models, or `leave` is not a
    probability.
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
    moves, begins, _ = bank.topology.masks(bank.initial_logits)
    initial, transitions = (
        torch.where(allowed, logs.clamp_min(rarest), LOG_ZERO).tolist()
        for allowed, logs in ((begins, bank.log_initial()), (moves, bank.log_transitions()))
    )
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


def even_units(words: Mapping[str, str | None], states: int, leave: float) -> dict[str, Unit]:
    """Left-right units of so many states, each left with probability `leave` after a frame; the pdf of state s of unit
    m is m * states + s. `words`: names to what they mean (None for silence). Raises ModelError if `leave` is not a
    probability.
    """
    if not 0 < leave < 1:
        raise ModelError(f"units need 0 < leave < 1, got {leave}")
    stay, move = math.log1p(-leave), math.log(leave)
    rows = [{state: stay, state + 1: move} for state in range(states)]
    moves = tuple(tuple(row.get(state, LOG_ZERO) for state in range(states)) for row in rows)
    others = (LOG_ZERO,) * (states - 1)
    return {
        name: Unit(word, tuple(range(m * states, (m + 1) * states)), (0.0, *others), moves, (*others, move))
        for m, (name, word) in enumerate(words.items())
    }


def joined_units(word: str, parts: Sequence[Unit]) -> Unit:
    """A word that is made of units, one after another, as one unit."""
    before = list(accumulate((len(part.pdfs) for part in parts), initial=0))
    size = before[-1]
    moves = [[LOG_ZERO] * size for _ in range(size)]
    for place, part in enumerate(parts):
        at = before[place]
        for i, row in enumerate(part.log_transitions):
            moves[at + i][at : at + len(row)] = row
            if place + 1 < len(parts) and part.log_exit[i] > LOG_ZERO / 2:
                entered = parts[place + 1].log_initial
                moves[at + i][before[place + 1] : before[place + 1] + len(entered)] = [
                    part.log_exit[i] + enter if enter > LOG_ZERO / 2 else LOG_ZERO for enter in entered
                ]
    first, last = parts[0], parts[-1]
    return Unit(
        word,
        tuple(pdf for part in parts for pdf in part.pdfs),
        (*first.log_initial, *[LOG_ZERO] * (size - len(first.log_initial))),
        tuple(map(tuple, moves)),
        (*[LOG_ZERO] * (size - len(last.log_exit)), *last.log_exit),
    )


class GraphBuilder:
    """Draw a graph from nodes, weighted edges between them, and copies of units."""

    def __init__(self) -> None:
        self._edges: list[Edge] = []
        self._pdfs: list[int | None] = []
        self._copies: list[int] = []
        self._drawn = 0
        self._words: dict[str | None, int] = {}

    def node(self) -> int:
        """A new node, which emits nothing."""
        return self._vertex(None, -1)

    def edge(
        self, source: int, target: int, log_weight: float = 0.0, symbol: str | None = None, said: str | None = None
    ) -> None:
        """Join two nodes. `symbol` names what is chosen, for failure edges to respect; `said` the word that ends here,
        where its units were drawn as parts.
        """
        told = NOTHING if said is None else self._meaning(said)
        self._edges.append(Edge(source, target, log_weight, said=told, symbol=symbol))

    def failure(self, source: int, target: int, log_weight: float = 0.0) -> None:
        """Join two nodes for what the source does not offer itself: symbols it has are blocked beyond this edge.

        This is what back-off means: the shorter history is asked only about words the longer one never saw.
        """
        self._edges.append(Edge(source, target, log_weight, failure=True))

    def unit(
        self,
        source: int,
        target: int,
        unit: Unit,
        log_weight: float = 0.0,
        part: Literal["first", "further"] | None = None,
    ) -> None:
        """Draw a copy of a unit between two nodes: a word of its own, or the first or a further `part` of a word that
        an edge tells at its end (`said`).
        """
        entry = self._meaning(unit.word) if part is None else LATER if part == "first" else NOTHING
        states = [self._vertex(pdf, self._drawn) for pdf in unit.pdfs]
        self._drawn += 1
        for i, state in enumerate(states):
            if unit.log_initial[i] > LOG_ZERO / 2:
                self._edges.append(Edge(source, state, log_weight + unit.log_initial[i], entry))
            for j, other in enumerate(states):
                if unit.log_transitions[i][j] > LOG_ZERO / 2:
                    self._edges.append(Edge(state, other, unit.log_transitions[i][j]))
            if unit.log_exit[i] > LOG_ZERO / 2:
                self._edges.append(Edge(state, target, unit.log_exit[i]))

    def graph(self, start: int, end: int) -> WordGraph:
        """What was drawn, without loops of nodes alone and all that no path from start to end takes.

        Raises ModelError if nothing is left, or a loop of nodes gains weight.
        """
        drawn = acyclic(tuple(self._pdfs), tuple(self._copies), tuple(self._edges), start, end)
        return trimmed(*drawn, tuple(self._words))

    def compile(self, start: int, end: int) -> DecodingGraph:
        """The graph for decoding; raises ModelError as `graph` does."""
        return self.graph(start, end).compile()

    def _vertex(self, pdf: int | None, copy: int) -> int:
        self._pdfs.append(pdf)
        self._copies.append(copy)
        return len(self._pdfs) - 1

    def _meaning(self, word: str | None) -> int:
        return self._words.setdefault(word, len(self._words))
