"""When each operation of a trellis runs: modulo scheduling, as compilers do it for loops.

A vertex that n arcs lead to takes n - 1 operations of two operands. Operation v of frame t runs in slot I t + a_v, all
of a slot in one batch: two round trips. An operand of frame t - d must be there in an earlier slot,

    a_v >= a_u + 1 - I d      (a vertex with one arc only passes on: a_v >= a_u - I d),

and the interval I is the smallest for which such a_v exist: the most, over all circles of the graph, of operations on
the circle a frame. A wide maximum where words meet then costs a frame no more rounds than a narrow one: frames overlap.
Of a vertex's operands, those that are there first are joined first.

A score is kept before the emission of its own frame is added; whoever reads it adds that. So what leads to a frame is
done before the frame is there.

Where rounds are dear and nothing leads back but states to themselves, L frames run in one slot, for log2 L more
operations a state and frame (look-ahead, as filters do it). With u_t what enters a state at t, and E the emissions
of the frames between,

    w¹_t = u_t,    w²ᵐ_t = op(wᵐ_{t-m} + E, wᵐ_t),    x_t = op(x_{t-L} + E, wᴸ_t).
"""

import heapq
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Whole
from ppspeech.errors import RangeError
from ppspeech.protocols.trellis.graph import KEEP, Arc, Rule, Set, Trellis

LONGEST_INTERVAL = 64
LATEST = 256  # slots after the first of its frame by which a vertex is ready, or its interval is too short
PACE_FRAMES = 30


@dataclass(frozen=True, slots=True)
class Operand:
    """A node of the plan, a vertex or an operation within one, `delay` frames ago, and what is added and set. `emits`:
    how many frames' emissions in the node's vertex are added, from that frame on.
    """

    node: int
    delay: int = 0
    weight: int | None = None
    rules: tuple[Rule, ...] = ()
    emits: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """What a node is of: two operands that are combined, or one that is passed on; none for a start alone."""

    vertex: int
    operands: tuple[Operand, ...]


@dataclass(frozen=True, eq=False)
class Side:
    """One operand of all operations of a batch: places among all scores, weights (the last stands for none), places
    among the running sums of emissions between which it emits, and fields.
    """

    place: Whole
    weight: Whole
    since: Whole
    until: Whole
    keep: NDArray[np.uint64]
    put: NDArray[np.uint64]

    def only(self, which: Whole) -> "Side":
        """That of some operations."""
        place, weight, since, until = (part[which] for part in (self.place, self.weight, self.since, self.until))
        return Side(place, weight, since, until, self.keep[which], self.put[which])


@dataclass(frozen=True, eq=False)
class Batch:
    """Nodes of one slot that are computed alike: places among all scores, and frames."""

    place: Whole
    frame: Whole
    sides: tuple[Side, ...]

    def __len__(self) -> int:
        return len(self.place)

    def before(self, frames: int) -> "Batch":
        """The part that is of the first `frames` frames."""
        if not len(self) or int(self.frame.max()) < frames:
            return self
        kept = np.flatnonzero(self.frame < frames)
        return Batch(self.place[kept], self.frame[kept], tuple(side.only(kept) for side in self.sides))


@dataclass(frozen=True, eq=False)
class Slot:
    """What is done together: `joined` two by two, then the others passed on, level by level."""

    joined: Batch
    passed: tuple[Batch, ...]


