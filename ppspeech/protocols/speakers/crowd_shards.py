"""A gallery of millions as small whole numbers, in blocks, in shards: what is multiplied ahead of a question, and then.

A block has 2048 slots, as many as one polynomial of a reply: W r for an encrypted r of its features costs one product
of polynomials a feature, and 16 KB. Of W itself a question then takes one product in the clear:

    put     weights at slots, once a slot
    reply   the masked product of all blocks with an encrypted vector, and our shares of it: offline
    times   W d mod 2^32, for a vector d that anybody may see: online

Both products are of one W: a reply says which slots were filled, `times` is told so, takes the others for empty, and
refuses where one of these is. A slot is filled once and stays as it is, so who comes in between changes nothing, and
whoever holds a shard may be lost and made again. Shards may be in this process, or elsewhere (`Shards`).
"""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numba
import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Bits, Bytes
from ppspeech.crypto.lattice import EncodedWeights, Evaluator, MatrixPlan, encode_weights, server_reply
from ppspeech.errors import ModelError, RangeError

Weights = NDArray[np.int16]
Short = NDArray[np.uint32]


class Shards(Protocol):
    """Holders of parts of something, asked all at once."""

    def ask(self, method: str, *arrays: Any) -> list[Any]:
        """What this method of each says, in their order."""

    def tell(self, method: str, *arrays: Any) -> None:
        """The same, of a method that leaves something behind: told again to a holder that had to be made again."""


class Block(NamedTuple):
    """Slots that are multiplied together, as of one time. `encoded`: None where that is done for each reply."""

    encoded: EncodedWeights | None
    filled: Bits


