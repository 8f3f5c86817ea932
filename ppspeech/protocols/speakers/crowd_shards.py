"""A gallery of millions as small whole numbers, in blocks, in shards: what is multiplied ahead of a question, and then.

A block has 2048 slots, as many as one polynomial of a reply: W r for an encrypted r of its features costs one product
of polynomials a feature, and 16 KB. Of W itself a question then takes one product in the clear:

    reply   the masked product of all blocks with an encrypted vector, and our shares of it: offline
    times   W d mod 2^32, for a vector d that anybody may see: online

Both depend on blocks alone, and nothing is kept between them: whoever holds a shard may be lost and made again, and the
same question gets the same answer. Shards may be in this process, or elsewhere (`Shards`).
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numba
import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Bytes
from ppspeech.crypto.lattice import EncodedWeights, Evaluator, MatrixPlan, encode_weights, server_reply
from ppspeech.errors import RangeError

Weights = NDArray[np.int16]
Short = NDArray[np.uint32]


class Shards(Protocol):
    """Holders of parts of something, asked all at once."""

    def ask(self, method: str, *arrays: Any) -> list[Any]:
        """What this method of each says, in their order."""


class CrowdShard:
    """Some blocks of a gallery. `product`: how a vector is multiplied into one block. `weights`: `(slots, features)`,
    a whole number of blocks. `first`: the number of their first slot. `workers`: threads. Raises RangeError for other
    shapes.
    """

    def __init__(self, product: MatrixPlan, weights: Weights, first: int = 0, workers: int = 1) -> None:
        if weights.ndim != 2 or weights.shape[1] != product.inner or len(weights) % product.columns or not len(weights):
            raise RangeError(f"a shard has blocks of {product.columns} x {product.inner}, got shape {weights.shape}")
        self._product = product
        self._first = first
        self._workers = workers
        self._weights = np.ascontiguousarray(weights, np.int16)
        with ThreadPoolExecutor(workers) as pool:  # gone before anybody forks
            self._encoded = list(pool.map(self._encode, range(len(weights) // product.columns)))

    def put(self, slots: NDArray[np.int64], weights: Weights) -> None:
        """Fill those of the slots that are here; their blocks are encoded anew."""
        at = slots - self._first
        here = (at >= 0) & (at < len(self._weights))
        self._weights[at[here]] = weights[here]
        for block in np.unique(at[here] // self._product.columns):
            self._encoded[block] = self._encode(block)

    def reply(self, key: Bytes, coins: Bytes, query: Bytes) -> Bytes:
        """To a query under this key, a row for every block: what its holder gets, then our shares mod 2^32 of the
        product with every slot, 4 bytes each (`cut`). Raises BadCiphertextError or WrongKeyError for a query that
        is none.
        """
        evaluator = Evaluator(key.tobytes(), coins.tobytes(), self._product.precision.parameters)
        loaded = evaluator.load(self._product.job, query.tobytes(), self._workers)
        with ThreadPoolExecutor(self._workers) as pool:
            answers = pool.map(lambda block: server_reply(evaluator, self._product, block, loaded), self._encoded)
            rows = [reply + share[0].astype("<u4").tobytes() for reply, share in answers]
        return np.stack([np.frombuffer(row, np.uint8) for row in rows])

    def times(self, vector: Short) -> Short:
        """W d mod 2^32, `(slots,)`."""
        result = np.empty(len(self._weights), np.uint32)
        parts = np.array_split(np.arange(len(result)), self._workers)
        with ThreadPoolExecutor(self._workers) as pool:
            list(pool.map(lambda part: _times(self._weights, vector, part[0], part[-1] + 1, result), parts))
        return result

    def _encode(self, block: int) -> EncodedWeights:
        size = self._product.columns
        return encode_weights(self._product, self._weights[block * size : (block + 1) * size].T.astype(np.float64))


def cut(product: MatrixPlan, rows: Bytes) -> tuple[Bytes, Short]:
    """What the holder of the key gets, `(blocks, bytes)`, and our shares, `(slots,)`, of rows that shards gave."""
    replies, shares = np.split(rows, [product.job.reply_bytes], axis=1)
    return replies, np.ascontiguousarray(shares).view("<u4").astype(np.uint32).reshape(-1)


class OwnShards:
    """Shards in this process."""

    def __init__(self, shards: Sequence[CrowdShard]) -> None:
        self._shards = shards

    def ask(self, method: str, *arrays: Any) -> list[Any]:
        """One after the other: each has threads of its own."""
        return [getattr(shard, method)(*arrays) for shard in self._shards]


@numba.njit(nogil=True, cache=True)
def _times(weights: Weights, vector: Short, start: int, end: int, result: Short) -> None:
    for slot in range(start, end):
        total = np.uint32(0)
        for feature in range(len(vector)):
            total += np.uint32(np.int32(weights[slot, feature])) * vector[feature]
        result[slot] = total
