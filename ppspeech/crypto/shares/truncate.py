"""Fewer bits, or more, of shared residues."""

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.shares.bits import bit_residues, from_bits_cost
from ppspeech.crypto.shares.compare import carry, carry_cost
from ppspeech.crypto.shares.cost import Cost
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.select import check_ring
from ppspeech.errors import RangeError


def truncate_local(residues: Residues, ring: Ring, bits: int) -> Residues:
    """Drop the low `bits` of our own share: shares of ⌊x / 2^bits⌋ or one less, in the ring of `ring.bits - bits`.

    One less than the lowest residue is the highest: keep values a step away from it.
    """
    _check_drop(ring, bits)
    return ring.reduce(residues) >> np.uint64(bits)


def truncate(engine: ShareEngine, residues: Residues, ring: Ring, bits: int) -> Residues:
    """Shares of ⌊x / 2^bits⌋ exactly, in the ring of `ring.bits - bits`: signed residues stay signed."""
    _check_drop(ring, bits)
    if bits == 0:
        return residues
    carried = carry(engine, residues & np.uint64((1 << bits) - 1), bits)
    kept = Ring(ring.bits - bits)
    return kept.reduce((residues >> np.uint64(bits)) + bit_residues(engine, carried, kept))


def truncate_cost(ring: Ring, bits: int, count: int) -> Cost:
    """`truncate` of `count` residues."""
    if bits == 0:
        return Cost()
    return carry_cost(bits, count) + from_bits_cost(Ring(ring.bits - bits), count, 1)


def extend(engine: ShareEngine, residues: Residues, ring: Ring, wider: Ring) -> Residues:
    """Shares of the same signed residues in a wider ring.

    Moved up by 2^(bits - 1) the residues are not negative, and their shares add up to them, or to 2^bits more.
    """
    check_ring(wider)
    if wider.bits < ring.bits or ring.bits > 60:
        raise RangeError(
            f"residues of up to 60 bits are extended to rings that are wider, got {ring.bits} to {wider.bits}"
        )
    half = np.uint64(1 << (ring.bits - 1))
    moved = ring.reduce(residues + half if engine.is_first else residues)
    wrapped = bit_residues(engine, carry(engine, moved, ring.bits), wider)
    lifted = moved - (wrapped << np.uint64(ring.bits))
    return wider.reduce(lifted - half if engine.is_first else lifted)


def extend_cost(ring: Ring, wider: Ring, count: int) -> Cost:
    """`extend` of `count` residues."""
    return carry_cost(ring.bits, count) + from_bits_cost(wider, count, 1)


def _check_drop(ring: Ring, bits: int) -> None:
    check_ring(ring)
    if not 0 <= bits < ring.bits:
        raise RangeError(f"0 to {ring.bits - 1} bits can be dropped from {ring.bits}, got {bits}")
