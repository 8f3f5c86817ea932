"""Additive shares between two parties: bringing inputs in, and giving results to whoever is named."""

import numpy as np

from ppspeech.arrays import Bits, Residues
from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.packing import pack_numbers, packed_bytes, unpack_numbers
from ppspeech.crypto.shares.cost import Cost
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.transfer.setup import Side


def give_shares(channel: Channel, residues: Residues, ring: Ring) -> Residues:
    """Share our residues with the peer, which calls `take_shares`: it gets uniform residues; ours are returned."""
    own, other = ring.share(ring.reduce(residues))
    channel.send(Kind.SHARES, pack_numbers(other.reshape(-1), ring.bits))
    return own


def take_shares(channel: Channel, shape: int | tuple[int, ...], ring: Ring) -> Residues:
    """Our shares of the residues that the peer gives with `give_shares`."""
    count = int(np.prod(shape, dtype=np.int64))
    data = channel.receive(Kind.SHARES, packed_bytes(count, ring.bits))
    return unpack_numbers(data, count, ring.bits).astype(np.uint64).reshape(shape)


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


def open_cost(receiver: Side, ring: Ring, count: int) -> Cost:
    """`open_to` of `count` residues; bits are residues of `Ring(1)`."""
    size = packed_bytes(count, ring.bits)
    if receiver == Side.FIRST:
        return Cost(bytes_second=size, directions="s")
    return Cost(bytes_first=size, directions="r")
