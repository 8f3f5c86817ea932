"""Bit matrices of oblivious transfer: columns of key stream, and their transposition into rows."""

from typing import NoReturn

import numba
import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from ppspeech.arrays import Bytes, Residues

ROWS_TOGETHER = 128
"""Rows come in multiples of this, so that columns are whole AES blocks."""

PORTION = 2**16


def padded_rows(count: int) -> int:
    """The rows that are made when `count` are asked for."""
    return -(-count // ROWS_TOGETHER) * ROWS_TOGETHER


def portions(count: int) -> list[int]:
    """Rows that travel in one message each, so that no message grows with the batch: 2^16 at a time, and the rest."""
    whole, rest = divmod(count, PORTION)
    return [PORTION] * whole + ([rest] if rest else [])


class ColumnStreams:
    """One AES-128 key stream a column, read on from where it was left: no bit comes twice. Keys `(columns, 16)`."""

    def __init__(self, keys: Bytes) -> None:
        self._streams = [Cipher(algorithms.AES(key.tobytes()), modes.CTR(bytes(16))).encryptor() for key in keys]

    def read(self, rows: int) -> Bytes:
        """The next `rows` bits (a multiple of 8) of every column: `(columns, rows / 8)` bytes, first bit lowest."""
        zeros = bytes(rows // 8)
        together = b"".join([stream.update(zeros) for stream in self._streams])
        return np.frombuffer(together, np.uint8).reshape(len(self._streams), rows // 8)

    def __reduce__(self) -> NoReturn:
        raise TypeError("key streams hold secrets and positions: they cannot be pickled or copied")


def transpose_bits(columns: Bytes) -> Residues:
    """Rows from columns: `(columns, rows / 8)` bytes to `(rows, columns / 64)` words; columns a multiple of 64.

    >>> columns = np.zeros((64, 8), np.uint8)
    >>> columns[3, 1] = 4  # row 10
    >>> rows = transpose_bits(columns)
    >>> int(rows[10, 0]), int(np.count_nonzero(rows))
    (8, 1)
    """
    rows = np.empty((columns.shape[1] * 8, columns.shape[0] // 64), np.uint64)
    _transpose(np.ascontiguousarray(columns).view(np.uint64), rows)
    return rows


@numba.njit(nogil=True, cache=True)
def _transpose(columns: Residues, rows: Residues) -> None:
    """Blocks of 64 x 64 bits, halved six times (Hacker's Delight, 7-3, with the lowest bit first)."""
    block = np.empty(64, np.uint64)
    for down in range(columns.shape[1]):
        for across in range(rows.shape[1]):
            for i in range(64):
                block[i] = columns[64 * across + i, down]
            width = 32
            mask = np.uint64(0x00000000FFFFFFFF)
            while width:
                shift = np.uint64(width)
                i = 0
                while i < 64:
                    swap = ((block[i] >> shift) ^ block[i + width]) & mask
                    block[i + width] ^= swap
                    block[i] ^= swap << shift
                    i = (i + width + 1) & ~width
                width >>= 1
                mask ^= mask << np.uint64(width)
            for i in range(64):
                rows[64 * down + i, across] = block[i]
