"""1-of-n oblivious transfer, n up to 256, at 32 bytes each (Kolesnikov and Kumaresan 2013).

As `extension`, with a word of the Walsh-Hadamard code of 256 bits in place of 128 copies of the choice:

    q_j = t_j ⊕ (code(w_j) & s)        pad_j(w) = H(q_j ⊕ (code(w) & s), j)

Two code words differ in 128 places, so each pad but the chosen one hides behind 128 unknown bits of s.
Bit i of code(w) is the parity of w & i. The choices are random here; a message of log2 n bits later turns them into
real ones (`look_up`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Residues
from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.packing import Numbers
from ppspeech.crypto.randomness import uniform_bytes
from ppspeech.crypto.transfer.extension import ColumnReceiver, ColumnSender
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


class CodeSender(ColumnSender):
    """The side that knows all pads."""

    kind = Kind.CODE_COLUMNS

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

    kind = Kind.CODE_COLUMNS

    def random(self, channel: Channel, batches: Sequence[Batch]) -> list[tuple[NDArray[np.uint8], Numbers]]:
        """Random choices and their pads: `(count,)` choices and `(count,)` pads a batch."""
        first = self.done
        counts = [batch.count for batch in batches]
        drawn = np.frombuffer(uniform_bytes(sum(counts)), np.uint8)
        choices = drawn & np.repeat([(1 << batch.bits) - 1 for batch in batches], counts).astype(np.uint8)
        rows = self.rows(channel, len(choices), lambda part, size: _code_columns(choices[part], size))
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
    both = np.arange(CODE_COLUMNS)[:, None] & np.arange(CODE_COLUMNS)[None, :]
    parity = np.bitwise_count(both) & 1
    return np.packbits(parity.astype(np.uint8), axis=1, bitorder="little").view(np.uint64)


def _code_columns(choices: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Column i of the code words of all choices: the sum of the choices' bits that i names; `(256, size)` bytes."""
    columns = np.zeros((CODE_COLUMNS, size), np.uint8)
    used = -(-len(choices) // 8)
    for bit in range(LARGEST_BITS):
        vector = np.packbits((choices >> bit) & 1, bitorder="little")
        columns[1 << bit : 2 << bit] = columns[: 1 << bit]
        columns[1 << bit : 2 << bit, :used] ^= vector
    return columns


def _entry_type(width: int) -> type[np.uint8] | type[np.uint64]:
    return np.uint8 if width <= 8 else np.uint64
