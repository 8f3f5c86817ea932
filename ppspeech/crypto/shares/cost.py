"""What operations on shares cost: correlations, bytes and messages, from public sizes alone."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from ppspeech.crypto.transfer.codes import WalshHadamard
from ppspeech.crypto.transfer.extension import Code


class TableShape(NamedTuple):
    """A table that one party offers and the other looks up in: 1 to 8 bits of index, entries of 1 to 64 bits."""

    bits: int
    width: int


@dataclass(frozen=True)
class Cost:
    """The cost of a batch of operations; costs add up, and multiply by a number of repetitions.

    Attributes:
        tables: how many tables of each shape are looked up in.
        products: how many shared bits are multiplied by shared residues.
        bytes_first: payload the first party sends online.
        bytes_second: payload the second party sends online.
        directions: the messages online in order, as the second party sees them: `s` sent, `r` received.
    """

    tables: dict[TableShape, int] = field(default_factory=dict)
    products: int = 0
    bytes_first: int = 0
    bytes_second: int = 0
    directions: str = ""

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            dict(Counter(self.tables) + Counter(other.tables)),
            self.products + other.products,
            self.bytes_first + other.bytes_first,
            self.bytes_second + other.bytes_second,
            self.directions + other.directions,
        )

    def __mul__(self, times: int) -> "Cost":
        return Cost(
            {shape: count * times for shape, count in self.tables.items()},
            self.products * times,
            self.bytes_first * times,
            self.bytes_second * times,
            self.directions * times,
        )

    @property
    def messages(self) -> int:
        """How many messages online, both ways."""
        return len(self.directions)

    @property
    def rounds(self) -> int:
        """How often the second party waits online: each a round trip."""
        return ("s" + self.directions).count("sr")

    @property
    def online_bytes(self) -> int:
        """Payload online, both ways."""
        return self.bytes_first + self.bytes_second

    @property
    def offline_bytes_first(self) -> int:
        """Payload the first party sends while correlations are prepared."""
        return Code.total_bytes(self.products)

    @property
    def offline_bytes_second(self) -> int:
        """Payload the second party sends while correlations are prepared."""
        return self.offline_bytes_first + WalshHadamard.total_bytes(sum(self.tables.values()))

    @property
    def total_bytes(self) -> int:
        """All payload, offline and online, both ways."""
        return self.online_bytes + self.offline_bytes_first + self.offline_bytes_second
