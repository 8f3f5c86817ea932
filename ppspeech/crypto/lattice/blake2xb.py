"""The expansion of a seed to a uniform polynomial, bit for bit SEAL's: Blake2xb in counter mode, then rejection.

SEAL can only do this by loading a whole ciphertext and saving it again, a third of a millisecond each; a query has
dozens. The stream is cut in blocks of 4,096 bytes, block c being Blake2xb of the 8-byte number c under the seed as key
(Blake2X, 2016; RFC 7693 for the compression). The words of one polynomial are drawn at once, then reduced mod q; a word
at or above the largest multiple of q is drawn again from what follows.
"""

import numba
import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto.lattice.ntt import spread
from ppspeech.crypto.lattice.parameters import LatticeParameters

_IV = np.array(
    [
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    dtype=np.uint64,
)  # fmt: skip
_ORDER = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    ],
    dtype=np.int64,
)  # fmt: skip

_BLOCK_BYTES = 4096
_WORDS = _BLOCK_BYTES // 8


@numba.njit(nogil=True, cache=True, inline="always")
def _mix(v: Residues, a: int, b: int, c: int, d: int, x: np.uint64, y: np.uint64) -> None:
    v[a] += v[b] + x
    t = v[d] ^ v[a]
    v[d] = (t >> np.uint64(32)) | (t << np.uint64(32))
    v[c] += v[d]
    t = v[b] ^ v[c]
    v[b] = (t >> np.uint64(24)) | (t << np.uint64(40))
    v[a] += v[b] + y
    t = v[d] ^ v[a]
    v[d] = (t >> np.uint64(16)) | (t << np.uint64(48))
    v[c] += v[d]
    t = v[b] ^ v[c]
    v[b] = (t >> np.uint64(63)) | (t << np.uint64(1))


@numba.njit(nogil=True, cache=True)
def _compress(state: Residues, message: Residues, v: Residues, counted: np.uint64, final: bool) -> None:
    for i in range(8):
        v[i] = state[i]
        v[i + 8] = _IV[i]
    v[12] ^= counted
    if final:
        v[14] = ~v[14]
    for r in range(12):
        o = _ORDER[r]
        _mix(v, 0, 4, 8, 12, message[o[0]], message[o[1]])
        _mix(v, 1, 5, 9, 13, message[o[2]], message[o[3]])
        _mix(v, 2, 6, 10, 14, message[o[4]], message[o[5]])
        _mix(v, 3, 7, 11, 15, message[o[6]], message[o[7]])
        _mix(v, 0, 5, 10, 15, message[o[8]], message[o[9]])
        _mix(v, 1, 6, 11, 12, message[o[10]], message[o[11]])
        _mix(v, 2, 7, 8, 13, message[o[12]], message[o[13]])
        _mix(v, 3, 4, 9, 14, message[o[14]], message[o[15]])
    for i in range(8):
        state[i] ^= v[i] ^ v[i + 8]


@numba.njit(nogil=True, cache=True)
def _stream_block(
    seed: Residues, counter: int, out: Residues, start: int, message: Residues, v: Residues, root: Residues
) -> None:
    """4,096 bytes of the stream. Parameter words are RFC 7693's, with the output length beside the node offset."""
    length = np.uint64(_BLOCK_BYTES) << np.uint64(32)
    root[:] = _IV
    root[0] ^= np.uint64(64 | (64 << 8) | (1 << 16) | (1 << 24))  # digest, key length, fan-out, depth
    root[1] ^= length
    message[:] = 0
    message[:8] = seed
    _compress(root, message, v, np.uint64(128), False)
    message[:] = 0
    message[0] = np.uint64(counter)
    _compress(root, message, v, np.uint64(136), True)
    message[:] = 0
    message[:8] = root
    state = out[start : start + _WORDS]
    for node in range(_WORDS // 8):
        part = state[8 * node : 8 * node + 8]
        part[:] = _IV
        part[0] ^= np.uint64(64) | (np.uint64(64) << np.uint64(32))  # digest length, leaf length
        part[1] ^= np.uint64(node) | length
        part[2] ^= np.uint64(64 << 8)  # inner length
        _compress(part, message, v, np.uint64(64), True)


@numba.njit(nogil=True, cache=True)
def _expand(seeds: Residues, rows: Residues, q: np.uint64, largest: np.uint64, first: int, last: int) -> None:
    n = rows.shape[1]
    stream = np.empty(n + _WORDS, dtype=np.uint64)
    message, v, root = np.empty(16, dtype=np.uint64), np.empty(16, dtype=np.uint64), np.empty(8, dtype=np.uint64)
    for r in range(first, last):
        blocks = n // _WORDS
        for block in range(blocks):
            _stream_block(seeds[r], block, stream, block * _WORDS, message, v, root)
        after = n + _WORDS
        for i in range(n):
            word = stream[i]
            while word >= largest:
                if after == n + _WORDS:
                    _stream_block(seeds[r], blocks, stream, n, message, v, root)
                    blocks += 1
                    after = n
                word = stream[after]
                after += 1
            rows[r, i] = word % q


def expand_seeds(seeds: list[bytes], parameters: LatticeParameters, workers: int = 1) -> Residues:
    """The second parts that SEAL draws from 64-byte seeds, shape `(seeds, degree)`, not transformed."""
    keys = np.frombuffer(b"".join(seeds), dtype="<u8").reshape(len(seeds), 8).astype(np.uint64, copy=False)
    rows = np.empty((len(seeds), parameters.degree), dtype=np.uint64)
    prime = np.uint64(parameters.prime)
    top = (1 << 64) - 1
    largest = np.uint64(top - top % parameters.prime - 1)  # SEAL's bound
    spread(lambda first, last: _expand(keys, rows, prime, largest, first, last), len(seeds), workers)
    return rows
