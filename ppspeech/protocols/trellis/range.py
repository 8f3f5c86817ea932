"""How far apart two scores that a trellis compares can ever be: for every emission, every frame, any length.

Let an emission of column j lie in [-c_j, 0] (what is common to all columns changes no difference), and let

    U_D(z → u) = the most that D frames' weights from z to u can add up to,
    L_D(z → v) = the most that D frames' weights less depths c from z to v can add up to, over all ways,

both from the graph alone. Whatever is heard, a token in v at time t is worth at least what any z was worth D frames
ago and L_D(z → v), for that way was open; and the best token in u came through some z and gained at most U_D(z → u). So

    x_t(u) - x_t(v) <= max over z of [ max_u U_D(z → u) - min_v L_D(z → v) ]

for any D for which every vertex can be reached from every other in D frames, and for a start as z, at its own time t,
in any graph. In a loop of words D is a few frames, so the bound does not grow with the length of what is said; in a
graph that is not connected it is that of all T frames. A comparison adds the arcs' weights to both, and a frame where
the two came from different ones. Theorem 2.17 in docs/theory/asking.md.
"""

import math
from functools import cached_property

import numpy as np

from ppspeech.arrays import Reals, Whole
from ppspeech.protocols.trellis.graph import Arc, Trellis

LONGEST = 64  # frames within which connected graphs are looked for
ROWS = 512  # vertices whose ways are followed at once


def most_apart(trellis: Trellis, weights: Reals, depths: Reals, frames: int) -> float:
    """The bound, in the unit of the weights and depths; `depths`: c of every column, not negative."""
    ways = _Ways(trellis, np.append(weights if trellis.operation == "max" else -weights, 0.0), depths)
    nothing = np.full((1, len(trellis.columns)), -np.inf)
    before, now, spreads = (nothing, nothing), ways.begin(), []
    alive = np.zeros(len(trellis.columns), np.bool_)
    for frame in range(frames):
        if frame:
            before, now = now, ways.step(now, before)
        spreads.append(_spread(*now))
        alive |= np.isfinite(now[1][0])
    connected = math.inf
    if all(arc.delay < 2 for arc in trellis.arcs):
        bound = _connected if alive.sum() <= ROWS else _through_one
        connected = bound(ways, np.flatnonzero(alive), min(frames, LONGEST), spreads)
    return min(max(spreads), connected) + ways.slack


def _connected(ways: "_Ways", alive: Whole, frames: int, spreads: list[float]) -> float:
    """The least bound over D; infinite where no D connects all vertices that a token can be in, `alive`."""
    count = len(ways.trellis.columns)
    worst = np.zeros(frames)
    for at in range(0, len(alive), ROWS):
        rows = alive[at : at + ROWS]
        high = np.full((len(rows), count), -np.inf)
        high[np.arange(len(rows)), rows] = 0.0
        high = ways.spread_now(high)
        both = high, high
        for frame in range(frames):
            both = ways.step(both, both)
            worst[frame] = max(worst[frame], _spread(both[0][:, alive], both[1][:, alive], everywhere=True))
    return min(max(float(worst[d]), *spreads[: d + 1]) for d in range(frames))


def _through_one(ways: "_Ways", alive: Whole, frames: int, spreads: list[float]) -> float:
    """A bound for large graphs, by ways through the junction h that most arcs meet: from any z to h in d frames and on
    to any v in d', while no token gains more than any does in as many. Infinite where h is not on all ways.
    """
    middle = ways.busiest
    start = np.full((1, len(ways.trellis.columns)), -np.inf)
    start[0, middle] = 0.0
    there, to_go = ways.spread_now(start.copy()), ways.lead_now(start.copy())
    onward = arrived = None
    for frame in range(1, frames + 1):
        there, to_go = ways.step((there, there), (there, there))[1], ways.lead(to_go)
        onward = onward or _reached_all(there, alive, frame)
        arrived = arrived or _reached_all(to_go, alive, frame)
    if onward is None or arrived is None or onward[0] + arrived[0] > len(spreads):
        return math.inf
    gains = np.full_like(start, -np.inf)
    gains[0, alive] = 0.0
    gains = ways.spread_now(gains)
    together = onward[0] + arrived[0]
    for _ in range(together):
        gains = ways.step((gains, gains), (gains, gains))[0]
    return max(float(gains.max()) - onward[1] - arrived[1], *spreads[: together + 1])


def _reached_all(values: Reals, alive: Whole, frames: int) -> tuple[int, float] | None:
    """After how many frames all are reached, and the least that any is worth then."""
    least = float(values[0, alive].min())
    return (frames, least) if math.isfinite(least) else None


