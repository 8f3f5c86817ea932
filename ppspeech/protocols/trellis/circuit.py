"""A trellis as circuits: one that walks a frame forward, and one that walks it back along the best path.

Forward, every operation of two operands is a maximum (2 k - 1 gates), every emission two additions of k - 1 gates: the
parties' shares to one another, and to the score. Decisions stay inside as labels. A weight is an addition too, and most
of them can be had for nothing: with potentials, x'_t(v) = x_t(v) + p(v), an arc u → v weighs w + p(v) - p(u), which is
zero on a forest that is chosen by the graph alone (never because a weight happens to be zero: that would show). In a
loop of words the entries remain.

Back, a token that stands for the best path walks from the end to the start: at an operation it goes left if the left
operand won, one gate. What fields it meets set on its way is all that is read, with the frame: where words end, and
which they are. The fields themselves need not be carried. How often a field may be told is counted on the way, so that
an answer has no more bits than were agreed on, whatever the evaluator's input is.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Bits, Residues, Whole
from ppspeech.crypto.garbled import ONE, ZERO, Builder, Circuit
from ppspeech.errors import RangeError
from ppspeech.protocols.trellis.graph import Rule, Set, Trellis
from ppspeech.protocols.trellis.schedule import Node, Operand, Schedule

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Forward:
    """A frame forward. Inputs stand one after the other, the lowest bits of all numbers first.

    Attributes:
        before: for one and two frames ago, which labels of that frame's scores are taken, and where they go.
        columns: of the emissions.
        shares: where both parties' shares of them go.
        constants: which of the garbler's constants are added.
        constant_span: where they go.
        vertices: those with a score.
        scores: their wires, `(k * vertices,)`.
        nodes: those where two operands met.
        decisions: whether the left was at least the right there.
    """

    circuit: Circuit
    before: tuple[tuple[Whole, slice], tuple[Whole, slice]]
    columns: Whole
    shares: tuple[slice, slice]
    constants: Whole
    constant_span: slice
    vertices: Whole
    scores: Whole
    nodes: tuple[int, ...]
    decisions: Whole


@dataclass(frozen=True, eq=False)
class Back:
    """A frame back.

    Attributes:
        vertices: where the token may be.
        cursor: where its labels go.
        begins: where that of whether it begins here goes.
        decisions: where those of the frame's operations go.
        left: where those of how often each field may still be told go, and their wires afterwards.
        sources: vertices that it may come from, one and two frames ago, and their wires.
        met: wires of what it meets in this frame.
        met_at_start: and of the starts, at frame 0.
    """

    circuit: Circuit
    vertices: Whole
    cursor: slice
    begins: slice
    decisions: slice
    left: tuple[slice, Whole]
    sources: tuple[tuple[Whole, Whole], tuple[Whole, Whole]]
    met: Whole
    met_at_start: Whole | None


class TrellisCircuit:
    """What both parties know of a garbled trellis: its circuits, and how many gates, inputs and outputs they have.

    Attributes:
        plan: the trellis and its longest run.
        end: the vertex in which a path ends.
        fields: those that are read, of the trellis' fields.
        most: how often each is told, counted from the end.
    """

    def __init__(self, plan: Schedule, end: int, fields: tuple[int, ...], most: int) -> None:
        trellis = plan.trellis
        if plan.ahead > 1 or trellis.operation == "add":
            raise RangeError("a circuit takes the best or the least of tokens, frame by frame")
        if not 0 <= end < len(trellis.columns) or not plan.reached[:, end].any():
            raise RangeError(f"no token comes to vertex {end} within {plan.frames} frames: paths cannot end there")
        if not fields or not all(0 <= field < len(trellis.fields) for field in fields):
            raise RangeError(f"one or more of {len(trellis.fields)} fields can be read, got {fields}")
        if most < 1:
            raise RangeError(f"a field is told at least once, got {most}")
        self.plan, self.end, self.fields, self.most = plan, end, fields, min(most, plan.frames + 1)
        self.rules = tuple(self._settings(field) for field in fields)
        for field in fields:
            _check_alone(trellis, field)
        self._vertices = len(trellis.columns)
        self._free = _forest(trellis)
        self._charged = [
            (number, side)
            for number, node in enumerate(plan.nodes)
            for side, operand in enumerate(node.operands)
            if (operand.node, operand.weight, node.vertex) not in self._free and operand.node < self._vertices
        ]
        self._place = {operand: place for place, operand in enumerate(self._charged)}
        self._forwards: dict[bytes, Forward] = {}
        self._backs: dict[bytes, tuple[Back, tuple[Mask, Mask]]] = {}

    def _settings(self, field: int) -> tuple[Rule, ...]:
        """The ways in which a field is set, in order."""
        trellis = self.plan.trellis
        given = [arc.rules for arc in trellis.arcs] + [start.rules for start in trellis.starts]
        rules = {each[field] for each in given if each}
        return tuple(sorted((r for r in rules if r.kind is not Set.KEEP), key=lambda r: (r.kind.value, r.value)))

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Of what is met of each field in a frame: that it is set, and by which rule."""
        return tuple(1 + max(0, len(rules) - 1).bit_length() for rules in self.rules)

    @property
    def outputs(self) -> int:
        """Of a frame."""
        return sum(self.widths)

    @property
    def left_bits(self) -> int:
        """Of how often a field may still be told; none where it may be told in every frame."""
        return 0 if self.most > self.plan.frames else self.most.bit_length()

    @cached_property
    def answer_bits(self) -> int:
        """Bits that an answer tells the evaluator at most: the logarithm of how many answers there are."""
        rows, answers = self.plan.frames + 1, 1
        for rules in self.rules:
            answers *= sum(comb(rows, told) * len(rules) ** told for told in range(self.most + 1))
        return (answers - 1).bit_length()

    @property
    def bits(self) -> int:
        """k."""
        return self.plan.trellis.bits

    def constants(self, weights: Residues) -> Residues:
        """What the garbler adds: to operands that cost an addition, and to the starts; mod 2^k, from its weights."""
        trellis = self.plan.trellis
        if weights.shape != (trellis.weights,):
            raise RangeError(f"the arcs speak of {trellis.weights} weights, got {weights.shape}")
        heavy, height = [*weights.tolist(), 0], self.heights(weights).tolist()
        arcs = []
        for number, side in self._charged:
            node = self.plan.nodes[number]
            taken = node.operands[side]
            arcs.append(heavy[-1 if taken.weight is None else taken.weight] + height[node.vertex] - height[taken.node])
        starts = [heavy[-1 if s.weight is None else s.weight] + height[s.vertex] for s in trellis.starts]
        return self._residues([*arcs, *starts])

    def heights(self, weights: Residues) -> Residues:
        """p(v): how far the scores of a circuit are above those of the trellis, a vertex, mod 2^k. Along the arcs of
        the forest p(target) = p(source) - w, which makes them weigh nothing.
        """
        heavy = [*weights.tolist(), 0]
        beside: list[list[tuple[int, int]]] = [[] for _ in range(self._vertices)]
        for source, weight, target in self._free:
            step = heavy[-1 if weight is None else weight]
            beside[source].append((target, -step))
            beside[target].append((source, step))
        height: dict[int, int] = {}
        for root in range(self._vertices):
            todo = [] if root in height else [root]
            height.setdefault(root, 0)
            while todo:
                vertex = todo.pop()
                for other, step in beside[vertex]:
                    if other not in height:
                        height[other] = height[vertex] + step
                        todo.append(other)
        return self._residues([height[vertex] for vertex in range(self._vertices)])

    def _residues(self, numbers: list[int]) -> Residues:
        return np.array([number % (1 << self.bits) for number in numbers], np.uint64)

    # Sizes.

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """How many columns of emissions each frame takes."""
        return tuple(len(self.forward(frame).columns) for frame in range(self.plan.frames))

    @cached_property
    def forward_gates(self) -> int:
        """Of all frames."""
        return sum(self.forward(frame).circuit.gates for frame in range(self.plan.frames))

    def back_gates(self, frames: int | None = None) -> int:
        """Of the way back from a frame that both know; None: from one that the evaluator alone knows."""
        return sum(back.circuit.gates for back, _ in self.backs(frames))

    @cached_property
    def last_bits(self) -> int:
        """Of the number of the last frame, where the evaluator alone knows it."""
        return max(1, (self.plan.frames - 1).bit_length())

    @cached_property
    def last(self) -> tuple[Circuit, Whole, Whole]:
        """From the number of the last frame, to one bit a frame that says which it is: a circuit, inputs and outputs.
        However the evaluator chooses, at most one is 1.
        """
        build, frames = Builder(), self.plan.frames
        number = build.inputs(self.last_bits, 1)[:, 0]
        found = np.array([ONE])
        for place in range(self.last_bits - 1, -1, -1):
            bit = np.full(len(found), number[place])
            ones = bit if len(found) == 1 else build.both(found, bit)
            found = np.stack([build.xor(found, ones), ones], axis=1).reshape(-1)[: -(-frames // (1 << place))]
        return build.finish(), number, found

    # Circuits.

    def _row(self, frame: int) -> bytes:
        return b"" if frame < 0 else self.plan.reached[frame].tobytes()

    def _key(self, frame: int) -> bytes:
        return b"|".join([bytes([frame == 0]), *(self._row(frame - late) for late in (0, 1, 2))])

    def forward(self, frame: int) -> Forward:
        """The circuit of a frame; those that reach the same vertices share it."""
        key = self._key(frame)
        if key not in self._forwards:
            self._forwards[key] = self._build_forward(frame)
        return self._forwards[key]

    def backs(self, frames: int | None = None) -> list[tuple[Back, int]]:
        """The circuits of all frames back, last frame first, and their frames."""
        count, vertices = self.plan.frames if frames is None else frames, self._vertices
        if not 1 <= count <= self.plan.frames:
            raise RangeError(f"a path of 1 to {self.plan.frames} frames can be walked back, got {count}")
        now, before = np.zeros(vertices, np.bool_), np.zeros(vertices, np.bool_)
        found = []
        for frame in range(count - 1, -1, -1):
            begins = bool(self.plan.reached[frame, self.end]) and (frames is None or frame == count - 1)
            key = self._key(frame) + bytes([begins]) + now.tobytes()
            if key not in self._backs:
                self._backs[key] = self._build_back(frame, now, begins)
            back, (one, two) = self._backs[key]
            found.append((back, frame))
            now, before = before | one, two
        return found

    def _given(self, node: Node, frame: int) -> list[int]:
        """Which operands of a node there are."""
        reached = self.plan.reached
        return [s for s, o in enumerate(node.operands) if frame >= o.delay and reached[frame - o.delay, o.node]]

    def _levels(self, frame: int, states: bool) -> list[list[int]]:
        """Nodes of states, or of junctions, at a frame, those of a level after all that they need of it."""
        plan, columns = self.plan, self.plan.trellis.columns
        started = {start.vertex for start in plan.trellis.starts} if frame == 0 else set()
        left = [
            n
            for n, node in enumerate(plan.nodes)
            if plan.reached[frame, n] and (columns[node.vertex] is not None) == states and n not in started
        ]
        levels = []
        while left:
            waiting = set(left)
            now = [n for n in left if not any(o.delay == 0 and o.node in waiting for o in plan.nodes[n].operands)]
            levels.append(now)
            left = sorted(waiting.difference(now))
        return levels

    def _build_forward(self, frame: int) -> Forward:
        plan, trellis, build, k = self.plan, self.plan.trellis, Builder(), self.bits
        reached = plan.reached[frame, : self._vertices]
        states = [v for v in np.flatnonzero(reached).tolist() if trellis.columns[v] is not None]
        columns = np.array(sorted({column for v in states if (column := trellis.columns[v]) is not None}), np.int64)
        shares = build.inputs(k, len(columns)), build.inputs(k, len(columns))
        value: dict[tuple[int, int], Whole] = {}
        levels = self._levels(frame, states=True), self._levels(frame, states=False)
        there = [
            (n, side) for level in (*levels[0], *levels[1]) for n in level for side in self._given(plan.nodes[n], frame)
        ]
        before = []
        for late in (1, 2):
            used = sorted({o.node for n, side in there if (o := plan.nodes[n].operands[side]).delay == late})
            wires = build.inputs(k, len(used))
            held_then = np.flatnonzero(plan.reached[frame - late, : self._vertices]) if frame >= late else columns[:0]
            places = np.arange(k)[:, None] * len(held_then) + np.searchsorted(held_then, used)
            before.append((places.reshape(-1), _span(wires)))
            value.update({(late, v): wires[:, place] for place, v in enumerate(used)})
        charged = [each for each in there if each in self._place]
        begun = list(range(len(trellis.starts))) if frame == 0 else []
        constants = np.array(
            [self._place[each] for each in charged] + [len(self._charged) + s for s in begun], np.int64
        )
        constant_wires = build.inputs(k, len(constants))
        held = {each: constant_wires[:, place] for place, each in enumerate(charged)}
        added: dict[tuple[int, int], Whole] = {}

        def charge(some: list[tuple[int, int]]) -> None:
            """Add the weights of operands that cost it."""
            if some:
                operands = [plan.nodes[n].operands[side] for n, side in some]
                sums = build.add(
                    _beside(value[o.delay, o.node] for o in operands), _beside(held[each] for each in some)
                )
                added.update({each: sums[:, place] for place, each in enumerate(some)})

        def taken(n: int, side: int) -> Whole:
            operand = plan.nodes[n].operands[side]
            return added[n, side] if (n, side) in added else value[operand.delay, operand.node]

        nodes: list[int] = []
        decisions: list[Whole] = []

        def join(level: list[int]) -> None:
            charge([(n, s) for n in level for s in self._given(plan.nodes[n], frame)
                    if (n, s) in held and plan.nodes[n].operands[s].delay == 0])  # fmt: skip
            both = [n for n in level if len(self._given(plan.nodes[n], frame)) == 2]
            for n in set(level).difference(both):
                value[0, n] = taken(n, self._given(plan.nodes[n], frame)[0])
            if both:
                left, right = (_beside(taken(n, side) for n in both) for side in (0, 1))
                combine = build.maximum if trellis.operation == "max" else build.minimum
                best, decided = combine(left, right)
                value.update({(0, n): best[:, place] for place, n in enumerate(both)})
                nodes.extend(both)
                decisions.append(decided)

        charge([(n, s) for n, s in charged if plan.nodes[n].operands[s].delay])
        for place, start in enumerate(begun):
            value[0, trellis.starts[start].vertex] = constant_wires[:, len(charged) + place]
        for level in levels[0]:
            join(level)
        if states:
            emission = dict(zip(columns.tolist(), build.add(*shares).T, strict=True))
            sums = build.add(
                _beside(value[0, v] for v in states), _beside(emission[trellis.columns[v]] for v in states)
            )
            value.update({(0, v): sums[:, place] for place, v in enumerate(states)})
        for level in levels[1]:
            join(level)
        vertices = np.flatnonzero(reached)
        scores = _beside(value[0, v] for v in vertices.tolist()) if len(vertices) else np.zeros((k, 0), np.int64)
        made = np.concatenate([np.zeros(0, np.int64), *decisions])
        spans = _span(shares[0]), _span(shares[1])
        return Forward(
            build.finish(),
            (before[0], before[1]),
            columns,
            spans,
            constants,
            _span(constant_wires),
            vertices,
            scores.reshape(-1),
            tuple(nodes),
            made,
        )

    def _build_back(self, frame: int, here: Mask, begins: bool) -> tuple[Back, tuple[Mask, Mask]]:
        plan, build = self.plan, Builder()
        vertices = np.flatnonzero(here)
        cursor, begin = build.inputs(1, len(vertices))[0], build.inputs(1, int(begins))[0]
        nodes = self.forward(frame).nodes
        decisions = build.inputs(1, len(nodes))[0]
        decided = dict(zip(nodes, decisions.tolist(), strict=True))
        tokens: dict[tuple[int, int], list[int]] = {
            (0, v): [w] for v, w in zip(vertices.tolist(), cursor.tolist(), strict=True)
        }
        if begins:
            tokens.setdefault((0, self.end), []).extend(begin.tolist())
        met: dict[tuple[int, int], list[int]] = {}
        at_start: dict[tuple[int, int], list[int]] = {}

        def meet(rules: tuple[Rule, ...], wire: int, into: dict[tuple[int, int], list[int]]) -> None:
            for place, field in enumerate(self.fields if rules else ()):
                if rules[field].kind is not Set.KEEP:
                    number = 1 | self.rules[place].index(rules[field]) << 1
                    for bit in range(number.bit_length()):
                        if number >> bit & 1:
                            into.setdefault((place, bit), []).append(wire)

        def go(operand: Operand, wire: int) -> None:
            meet(operand.rules, wire, met)
            tokens.setdefault((operand.delay, operand.node), []).append(wire)

        for level in reversed([*self._levels(frame, states=True), *self._levels(frame, states=False)]):
            there = [n for n in level if (0, n) in tokens]
            wires = {n: _sum(build, tokens[0, n]) for n in there}
            for n in there:
                if n not in decided:
                    go(plan.nodes[n].operands[self._given(plan.nodes[n], frame)[0]], wires[n])
            both = [n for n in there if n in decided]
            if both:
                whole = np.array([wires[n] for n in both])
                won = build.both(whole, np.array([decided[n] for n in both]))
                lost = build.xor(whole, won)
                first = 0 if plan.trellis.operation == "max" else 1
                for n, one, other in zip(both, won.tolist(), lost.tolist(), strict=True):
                    go(plan.nodes[n].operands[first], one)
                    go(plan.nodes[n].operands[1 - first], other)
        for start in plan.trellis.starts if frame == 0 else ():
            if (0, start.vertex) in tokens:
                meet(start.rules, _sum(build, tokens[0, start.vertex]), at_start)
        sources, masks = [], []
        for late in (1, 2):
            found = sorted(v for delay, v in tokens if delay == late)
            sources.append(
                (np.array(found, np.int64), np.array([_sum(build, tokens[late, v]) for v in found], np.int64))
            )
            masks.append(np.isin(np.arange(self._vertices), found))
        left = build.inputs(len(self.fields), self.left_bits)
        span, rows = _span(left), []
        for into in (met, at_start) if frame == 0 else (met,):
            row = []
            for place, width in enumerate(self.widths):
                told = np.array([_sum(build, into.get((place, bit), [ZERO])) for bit in range(width)])
                if self.left_bits and told[0] != ZERO:
                    told, left[place] = _count(build, told, left[place])
                row.append(told)
            rows.append(np.concatenate(row))
        came = sources[0], sources[1]
        begun = rows[1] if frame == 0 else None
        counted = span, left.reshape(-1)
        inputs = _span(cursor), _span(begin), _span(decisions)
        back = Back(build.finish(), vertices, *inputs, counted, came, rows[0], begun)
        return back, (masks[0], masks[1])

    def read(self, bits: Bits) -> tuple[tuple[tuple[int, int], ...], ...]:
        """What was met of each field, `(frame, value)` in the order of the path. `bits`: `(1 + frames, outputs)`, of
        the starts first.
        """
        found: list[tuple[tuple[int, int], ...]] = []
        at = 0
        for field, rules, width in zip(self.fields, self.rules, self.widths, strict=True):
            part = bits[:, at : at + width].astype(np.int64)
            numbers = (part[:, 1:] << np.arange(width - 1)).sum(axis=1)
            met = []
            for row in np.flatnonzero(part[:, 0]).tolist():
                frame, size = max(0, row - 1), self.plan.trellis.fields[field]
                met.append((frame, rules[min(int(numbers[row]), len(rules) - 1)].at(frame, size)))
            found.append(tuple(met))
            at += width
        return tuple(found)


@lru_cache(maxsize=16)
def plan_circuit(
    plan: Schedule, end: int, fields: tuple[int, ...] | None = None, most: int | None = None
) -> TrellisCircuit:
    """The circuits of a plan, for paths that end in a vertex. `fields`: those to read; None: all. `most`: how often
    each is told, the last ones; None: whenever it is set. Raises RangeError for a vertex that is never reached, no
    field, or one that is set twice in a frame.
    """
    chosen = tuple(range(len(plan.trellis.fields))) if fields is None else fields
    return TrellisCircuit(plan, end, chosen, plan.frames + 1 if most is None else most)


def _beside(numbers: Iterable[Whole]) -> Whole:
    return np.stack([*numbers], axis=1)


def _span(wires: Whole) -> slice:
    """Where inputs stand, which come one after the other."""
    flat = wires.reshape(-1)
    return slice(int(flat[0]), int(flat[-1]) + 1) if len(flat) else slice(0, 0)


def _sum(build: Builder, wires: list[int]) -> int:
    """The exclusive or of some wires."""
    while len(wires) > 1:
        half = len(wires) // 2
        sums = build.xor(np.array(wires[:half]), np.array(wires[half : 2 * half]))
        wires = [*sums.tolist(), *wires[2 * half :]]
    return wires[0]


def _count(build: Builder, told: Whole, left: Whole) -> tuple[Whole, Whole]:
    """What is told of a field, whose first bit says whether it is, if `left` is not zero, lowest bit first; and what is
    left then.
    """
    some = left[:1]
    for bit in left[1:]:
        one = np.array([bit])
        some = build.xor(build.xor(some, one), build.both(some, one))
    shown = build.both(told, np.repeat(some, len(told)))
    after, borrow = [], shown[:1]
    for place, bit in enumerate(left):
        one = np.array([bit])
        after.append(build.xor(one, borrow))
        if place < len(left) - 1:
            borrow = build.both(borrow, build.opposite(one))
    return shown, np.concatenate(after)


def _forest(trellis: Trellis) -> set[tuple[int, int | None, int]]:
    """Arcs, as source, weight and target, that potentials make free: those without a weight, which keep both ends at
    one height, and of the others the first that join what was apart.
    """
    group = list(range(len(trellis.columns)))

    def root(vertex: int) -> int:
        while group[vertex] != vertex:
            group[vertex] = group[group[vertex]]
            vertex = group[vertex]
        return vertex

    free = set()
    for arc in (each for each in trellis.arcs if each.weight is None):
        free.add((arc.source, arc.weight, arc.target))
        group[root(arc.target)] = root(arc.source)
    for arc in (each for each in trellis.arcs if each.weight is not None):
        if root(arc.source) != root(arc.target):
            free.add((arc.source, arc.weight, arc.target))
            group[root(arc.target)] = root(arc.source)
    return free


def _check_alone(trellis: Trellis, field: int) -> None:
    """Raises RangeError if a token may pass two arcs that set a field within one frame: only one could be told."""
    sets = [bool(arc.rules) and arc.rules[field].kind is not Set.KEEP for arc in trellis.arcs]
    after: dict[int, list[tuple[int, bool]]] = {}
    for arc, is_set in zip(trellis.arcs, sets, strict=True):
        if arc.delay == 0:
            after.setdefault(arc.source, []).append((arc.target, is_set))
    todo = [arc.target for arc, is_set in zip(trellis.arcs, sets, strict=True) if is_set]
    seen = set(todo)
    while todo:
        for target, is_set in after.get(todo.pop(), []):
            if is_set:
                raise RangeError(f"field {field} may be set twice in a frame on the way to vertex {target}: split it")
            if target not in seen:
                seen.add(target)
                todo.append(target)
