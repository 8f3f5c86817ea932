"""Correlations that a test deals to both parties instead of their transfers, so that it can try every value of each.

A dealer plays `inputs` x `values` runs of one program at once. All randomness is drawn once for every input and stays
the same over the values, except for one variable, which takes every value. From what the parties sent each other it
reads back what the viewer sees, piece by piece in the order of time:

    the first party    choices asked for, blinded                      fresh: the transfer's choice ρ
    the second party   entries opened                                  fresh: the table's mask
    both               the bit and the residue of a product's message  fresh: the peer's choice; the message of the
                                                                       peer's transfer that the viewer did not get

If each piece takes each value exactly once while its own fresh variable does, and no piece before it moves, then all
pieces together are exactly uniform, for that input: the view could be drawn without it. Entries that are not opened
each lie under a pad of their own, which the viewer does not have
(`test_a_table_hides_all_entries_but_the_one_asked_for`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.packing import packed_bytes, unpack_numbers
from ppspeech.crypto.randomness import uniform_bytes, uniform_residues
from ppspeech.crypto.shares.correlations import Asked, Offered, Products
from ppspeech.crypto.shares.cost import TableShape
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.transfer.setup import Side
from ppspeech.network import Transcript, run_together


class Piece(NamedTuple):
    """One thing a party sees: what it is, of which table or product, its bits, and its values."""

    name: str
    take: int
    bits: int
    values: np.ndarray


@dataclass
class Dealer:
    """Deals to both parties of a program. `width`: bits of the ring of its products. `draw`: values of a variable, by
    its name, the number of the table or product it belongs to, how many, and their bits."""

    viewer: Side
    width: int
    draw: Callable[[str, int, int, int], np.ndarray]
    tables: list[tuple[TableShape, dict[str, np.ndarray]]] = field(default_factory=list)
    products: list[dict[str, np.ndarray]] = field(default_factory=list)
    lock: Any = field(default_factory=Lock)

    def table(self, take: int, shape: TableShape, count: int) -> dict[str, np.ndarray]:
        with self.lock:
            if take == len(self.tables):
                kind = np.uint8 if shape.width <= 8 else np.uint64
                pads = _pads(count, shape)
                choices = self.draw("choice", take, count, shape.bits).astype(np.uint8)
                pads[np.arange(count), choices] = self.draw("pad", take, count, shape.width)
                masks = self.draw("mask", take, count, shape.width)
                self.tables.append((shape, {"choice": choices, "mask": masks.astype(kind), "pads": pads.astype(kind)}))
            return self.tables[take][1]

    def product(self, take: int, count: int) -> dict[str, np.ndarray]:
        """Two transfers a product. The viewer's own stays as drawn; of the peer's it has the one that it chose."""
        with self.lock:
            if take == len(self.products):
                bits = [self.draw(f"bit {side}", take, count, 1).astype(np.uint8) for side in Side]
                own = [self.draw(f"own {choice}", take, count, self.width) for choice in (0, 1)]
                got, other = (self.draw(name, take, count, self.width) for name in ("got", "other"))
                chose = bits[self.viewer].astype(bool)
                pairs = {self.viewer: own, 1 - self.viewer: [np.where(chose, other, got), np.where(chose, got, other)]}
                self.products.append(
                    {"bits": np.stack(bits), **{f"pair {side}": np.stack(pairs[side]) for side in Side}}
                )
            return self.products[take]


def _pads(count: int, shape: TableShape) -> np.ndarray:
    if shape.width > 8:
        return uniform_residues((count, 1 << shape.bits), shape.width)
    drawn = np.frombuffer(uniform_bytes(count << shape.bits), np.uint8).reshape(count, -1)
    return drawn & np.uint8((1 << shape.width) - 1)


class Half:
    """One party's end of a dealer: a `Supply`."""

    def __init__(self, dealer: Dealer, side: Side) -> None:
        self.dealer, self.side = dealer, side
        self.tables = self.products = 0

    def _table(self, shape: TableShape, count: int) -> dict[str, np.ndarray]:
        self.tables += 1
        return self.dealer.table(self.tables - 1, shape, count)

    def take_offered(self, shape: TableShape, count: int) -> Offered:
        dealt = self._table(shape, count)
        return Offered(dealt["pads"], dealt["mask"])

    def take_asked(self, shape: TableShape, count: int) -> Asked:
        dealt = self._table(shape, count)
        return Asked(dealt["choice"], dealt["pads"][np.arange(count), dealt["choice"]])

    def take_products(self, count: int) -> Products:
        self.products += 1
        dealt = self.dealer.product(self.products - 1, count)
        zero, one = dealt[f"pair {self.side}"]
        bits = dealt["bits"][self.side]
        got = dealt[f"pair {1 - self.side}"][bits, np.arange(count)]
        return Products(bits, got, zero, one - zero)


def play(dealer: Dealer, program: Callable[[ShareEngine, Side], object]) -> list[Piece]:
    """Run a program as both parties on what a dealer deals: the pieces its viewer sees."""
    records: dict[Side, Transcript] = {}

    def party(channel: object, side: Side) -> None:
        engine = ShareEngine.__new__(ShareEngine)
        engine.party, engine.correlations = side, Half(dealer, side)
        engine.channel = records[side] = Transcript(channel, keep_payloads=True)
        program(engine, side)

    run_together(lambda c: party(c, Side.FIRST), lambda c: party(c, Side.SECOND))
    return list(_pieces(dealer, records[dealer.viewer]))


def _pieces(dealer: Dealer, record: Transcript) -> Any:
    waiting, asked, answered, product = list(enumerate(dealer.tables)), [], 0, 0
    for entry in record.entries:
        data = entry.payload or b""
        if entry.kind == Kind.ASK:
            while data:
                take, (shape, dealt) = waiting.pop(0)
                count = len(dealt["choice"])
                size = packed_bytes(count, shape.bits)
                flips = unpack_numbers(data[:size], count, shape.bits).astype(np.uint8)
                asked.append((take, shape, dealt, flips))
                data = data[size:]
                if dealer.viewer is Side.FIRST:
                    yield Piece("choice", take, shape.bits, flips)
        elif entry.kind == Kind.TABLES and dealer.viewer is Side.SECOND:
            while data:
                take, shape, dealt, flips = asked[answered]
                answered += 1
                count = len(flips)
                size = packed_bytes(count << shape.bits, shape.width)
                stored = shape.width if shape.width <= 8 else 8 * -(-shape.width // 8)
                entries = unpack_numbers(data[:size], count << shape.bits, stored).reshape(count, -1)
                every = np.arange(count)
                opened = entries[every, flips ^ dealt["choice"]].astype(np.uint64)
                opened ^= dealt["pads"][every, dealt["choice"]].astype(np.uint64)
                data = data[size:]
                yield Piece("mask", take, shape.width, opened)
        elif entry.kind == Kind.PRODUCT and entry.direction == "received":
            size = -(-(dealer.width + 1) // 8)
            words = unpack_numbers(data, len(data) // size, 8 * size).astype(np.uint64)
            yield Piece(f"bit {1 - dealer.viewer}", product, 1, words >> np.uint64(dealer.width))
            yield Piece("other", product, dealer.width, words & np.uint64((1 << dealer.width) - 1))
            product += 1
