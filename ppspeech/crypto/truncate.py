"""Fewer bits, or more, of shared words."""

import numpy as np
from numpy.typing import NDArray

from ppspeech.crypto.bits import bit_words, from_bits_cost
from ppspeech.crypto.compare import carry, carry_cost
from ppspeech.crypto.engine import ShareEngine
from ppspeech.crypto.fixed_point import Ring
from ppspeech.crypto.select import check_ring
from ppspeech.crypto.share_cost import Cost
from ppspeech.errors import RangeError

Words = NDArray[np.uint64]


def truncate_local(words: Words, ring: Ring, bits: int) -> Words:
    """Drop the low `bits` of our own share: shares of ⌊x / 2^bits⌋ or one less, in the ring of `ring.bits - bits`.

    One less than the lowest word is the highest: keep values a step away from it.
    """
    _check_drop(ring, bits)
    return ring.reduce(words) >> np.uint64(bits)


def truncate(engine: ShareEngine, words: Words, ring: Ring, bits: int) -> Words:
    """Shares of ⌊x / 2^bits⌋ exactly, in the ring of `ring.bits - bits`: signed words stay signed."""
    _check_drop(ring, bits)
    if bits == 0:
        return words
    carried = carry(engine, words & np.uint64((1 << bits) - 1), bits)
    kept = Ring(ring.bits - bits)
    return kept.reduce((words >> np.uint64(bits)) + bit_words(engine, carried, kept))


def truncate_cost(ring: Ring, bits: int, count: int) -> Cost:
    """`truncate` of `count` words."""
    if bits == 0:
        return Cost()
    return carry_cost(bits, count) + from_bits_cost(Ring(ring.bits - bits), count, 1)


def extend(engine: ShareEngine, words: Words, ring: Ring, wider: Ring) -> Words:
    """Shares of the same signed words in a wider ring.

    Moved up by 2^(bits - 1) the words are not negative, and their shares add up to them, or to 2^bits more.
    """
    check_ring(wider)
    if wider.bits < ring.bits or ring.bits > 60:
        raise RangeError(
            f"words of up to 60 bits are extended to rings that are wider, got {ring.bits} to {wider.bits}"
        )
    half = np.uint64(1 << (ring.bits - 1))
    moved = ring.reduce(words + half if engine.is_first else words)
    wrapped = bit_words(engine, carry(engine, moved, ring.bits), wider)
    lifted = moved - (wrapped << np.uint64(ring.bits))
    return wider.reduce(lifted - half if engine.is_first else lifted)


def extend_cost(ring: Ring, wider: Ring, count: int) -> Cost:
    """`extend` of `count` words."""
    return carry_cost(ring.bits, count) + from_bits_cost(wider, count, 1)


def _check_drop(ring: Ring, bits: int) -> None:
    check_ring(ring)
    if not 0 <= bits < ring.bits:
        raise RangeError(f"0 to {ring.bits - 1} bits can be dropped from {ring.bits}, got {bits}")
