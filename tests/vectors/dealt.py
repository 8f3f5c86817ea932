"""Two engines whose correlations are written down, and a program that both run: what the client sends and gets."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ppspeech.arrays import Bytes, Residues
from ppspeech.channel import Channel
from ppspeech.crypto.packing import Numbers
from ppspeech.crypto.shares import Cost, ShareEngine
from ppspeech.crypto.shares.correlations import Asked, Offered, Products
from ppspeech.crypto.shares.cost import TableShape
from ppspeech.crypto.transfer.setup import Side
from ppspeech.network import run_together
from tests.vectors.drawn import drawn

HOW = {
    "choices": "of tables of b bits and width w: SHAKE-128 of 'choices b,w', a byte each, of which b bits count",
    "pads": "of these tables: SHAKE-128 of 'pads b,w', 8 bytes each, of which w bits count",
    "bits": "of products: SHAKE-128 of 'bits', a byte each, of which one bit counts",
    "got, zero, one": "of products: SHAKE-128 of 'got', 'zero' and 'one', 8 bytes each",
}
"""Whence the client's correlations are."""


def _words(label: str, count: int) -> Residues:
    return np.frombuffer(drawn(label, 8 * count), "<u8").astype(np.uint64)


class Dealt:
    """One party's correlations, each used once, in order: the server's fit those of the client."""

    def __init__(self, cost: Cost, party: Side) -> None:
        self._party = party
        self._used: dict[TableShape | None, int] = {}
        self._counts: dict[TableShape | None, int] = {**cost.tables, None: cost.products}

    def take_offered(self, shape: TableShape, count: int) -> Offered:
        part, (choices, pads) = self._part(shape, count), self._asked(shape)
        total, kind = self._counts[shape], pads.dtype
        every = _words(f"other pads {shape.bits},{shape.width}", total << shape.bits).reshape(total, -1)
        every = (every & np.uint64((1 << shape.width) - 1)).astype(kind)
        every[np.arange(total), choices] = pads
        masks = _words(f"masks {shape.bits},{shape.width}", total) & np.uint64((1 << shape.width) - 1)
        return Offered(every[part], masks.astype(kind)[part])

    def take_asked(self, shape: TableShape, count: int) -> Asked:
        part, (choices, pads) = self._part(shape, count), self._asked(shape)
        return Asked(choices[part], pads[part])

    def take_products(self, count: int) -> Products:
        part, total = self._part(None, count), self._counts[None]
        ours, theirs = (np.frombuffer(drawn(label, total), np.uint8) & 1 for label in ("bits", "other bits"))
        got, zero, one, rest = (_words(label, total) for label in ("got", "zero", "one", "other got"))
        if self._party is Side.SECOND:
            return Products(ours[part], got[part], zero[part], (one - zero)[part])
        zeros, ones = np.where(ours == 0, got, rest), np.where(ours == 1, got, rest)
        return Products(theirs[part], np.where(theirs == 1, one, zero)[part], zeros[part], (ones - zeros)[part])

    def _asked(self, shape: TableShape) -> tuple[Bytes, Numbers]:
        bits, width = shape
        total = self._counts[shape]
        choices = np.frombuffer(drawn(f"choices {bits},{width}", total), np.uint8) & ((1 << bits) - 1)
        pads = _words(f"pads {bits},{width}", total) & np.uint64((1 << width) - 1)
        return choices, pads.astype(np.uint8) if width <= 8 else pads

    def _part(self, what: TableShape | None, count: int) -> slice:
        at = self._used.get(what, 0)
        self._used[what] = at + count
        assert at + count <= self._counts[what]
        return slice(at, at + count)


class _Engine(ShareEngine):
    def __init__(self, channel: Channel, party: Side, cost: Cost) -> None:
        self.channel, self.party, self.correlations = channel, party, Dealt(cost, party)


class _Noted:
    """A channel that keeps what passes."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.sent: list[str] = []
        self.received: list[str] = []

    def send(self, kind: int, payload: Any) -> None:
        self.sent.append(bytes(payload).hex())
        self._channel.send(kind, payload)

    def receive(self, kind: int, size: int | None = None, *, at_most: int | None = None) -> bytes:
        found = self._channel.receive(kind, size, at_most=at_most)
        self.received.append(found.hex())
        return found


def transcript(
    cost: Cost, client: Callable[[ShareEngine], Any], server: Callable[[ShareEngine], Any]
) -> tuple[Any, list[str], list[str]]:
    """What the client's program gives, and the payloads that it sent and received."""
    noted: list[_Noted] = []

    def ask(channel: Channel) -> Any:
        noted.append(_Noted(channel))
        return client(_Engine(cast(Channel, noted[0]), Side.SECOND, cost))

    found, _ = run_together(ask, lambda channel: server(_Engine(channel, Side.FIRST, cost)))
    return found, noted[0].sent, noted[0].received
