"""A public graph that tokens walk through, a frame a step: what both parties know of a recursion.

    x_t(v) = op over arcs u → v of [ x_{t - delay}(u) + weight ] + e_t(column of v)

A vertex is a state, which emits, or a junction, which does not: words meet there. A token may carry fields of bits
(where it began, which word it is in), which arcs keep or set to what both know. Which vertices a token can be in at
time t follows from the graph alone, so that nothing stands for minus infinity. Weights and emissions are shared
residues mod 2^k, and scores wrap around: only differences are ever compared (`trellis.range` says which k holds them).
"""

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Literal

from ppspeech.errors import RangeError

MOST_VERTICES = 1 << 15
MOST_FIELDS = 64

Operation = Literal["max", "min", "add"]


class Set(Enum):
    """What an arc does to a field of a token."""

    KEEP = 0
    CONSTANT = 1
    FRAME = 2


@dataclass(frozen=True, slots=True)
class Rule:
    """Of one field: keep it, set it to `value`, or set it to the frame that the arc leads to, plus `value`."""

    kind: Set = Set.KEEP
    value: int = 0

    def at(self, frame: int, bits: int) -> int:
        """What the field is set to; 0 where it is kept."""
        if self.kind is Set.KEEP:
            return 0
        return (self.value + (frame if self.kind is Set.FRAME else 0)) % (1 << bits)


KEEP = Rule()


@dataclass(frozen=True, slots=True)
class Arc:
    """From `source` at frame t - delay to `target` at frame t. `weight`: which of the weights it adds; None: nothing.
    `rules`: one a field; none keep all. Only arcs into junctions may take no time.
    """

    source: int
    target: int
    delay: int = 1
    weight: int | None = None
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Start:
    """A vertex in which a token may be at frame 0, and with which weight and fields."""

    vertex: int
    weight: int | None = None
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class Trellis:
    """The graph. `columns`: of the emissions, one a vertex; None for a junction. `bits`: k. `fields`: their bits.
    `operation`: the best of the tokens, the least, or ln of the sum of their exponentials, which has no fields;
    `fraction`: for that, bits of a score after the point of a nat. Raises RangeError for a graph that is none: places
    beyond it, or junctions in a circle.
    """

    columns: tuple[int | None, ...]
    arcs: tuple[Arc, ...]
    starts: tuple[Start, ...]
    bits: int
    fields: tuple[int, ...] = ()
    operation: Operation = "max"
    fraction: int = 0

    def __post_init__(self) -> None:
        vertices = len(self.columns)
        if not 1 <= vertices <= MOST_VERTICES or not self.starts or self.operation not in {"max", "min", "add"}:
            raise RangeError(
                f"a trellis has 1 to {MOST_VERTICES:,} vertices, a start, and takes max, min or add; "
                f"got {vertices} vertices, {len(self.starts)} starts, {self.operation!r}"
            )
        if self.operation == "add" and (self.fields or not 0 <= self.fraction < self.bits):
            raise RangeError(
                f"tokens that are added up carry no fields, and have a point within their {self.bits} bits, "
                f"got {self.fields} and {self.fraction}"
            )
        if not 2 <= self.bits <= 60 or any(bits < 1 for bits in self.fields):
            raise RangeError(f"scores have 2 to 60 bits and fields at least 1, got {self.bits}, {self.fields}")
        if self.fields and self.bits + sum(self.fields) + 1 > MOST_FIELDS:
            raise RangeError(
                f"scores of {self.bits} bits leave {MOST_FIELDS - 1 - self.bits} for fields, got {self.fields}"
            )
        for arc in self.arcs:
            if not (0 <= arc.source < vertices and 0 <= arc.target < vertices and 0 <= arc.delay <= 2):
                raise RangeError(f"not an arc of {vertices} vertices, of 0 to 2 frames: {arc}")
            if arc.delay == 0 and self.columns[arc.target] is not None:
                raise RangeError(f"a state takes a frame: {arc} takes none")
        if any(rules and len(rules) != len(self.fields) for rules in (each.rules for each in self._ways)):
            raise RangeError(f"an arc has a rule for each of {len(self.fields)} fields, or none")
        begun = [start.vertex for start in self.starts]
        if len(set(begun)) < len(begun) or not all(0 <= vertex < vertices for vertex in begun):
            raise RangeError(f"starts are different vertices, got {begun}")
        if any(arc.delay == 0 and arc.target in set(begun) for arc in self.arcs):
            raise RangeError("nothing leads to a start within its frame")
        _ = self.junction_order

    @property
    def _ways(self) -> tuple[Arc | Start, ...]:
        return (*self.arcs, *self.starts)

    @cached_property
    def weights(self) -> int:
        """How many the arcs and starts speak of."""
        return 1 + max((each.weight for each in self._ways if each.weight is not None), default=-1)

    @cached_property
    def emissions(self) -> int:
        """Columns of the emissions."""
        return 1 + max((column for column in self.columns if column is not None), default=-1)

    @cached_property
    def junction_order(self) -> tuple[int, ...]:
        """The targets of arcs that take no time, each after its sources. Raises RangeError if they go in a circle."""
        before: dict[int, set[int]] = {}
        for arc in self.arcs:
            if arc.delay == 0:
                before.setdefault(arc.target, set()).add(arc.source)
        order: list[int] = []
        placed: set[int] = set()
        while len(order) < len(before):
            ready = sorted(v for v in before.keys() - placed if not (before[v] & before.keys()) - placed)
            if not ready:
                raise RangeError("junctions lead to one another in a circle, in no time")
            order += ready
            placed.update(ready)
        return tuple(order)

    def masks(self, rules: tuple[Rule, ...], frame: int) -> tuple[int, int]:
        """Which bits of a token's fields an arc keeps, and what it sets the others to, at a frame."""
        keep = put = shift = 0
        for bits, rule in zip(self.fields, rules or (KEEP,) * len(self.fields), strict=True):
            if rule.kind is Set.KEEP:
                keep |= ((1 << bits) - 1) << shift
            put |= rule.at(frame, bits) << shift
            shift += bits
        return keep, put
