"""What a program on shares costs, by running it on nothing.

A party program's messages depend on public sizes alone. So its cost is found by running it against a peer that is not
there: every message is counted and answered with zeros, every correlation is counted and made of zeros. What the
program computes on the way means nothing; which correlations it takes, and which messages it exchanges in which order,
is what the two parties will take and exchange.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto.shares.correlations import Asked, Offered, Products
from ppspeech.crypto.shares.cost import Cost, TableShape
from ppspeech.crypto.shares.engine import HEADER, ROOM, ShareEngine
from ppspeech.crypto.transfer.setup import Side
from ppspeech.errors import RangeError

MOST = 2**24
"""Residues a program is recorded on: sizes may be a peer's, and nothing is allocated beyond this."""


def record(program: Callable[[ShareEngine], object], side: Side = Side.SECOND) -> Cost:
    """The cost of a program, from a run of one party on zeros. `program`: one party's, of an engine; its inputs are
    `blank`, or whatever else has the right shape. `side`: whose program it is. Both sides' programs cost the same; the
    second's run is the shorter.

    >>> from ppspeech.crypto.numbers import Ring
    >>> from ppspeech.crypto.shares.compare import is_negative
    >>> cost = record(lambda engine: is_negative(engine, blank(50), Ring(21)))
    >>> cost.rounds, cost.online_bytes
    (2, 2569)
    """
    recorder = Recorder(side)
    program(recorder)
    return recorder.cost


def blank(*shape: int) -> Residues:
    """Zeros for a program to be recorded on, in place of its input. Raises RangeError for more than 2^24 of them: a run
    on that many takes seconds, and megabytes by the hundred.
    """
    count = prod(shape)
    if count > MOST:
        raise RangeError(f"costs are known for inputs of up to {MOST:,} residues, got {count:,}: use smaller sizes")
    return np.zeros(shape, np.uint64)


class BlankChannel:
    """A channel to nobody: what is sent (`s` in `order`) is counted, what is asked for (`r`) comes as zeros."""

    def __init__(self) -> None:
        self.sent = 0
        self.received = 0
        self.order: list[str] = []
        self._in_flights = False
        self._flight = 0

    def send(self, kind: int, payload: bytes | bytearray | memoryview) -> None:  # noqa: ARG002
        """Count one message."""
        self.sent += self._count("s", len(payload))

    def receive(self, kind: int, size: int | None = None, *, at_most: int | None = None) -> bytes:  # noqa: ARG002
        """Count one message; zeros, as many as may come."""
        size = size if size is not None else at_most
        if size is None:
            raise ValueError("give either size or at_most")
        self.received += self._count("r", size)
        return bytes(size)

    @contextmanager
    def in_flights(self) -> Iterator[None]:
        """Count as a `FlightChannel` sends: messages of one direction in one frame, as far as it has room."""
        self._in_flights, self._flight = True, 0
        yield
        self._in_flights = False

    def _count(self, direction: str, size: int) -> int:
        if not self._in_flights:
            self.order.append(direction)
            return size
        size += HEADER.size
        if not self._flight or self.order[-1] != direction or self._flight + size > ROOM:
            self.order.append(direction)
            self._flight = 0
        self._flight += size
        return size


class Recorder(ShareEngine):
    """A share engine with nobody at the other end, and nothing prepared: correlations are counted, and all zeros."""

    def __init__(self, side: Side) -> None:
        self.channel = self._counted = BlankChannel()
        self.party = side
        self.correlations = self
        self._tables: Counter[TableShape] = Counter()
        self._products = 0

    @contextmanager
    def in_flights(self) -> Iterator[None]:
        """Count as an engine sends in flights."""
        with self._counted.in_flights():
            yield

    def take_offered(self, shape: TableShape, count: int) -> Offered:
        """As `Correlations.take_offered`."""
        self._tables[shape] += count
        return Offered(np.zeros((count, 1 << shape.bits), _dtype(shape)), np.zeros(count, _dtype(shape)))

    def take_asked(self, shape: TableShape, count: int) -> Asked:
        """As `Correlations.take_asked`."""
        self._tables[shape] += count
        return Asked(np.zeros(count, np.uint8), np.zeros(count, _dtype(shape)))

    def take_products(self, count: int) -> Products:
        """As `Correlations.take_products`."""
        self._products += count
        zeros = np.zeros(count, np.uint64)
        return Products(np.zeros(count, np.uint8), zeros, zeros, zeros)

    def __repr__(self) -> str:
        return f"Recorder({self.party.name})"

    @property
    def cost(self) -> Cost:
        """Of all that was done with this engine."""
        tables, seen, order = dict(+self._tables), self._counted, "".join(self._counted.order)
        if self.is_first:
            order = order.translate(str.maketrans("sr", "rs"))
            return Cost(tables, self._products, seen.sent, seen.received, order)
        return Cost(tables, self._products, seen.received, seen.sent, order)


def _dtype(shape: TableShape) -> type[np.uint8] | type[np.uint64]:
    return np.uint8 if shape.width <= 8 else np.uint64
