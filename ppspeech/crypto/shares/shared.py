"""Shares that know their ring and their engine, so that a program on them reads as the mathematics it computes.

    maximum(left, right) = right + (left >= right) * (left - right)

Sums and differences are each party's own; `>=`, `<`, products with bits, `&` and `open_to` talk to the other party, and
both parties must do them alike and in the same order. Nothing is copied to be wrapped: an array's share is the array.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppspeech.arrays import Bits, Residues
from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.packing import pack_numbers, packed_bytes, unpack_numbers
from ppspeech.crypto.randomness import uniform_residues
from ppspeech.crypto.shares.compare import is_negative
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.select import multiply_bit
from ppspeech.crypto.transfer.setup import Side
from ppspeech.errors import RangeError


@dataclass(slots=True, eq=False)  # never changed, but not frozen: a recursion makes thousands, and freezing doubles it
class Shared:
    """Residues of any shape that two parties share: the sum mod 2^k of what each holds. `own`: our share, `uint64`.
    Bits above those of the ring mean nothing; `residues` is without them.
    """

    engine: ShareEngine
    own: Residues
    ring: Ring

    @property
    def residues(self) -> Residues:
        """Our share mod 2^k."""
        return self.ring.reduce(self.own)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array."""
        return self.own.shape

    def __add__(self, other: "Shared") -> "Shared":
        return Shared(self.engine, self.own + self._beside(other), self.ring)

    def __sub__(self, other: "Shared") -> "Shared":
        return Shared(self.engine, self.own - self._beside(other), self.ring)

    def __neg__(self) -> "Shared":
        return Shared(self.engine, np.uint64(0) - self.own, self.ring)

    def __rmul__(self, factor: int) -> "Shared":
        """Times a whole number that both know."""
        return Shared(self.engine, self.own * np.uint64(factor), self.ring)

    def __lt__(self, other: "Shared") -> "SharedBits":
        """[self < other]; the residues must differ by less than 2^(bits - 1), or the comparison wraps around."""
        return (self - other).is_negative()

    def __ge__(self, other: "Shared") -> "SharedBits":
        """[self >= other]; the residues must differ by less than 2^(bits - 1), or the comparison wraps around."""
        return ~(self < other)

    def is_negative(self) -> "SharedBits":
        """[self < 0], for signed residues."""
        negative = is_negative(self.engine, self.own.reshape(-1), self.ring)
        return SharedBits(self.engine, negative.reshape(self.own.shape))

    def __getitem__(self, index: Any) -> "Shared":
        return Shared(self.engine, self.own[index], self.ring)

    def __len__(self) -> int:
        return len(self.own)

    def reshape(self, *shape: int) -> "Shared":
        """The same residues in another shape."""
        return Shared(self.engine, self.own.reshape(shape), self.ring)

    def sum(self, axis: int) -> "Shared":
        """Sums along an axis."""
        return Shared(self.engine, self.own.sum(axis=axis, dtype=np.uint64), self.ring)

    def in_ring(self, ring: Ring) -> "Shared":
        """The same shares mod another power of two: shares of the same residues mod the smaller of the two."""
        return Shared(self.engine, self.residues, ring)

    def open_to(self, receiver: Side) -> Residues | None:
        """The residues, to `receiver`; None for the other party."""
        return open_to(self.engine, receiver, self.residues, self.ring)

    def _beside(self, other: "Shared") -> Residues:
        if other.ring != self.ring:
            raise RangeError(f"shares of {self.ring.bits} bits and of {other.ring.bits} do not add up: extend them")
        return other.own


@dataclass(slots=True, eq=False)
class SharedBits:
    """Bits of any shape, each the exclusive or of what two parties hold. `own`: our share, `uint8`, 0 or 1."""

    engine: ShareEngine
    own: Bits

    def __invert__(self) -> "SharedBits":
        return SharedBits(self.engine, self.engine.flip(self.own))

    def __mul__(self, value: Shared) -> Shared:
        """The residues where the bit is 1, else 0; bits and residues are broadcast against each other."""
        bits, residues = self.own, value.own
        if bits.shape != residues.shape:
            shape = np.broadcast_shapes(bits.shape, residues.shape)
            bits, residues = np.broadcast_to(bits, shape).copy(), np.broadcast_to(residues, shape).copy()
        product = multiply_bit(self.engine, bits.reshape(-1), residues.reshape(-1), value.ring)
        return Shared(self.engine, product.reshape(bits.shape), value.ring)

    def __and__(self, other: "SharedBits") -> "SharedBits":
        both = self * Shared(self.engine, other.own.astype(np.uint64), Ring(1))
        return SharedBits(self.engine, both.own.astype(np.uint8))

    def __getitem__(self, index: Any) -> "SharedBits":
        return SharedBits(self.engine, self.own[index])

    def open_to(self, receiver: Side) -> Bits | None:
        """The bits, to `receiver`; None for the other party."""
        return open_bits_to(self.engine, receiver, self.own)


