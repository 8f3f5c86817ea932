"""Small numbers on the wire: packed bit by bit up to 8 bits each, in whole bytes above."""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Bytes, Residues

Numbers = NDArray[np.unsignedinteger[Any]]
"""Bytes where numbers have up to 8 bits, else residues."""


def packed_bytes(count: int, width: int) -> int:
    """The bytes that `count` numbers of `width` bits take.

    >>> packed_bytes(50, 5), packed_bytes(50, 21)
    (32, 150)
    """
    return -(-count * width // 8) if width <= 8 else count * -(-width // 8)


def pack_numbers(numbers: Numbers, width: int) -> bytes:
    """The bytes of a flat array of numbers below 2^width, lowest bits first."""
    out = np.zeros(packed_bytes(len(numbers), width), np.uint8)
    if width <= 8:
        _pack_bits(numbers, width, out)
    else:
        _pack_bytes(numbers, -(-width // 8), out)
    return out.tobytes()


def unpack_numbers(data: bytes | memoryview, count: int, width: int) -> Numbers:
    """The numbers `pack_numbers` packed: bytes for widths up to 8, else residues; spare bits are dropped."""
    stream = np.frombuffer(data, np.uint8)
    if width <= 8:
        small = np.empty(count, np.uint8)
        _unpack_bits(stream, width, small)
        return small
    residues = np.empty(count, np.uint64)
    _unpack_bytes(stream, -(-width // 8), residues)
    return residues & np.uint64((1 << width) - 1)


@numba.njit(nogil=True, cache=True)
def _pack_bits(numbers: Numbers, width: int, out: Bytes) -> None:
    held = np.uint64(0)
    bits, at = 0, 0
    for number in numbers:
        held |= np.uint64(number) << np.uint64(bits)
        bits += width
        while bits >= 8:
            out[at] = held & np.uint64(255)
            held >>= np.uint64(8)
            bits -= 8
            at += 1
    if bits:
        out[at] = held


@numba.njit(nogil=True, cache=True)
def _unpack_bits(stream: Bytes, width: int, numbers: Bytes) -> None:
    mask = np.uint64((1 << width) - 1)
    held = np.uint64(0)
    bits, at = 0, 0
    for j in range(len(numbers)):
        while bits < width:
            held |= np.uint64(stream[at]) << np.uint64(bits)
            bits += 8
            at += 1
        numbers[j] = held & mask
        held >>= np.uint64(width)
        bits -= width


@numba.njit(nogil=True, cache=True)
def _pack_bytes(numbers: Numbers, size: int, out: Bytes) -> None:
    for j in range(len(numbers)):
        number = np.uint64(numbers[j])
        for b in range(size):
            out[j * size + b] = number & np.uint64(255)
            number >>= np.uint64(8)


@numba.njit(nogil=True, cache=True)
def _unpack_bytes(stream: Bytes, size: int, numbers: Residues) -> None:
    for j in range(len(numbers)):
        number = np.uint64(0)
        for b in range(size):
            number |= np.uint64(stream[j * size + b]) << np.uint64(8 * b)
        numbers[j] = number


def unpack_floats(data: bytes) -> NDArray[np.float64]:
    """Single-precision numbers, little-endian, as doubles. What a peer sends may be none: it is for others to refuse.

    >>> unpack_floats(bytes.fromhex("0000803f0100807f")).tolist()
    [1.0, nan]
    """
    with np.errstate(invalid="ignore"):  # a signaling NaN becomes a quiet one
        return np.frombuffer(data, "<f4").astype(np.float64)
