"""What one party sent and received: for tests, for cost tables, and to show people what the other side saw."""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from rich.table import Table

from ppspeech.channel import Channel


@dataclass(frozen=True, slots=True)
class Entry:
    """One message. `direction`: `sent` or `received`, as seen from the party that records. `size`: of its payload, in
    bytes; a frame adds 28. `seconds`: since the transcript began. `payload`: its bytes, where they are kept.
    """

    direction: Literal["sent", "received"]
    kind: int
    size: int
    seconds: float
    payload: bytes | None = field(default=None, repr=False)


class Transcript:
    """A channel that writes down what it passes on; payloads are what a corrupt party would have: not for logs.

    `told`: called with every message, once it has passed.
    """

    def __init__(
        self, channel: Channel, *, keep_payloads: bool = False, told: Callable[[Entry], None] | None = None
    ) -> None:
        self.entries: list[Entry] = []
        self._channel = channel
        self._keep, self._told = keep_payloads, told
        self._start = time.perf_counter()

    def send(self, kind: int, payload: bytes | bytearray | memoryview) -> None:
        """Send one message; see `Channel.send`."""
        self._channel.send(kind, payload)
        self._record("sent", kind, payload)

    def receive(self, kind: int, size: int | None = None, *, at_most: int | None = None) -> bytes:
        """Wait for the next message; see `Channel.receive`."""
        payload = self._channel.receive(kind, size, at_most=at_most)
        self._record("received", kind, payload)
        return payload

    @property
    def bytes_up(self) -> int:
        """Bytes of payload sent."""
        return sum(entry.size for entry in self.entries if entry.direction == "sent")

    @property
    def bytes_down(self) -> int:
        """Bytes of payload received."""
        return sum(entry.size for entry in self.entries if entry.direction == "received")

    @property
    def messages(self) -> int:
        """How many messages, in both directions."""
        return len(self.entries)

    @property
    def rounds(self) -> int:
        """How often this party waited for the other: the changes of direction towards it, each a round trip.

        A request and its answer are one round, and so is an exchange where both send and then both receive; several
        messages in one direction come at the price of one.
        """
        directions = ["sent", *(entry.direction for entry in self.entries)]
        return sum(before == "sent" and now == "received" for before, now in itertools.pairwise(directions))

    def shape(self) -> list[tuple[str, int, int]]:
        """Direction, kind and size of each message: what must not depend on anybody's secret."""
        return [(entry.direction, entry.kind, entry.size) for entry in self.entries]

    def received(self) -> dict[int, tuple[int, int]]:
        """By kind: how many messages came, and their bytes."""
        sizes: dict[int, list[int]] = {}
        for entry in self.entries:
            if entry.direction == "received":
                sizes.setdefault(entry.kind, []).append(entry.size)
        return {kind: (len(each), sum(each)) for kind, each in sizes.items()}

    def table(self, kinds: dict[int, str] | None = None) -> Table:
        """A table for people: runs of messages of one kind and direction in one line, and the totals."""
        table = Table(title="What went over the wire", show_footer=True)
        table.add_column("step", "", justify="right")
        table.add_column("direction", f"{self.rounds} rounds")
        table.add_column("kind", "")
        table.add_column("messages", f"{self.messages:,}", justify="right")
        table.add_column("bytes", f"{self.bytes_up:,} up\n{self.bytes_down:,} down", justify="right")
        table.add_column("at", "", justify="right")
        runs = itertools.groupby(self.entries, key=lambda entry: (entry.direction, entry.kind))
        for step, (_, entries) in enumerate(runs, start=1):
            run = list(entries)
            last = run[-1]
            arrow = "→ sent" if last.direction == "sent" else "← received"
            name = (kinds or {}).get(last.kind, str(last.kind))
            size = sum(entry.size for entry in run)
            table.add_row(str(step), arrow, name, f"{len(run):,}", f"{size:,}", f"{last.seconds * 1000:.1f} ms")
        return table

    def _record(
        self, direction: Literal["sent", "received"], kind: int, payload: bytes | bytearray | memoryview
    ) -> None:
        size = payload.nbytes if isinstance(payload, memoryview) else len(payload)
        kept = bytes(payload) if self._keep else None
        self.entries.append(Entry(direction, int(kind), size, time.perf_counter() - self._start, kept))
        if self._told is not None:
            self._told(self.entries[-1])