def _spread(high: Reals, low: Reals, *, everywhere: bool = False) -> float:
    """The most, over rows, between the highest and the lowest; of what is reached, or infinite if something is not."""
    there = np.isfinite(low)
    if everywhere and not there.all():
        return math.inf
    alive = there.any(axis=1)
    between = high[alive].max(axis=1) - np.where(there, low, np.inf)[alive].min(axis=1)
    return float(between.max(initial=0.0))


class _Ways:
    """A graph's arcs, grouped by when their targets are ready within a frame."""

    def __init__(self, trellis: Trellis, weights: Reals, depths: Reals) -> None:
        self.trellis, self._weights = trellis, weights
        self._cost = np.array([0.0 if column is None else depths[column] for column in trellis.columns])
        at_once: dict[int, list[int]] = {}
        for arc in trellis.arcs:
            if arc.delay == 0:
                at_once.setdefault(arc.target, []).append(arc.source)
        levels: dict[int, int] = {}
        for vertex in trellis.junction_order:
            levels[vertex] = 1 + max(levels.get(source, 0) for source in at_once[vertex])
        self._later = [_group([arc for arc in trellis.arcs if arc.delay == delay], weights) for delay in (1, 2)]
        self._levels = [
            _group([arc for arc in trellis.arcs if arc.delay == 0 and levels[arc.target] == level], weights)
            for level in range(1, 1 + max(levels.values(), default=0))
        ]

    @cached_property
    def slack(self) -> float:
        """What a comparison adds: the arcs' own weights, and a frame where the operands are of different ones."""
        heaviest = float(np.abs(self._weights).max())
        delays: dict[int, set[int]] = {}
        for arc in self.trellis.arcs:
            delays.setdefault(arc.target, set()).add(arc.delay)
        mixed = max((max(each) - min(each) for each in delays.values()), default=0)
        return 2 * heaviest + mixed * (float(self._cost.max()) + 2 * heaviest * (1 + len(self._levels)))

    def begin(self) -> tuple[Reals, Reals]:
        """The most and the least that a token of frame 0 is worth, one row."""
        high = np.full((1, len(self._cost)), -np.inf)
        for start in self.trellis.starts:
            high[0, start.vertex] = self._weights[-1 if start.weight is None else start.weight]
        low = high - self._cost
        return self.spread_now(high), self.spread_now(low)

    def step(self, now: tuple[Reals, Reals], before: tuple[Reals, Reals]) -> tuple[Reals, Reals]:
        """The same, a frame later; from those of this frame and of the one before."""
        high, low = (self._move(*each) for each in zip(now, before, strict=True))
        return self.spread_now(high), self.spread_now(low - self._cost)

    def _move(self, now: Reals, before: Reals) -> Reals:
        after = np.full_like(now, -np.inf)
        for values, group in zip((now, before), self._later, strict=True):
            _arrive(after, values, group)
        return after

    @cached_property
    def busiest(self) -> int:
        """The junction, or vertex, that most arcs meet."""
        met = np.bincount([vertex for arc in self.trellis.arcs for vertex in (arc.source, arc.target)])
        return int(met.argmax())

    def lead(self, values: Reals) -> Reals:
        """What is worth so much a frame later, a frame before: along the arcs backwards."""
        worth = values - self._cost
        before = np.full_like(values, -np.inf)
        sources, heavy, targets = self._backwards[0]
        np.maximum.at(before[0], sources, worth[0, targets] + heavy)
        return self.lead_now(before)

    def lead_now(self, values: Reals) -> Reals:
        """Follow the arcs that take no time backwards."""
        for sources, heavy, targets in self._backwards[1:]:
            np.maximum.at(values[0], sources, values[0, targets] + heavy)
        return values

    @cached_property
    def _backwards(self) -> list[tuple[Whole, Reals, Whole]]:
        """Sources, weights and targets: of the arcs of a frame, then of those of no time, the latest first."""
        return [
            (sources, heavy, np.repeat(targets, np.diff(np.append(begins, len(sources)))))
            for sources, heavy, begins, targets in (self._later[0], *reversed(self._levels))
        ]

    def spread_now(self, values: Reals) -> Reals:
        """Follow the arcs that take no time."""
        for level in self._levels:
            _arrive(values, values, level)
        return values


Group = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _group(arcs: list[Arc], weights: Reals) -> Group:
    """Sources and weights of arcs by target, where each target's begin, and the targets."""
    ordered = sorted(arcs, key=lambda arc: arc.target)
    targets, begins = np.unique(np.array([arc.target for arc in ordered], np.int64), return_index=True)
    sources = np.array([arc.source for arc in ordered], np.int64)
    heavy = np.array([weights[-1 if arc.weight is None else arc.weight] for arc in ordered])
    return sources, heavy, begins, targets


def _arrive(after: Reals, values: Reals, group: Group) -> None:
    sources, heavy, begins, targets = group
    if len(sources):
        best = np.maximum.reduceat(values[:, sources] + heavy, begins, axis=1)
        after[:, targets] = np.maximum(after[:, targets], best)
