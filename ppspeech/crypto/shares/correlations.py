"""The offline phase: random correlations, made before the inputs are known and each used exactly once."""

from dataclasses import dataclass
from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Bytes, Residues
from ppspeech.channel import Channel
from ppspeech.crypto.packing import Numbers
from ppspeech.crypto.randomness import uniform_residues
from ppspeech.crypto.shares.cost import Cost, TableShape
from ppspeech.crypto.transfer.codes import Batch, CodeSender
from ppspeech.crypto.transfer.setup import PairSetup
from ppspeech.errors import ProtocolError


@dataclass(slots=True, repr=False)
class Offered:
    """The first party's half of some tables: `pads` `(count, 2^bits)` hide the entries, `masks` are its shares."""

    pads: Numbers
    masks: Numbers


@dataclass(slots=True, repr=False)
class Asked:
    """The second party's half: random `choices` `(count,)` and the `pads` `(count,)` they open."""

    choices: Bytes
    pads: Numbers


@dataclass(slots=True, repr=False)
class Products:
    """For products of a shared bit and a shared residue: two random transfers, one each way.

    Attributes:
        bits: this party's choices in the transfers it receives.
        got: the residues they gave it.
        zero: the residues for choice 0 in the transfers it sends.
        step: the residues for choice 1, less those for choice 0.
    """

    bits: Bytes
    got: Residues
    zero: Residues
    step: Residues


class Supply(Protocol):
    """Where an engine takes correlations from: what was prepared, or a recorder's zeros."""

    def take_offered(self, shape: TableShape, count: int) -> Offered:
        """The first party's halves of the next `count` tables."""

    def take_asked(self, shape: TableShape, count: int) -> Asked:
        """The second party's halves of the next `count` tables."""

    def take_products(self, count: int) -> Products:
        """The next `count` products."""


class Correlations:
    """What one party prepared; `take_…` hands out every correlation once, in order.

    Both parties must take the same counts in the same order, as they do when they run the same operations.
    """

    def __init__(self, setup: PairSetup, channel: Channel, cost: Cost) -> None:
        """Prepare with the peer what `cost`, the same for both, needs; in a session, else ProtocolError."""
        setup.check_in_use()
        self._setup = setup
        self._left = dict(cost.tables)
        self._products_left = cost.products
        self._tables: dict[TableShape, Offered | Asked] = {}
        batches = [Batch(shape.bits, shape.width, count) for shape, count in sorted(cost.tables.items())]
        if isinstance(setup.code, CodeSender):
            if cost.products:
                bits, got = _receive(setup, channel, cost.products)
            if batches:
                for batch, pads in zip(batches, setup.code.random(channel, batches), strict=True):
                    masks = uniform_residues(batch.count, batch.width).astype(pads.dtype)
                    self._tables[TableShape(batch.bits, batch.width)] = Offered(pads, masks)
            if cost.products:
                zero, one = setup.sender.random(channel, cost.products)
        else:
            if batches:
                for batch, (choices, own) in zip(batches, setup.code.random(channel, batches), strict=True):
                    self._tables[TableShape(batch.bits, batch.width)] = Asked(choices, own)
            if cost.products:
                bits, got = _receive(setup, channel, cost.products)
                zero, one = setup.sender.random(channel, cost.products)
        if cost.products:
            self._products = Products(bits.view(np.uint8), got, zero, one - zero)

    @property
    def left(self) -> Cost:
        """How many tables and products are left."""
        return Cost(tables={shape: count for shape, count in self._left.items() if count}, products=self._products_left)

    def take_offered(self, shape: TableShape, count: int) -> Offered:
        """The first party's halves of the next `count` tables."""
        tables, part = self._take(shape, count)
        if not isinstance(tables, Offered):
            raise ProtocolError("the second party looks up in tables, the first offers them")
        return Offered(tables.pads[part], tables.masks[part])

    def take_asked(self, shape: TableShape, count: int) -> Asked:
        """The second party's halves of the next `count` tables."""
        tables, part = self._take(shape, count)
        if not isinstance(tables, Asked):
            raise ProtocolError("the first party offers tables, the second looks up in them")
        return Asked(tables.choices[part], tables.pads[part])

    def take_products(self, count: int) -> Products:
        """The next `count` products."""
        self._setup.check_in_use()
        left = self._products_left
        if count > left:
            raise ProtocolError(f"{count} products are needed and {left} are left: prepare more, none is used twice")
        self._products_left = left - count
        own, at = self._products, len(self._products.bits) - left
        part = slice(at, at + count)
        return Products(own.bits[part], own.got[part], own.zero[part], own.step[part])

    def _take(self, shape: TableShape, count: int) -> tuple[Offered | Asked, slice]:
        self._setup.check_in_use()
        left = self._left.get(shape, 0)
        if count > left:
            raise ProtocolError(f"{count} of {shape} are needed and {left} are left: prepare more, none is used twice")
        self._left[shape] = left - count
        tables = self._tables[shape]
        at = len(tables.pads) - left
        return tables, slice(at, at + count)

    def __repr__(self) -> str:
        return f"Correlations(tables={sum(self._left.values())}, products={self._products_left})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("correlations are secret and used once: they cannot be pickled or copied")


def _receive(setup: PairSetup, channel: Channel, count: int) -> tuple[NDArray[np.bool_], Residues]:
    bits = uniform_residues(count, 1).astype(np.bool_)
    return bits, setup.receiver.random(channel, bits)
