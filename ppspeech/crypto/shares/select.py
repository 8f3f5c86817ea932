"""Products of a shared bit and a shared residue, and choices between shared residues.

With a = a_0 ⊕ a_1 the random bit of two prepared transfers, one each way, party i sends d_i = b_i ⊕ a_i and
u_i = (1 - 2 a_i) v_i - (r_1 - r_0): both uniform to the other. Then

    (a v)_i = a_i v_i - r_0 + r'_{a_i} + a_i u_j,      b v = a v if d = 0, v - a v if d = 1,      d = d_0 ⊕ d_1.

Shared bits are residues mod 2, so that the product in the ring of one bit is the logical and.

The transfers' strings have 64 bits, of which a residue takes k. A load l of p bits, shared by exclusive or, rides in
the p bits above them, s for r there, for p / 8 bytes each way and no further transfer:

    party i sends w_i = l_i ⊕ s_1 ⊕ s_0,      (a l)_i = a_i l_i ⊕ s_0 ⊕ s'_{a_i} ⊕ a_i w_j,      b l as above.
"""

import numba
import numpy as np

from ppspeech.arrays import Bits, Residues
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.errors import RangeError

LARGEST_RING = 61
"""Bits of the largest ring the engine computes in: a residue and a bit travel together, and comparisons pad to 60."""


def check_ring(ring: Ring) -> None:
    """Refuse rings the engine cannot compute in. Raises RangeError unless the ring has at most 61 bits."""
    if ring.bits > LARGEST_RING:
        raise RangeError(f"shares are computed on in rings of up to {LARGEST_RING} bits, got {ring.bits}")


def multiply_loaded(
    engine: ShareEngine, bits: Bits, residues: Residues, loads: Residues, ring: Ring, width: int
) -> tuple[Residues, Residues]:
    """Shares of bit times residue and, by exclusive or, of bit times load, element by element; all flat and of one
    length. `width`: bits of a load. Raises RangeError where residue, load and bit have more than 64.
    """
    if ring.bits + width + 1 > 64 or width < 1:
        raise RangeError(f"a residue, its load and a bit travel in 64 bits, got {ring.bits} and {width}")
    if not bits.shape == residues.shape == loads.shape or bits.ndim != 1:
        raise RangeError(
            f"bits, residues and loads must be flat and alike, got {len(bits)}, {len(residues)}, {len(loads)}"
        )
    own = engine.correlations.take_products(len(bits))
    size = -(-(ring.bits + width + 1) // 8)
    message = np.empty(len(bits) * size, np.uint8)
    _loaded_message(bits, residues, loads, own.bits, own.zero, own.step, ring.bits, width, size, message)
    if engine.is_first:
        engine.channel.send(Kind.PRODUCT, message.tobytes())
    other = np.frombuffer(engine.channel.receive(Kind.PRODUCT, len(message)), np.uint8)
    if not engine.is_first:
        engine.channel.send(Kind.PRODUCT, message.tobytes())
    result, carried = np.empty(len(bits), np.uint64), np.empty(len(bits), np.uint64)
    _finish_loaded(bits, residues, loads, own.bits, own.got, own.zero, other, ring.bits, width, size, result, carried)
    return result, carried


def multiply_bit(engine: ShareEngine, bits: Bits, residues: Residues, ring: Ring) -> Residues:
    """Shares of bit times residue, element by element; both flat and of one length."""
    check_ring(ring)
    if bits.shape != residues.shape or bits.ndim != 1:
        raise RangeError(f"bits and residues must be flat and alike, got shapes {bits.shape} and {residues.shape}")
    own = engine.correlations.take_products(len(bits))
    size = -(-(ring.bits + 1) // 8)
    message = np.empty(len(bits) * size, np.uint8)
    _product_message(bits, residues, own.bits, own.step, ring.bits, size, message)
    # The second waits before it sends: what it sends next then leaves in the same flight.
    if engine.is_first:
        engine.channel.send(Kind.PRODUCT, message.tobytes())
    other = np.frombuffer(engine.channel.receive(Kind.PRODUCT, len(message)), np.uint8)
    if not engine.is_first:
        engine.channel.send(Kind.PRODUCT, message.tobytes())
    result = np.empty(len(bits), np.uint64)
    _finish_product(bits, residues, own.bits, own.got, own.zero, other, ring.bits, size, result)
    return result


@numba.njit(nogil=True, cache=True)
def _product_message(
    bits: Bits, residues: Residues, choices: Bits, step: Residues, width: int, size: int, message: Bits
) -> None:
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    for j in range(len(bits)):
        turned = np.uint64(0) - residues[j] if choices[j] else residues[j]
        sent = (turned - step[j]) & mask
        sent |= np.uint64(bits[j] ^ choices[j]) << np.uint64(width)
        for b in range(size):
            message[j * size + b] = sent & np.uint64(255)
            sent >>= np.uint64(8)


@numba.njit(nogil=True, cache=True)
def _finish_product(
    bits: Bits, residues: Residues, choices: Bits, got: Residues, zero: Residues, other: Bits, width: int, size: int,
    result: Residues,
) -> None:  # fmt: skip
    one = np.uint64(1)
    mask = (one << np.uint64(width)) - one
    for j in range(len(bits)):
        sent = np.uint64(0)
        for b in range(size):
            sent |= np.uint64(other[j * size + b]) << np.uint64(8 * b)
        flipped = bits[j] ^ choices[j] ^ ((sent >> np.uint64(width)) & one)
        product = got[j] - zero[j]
        if choices[j]:
            product += residues[j] + sent
        result[j] = (residues[j] - product if flipped else product) & mask


@numba.njit(nogil=True, cache=True)
def _loaded_message(
    bits: Bits, residues: Residues, loads: Residues, choices: Bits, zero: Residues, step: Residues, width: int,
    load_width: int, size: int, message: Bits,
) -> None:  # fmt: skip
    one, above = np.uint64(1), np.uint64(width)
    mask, load_mask = (one << above) - one, (one << np.uint64(load_width)) - one
    for j in range(len(bits)):
        turned = np.uint64(0) - residues[j] if choices[j] else residues[j]
        sent = mask & (turned - step[j])
        hidden = loads[j] ^ ((zero[j] + step[j]) >> above) ^ (zero[j] >> above)
        sent |= (hidden & load_mask) << above
        sent |= np.uint64(bits[j] ^ choices[j]) << np.uint64(width + load_width)
        for b in range(size):
            message[j * size + b] = sent & np.uint64(255)
            sent >>= np.uint64(8)


@numba.njit(nogil=True, cache=True)
def _finish_loaded(
    bits: Bits, residues: Residues, loads: Residues, choices: Bits, got: Residues, zero: Residues, other: Bits,
    width: int, load_width: int, size: int, result: Residues, carried: Residues,
) -> None:  # fmt: skip
    one, above = np.uint64(1), np.uint64(width)
    mask, load_mask = (one << above) - one, (one << np.uint64(load_width)) - one
    for j in range(len(bits)):
        sent = np.uint64(0)
        for b in range(size):
            sent |= np.uint64(other[j * size + b]) << np.uint64(8 * b)
        flipped = bits[j] ^ choices[j] ^ ((sent >> np.uint64(width + load_width)) & one)
        product, load = got[j] - zero[j], (got[j] ^ zero[j]) >> above
        if choices[j]:
            product += residues[j] + sent
            load ^= loads[j] ^ (sent >> above)
        result[j] = (residues[j] - product if flipped else product) & mask
        carried[j] = (loads[j] ^ load if flipped else load) & load_mask
