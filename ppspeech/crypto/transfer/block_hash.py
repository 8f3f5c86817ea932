"""Hashing of many 128-bit and 256-bit blocks at once, from AES under one public key.

    H(x, i)      = π(π(x) ⊕ i) ⊕ π(x)                                       (tweakable, correlation robust)
    H(x, x', i)  = π(u ⊕ i) ⊕ u,   u = π(x) ⊕ x'                            (256-bit input)

π is AES-128 with a key both parties drew for this pair of parties; it is modeled as a random permutation
(Guo, Katz, Wang and Yu 2020). The tweak i is a counter that is never reused under one setup. In both it enters
the outer call. With two calls of π for three inputs one relation remains, H(x, x' ⊕ d, i ⊕ d) = H(x, x', i) ⊕ d: two
rows of the same first half, which a receiver cannot bring about, since rows are key streams under keys that come out of
hashes of both parties' secrets.
"""

import numba
import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from ppspeech.arrays import Residues
from ppspeech.crypto.packing import Numbers
from ppspeech.crypto.transfer import aes

CHUNK = 8192
"""Blocks hashed at a time: 128 kB stay in the cache between the passes."""


class BlockHash:
    """The hash function of one pair of parties. `key`: 16 bytes, public. Where the processor has instructions for it,
    what comes in whole groups is hashed in registers (`aes`), and the rest by OpenSSL.
    """

    def __init__(self, key: bytes) -> None:
        self.round_keys = aes.expand_key(key)
        self._cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305 - a permutation, not a mode
        self._output = np.empty(16 * CHUNK + 16, np.uint8)

    def permute(self, blocks: Residues) -> Residues:
        """π of every block, `(count, 2)` words, count at most CHUNK; overwritten by the next call."""
        size = blocks.nbytes
        self._cipher.update_into(blocks.data.cast("B"), self._output.data)
        return self._output[:size].view(np.uint64).reshape(blocks.shape)

    def hash_blocks(self, blocks: Residues, first: int) -> Residues:
        """H(x_j, first + j) for every row j of `blocks`, `(count, 2)` words."""
        result = np.empty((len(blocks), 2), np.uint64)
        whole = _whole(len(blocks))
        if whole:
            flat = np.ascontiguousarray(blocks[:whole]).reshape(-1)
            aes.hash_blocks(self.round_keys, flat, np.uint64(first), result[:whole].reshape(-1))
        for start in range(whole, len(blocks), CHUNK):
            inner = self.permute(np.ascontiguousarray(blocks[start : start + CHUNK])).copy()
            tweaked = inner.copy()
            tweaked[:, 0] ^= np.arange(first + start, first + start + len(inner), dtype=np.uint64)
            result[start : start + CHUNK] = self.permute(tweaked) ^ inner
        return result

    def hash_wide(self, rows: Residues, offsets: Residues, first: int, result: Numbers, width: int) -> None:
        """H(row_j ⊕ offset_w, first + j) for every row j and offset w: the low `width` bits of each.

        Args:
            rows: `(count, 4)` words.
            offsets: `(words, 4)`, at most CHUNK of them.
            first: the tweak of row 0.
            result: `(count, words)`, bytes or words, filled.
            width: 1 to 64, at most 8 for bytes.
        """
        mask, words, done = np.uint64((1 << width) - 1), len(offsets), 0
        halves = [np.ascontiguousarray(offsets[:, half : half + 2]) for half in (0, 2)]
        if aes.AVAILABLE and result.flags.c_contiguous and words >= 4 and words & (words - 1) == 0:
            low, high = (half.reshape(-1) for half in halves)
            flat = np.ascontiguousarray(rows).reshape(-1)
            aes.hash_wide(self.round_keys, flat, low, high, np.uint64(first), mask, result.reshape(-1))
            return
        if words == 1 and result.flags.c_contiguous and (done := _whole(len(rows))):
            flat, offset = (np.ascontiguousarray(part).reshape(-1) for part in (rows[:done], offsets))
            aes.hash_rows(self.round_keys, flat, offset, np.uint64(first), mask, result[:done].reshape(-1))
        at_a_time = max(1, CHUNK // words)
        block = np.empty((at_a_time, words, 2), np.uint64)
        for start in range(done, len(rows), at_a_time):
            some = rows[start : start + at_a_time]
            used = block[: len(some)]
            _fill(some, halves[0], used)
            _mix(some, halves[1], np.uint64(first + start), self.permute(used), used)
            _feed_forward(self.permute(used), used, np.uint64(first + start), mask, result[start : start + at_a_time])


def _whole(count: int) -> int:
    """How many of so many rows are hashed in registers."""
    return count - count % aes.AT_ONCE if aes.AVAILABLE else 0


@numba.njit(nogil=True, cache=True)
def _fill(rows: Residues, offsets: Residues, block: Residues) -> None:
    """x for each row and each offset, from the row's first half."""
    for j in range(len(rows)):
        for w in range(len(offsets)):
            block[j, w, 0] = rows[j, 0] ^ offsets[w, 0]
            block[j, w, 1] = rows[j, 1] ^ offsets[w, 1]


@numba.njit(nogil=True, cache=True)
def _mix(rows: Residues, offsets: Residues, first: np.uint64, permuted: Residues, block: Residues) -> None:
    """u ⊕ i from the permuted x, x' from the row's second half, and the row's tweak."""
    for j in range(len(rows)):
        low, high = rows[j, 2] ^ (first + np.uint64(j)), rows[j, 3]
        for w in range(len(offsets)):
            block[j, w, 0] = permuted[j, w, 0] ^ low ^ offsets[w, 0]
            block[j, w, 1] = permuted[j, w, 1] ^ high ^ offsets[w, 1]


@numba.njit(nogil=True, cache=True)
def _feed_forward(permuted: Residues, block: Residues, first: np.uint64, mask: np.uint64, result: Numbers) -> None:
    """π(u ⊕ i) ⊕ u: the tweak goes out again."""
    for j in range(result.shape[0]):
        tweak = first + np.uint64(j)
        for w in range(result.shape[1]):
            result[j, w] = (permuted[j, w, 0] ^ block[j, w, 0] ^ tweak) & mask