@dataclass(frozen=True, eq=False)
class Schedule:
    """The schedule of a trellis over so many frames; from public sizes alone. `ready`: a_v of every node. `ahead`: L.
    `entries`: the node where each start sets out.
    """

    trellis: Trellis
    frames: int
    nodes: tuple[Node, ...]
    interval: int
    ready: Whole
    reached: NDArray[np.bool_]
    entries: tuple[int, ...]
    ahead: int = 1

    @property
    def operations(self) -> int:
        """Of a frame, once every vertex is reached."""
        return sum(len(node.operands) == 2 for node in self.nodes)

    @property
    def places(self) -> int:
        """Scores in all: a node a frame."""
        return self.frames * len(self.nodes)

    def place(self, frame: int, vertex: int) -> int:
        """Of a vertex' score among all. Raises RangeError where no token can be."""
        if not (0 <= frame < self.frames and 0 <= vertex < len(self.trellis.columns) and self.reached[frame, vertex]):
            raise RangeError(f"no token can be in vertex {vertex} at frame {frame}")
        return frame * len(self.nodes) + vertex

    @cached_property
    def starts(self) -> Batch:
        """The tokens of frame 0."""
        starts = self.trellis.starts
        masks = [self.trellis.masks(start.rules, 0) for start in starts]
        none = np.zeros(len(starts), np.int64)
        side = Side(
            np.array(self.entries, np.int64),
            np.array([self.trellis.weights if start.weight is None else start.weight for start in starts], np.int64),
            none,
            none,
            np.zeros(len(starts), np.uint64),
            np.array([put for _, put in masks], np.uint64),
        )
        return Batch(side.place, none, (side,))

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """What runs when."""
        arrays, turns = _Slots(self), (self.frames - 1) // self.ahead
        return tuple(arrays.slot(s) for s in range(self.interval * turns + int(self.ready.max()) + 1))

    @cached_property
    def needs(self) -> Whole:
        """How many frames' emissions each slot, and all before it, need."""
        columns = max(1, self.trellis.emissions)
        sides = [[side for each in (slot.joined, *slot.passed) for side in each.sides] for slot in self.slots]
        last = [max([0, *(int(side.until.max(initial=0)) // columns for side in each)]) for each in sides]
        return np.maximum.accumulate(np.array([1, *last], np.int64))[1:]


def plan_trellis(trellis: Trellis, frames: int, valid: NDArray[np.bool_] | None = None, ahead: int = 1) -> Schedule:
    """The schedule. `valid`: where a token may be, `(frames, vertices)`; None: wherever it can come to. `ahead`: L, a
    power of two. Raises RangeError for no frames, a mask of other ones, or a graph that cannot look ahead.
    """
    if valid is None:
        return _plan(trellis, frames, ahead)
    if ahead > 1:
        raise RangeError("where tokens may not be everywhere, no step looks ahead")
    return _plan_within(trellis, frames, valid)


@lru_cache(maxsize=32)
def _plan(trellis: Trellis, frames: int, ahead: int) -> Schedule:
    return _plan_within(trellis, frames, None) if ahead == 1 else _plan_ahead(trellis, frames, ahead)


def _plan_within(trellis: Trellis, frames: int, valid: NDArray[np.bool_] | None) -> Schedule:
    if frames < 1 or (valid is not None and valid.shape != (frames, len(trellis.columns))):
        raise RangeError(f"a trellis runs over at least one frame, and a mask has a row for each, got {frames}")
    into: list[list[Arc]] = [[] for _ in trellis.columns]
    for arc in trellis.arcs:
        into[arc.target].append(arc)
    interval, ready = _schedule(trellis, into)
    nodes, at = _trees(trellis, into, interval, ready)
    entries = tuple(start.vertex for start in trellis.starts)
    return Schedule(trellis, frames, nodes, interval, at, _reached(nodes, entries, frames, valid), entries)


def _plan_ahead(trellis: Trellis, frames: int, ahead: int) -> Schedule:
    """Look-ahead: states that lead to themselves in `ahead` frames at once, whatever enters them joined before."""
    if frames < 1 or ahead < 1 or ahead & (ahead - 1):
        raise RangeError(f"a trellis runs over at least one frame, a power of two at once, got {frames} and {ahead}")
    nodes: list[Node | None] = [None] * len(trellis.columns)
    at, entries = [0] * len(nodes), {start.vertex: start.vertex for start in trellis.starts}

    def add(vertex: int, operands: list[Operand], place: int | None = None) -> int:
        """A node and, where it has more than two operands, those within it."""
        waiting = [(at[o.node] - o.delay // ahead, number, o) for number, o in enumerate(operands)]
        heapq.heapify(waiting)
        while len(waiting) > 2:
            pair = [heapq.heappop(waiting) for _ in range(2)]
            inner = add(vertex, [operand for *_, operand in pair])
            heapq.heappush(waiting, (at[inner], len(operands) + inner, Operand(inner)))
        if place is None:
            place = len(nodes)
            nodes.append(None)
            at.append(0)
        nodes[place] = Node(vertex, tuple(operand for *_, operand in sorted(waiting, key=lambda each: each[:2])))
        at[place] = max((time for time, *_ in waiting), default=0) + (len(waiting) == 2)
        return place

    for vertex in _forward_order(trellis):
        arcs = [arc for arc in trellis.arcs if arc.target == vertex]
        operands = [_read(trellis, arc) for arc in arcs if arc.source != vertex]
        if len(operands) == len(arcs):
            add(vertex, operands, vertex)
            continue
        entered = add(vertex, operands)
        if vertex in entries:
            entries[vertex] = entered
        emits = trellis.columns[vertex] is not None
        width = 1
        while width < ahead:
            entered = add(vertex, [Operand(entered, width, emits=width * emits), Operand(entered)])
            width *= 2
        nodes[vertex] = Node(vertex, (Operand(vertex, ahead, emits=ahead * emits), Operand(entered)))
        at[vertex] = at[entered] + 1
    made = tuple(node for node in nodes if node is not None)
    begun = tuple(entries[start.vertex] for start in trellis.starts)
    reached = _reached(made, begun, frames, None)
    times = np.array(at, np.int64) - min(0, *at)  # before the first slot of a frame nothing is done
    return Schedule(trellis, frames, made, 1, times, reached, begun, ahead)


def _forward_order(trellis: Trellis) -> list[int]:
    """Vertices, each after all that lead to it but itself. Raises RangeError if there is no such order, or a state is
    not just stayed in.
    """
    before: list[set[int]] = [set() for _ in trellis.columns]
    for arc in trellis.arcs:
        if arc.source != arc.target:
            before[arc.target].add(arc.source)
        elif arc.delay != 1 or arc.weight is not None or any(rule.kind is not Set.KEEP for rule in arc.rules):
            raise RangeError(f"steps look ahead where staying costs a frame and nothing else: {arc}")
    loops = [arc.source for arc in trellis.arcs if arc.source == arc.target]
    order: list[int] = []
    placed: set[int] = set()
    while len(order) < len(before):
        ready = [v for v in range(len(before)) if v not in placed and before[v] <= placed]
        if not ready or len(set(loops)) < len(loops):
            raise RangeError("steps look ahead where nothing leads back but states to themselves, once")
        order += ready
        placed.update(ready)
    return order


def _read(trellis: Trellis, arc: Arc) -> Operand:
    """What an arc brings: its source, with the emission there."""
    return Operand(arc.source, arc.delay, arc.weight, arc.rules, int(trellis.columns[arc.source] is not None))


def _schedule(trellis: Trellis, into: list[list[Arc]]) -> tuple[int, list[int]]:
    """The smallest interval, and when each vertex is ready, relative to the first slot of its frame."""
    arcs = [arc for arriving in into for arc in arriving]
    rows = [[len(arriving) for arriving in into], [arc.source for arc in arcs], [arc.delay for arc in arcs]]
    late = set(trellis.junction_order)
    order = [v for v in range(len(into)) if v not in late] + [*trellis.junction_order]
    interval, ready = _timetable(*(np.array(row, np.int64).tobytes() for row in (*rows, order)))
    return interval, list(ready)


@lru_cache(maxsize=16)
def _timetable(arriving: bytes, sources: bytes, delays: bytes, order: bytes) -> tuple[int, tuple[int, ...]]:
    """The same, from the arcs as they arrive at every vertex: how long utterances are and what tokens know changes
    nothing, so all lengths of a service share one.
    """
    counts, source, delay, vertices = (np.frombuffer(each, np.int64) for each in (arriving, sources, delays, order))
    ends = np.append(0, np.cumsum(counts))
    leaving = np.argsort(source, kind="stable")
    after = np.repeat(np.arange(len(counts)), counts)[leaving]
    begins = np.searchsorted(source[leaving], np.arange(len(counts) + 1))
    peaks = _peaks(ends, source, delay, vertices, 2 * PACE_FRAMES)
    pace = (peaks[-1] - peaks[PACE_FRAMES - 1]) / PACE_FRAMES
    for interval in range(max(1, math.ceil(pace - 2 / PACE_FRAMES)), LONGEST_INTERVAL + 1):
        ready = _settle(ends, source, delay, begins, after, interval)
        if len(ready):
            return interval, tuple(ready.tolist())
    raise RangeError(f"a step of this trellis takes more than {LONGEST_INTERVAL} operations one after the other")


@numba.njit(nogil=True, cache=True)
def _peaks(ends: Any, source: Any, delay: Any, order: Any, frames: int) -> Any:
    """When the last vertex of each frame is there, where everything is done as soon as it can be: what a frame takes in
    the long run, of which no interval is less. That of a circle is its operations over its frames, so it shows in as
    many frames as circles have.
    """
    times = np.zeros((4, len(ends) - 1), np.int64)
    peaks = np.empty(frames, np.int64)
    for frame in range(frames):
        now = times[frame % 4]
        now[:] = times[(frame - 1) % 4]
        for vertex in order:
            if ends[vertex] == ends[vertex + 1]:
                continue
            given = np.empty(ends[vertex + 1] - ends[vertex], np.int64)
            for place in range(len(given)):
                arc = ends[vertex] + place
                given[place] = times[(frame - delay[arc]) % 4, source[arc]]
            now[vertex] = _joined(given)
        peaks[frame] = now.max()
    return peaks


@numba.njit(nogil=True, cache=True)
def _settle(ends: Any, source: Any, delay: Any, begins: Any, after: Any, interval: int) -> Any:
    """The earliest slots that satisfy all arcs; none if a circle of them takes longer than its frames."""
    count = len(ends) - 1
    ready, queued = np.zeros(count, np.int64), np.ones(count, np.bool_)
    waiting, following = np.arange(count), np.empty(count, np.int64)
    left = count
    while left:
        more = 0
        for place in range(left):
            vertex = waiting[place]
            queued[vertex] = False
            given = np.empty(ends[vertex + 1] - ends[vertex], np.int64)
            for each in range(len(given)):
                arc = ends[vertex] + each
                given[each] = ready[source[arc]] - interval * delay[arc]
            found = _joined(given)
            if found <= ready[vertex]:
                continue
            ready[vertex] = found
            if found > LATEST:
                return ready[:0]
            for place_after in range(begins[vertex], begins[vertex + 1]):
                target = after[place_after]
                if not queued[target]:
                    queued[target] = True
                    following[more] = target
                    more += 1
        waiting, following, left = following, waiting, more
    return ready


@numba.njit(nogil=True, cache=True)
def _joined(times: Any) -> Any:
    """When operands that are there at these times are one: the first two are joined first. What is joined comes in
    order too, so the next is the first of those given or of those joined.
    """
    if not len(times):
        return 0
    times.sort()
    joined = np.empty(len(times), np.int64)
    given = first = last = 0
    for _ in range(len(times) - 1):
        latest = 0
        for _ in range(2):
            if first == last or (given < len(times) and times[given] <= joined[first]):
                latest = times[given]
                given += 1
            else:
                latest = joined[first]
                first += 1
        joined[last] = latest + 1
        last += 1
    return joined[last - 1] if last else times[0]


def _trees(trellis: Trellis, into: list[list[Arc]], interval: int, ready: list[int]) -> tuple[tuple[Node, ...], Whole]:
    """Vertices as nodes of at most two operands, those within them at the end; and when each is ready."""
    nodes = [Node(vertex, ()) for vertex in range(len(into))]
    at = list(ready)
    for vertex, arcs in enumerate(into):
        heap = [
            (ready[arc.source] - interval * arc.delay, order, _read(trellis, arc)) for order, arc in enumerate(arcs)
        ]
        heapq.heapify(heap)
        while len(heap) > 2:
            one, other = heapq.heappop(heap), heapq.heappop(heap)
            time = max(one[0], other[0]) + 1
            heapq.heappush(heap, (time, len(nodes) + len(arcs), Operand(len(nodes))))
            nodes.append(Node(vertex, (one[2], other[2])))
            at.append(time)
        nodes[vertex] = Node(vertex, tuple(operand for _, _, operand in sorted(heap, key=lambda each: each[:2])))
    return tuple(nodes), np.array(at, np.int64) - min(0, *at)


def _reached(
    nodes: tuple[Node, ...], entries: tuple[int, ...], frames: int, valid: NDArray[np.bool_] | None
) -> NDArray[np.bool_]:
    """Where a token can be, `(frames, nodes)`."""
    reached = np.zeros((frames, len(nodes)), np.bool_)
    arcs = [(o.node, n, o.delay) for n, node in enumerate(nodes) for o in node.operands]
    source, target, delay = np.array(arcs, np.int64).reshape(-1, 3).T
    vertex = np.array([node.vertex for node in nodes])
    now, delays = delay == 0, sorted(set(delay.tolist()) - {0})
    longest = max([2, *delays])
    for frame in range(frames):
        row = reached[frame]
        if frame == 0:
            row[list(entries)] = True
        for late in delays:
            if frame >= late:
                arrived = reached[frame - late, source] & (delay == late)
                row[target[arrived]] = True
        allowed = None if valid is None else valid[frame, vertex]
        if allowed is not None:
            row &= allowed
        while True:
            more = row[source] & now & ~row[target]
            if allowed is not None:
                more &= allowed[target]
            if not more.any():
                break
            row[target[more]] = True
        if valid is None and frame > longest and (reached[frame - longest : frame] == row).all():
            reached[frame:] = row
            break
    return reached


class _Slots:
    """Whole arrays of a plan's slots, computed for all nodes at once."""

    def __init__(self, plan: Schedule) -> None:
        trellis = plan.trellis
        self._plan, self._count, self._weights = plan, len(plan.nodes), trellis.weights
        empty = Operand(0, plan.frames)
        padded = [(*node.operands, empty, empty)[:2] for node in plan.nodes]
        self._node = np.array([[o.node for o in pair] for pair in padded], np.int64)
        self._delay = np.array([[o.delay for o in pair] for pair in padded], np.int64)
        self._weight = np.array([[self._weights if o.weight is None else o.weight for o in pair] for pair in padded])
        known = {id(o.rules): o.rules for pair in padded for o in pair}  # arcs that do alike share their rules
        places = {each: place for place, each in enumerate(known)}
        rule = np.array([[places[id(o.rules)] for o in pair] for pair in padded], np.int64)
        rules = [each or (KEEP,) * len(trellis.fields) for each in known.values()]
        masks = [trellis.masks(each, 0) for each in rules]
        self._keep = np.array([keep for keep, _ in masks], np.uint64)[rule]
        self._put = np.array([put for _, put in masks], np.uint64)[rule]
        shifts = np.cumsum([0, *trellis.fields]).tolist()
        self._framed = [
            (np.array([each[field].kind is Set.FRAME for each in rules])[rule],
             np.array([each[field].value for each in rules], np.int64)[rule], bits, shifts[field])
            for field, bits in enumerate(trellis.fields)
        ]  # fmt: skip
        columns = [column or 0 for column in trellis.columns]
        vertex = np.array([node.vertex for node in plan.nodes], np.int64)
        self._column = np.array(columns, np.int64)[vertex[self._node]]
        self._emits = np.array([[o.emits for o in pair] for pair in padded], np.int64)

    def slot(self, number: int) -> Slot:
        """Everything that slot does."""
        plan = self._plan
        behind = number - plan.ready
        nodes = np.flatnonzero((behind >= 0) & (behind % plan.interval == 0))
        turns = behind[nodes] // plan.interval
        frames = (turns[:, None] * plan.ahead + np.arange(plan.ahead)).reshape(-1)
        nodes = np.repeat(nodes, plan.ahead)
        inside = frames < plan.frames
        nodes, frames = nodes[inside], frames[inside]
        there = plan.reached[frames, nodes]
        nodes, frames = nodes[there], frames[there]
        source, earlier = self._node[nodes], frames[:, None] - self._delay[nodes]
        given = (earlier >= 0) & plan.reached[np.maximum(earlier, 0), source]
        both = given.all(axis=1)
        one = given.any(axis=1) & ~both
        side = np.argmax(given, axis=1)
        joined = self._batch(nodes[both], frames[both], (np.zeros(both.sum(), np.int64), np.ones(both.sum(), np.int64)))
        return Slot(joined, tuple(self._levels(nodes[one], frames[one], side[one])))

    def _levels(self, nodes: Whole, frames: Whole, side: Whole) -> list[Batch]:
        """What is passed on, in batches of which none needs another of its own."""
        levels = []
        while len(nodes):
            own = frames * self._count + nodes
            needed = (frames - self._delay[nodes, side]) * self._count + self._node[nodes, side]
            now = ~np.isin(needed, own)
            levels.append(self._batch(nodes[now], frames[now], (side[now],)))
            nodes, frames, side = nodes[~now], frames[~now], side[~now]
        return levels

    def _batch(self, nodes: Whole, frames: Whole, sides: tuple[Whole, ...]) -> Batch:
        return Batch(frames * self._count + nodes, frames, tuple(self._side(nodes, frames, each) for each in sides))

    def _side(self, nodes: Whole, frames: Whole, which: Whole) -> Side:
        then, emits = frames - self._delay[nodes, which], self._emits[nodes, which]
        columns = self._plan.trellis.emissions
        place = then * self._count + self._node[nodes, which]
        since = np.where(emits > 0, then * columns + self._column[nodes, which], 0)
        until = since + columns * emits
        put = self._put[nodes, which]
        for framed, value, bits, shift in self._framed:
            number = (frames + value[nodes, which]) & ((1 << bits) - 1)
            set_now = put & ~np.uint64(((1 << bits) - 1) << shift) | number.astype(np.uint64) << np.uint64(shift)
            put = np.where(framed[nodes, which], set_now, put)
        return Side(place, self._weight[nodes, which], since, until, self._keep[nodes, which], put)
