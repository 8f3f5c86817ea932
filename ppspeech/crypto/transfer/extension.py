"""Oblivious transfer by the hundred thousand from a few base transfers (Ishai, Kilian, Nissim and Petrank 2003).

    sender:   a secret s, and the key of each column that s's bit names      q_j = t_j ⊕ (code(c_j) & s)
    receiver: both keys of each column, choices c                            t_j

The receiver sends, for every column, the sum of its two key streams and of its choices' code: a bit a transfer. With
128 columns and 128 copies of a bit for its code, the transfers are 1-of-2 (`OtSender`): (q_j, q_j ⊕ s) against t_j,
16 bytes each; hashed with a tweak they are random transfers. With 256 columns and the Walsh-Hadamard code they are
1-of-n (`codes`). Every message ends in what the sender checks it by (`check`), against receivers that do anything; a
sender sends nothing, and sees columns under key streams of which it lacks one.
"""

import hashlib
import hmac
from typing import ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Bits, Bytes, Residues
from ppspeech.channel import Channel
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.randomness import uniform_bytes
from ppspeech.crypto.transfer.bit_matrix import ColumnStreams, padded_rows, portions, transpose_bits
from ppspeech.crypto.transfer.block_hash import BlockHash
from ppspeech.crypto.transfer.check import CHECK_ROWS, HASH_BYTES, check_bytes, digest, hash_columns
from ppspeech.errors import CheatError

PAIR_COLUMNS = 128
"""Of 1-of-2 transfers."""


class Code:
    """What a choice becomes in the columns: 128 copies of its one bit."""

    kind: ClassVar = Kind.COLUMNS
    columns: ClassVar[int] = PAIR_COLUMNS
    bits: ClassVar[int] = 1

    @classmethod
    def encode(cls, parts: Bytes) -> Bytes:
        """The columns of the code, `(columns, size)`, from the columns of the choices' bits, `(bits, size)`."""
        return np.broadcast_to(parts, (cls.columns, parts.shape[1]))

    @classmethod
    def message_bytes(cls, count: int) -> int:
        """Of the receiver's message for at most 2^16 transfers."""
        return cls.columns * (padded_rows(count) + CHECK_ROWS) // 8 + check_bytes(cls.bits)

    @classmethod
    def total_bytes(cls, count: int) -> int:
        """Of all the receiver's messages for any number of transfers."""
        return sum(cls.message_bytes(part) for part in portions(count))


class Columns:
    """What both sides of extended transfers have: a code, a hash, a counter, and all that was said so far."""

    code: ClassVar[type[Code]] = Code

    def __init__(self, hasher: BlockHash, label: bytes) -> None:
        self.hasher = hasher
        self.done = 0
        self._said = hashlib.sha256(b"ppspeech transfers" + label)

    @property
    def said(self) -> bytes:
        """The hash of all columns sent so far, the same on both sides: the challenge of the next check."""
        return self._said.digest()

    def __reduce__(self) -> NoReturn:
        raise TypeError("one side of an oblivious transfer holds secrets: it cannot be pickled or copied")


class ColumnSender(Columns):
    """The side that knows every message of a transfer. `secret`: s, a boolean a column, the choices of the base
    transfers. `keys`: `(columns, 16)`, what they gave. `delta`: s as residues. `label`: what this use of the base
    transfers is called; the same on both sides.
    """

    def __init__(self, secret: NDArray[np.bool_], keys: Bytes, hasher: BlockHash, label: bytes) -> None:
        super().__init__(hasher, label)
        self.keys = keys
        self._streams = ColumnStreams(keys)
        self._selected = np.where(secret, 0xFF, 0).astype(np.uint8)[:, None]
        self.delta: Residues = np.packbits(secret, bitorder="little").view(np.uint64)

    def rows(self, channel: Channel, count: int, kind: Kind | None = None) -> Residues:
        """q_j, `(count, columns / 64)`, of the next transfers. Raises CheatError if the peer's columns do not agree."""
        rows = [np.empty((0, len(self.delta)), np.uint64)]
        for part in portions(count):
            own = self._streams.read(padded_rows(part) + CHECK_ROWS)
            message = memoryview(channel.receive(kind or self.code.kind, self.code.message_bytes(part)))
            columns = own ^ (np.frombuffer(message, np.uint8, own.size).reshape(own.shape) & self._selected)
            self._said.update(message[: own.size])
            self._check(columns, message[own.size :])
            rows.append(transpose_bits(columns)[:part])
        self.done += count
        return np.concatenate(rows)

    def _check(self, columns: Bytes, shown: memoryview) -> None:
        parts = np.frombuffer(shown, np.uint8, self.code.bits * HASH_BYTES).reshape(self.code.bits, HASH_BYTES)
        expected = hash_columns(self.said, columns) ^ (self.code.encode(parts) & self._selected)
        if not hmac.compare_digest(digest(expected), shown[parts.size :]):
            raise CheatError("the peer's columns are not of one choice a transfer: it does not follow the protocol")