def share_input(engine: ShareEngine, owner: Side, values: Residues | None, shape: Sequence[int], ring: Ring) -> Shared:
    """Shares of what one party knows: its share is the value, the other's is zero. Nothing is sent. `values`: residues,
    of the owner; None for the other party. Raises RangeError if the owner has none, the other party has some, or they
    are of another shape.
    """
    if (values is None) == (engine.party is owner):
        raise RangeError(f"the {owner.name.lower()} party has these values, and nobody else")
    if values is None:
        return Shared(engine, np.zeros(shape, np.uint64), ring)
    if values.shape != tuple(shape):
        raise RangeError(f"values of shape {tuple(shape)} were agreed on, got {values.shape}")
    return Shared(engine, values, ring)


def concatenate(parts: Sequence[Shared], axis: int = 0) -> Shared:
    """Shared arrays of one ring, one after the other."""
    first = parts[0]
    return Shared(first.engine, np.concatenate([first._beside(part) for part in parts], axis), first.ring)


def maximum(left: Shared, right: Shared) -> Shared:
    """The larger residues; the two must differ by less than 2^(bits - 1)."""
    difference = left - right
    return right + ~difference.is_negative() * difference


def minimum(left: Shared, right: Shared) -> Shared:
    """The smaller residues; the two must differ by less than 2^(bits - 1)."""
    difference = left - right
    return right + difference.is_negative() * difference


def select(bits: SharedBits, ones: Shared, zeros: Shared) -> Shared:
    """`ones` where the bit is 1, `zeros` where it is 0."""
    return zeros + bits * (ones - zeros)


def open_to(engine: ShareEngine, receiver: Side, residues: Residues, ring: Ring) -> Residues | None:
    """Give `receiver` the shared residues; None for the other party."""
    if engine.party != receiver:
        engine.channel.send(Kind.OPEN, pack_numbers(residues.reshape(-1), ring.bits))
        return None
    data = engine.channel.receive(Kind.OPEN, packed_bytes(residues.size, ring.bits))
    other = unpack_numbers(data, residues.size, ring.bits).astype(np.uint64).reshape(residues.shape)
    return ring.join(residues, other)


def open_bits_to(engine: ShareEngine, receiver: Side, bits: Bits) -> Bits | None:
    """Give `receiver` the shared bits; None for the other party."""
    opened = open_to(engine, receiver, bits.astype(np.uint64), Ring(1))
    return None if opened is None else opened.astype(np.uint8)


def share_among(
    channels: Mapping[int, Channel], own: int, residues: Residues, ring: Ring, receivers: Collection[int]
) -> Residues | None:
    """Additive shares, among the parties named, of the sum of any number of parties' residues; None for the others. A
    missing party ends the sum: no partial result.

    Every party cuts its residues into one share for each receiver; a receiver adds up what it gets. Whoever lacks the
    share of one receiver has uniform residues. Raises RangeError if a receiver is no party, or there is one alone, who
    would get everyone's residues, ProtocolError if a party is missing.
    """
    if set(receivers) - set(channels) - {own} or not receivers:
        raise RangeError(f"receivers must be parties, and at least one; got {sorted(receivers)}")
    named = sorted(receivers)
    if len(named) < 2:
        raise RangeError("shares need two receivers or more: one alone would get everyone's residues")
    parts = uniform_residues((len(named), len(residues)), ring.bits)
    parts[-1] = ring.reduce(residues - parts[:-1].sum(axis=0, dtype=np.uint64))
    for receiver, part in zip(named, parts, strict=True):
        if receiver != own:
            channels[receiver].send(Kind.SHARES, pack_numbers(part, ring.bits))
    if own not in receivers:
        return None
    count, total = len(residues), parts[named.index(own)]
    for _, channel in sorted(channels.items()):
        received = channel.receive(Kind.SHARES, packed_bytes(count, ring.bits))
        total = total + unpack_numbers(received, count, ring.bits).astype(np.uint64)
    return ring.reduce(total)
