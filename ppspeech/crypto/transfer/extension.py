"""Oblivious transfer by the hundred thousand from a few base transfers (Ishai, Kilian, Nissim and Petrank 2003).

    sender:   a secret s, and the key of each column that s's bit names      q_j = t_j ⊕ (code(c_j) & s)
    receiver: both keys of each column, choices c                            t_j

The receiver sends, for every column, the sum of its two key streams and of its choices' code: a bit a transfer. With
128 columns and 128 copies of a bit for its code, the transfers are 1-of-2 (`OtSender`): (q_j, q_j ⊕ s) against t_j,
16 bytes each; hashed with a tweak they are random transfers. With 256 columns and the Walsh-Hadamard code they are
1-of-n (`codes`). Against parties that follow the protocol.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Bytes, Residues
from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.transfer.bit_matrix import ColumnStreams, padded_rows, portions, transpose_bits
from ppspeech.crypto.transfer.block_hash import BlockHash

PAIR_COLUMNS = 128
"""Of 1-of-2 transfers."""


def columns_bytes(columns: int, count: int) -> int:
    """The bytes of the receiver's messages for `count` transfers."""
    return columns * padded_rows(count) // 8


@dataclass
class ColumnSender:
    """The side that knows every message of a transfer. `secret`: s, a boolean a column, the choices of the base
    transfers. `keys`: `(columns, 16)`, what they gave. `delta`: s as residues.
    """

    secret: NDArray[np.bool_] = field(repr=False)
    keys: Bytes = field(repr=False)
    hasher: BlockHash = field(repr=False)
    done: int = 0
    kind: ClassVar[Kind]

    def __post_init__(self) -> None:
        self._streams = ColumnStreams(self.keys)
        self._selected = np.where(self.secret, 0xFF, 0).astype(np.uint8)[:, None]
        self.delta: Residues = np.packbits(self.secret, bitorder="little").view(np.uint64)

    def rows(self, channel: Channel, count: int) -> Residues:
        """q_j, `(count, columns / 64)`, of the next transfers."""
        rows = [np.empty((0, len(self.delta)), np.uint64)]
        for part in portions(count):
            own = self._streams.read(padded_rows(part))
            sent = channel.receive(self.kind, columns_bytes(len(self.keys), part))
            rows.append(
                transpose_bits(own ^ (np.frombuffer(sent, np.uint8).reshape(own.shape) & self._selected))[:part]
            )
        self.done += count
        return np.concatenate(rows)

    def __reduce__(self) -> NoReturn:
        raise TypeError("one side of an oblivious transfer holds secrets: it cannot be pickled or copied")


@dataclass
class ColumnReceiver:
    """The side that chooses, and knows one message. `keys`: the pairs offered in base transfers, `(columns, 2, 16)`."""

    keys: Bytes = field(repr=False)
    hasher: BlockHash = field(repr=False)
    done: int = 0
    kind: ClassVar[Kind]

    def __post_init__(self) -> None:
        self._streams = [ColumnStreams(self.keys[:, side]) for side in (0, 1)]

    def rows(self, channel: Channel, count: int, code: Callable[[slice, int], Bytes]) -> Residues:
        """t_j, `(count, columns / 64)`, of the next transfers. `code`: of some of the choices, as columns of so many
        bytes: `(columns, bytes)`, or `(bytes,)` for all alike.
        """
        rows, at = [np.empty((0, len(self.keys) // 64), np.uint64)], 0
        for part in portions(count):
            own, other = (stream.read(padded_rows(part)) for stream in self._streams)
            channel.send(self.kind, (own ^ other ^ code(slice(at, at + part), own.shape[1])).tobytes())
            rows.append(transpose_bits(own)[:part])
            at += part
        self.done += count
        return np.concatenate(rows)

    def __reduce__(self) -> NoReturn:
        raise TypeError("one side of an oblivious transfer holds secrets: it cannot be pickled or copied")


class OtSender(ColumnSender):
    """The side with two random residues a transfer."""

    kind = Kind.COLUMNS

    def random(self, channel: Channel, count: int) -> tuple[Residues, Residues]:
        """Two random 64-bit residues a transfer; the peer holds one of them."""
        first = self.done
        rows = self.rows(channel, count)
        zeros, ones = (self.hasher.hash_blocks(each, first)[:, 0] for each in (rows, rows ^ self.delta))
        return zeros, ones


class OtReceiver(ColumnReceiver):
    """The side with one of the two, and the bit that says which."""

    kind = Kind.COLUMNS

    def random(self, channel: Channel, choices: NDArray[np.bool_]) -> Residues:
        """The one of the peer's two random residues that each choice names."""

        def code(part: slice, size: int) -> Bytes:
            packed = np.packbits(choices[part], bitorder="little")
            return np.concatenate([packed, np.zeros(size - len(packed), np.uint8)])

        first = self.done
        return self.hasher.hash_blocks(self.rows(channel, len(choices), code), first)[:, 0]
