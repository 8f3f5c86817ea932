"""Oblivious transfer by the hundred thousand from 128 base transfers (Ishai, Kilian, Nissim and Petrank 2003).

    sender:   Δ and the key of each column that Δ's bit names      q_j = t_j ⊕ c_j Δ
    receiver: both keys of each column, choices c                  t_j

The receiver sends, for every column, the sum of its two key streams and of c: 16 bytes a transfer.
Correlated transfers are (q_j, q_j ⊕ Δ) against t_j; hashed with a tweak they are random transfers, and those carry
chosen messages. Against parties that follow the protocol.
"""

from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Residues
from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.transfer.bit_matrix import ColumnStreams, padded_rows, portions, transpose_bits
from ppspeech.crypto.transfer.block_hash import BlockHash

COLUMNS = 128


def columns_bytes(count: int) -> int:
    """The bytes of the receiver's message for `count` transfers."""
    return COLUMNS * padded_rows(count) // 8


@dataclass
class OtSender:
    """The side with two messages a transfer.

    Args:
        offset: Δ, 128 bits as booleans, the choices of the base transfers.
        keys: `(128, 16)`, what they gave.
        hasher: the hash both sides use.
    """

    offset: NDArray[np.bool_] = field(repr=False)
    keys: NDArray[np.uint8] = field(repr=False)
    hasher: BlockHash = field(repr=False)
    done: int = 0

    def __post_init__(self) -> None:
        self._streams = ColumnStreams(self.keys)
        self._selected = np.where(self.offset, 0xFF, 0).astype(np.uint8)[:, None]
        self.delta: Residues = np.packbits(self.offset, bitorder="little").view(np.uint64)

    def correlated(self, channel: Channel, count: int) -> Residues:
        """`(count, 2)` residues q_j; the peer holds q_j, or q_j ⊕ Δ where it chose 1."""
        rows = [np.empty((0, 2), np.uint64)]
        for part in portions(count):
            own = self._streams.read(padded_rows(part))
            sent = np.frombuffer(channel.receive(Kind.COLUMNS, columns_bytes(part)), np.uint8).reshape(own.shape)
            rows.append(transpose_bits(own ^ (sent & self._selected))[:part])
        self.done += count
        return np.concatenate(rows)

    def random(self, channel: Channel, count: int) -> tuple[Residues, Residues]:
        """Two random 64-bit residues a transfer; the peer holds one of them."""
        first = self.done
        rows = self.correlated(channel, count)
        pairs = [self.hasher.hash_blocks(each, first)[:, 0] for each in (rows, rows ^ self.delta)]
        return pairs[0], pairs[1]

    def chosen(self, channel: Channel, zeros: Residues, ones: Residues) -> None:
        """Give, of each pair of 64-bit residues, the one the peer chooses."""
        left, right = self.random(channel, len(zeros))
        channel.send(Kind.PAIRS, np.stack([zeros ^ left, ones ^ right], 1).astype("<u8").tobytes())

    def __reduce__(self) -> NoReturn:
        raise TypeError("one side of an oblivious transfer holds secrets: it cannot be pickled or copied")


@dataclass
class OtReceiver:
    """The side that chooses.

    Args:
        keys: `(128, 2, 16)`, the pairs that were offered in the base transfers.
        hasher: the hash both sides use.
    """

    keys: NDArray[np.uint8] = field(repr=False)
    hasher: BlockHash = field(repr=False)
    done: int = 0

    def __post_init__(self) -> None:
        self._streams = [ColumnStreams(self.keys[:, side]) for side in (0, 1)]

    def correlated(self, channel: Channel, choices: NDArray[np.bool_]) -> Residues:
        """`(count, 2)` residues t_j: the peer's q_j, or q_j ⊕ Δ where we choose 1."""
        rows, at = [np.empty((0, 2), np.uint64)], 0
        for part in portions(len(choices)):
            own, other = (stream.read(padded_rows(part)) for stream in self._streams)
            bits = np.zeros(own.shape[1], np.uint8)
            bits[: -(-part // 8)] = np.packbits(choices[at : at + part], bitorder="little")
            channel.send(Kind.COLUMNS, (own ^ other ^ bits).tobytes())
            rows.append(transpose_bits(own)[:part])
            at += part
        self.done += at
        return np.concatenate(rows)

    def random(self, channel: Channel, choices: NDArray[np.bool_]) -> Residues:
        """The one of the peer's two random residues that each choice names."""
        first = self.done
        return self.hasher.hash_blocks(self.correlated(channel, choices), first)[:, 0]

    def chosen(self, channel: Channel, choices: NDArray[np.bool_]) -> Residues:
        """The one of the peer's two residues that each choice names."""
        pads = self.random(channel, choices)
        pairs = np.frombuffer(channel.receive(Kind.PAIRS, 16 * len(choices)), "<u8").reshape(-1, 2)
        return pairs[np.arange(len(choices)), choices.astype(np.intp)].astype(np.uint64) ^ pads

    def __reduce__(self) -> NoReturn:
        raise TypeError("one side of an oblivious transfer holds secrets: it cannot be pickled or copied")
