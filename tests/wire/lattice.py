"""The lattice, as the party with the key: ring, seeds, queries, replies, and how a product is cut."""

import hashlib
import os
import secrets
from functools import cache
from typing import Any

N, Q = 2048, (1 << 50) - (1 << 14) + 1
MASK = (1 << 64) - 1
IV = [
    0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
    0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
]  # fmt: skip
ORDER = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4], [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13], [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11], [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5], [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
]  # fmt: skip


def compress(state: list[int], message: list[int], counted: int, final: bool) -> list[int]:
    """F of RFC 7693."""
    v = state + IV
    v[12] ^= counted
    if final:
        v[14] ^= MASK
    quarters = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)]
    quarters += [(0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]
    for r in range(12):
        order = ORDER[r % 10]
        for place, (a, b, c, d) in enumerate(quarters):
            for which, (one, other) in enumerate(((32, 24), (16, 63))):
                v[a] = (v[a] + v[b] + message[order[2 * place + which]]) & MASK
                t = v[d] ^ v[a]
                v[d] = (t >> one | t << (64 - one)) & MASK
                v[c] = (v[c] + v[d]) & MASK
                t = v[b] ^ v[c]
                v[b] = (t >> other | t << (64 - other)) & MASK
    return [state[i] ^ v[i] ^ v[i + 8] for i in range(8)]


def stream_block(seed: bytes, counter: int) -> list[int]:
    """4,096 bytes of Blake2xb of a number of 8 bytes under the seed as key, as 512 words."""
    length, key = 4096 << 32, [int.from_bytes(seed[at : at + 8], "little") for at in range(0, 64, 8)]
    root = [IV[0] ^ (64 | 64 << 8 | 1 << 16 | 1 << 24), IV[1] ^ length, *IV[2:]]
    root = compress(root, key + [0] * 8, 128, False)
    root = compress(root, [counter] + [0] * 15, 136, True)
    words: list[int] = []
    for node in range(64):
        leaf = [IV[0] ^ (64 | 64 << 32), IV[1] ^ (node | length), IV[2] ^ (64 << 8), *IV[3:]]
        words += compress(leaf, root + [0] * 8, 64, True)
    return words


def expand(seed: bytes) -> list[int]:
    """N residues: words of the stream; one that is too large is replaced by the next that follow the first N."""
    words = [word for block in range(4) for word in stream_block(seed, block)]
    largest = MASK - MASK % Q - 1
    more, block, found = [], 4, []
    for word in words:
        while word >= largest:
            if not more:
                more, block = stream_block(seed, block), block + 1
            word = more.pop(0)
        found.append(word % Q)
    return found


@cache
def roots() -> list[int]:
    """Powers of the smallest primitive 2N-th root of one, in bit-reversed order."""
    root = next(r for r in (pow(g, (Q - 1) // (2 * N), Q) for g in range(2, 100)) if pow(r, N, Q) == Q - 1)
    square, power, smallest = root * root % Q, root, root
    for _ in range(N - 1):
        power = power * square % Q
        smallest = min(smallest, power)
    return [pow(smallest, int(format(i, "011b")[::-1], 2), Q) for i in range(N)]


def forward(values: list[int]) -> list[int]:
    x, gap, blocks = list(values), N // 2, 1
    while gap:
        for block in range(blocks):
            w = roots()[blocks + block]
            for i in range(2 * block * gap, 2 * block * gap + gap):
                t = x[i + gap] * w % Q
                x[i], x[i + gap] = (x[i] + t) % Q, (x[i] - t) % Q
        gap, blocks = gap // 2, blocks * 2
    return x


def inverse(values: list[int]) -> list[int]:
    x, gap, blocks = list(values), 1, N // 2
    while blocks:
        for block in range(blocks):
            w = pow(roots()[blocks + block], -1, Q)
            for i in range(2 * block * gap, 2 * block * gap + gap):
                u, v = x[i], x[i + gap]
                x[i], x[i + gap] = (u + v) % Q, (u - v) * w % Q
        gap, blocks = gap * 2, blocks // 2
    scale = pow(N, -1, Q)
    return [value * scale % Q for value in x]


def error() -> int:
    """Centered binomial on 42 bits."""
    return secrets.randbits(21).bit_count() - secrets.randbits(21).bit_count()


def to_32(value: int) -> int:
    return ((value << 33) // Q + 1) // 2 % (1 << 32)


def from_32(word: int) -> int:
    return (word * Q + (1 << 31) >> 32) % Q


class Key:
    def __init__(self, coins: bytes) -> None:
        self.secret = forward([secrets.randbelow(3) - 1 for _ in range(N)])
        a = expand(hashlib.blake2b(f"ppspeech lattice key {N} {Q} ".encode() + coins).digest())
        product = inverse([x * y % Q for x, y in zip(a, self.secret, strict=True)])
        b = forward([(-value - error()) % Q for value in product])
        self.public = b"".join(value.to_bytes(7, "little") for value in b)
        self.identity = hashlib.sha256(self.public + coins).digest()[:8]

    def encrypted(self, message: list[int]) -> bytes:
        seed = os.urandom(64)
        product = inverse([x * y % Q for x, y in zip(forward(expand(seed)), self.secret, strict=True)])
        first = [(m - value - error()) % Q for m, value in zip(message, product, strict=True)]
        return seed + b"".join((value >> 2).to_bytes(6, "little") for value in first)

    def opened(self, first: list[int], second: list[int], kept: range) -> list[int]:
        product = forward([from_32(word) for word in second])
        product = inverse([x * y % Q for x, y in zip(product, self.secret, strict=True)])
        return [(word + to_32(product[place])) % (1 << 32) for word, place in zip(first, kept, strict=True)]


class Cut:
    """How X (rows x inner) W (inner x columns) is cut into polynomials."""

    def __init__(self, rows: int, inner: int, columns: int, limit: float, bits: int, fraction: int) -> None:
        self.sizes, self.bits = (rows, inner, columns), bits
        self.scale = Q / 2.0 ** (bits - fraction + 13)
        best = None
        for terms in sorted({-(-inner // size) for size in range(1, min(inner, N) + 1)}):
            n = -(-inner // terms)
            for groups in (-(-rows // min(rows, N // n)), rows):
                m = -(-rows // groups)
                q = min(columns, N // (n * m))
                q = -(-columns // -(-columns // q))
                counts = -(-rows // m), -(-inner // n), -(-columns // q)
                up = 20 + counts[0] * counts[1] * (64 + 6 * N)
                down = 20 + counts[0] * counts[2] * 4 * (m * q + N)
                rank = up + down, counts[0] * counts[1] * counts[2]
                if best is None or rank < best[0]:
                    best = rank, (m, n, q), counts, up, down
        assert best is not None
        _, self.block, (self.groups, self.terms, self.outputs), self.query_bytes, self.reply_bytes = best
        m, n, q = self.block
        self.kept = range(n - 1, m * n * q, n)
        said = (
            f"Job(precision=Precision(parameters=LatticeParameters(degree={N}, prime={Q}), limit={limit!r}, "
            f"weights=Scale(bits=28, fraction=13), result=Scale(bits={bits}, fraction={fraction})), "
            f"groups={self.groups}, terms={self.terms}, outputs={self.outputs}, kept={self.kept!r})"
        )
        self.identity = hashlib.sha256(said.encode()).digest()[:8]

    def query(self, key: Any, features: list[list[float]]) -> bytes:
        (rows, inner, _), (m, n, q) = self.sizes, self.block
        message = b"LATQ" + self.identity + key.identity
        for group in range(self.groups):
            for term in range(self.terms):
                polynomial = [0] * N
                for i in range(min(m, rows - group * m)):
                    for j in range(min(n, inner - term * n)):
                        value = features[group * m + i][term * n + j]
                        polynomial[i * n * q + n - 1 - j] = round(value * self.scale)
                message += key.encrypted(polynomial)
        return message

    def shares(self, key: Any, reply: bytes) -> list[list[int]]:
        (rows, _, columns), (m, _, q), drop = self.sizes, self.block, 32 - self.bits
        if len(reply) != self.reply_bytes or reply[:20] != b"LATR" + self.identity + key.identity:
            raise ConnectionError("not a reply of this product and key")
        words = [int.from_bytes(reply[at : at + 4], "little") for at in range(20, len(reply), 4)]
        found, size, kept = [[0] * columns for _ in range(rows)], len(self.kept) + N, len(self.kept)
        for group in range(self.groups):
            for output in range(self.outputs):
                at = (group * self.outputs + output) * size
                values = key.opened(words[at : at + kept], words[at + kept : at + size], self.kept)
                for i in range(min(m, rows - group * m)):
                    for column in range(min(q, columns - output * q)):
                        share = values[i * q + column]
                        share = (share + (1 << drop >> 1) >> drop) % (1 << self.bits)
                        found[group * m + i][output * q + column] = share
        return found
