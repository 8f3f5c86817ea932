"""1-of-n oblivious transfer, n up to 256, at 32 bytes each (Kolesnikov and Kumaresan 2013).

As `extension`, with a word of the Walsh-Hadamard code of 256 bits in place of 128 copies of the choice:

    q_j = t_j ⊕ (code(w_j) & s)        pad_j(w) = H(q_j ⊕ (code(w) & s), j)

Two code words differ in 128 places, so each pad but the chosen one hides behind 128 unknown bits of s.
The choices are random here; a message of log2 n bits later turns them into
real ones (`look_up`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Bytes, Residues
from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.packing import Numbers
from ppspeech.crypto.randomness import uniform_bytes
from ppspeech.crypto.transfer.bit_matrix import transpose_bits
from ppspeech.crypto.transfer.extension import Code, ColumnReceiver, ColumnSender
from ppspeech.errors import RangeError

CODE_COLUMNS = 256
LARGEST_BITS = 8


@dataclass(frozen=True, slots=True, order=True)
class Batch:
    """Transfers of one shape: of one of 2^bits words, 1 to 8 bits, with pads of `width` bits, 1 to 64."""

    bits: int
    width: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= LARGEST_BITS or not 1 <= self.width <= 64 or self.count < 0:
            raise RangeError(f"1-of-2^bits transfers have 1..8 bits and pads of 1..64, got {self}")


class WalshHadamard(Code):
    """Bit i of code(w) is the parity of w & i."""

    kind = Kind.CODE_COLUMNS
    columns = CODE_COLUMNS
    bits = LARGEST_BITS

    @classmethod
    def encode(cls, parts: Bytes) -> Bytes:
        """Column i: the sum of the choices' bits that i names."""
        columns = np.zeros((cls.columns, parts.shape[1]), np.uint8)
        for bit, part in enumerate(parts):
            columns[1 << bit : 2 << bit] = columns[: 1 << bit] ^ part
        return columns


class CodeSender(ColumnSender):
    """The side that knows all pads."""

    code = WalshHadamard

    def random(self, channel: Channel, batches: Sequence[Batch]) -> list[Numbers]:
        """Every pad of every transfer: one array `(count, 2^bits)` a batch, bytes for widths up to 8, else residues."""
        first = self.done
        rows = self.rows(channel, sum(batch.count for batch in batches))
        offsets = _code_words() & self.delta
        result, at = [], 0
        for batch in batches:
            pads = np.empty((batch.count, 1 << batch.bits), _entry_type(batch.width))
            part = rows[at : at + batch.count]
            self.hasher.hash_wide(part, offsets[: 1 << batch.bits], first + at, pads, batch.width)
            result.append(pads)
            at += batch.count
        return result


class CodeReceiver(ColumnReceiver):
    """The side that knows one pad a transfer."""

    code = WalshHadamard

    def random(self, channel: Channel, batches: Sequence[Batch]) -> list[tuple[NDArray[np.uint8], Numbers]]:
        """Random choices and their pads: `(count,)` choices and `(count,)` pads a batch."""
        first = self.done
        counts = [batch.count for batch in batches]
        drawn = np.frombuffer(uniform_bytes(sum(counts)), np.uint8)
        choices = drawn & np.repeat([(1 << batch.bits) - 1 for batch in batches], counts).astype(np.uint8)
        rows = self.rows(channel, choices)
        result, at = [], 0
        for batch in batches:
            part = slice(at, at + batch.count)
            pads = np.empty((batch.count, 1), _entry_type(batch.width))
            self.hasher.hash_wide(rows[part], np.zeros((1, 4), np.uint64), first + at, pads, batch.width)
            result.append((choices[part], pads[:, 0]))
            at += batch.count
        return result


@cache
def _code_words() -> Residues:
    """code(w) for w in 0..255: `(256, 4)` words."""
    words = np.arange(CODE_COLUMNS, dtype=np.uint8)
    parts = np.stack([np.packbits((words >> bit) & 1, bitorder="little") for bit in range(LARGEST_BITS)])
    return transpose_bits(WalshHadamard.encode(parts))


def _entry_type(width: int) -> type[np.uint8] | type[np.uint64]:
    return np.uint8 if width <= 8 else np.uint64