class CrowdShard:
    """Some blocks of a gallery, empty at first. `product`: how a vector is multiplied into one block. `blocks`: how
    many, from the slot `first` on. `workers`: threads. Raises RangeError without a block.

    `room`: in how many more blocks somebody new may come until blocks are no longer kept as they are multiplied, 16 KB
    a feature, but made for each reply and forgotten; None for any number.
    """

    room: int | None = None

    def __init__(self, product: MatrixPlan, blocks: int, first: int = 0, workers: int = 1) -> None:
        if blocks < 1 or first < 0:
            raise RangeError(f"a shard has blocks, from a slot on, got {blocks} from {first}")
        size = product.columns
        self._product, self._first, self._workers = product, first, workers
        # Nobody takes as much memory as somebody: what is shared, or was never written, is multiplied in less time.
        self._weights = np.full((blocks * size, product.inner), 0, np.int16)
        self._blocks = [Block(_nobody(product), np.zeros(size, np.uint8)) for _ in range(blocks)]
        self._putting = threading.Lock()

    def put(self, slots: NDArray[np.int64], weights: Weights) -> None:
        """Fill those of the slots `(speakers,)` that are here with weights `(speakers, features)`; their blocks are
        encoded anew. What is there already may be put again. Raises RangeError for another shape, ModelError for a slot
        that is somebody else's.
        """
        if weights.shape != (len(slots), self._product.inner):
            raise RangeError(f"{len(slots)} slots take {self._product.inner} numbers each, got shape {weights.shape}")
        at = slots - self._first
        here = (at >= 0) & (at < len(self._weights))
        at, weights = at[here], weights[here]
        with self._putting:
            filled = self.filled()
            taken = filled[at] == 1
            if (self._weights[at[taken]] != weights[taken]).any():
                raise ModelError("a slot of a crowd is filled once: somebody else is there")
            at = at[~taken]
            self._weights[at] = weights[~taken]
            filled[at] = 1
            changed = np.unique(at // self._product.columns)
            kept = changed if self.room is None else changed[: self.room]
            self.room = None if self.room is None else self.room - len(kept)
            for block in changed[len(kept) :]:
                self._blocks[block] = Block(None, self._part(filled, block).copy())
            with ThreadPoolExecutor(self._workers) as pool:  # gone before anybody forks
                made = pool.map(self._encoded, kept)
                for block, encoded in zip(kept, made, strict=True):
                    self._blocks[block] = Block(encoded, self._part(filled, block).copy())

    def reply(self, key: Bytes, coins: Bytes, query: Bytes) -> Bytes:
        """To a query under this key, a row for every block: what its holder gets, then our shares mod 2^32 of the
        product with every slot, 4 bytes each, then which of them are filled, a byte each (`cut`). Raises
        BadCiphertextError or WrongKeyError for a query that is none.
        """
        evaluator = Evaluator(key.tobytes(), coins.tobytes(), self._product.precision.parameters)
        loaded = evaluator.load(self._product.job, query.tobytes(), self._workers)

        def row(number: int, block: Block) -> Bytes:
            encoded = self._encoded(number, block.filled) if block.encoded is None else block.encoded
            reply, share = server_reply(evaluator, self._product, encoded, loaded)
            return np.frombuffer(reply + share[0].astype("<u4").tobytes() + block.filled.tobytes(), np.uint8)

        blocks = list(self._blocks)
        with ThreadPoolExecutor(self._workers) as pool:
            return np.stack(list(pool.map(row, range(len(blocks)), blocks)))

    def times(self, vector: Short, filled: Bits) -> Short:
        """W d mod 2^32, `(slots,)`, where only those slots of the whole crowd are taken for filled that a reply said
        were. Raises ModelError where one of them is not: another W than that of the reply.
        """
        end = self._first + len(self._weights)
        taken = filled[self._first : end]
        if len(taken) != len(self._weights) or (taken > self.filled()).any():
            raise ModelError("the gallery is not the one that a mask was multiplied with: ask again")
        result = np.empty(len(self._weights), np.uint32)
        parts = np.array_split(np.arange(len(result)), self._workers)
        with ThreadPoolExecutor(self._workers) as pool:
            list(pool.map(lambda part: _times(self._weights, vector, taken, part[0], part[-1] + 1, result), parts))
        return result

    def filled(self) -> Bits:
        """A 1 for every slot that is somebody's, `(slots,)`."""
        return np.concatenate([block.filled for block in self._blocks])

    def _encoded(self, block: int, filled: Bits | None = None) -> EncodedWeights:
        """A block as it is multiplied, of those slots alone that are filled, where it is said which."""
        own = self._part(self._weights, block).T.astype(np.float64)
        return encode_weights(self._product, own if filled is None else own * filled)

    def _part(self, slots: NDArray[Any], block: int) -> NDArray[Any]:
        size = self._product.columns
        return slots[block * size : (block + 1) * size]


def _nobody(product: MatrixPlan) -> EncodedWeights:
    """An empty block: weights of 0 are transformed to 0."""
    factors = np.full((product.precision.parameters.degree, product.job.outputs, product.job.terms), 0, np.uint64)
    return EncodedWeights(product.precision.parameters, factors)


def cut(product: MatrixPlan, rows: Bytes) -> tuple[Bytes, Short, Bits]:
    """What the holder of the key gets, `(blocks, bytes)`; our shares, and which slots are filled, `(slots,)`; of rows
    that shards gave.
    """
    at = product.job.reply_bytes
    replies, shares, filled = np.split(rows, [at, at + 4 * product.columns], axis=1)
    return replies, np.ascontiguousarray(shares).view("<u4").astype(np.uint32).reshape(-1), filled.reshape(-1)


class OwnShards:
    """Shards in this process."""

    def __init__(self, shards: Sequence[CrowdShard]) -> None:
        self._shards = shards

    def ask(self, method: str, *arrays: Any) -> list[Any]:
        """One after the other: each has threads of its own."""
        return [getattr(shard, method)(*arrays) for shard in self._shards]

    def tell(self, method: str, *arrays: Any) -> None:
        """The same: they are lost with us."""
        self.ask(method, *arrays)


@numba.njit(nogil=True, cache=True)
def _times(weights: Weights, vector: Short, filled: Bits, start: int, end: int, result: Short) -> None:
    """Empty slots are multiplied like others: while a client waits, time would tell how many there are."""
    for slot in range(start, end):
        total = np.uint32(0)
        for feature in range(len(vector)):
            total += np.uint32(np.int32(weights[slot, feature])) * vector[feature]
        result[slot] = total * np.uint32(filled[slot])
