"""1-of-n oblivious transfer, n up to 256, at 32 bytes each (Kolesnikov and Kumaresan 2013).

As `ot_extension`, with a word of the Walsh-Hadamard code of 256 bits in place of 128 copies of the choice:

    q_j = t_j ⊕ (code(w_j) & s)        pad_j(w) = H(q_j ⊕ (code(w) & s), j)

Two code words differ in 128 places, so each pad but the chosen one hides behind 128 unknown bits of s.
Bit i of code(w) is the parity of w & i. The choices are random here; a message of log2 n bits later turns them into
real ones (`look_up`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Residues
from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.packing import Numbers
from ppspeech.crypto.randomness import uniform_bytes
from ppspeech.crypto.transfer.bit_matrix import ColumnStreams, padded_rows, portions, transpose_bits
from ppspeech.crypto.transfer.block_hash import BlockHash
from ppspeech.errors import RangeError

COLUMNS = 256
LARGEST_BITS = 8


@dataclass(frozen=True, slots=True, order=True)
class Batch:
    """Transfers of one shape.

    Attributes:
        bits: log2 of the number of words to choose from, 1 to 8.
        width: bits of pad each word has, 1 to 64.
        count: how many transfers.
    """

    bits: int
    width: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= LARGEST_BITS or not 1 <= self.width <= 64 or self.count < 0:
            raise RangeError(f"1-of-2^bits transfers have 1..8 bits and pads of 1..64, got {self}")


def code_bytes(count: int) -> int:
    """The bytes of the receiver's message for `count` transfers in all."""
    return COLUMNS * padded_rows(count) // 8


@dataclass
class CodeSender:
    """The side that knows all pads.

    Args:
        secret: s, 256 booleans, the choices of the base transfers.
        keys: `(256, 16)`, what they gave.
        hasher: the hash both sides use.
    """

    secret: NDArray[np.bool_] = field(repr=False)
    keys: NDArray[np.uint8] = field(repr=False)
    hasher: BlockHash = field(repr=False)
    done: int = 0

    def __post_init__(self) -> None:
        self._streams = ColumnStreams(self.keys)
        self._selected = np.where(self.secret, 0xFF, 0).astype(np.uint8)[:, None]
        self._offsets = _code_words() & np.packbits(self.secret, bitorder="little").view(np.uint64)

    def random(self, channel: Channel, batches: Sequence[Batch]) -> list[Numbers]:
        """Every pad of every transfer: one array `(count, 2^bits)` a batch, bytes for widths up to 8, else words."""
        total = sum(batch.count for batch in batches)
        parts = [np.empty((0, 4), np.uint64)]
        for count in portions(total):
            own = self._streams.read(padded_rows(count))
            sent = np.frombuffer(channel.receive(Kind.CODE_COLUMNS, code_bytes(count)), np.uint8).reshape(own.shape)
            parts.append(transpose_bits(own ^ (sent & self._selected))[:count])
        rows = np.concatenate(parts)
        result, at = [], 0
        for batch in batches:
            pads = np.empty((batch.count, 1 << batch.bits), _entry_type(batch.width))
            offsets = self._offsets[: 1 << batch.bits]
            self.hasher.hash_wide(rows[at : at + batch.count], offsets, self.done + at, pads, batch.width)
            result.append(pads)
            at += batch.count
        self.done += total
        return result

    def __reduce__(self) -> NoReturn:
        raise TypeError("one side of an oblivious transfer holds secrets: it cannot be pickled or copied")


@dataclass
class CodeReceiver:
    """The side that knows one pad a transfer.

    Args:
        keys: `(256, 2, 16)`, the pairs that were offered in the base transfers.
        hasher: the hash both sides use.
    """

    keys: NDArray[np.uint8] = field(repr=False)
    hasher: BlockHash = field(repr=False)
    done: int = 0

    def __post_init__(self) -> None:
        self._streams = [ColumnStreams(self.keys[:, side]) for side in (0, 1)]

    def random(self, channel: Channel, batches: Sequence[Batch]) -> list[tuple[NDArray[np.uint8], Numbers]]:
        """Random choices and their pads: `(count,)` choices and `(count,)` pads a batch."""
        total = sum(batch.count for batch in batches)
        drawn = np.frombuffer(uniform_bytes(total), np.uint8)
        masks = np.repeat([(1 << batch.bits) - 1 for batch in batches], [batch.count for batch in batches])
        choices = drawn & masks.astype(np.uint8)
        parts, at = [np.empty((0, 4), np.uint64)], 0
        for count in portions(total):
            own, other = (stream.read(padded_rows(count)) for stream in self._streams)
            words = _code_columns(choices[at : at + count], own.shape[1])
            channel.send(Kind.CODE_COLUMNS, (own ^ other ^ words).tobytes())
            parts.append(transpose_bits(own)[:count])
            at += count
        rows = np.concatenate(parts)
        result, at = [], 0
        for batch in batches:
            part = slice(at, at + batch.count)
            pads = np.empty((batch.count, 1), _entry_type(batch.width))
            self.hasher.hash_wide(rows[part], np.zeros((1, 4), np.uint64), self.done + at, pads, batch.width)
            result.append((choices[part], pads[:, 0]))
            at += batch.count
        self.done += total
        return result

    def __reduce__(self) -> NoReturn:
        raise TypeError("one side of an oblivious transfer holds secrets: it cannot be pickled or copied")


def _code_words() -> Residues:
    """code(w) for w in 0..255: `(256, 4)` words."""
    both = np.arange(COLUMNS)[:, None] & np.arange(COLUMNS)[None, :]
    parity = np.bitwise_count(both) & 1
    return np.packbits(parity.astype(np.uint8), axis=1, bitorder="little").view(np.uint64)


def _code_columns(choices: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Column i of the code words of all choices: the sum of the choices' bits that i names; `(256, size)` bytes."""
    columns = np.zeros((COLUMNS, size), np.uint8)
    used = -(-len(choices) // 8)
    for bit in range(LARGEST_BITS):
        vector = np.packbits((choices >> bit) & 1, bitorder="little")
        columns[1 << bit : 2 << bit] = columns[: 1 << bit]
        columns[1 << bit : 2 << bit, :used] ^= vector
    return columns


def _entry_type(width: int) -> type[np.uint8] | type[np.uint64]:
    return np.uint8 if width <= 8 else np.uint64
