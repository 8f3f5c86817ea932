"""Additive shares between two parties: bringing inputs in, and giving results to whoever is named."""

import numpy as np
from numpy.typing import NDArray

from ppspeech.channel import Channel
from ppspeech.crypto.bit_packing import pack_numbers, packed_bytes, unpack_numbers
from ppspeech.crypto.engine import ShareEngine
from ppspeech.crypto.fixed_point import Ring
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.ot_state import Party
from ppspeech.crypto.share_cost import Cost

Words = NDArray[np.uint64]
Bits = NDArray[np.uint8]


def give_shares(channel: Channel, words: Words, ring: Ring) -> Words:
    """Share our words with the peer, which calls `take_shares`: it gets uniform words; ours are returned."""
    own, other = ring.share(ring.reduce(words))
    channel.send(Kind.SHARES, pack_numbers(other.reshape(-1), ring.bits))
    return own


def take_shares(channel: Channel, shape: int | tuple[int, ...], ring: Ring) -> Words:
    """Our shares of the words that the peer gives with `give_shares`."""
    count = int(np.prod(shape, dtype=np.int64))
    data = channel.receive(Kind.SHARES, packed_bytes(count, ring.bits))
    return unpack_numbers(data, count, ring.bits).astype(np.uint64).reshape(shape)


def open_to(engine: ShareEngine, receiver: Party, words: Words, ring: Ring) -> Words | None:
    """Give `receiver` the shared words; None for the other party."""
    if engine.party != receiver:
        engine.channel.send(Kind.OPEN, pack_numbers(words.reshape(-1), ring.bits))
        return None
    data = engine.channel.receive(Kind.OPEN, packed_bytes(words.size, ring.bits))
    other = unpack_numbers(data, words.size, ring.bits).astype(np.uint64).reshape(words.shape)
    return ring.join(words, other)


def open_bits_to(engine: ShareEngine, receiver: Party, bits: Bits) -> Bits | None:
    """Give `receiver` the shared bits; None for the other party."""
    opened = open_to(engine, receiver, bits.astype(np.uint64), Ring(1))
    return None if opened is None else opened.astype(np.uint8)


def open_cost(receiver: Party, ring: Ring, count: int) -> Cost:
    """`open_to` of `count` words; bits are words of `Ring(1)`."""
    size = packed_bytes(count, ring.bits)
    if receiver == Party.FIRST:
        return Cost(bytes_second=size, directions="s")
    return Cost(bytes_first=size, directions="r")
