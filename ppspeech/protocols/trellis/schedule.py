"""When each operation of a trellis runs: modulo scheduling, as compilers do it for loops.

A vertex that n arcs lead to takes n - 1 operations of two operands. Operation v of frame t runs in slot I t + a_v, all
of a slot in one batch: two round trips. An operand of frame t - d must be there in an earlier slot,

    a_v >= a_u + 1 - I d      (a vertex with one arc only passes on: a_v >= a_u - I d),

and the interval I is the smallest for which such a_v exist: the most, over all circles of the graph, of operations on
the circle a frame. A wide maximum where words meet then costs a frame no more rounds than a narrow one: frames overlap.
Of a vertex's operands, those that are there first are joined first.
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
    """A node of the plan, a vertex or an operation within one, `delay` frames ago, and what is added and set."""

    node: int
    delay: int = 0
    weight: int | None = None
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """What a node is of: two operands that are combined, or one that is passed on; none for a start alone."""

    vertex: int
    operands: tuple[Operand, ...]


@dataclass(frozen=True, eq=False)
class Side:
    """One operand of all operations of a batch: places among all scores, weights (the last stands for none), fields."""

    place: Whole
    weight: Whole
    keep: NDArray[np.uint64]
    put: NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Batch:
    """Nodes of one slot that are computed alike: places among all scores, frames, and emissions (-1 for none)."""

    place: Whole
    frame: Whole
    emission: Whole
    sides: tuple[Side, ...]

    def __len__(self) -> int:
        return len(self.place)

    def before(self, frames: int) -> "Batch":
        """The part that is of the first `frames` frames."""
        if not len(self) or int(self.frame.max()) < frames:
            return self
        kept = np.flatnonzero(self.frame < frames)
        sides = tuple(Side(s.place[kept], s.weight[kept], s.keep[kept], s.put[kept]) for s in self.sides)
        return Batch(self.place[kept], self.frame[kept], self.emission[kept], sides)


@dataclass(frozen=True, eq=False)
class Slot:
    """What is done together: `joined` two by two, then the others passed on, level by level."""

    joined: Batch
    passed: tuple[Batch, ...]


@dataclass(frozen=True, eq=False)
class Schedule:
    """The schedule of a trellis over so many frames; from public sizes alone. `ready`: a_v of every node."""

    trellis: Trellis
    frames: int
    nodes: tuple[Node, ...]
    interval: int
    ready: Whole
    reached: NDArray[np.bool_]

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
        starts, columns = self.trellis.starts, self.trellis.columns
        vertices = [start.vertex for start in starts]
        emission = [-1 if (column := columns[v]) is None else column for v in vertices]
        masks = [self.trellis.masks(start.rules, 0) for start in starts]
        side = Side(
            np.array(vertices, np.int64),
            np.array([self.trellis.weights if start.weight is None else start.weight for start in starts], np.int64),
            np.zeros(len(starts), np.uint64),
            np.array([put for _, put in masks], np.uint64),
        )
        return Batch(side.place, np.zeros(len(starts), np.int64), np.array(emission, np.int64), (side,))

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """What runs when."""
        arrays = _Slots(self)
        return tuple(arrays.slot(s) for s in range(self.interval * (self.frames - 1) + int(self.ready.max()) + 1))

    @cached_property
    def needs(self) -> Whole:
        """How many frames' emissions each slot, and all before it, need."""
        last = [
            max([0, *(int(each.frame[each.emission >= 0].max(initial=-1)) + 1 for each in (slot.joined, *slot.passed))])
            for slot in self.slots
        ]
        return np.maximum.accumulate(np.array([1, *last], np.int64))[1:]


def plan_trellis(trellis: Trellis, frames: int, valid: NDArray[np.bool_] | None = None) -> Schedule:
    """The schedule. `valid`: where a token may be, `(frames, vertices)`; None: wherever it can come to. Raises
    RangeError for no frames, or a mask of other ones.
    """
    if valid is None:
        return _plan(trellis, frames)
    return _plan_within(trellis, frames, valid)


@lru_cache(maxsize=32)
def _plan(trellis: Trellis, frames: int) -> Schedule:
    return _plan_within(trellis, frames, None)


def _plan_within(trellis: Trellis, frames: int, valid: NDArray[np.bool_] | None) -> Schedule:
    if frames < 1 or (valid is not None and valid.shape != (frames, len(trellis.columns))):
        raise RangeError(f"a trellis runs over at least one frame, and a mask has a row for each, got {frames}")
    into: list[list[Arc]] = [[] for _ in trellis.columns]
    for arc in trellis.arcs:
        into[arc.target].append(arc)
    interval, ready = _schedule(trellis, into)
    nodes, at = _trees(into, interval, ready)
    return Schedule(trellis, frames, nodes, interval, at, _reached(trellis, nodes, frames, valid))


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


def _trees(into: list[list[Arc]], interval: int, ready: list[int]) -> tuple[tuple[Node, ...], Whole]:
    """Vertices as nodes of at most two operands, those within them at the end; and when each is ready."""
    nodes = [Node(vertex, ()) for vertex in range(len(into))]
    at = list(ready)
    for vertex, arcs in enumerate(into):
        heap = [
            (ready[arc.source] - interval * arc.delay, order, Operand(arc.source, arc.delay, arc.weight, arc.rules))
            for order, arc in enumerate(arcs)
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
    trellis: Trellis, nodes: tuple[Node, ...], frames: int, valid: NDArray[np.bool_] | None
) -> NDArray[np.bool_]:
    """Where a token can be, `(frames, nodes)`."""
    reached = np.zeros((frames, len(nodes)), np.bool_)
    arcs = [(o.node, n, o.delay) for n, node in enumerate(nodes) for o in node.operands]
    source, target, delay = np.array(arcs, np.int64).reshape(-1, 3).T
    vertex = np.array([node.vertex for node in nodes])
    starts = [start.vertex for start in trellis.starts]
    now = delay == 0
    for frame in range(frames):
        row = reached[frame]
        if frame == 0:
            row[starts] = True
        for late in (1, 2):
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
        if valid is None and frame > 2 and (row == reached[frame - 1]).all() and (row == reached[frame - 2]).all():
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
        columns = [trellis.columns[v] if v < len(trellis.columns) else None for v in range(self._count)]
        self._column = np.array([-1 if column is None else column for column in columns], np.int64)

    def slot(self, number: int) -> Slot:
        """Everything that slot does."""
        plan = self._plan
        behind = number - plan.ready
        nodes = np.flatnonzero((behind >= 0) & (behind % plan.interval == 0))
        frames = behind[nodes] // plan.interval
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
        column = self._column[nodes]
        emission = np.where(column >= 0, frames * self._plan.trellis.emissions + column, -1)
        return Batch(
            frames * self._count + nodes, frames, emission, tuple(self._side(nodes, frames, each) for each in sides)
        )

    def _side(self, nodes: Whole, frames: Whole, which: Whole) -> Side:
        place = (frames - self._delay[nodes, which]) * self._count + self._node[nodes, which]
        put = self._put[nodes, which]
        for framed, value, bits, shift in self._framed:
            number = (frames + value[nodes, which]) & ((1 << bits) - 1)
            set_now = put & ~np.uint64(((1 << bits) - 1) << shift) | number.astype(np.uint64) << np.uint64(shift)
            put = np.where(framed[nodes, which], set_now, put)
        return Side(place, self._weight[nodes, which], self._keep[nodes, which], put)