class ColumnReceiver(Columns):
    """The side that chooses, and knows one message. `keys`: the pairs offered in base transfers, `(columns, 2, 16)`."""

    def __init__(self, keys: Bytes, hasher: BlockHash, label: bytes) -> None:
        super().__init__(hasher, label)
        self.keys = keys
        self._streams = [ColumnStreams(keys[:, side]) for side in (0, 1)]

    def rows(self, channel: Channel, choices: Bits, kind: Kind | None = None) -> Residues:
        """t_j, `(count, columns / 64)`, of the next transfers. `choices`: `(count,)`, of the code's bits each."""
        rows, at = [np.empty((0, len(self.keys) // 64), np.uint64)], 0
        for part in portions(len(choices)):
            own, other = (stream.read(padded_rows(part) + CHECK_ROWS) for stream in self._streams)
            blind = np.frombuffer(uniform_bytes(8 * own.shape[1] - part), np.uint8)
            chosen = np.concatenate([choices[at : at + part], blind])
            parts = np.stack([np.packbits((chosen >> bit) & 1, bitorder="little") for bit in range(self.code.bits)])
            columns = (own ^ other ^ self.code.encode(parts)).tobytes()
            self._said.update(columns)
            shown = hash_columns(self.said, parts).tobytes() + digest(hash_columns(self.said, own))
            channel.send(kind or self.code.kind, columns + shown)
            rows.append(transpose_bits(own)[:part])
            at += part
        self.done += len(choices)
        return np.concatenate(rows)


class OtSender(ColumnSender):
    """The side with two random residues a transfer."""

    def random(self, channel: Channel, count: int) -> tuple[Residues, Residues]:
        """Two random 64-bit residues a transfer; the peer holds one of them."""
        first = self.done
        rows = self.rows(channel, count)
        zeros, ones = (self.hasher.hash_blocks(each, first)[:, 0] for each in (rows, rows ^ self.delta))
        return zeros, ones

    def offer_keys(self, channel: Channel, count: int) -> Bytes:
        """Pairs of keys for another extension, `(count, 2, 16)`: what base transfers give, at the price of these."""
        first = self.done
        rows = self.rows(channel, count, Kind.BASE_COLUMNS)
        both = [self.hasher.hash_blocks(each, first).view(np.uint8) for each in (rows, rows ^ self.delta)]
        return np.stack(both, axis=1)


class OtReceiver(ColumnReceiver):
    """The side with one of the two, and the bit that says which."""

    def random(self, channel: Channel, choices: NDArray[np.bool_]) -> Residues:
        """The one of the peer's two random residues that each choice names."""
        first = self.done
        return self.hasher.hash_blocks(self.rows(channel, choices.view(np.uint8)), first)[:, 0]

    def choose_keys(self, channel: Channel, choices: NDArray[np.bool_]) -> Bytes:
        """Keys for another extension, `(count, 16)`: of every pair the peer offers the one of our choice."""
        first = self.done
        rows = self.rows(channel, choices.view(np.uint8), Kind.BASE_COLUMNS)
        return self.hasher.hash_blocks(rows, first).view(np.uint8)
