"""Operations on shares, as the second party. Without a wire they are counted: what must be prepared."""

import os
import secrets
from collections import Counter, defaultdict, deque
from typing import Any

from tests.wire.frames import entry, pack, packed, unpack
from tests.wire.transfers import CODE_COLUMNS, COLUMNS, Setup, xor

ASK, TABLES, PRODUCT, OPEN = 208, 209, 210, 211
Shape = tuple[int, int]


class Engine:
    """Takes correlations in the order in which they were prepared."""

    def __init__(self, wire: Any = None) -> None:
        self.wire = wire
        self.tables: Counter[Shape] = Counter()
        self.products = 0
        self._asked: defaultdict[Shape, deque[tuple[int, int]]] = defaultdict(deque)
        self._products: deque[tuple[int, int, int, int]] = deque()

    def prepare(self, setup: Setup, tables: Counter[Shape], products: int) -> None:
        if tables:
            shapes = [shape for shape in sorted(tables) for _ in range(tables[shape])]
            choices = [os.urandom(1)[0] & ((1 << bits) - 1) for bits, _ in shapes]
            first = setup.code.done
            rows = setup.code.rows(self.wire, choices, CODE_COLUMNS)
            for number, (shape, choice, row) in enumerate(zip(shapes, choices, rows, strict=True)):
                pad = int.from_bytes(setup.code.hash.wide(row, first + number)[:8], "little")
                self._asked[shape].append((choice, pad & ((1 << shape[1]) - 1)))
        if products:
            bits = [secrets.randbits(1) for _ in range(products)]
            first = setup.receiver.done
            rows = setup.receiver.rows(self.wire, bits, COLUMNS)
            got = [word(setup.receiver.hash.narrow(row, first + n)) for n, row in enumerate(rows)]
            first = setup.sender.done
            rows = setup.sender.rows(self.wire, products, COLUMNS)
            for n, (bit, residue, row) in enumerate(zip(bits, got, rows, strict=True)):
                zero, one = (
                    word(setup.sender.hash.narrow(each, first + n)) for each in (row, xor(row, setup.sender.delta))
                )
                self._products.append((bit, residue, zero, one - zero))

    def ask(self, *groups: tuple[Shape, list[int]]) -> list[list[int]]:
        """The entries, one list a group, of tables that the first party offers."""
        if self.wire is None:
            for shape, indices in groups:
                self.tables[shape] += len(indices)
            return [[0] * len(indices) for _, indices in groups]
        message, pads, sizes = b"", [], []
        for (bits, width), indices in groups:
            taken = [self._asked[bits, width].popleft() for _ in indices]
            message += pack([index ^ choice for index, (choice, _) in zip(indices, taken, strict=True)], bits)
            pads.append([pad for _, pad in taken])
            sizes.append(packed(len(indices) << bits, width))
        self.wire.send(ASK, message)
        reply, at, found = self.wire.receive(TABLES, sum(sizes)), 0, []
        for ((bits, width), indices), own, size in zip(groups, pads, sizes, strict=True):
            part = reply[at : at + size]
            found.append([entry(part, (j << bits) + index, width) ^ own[j] for j, index in enumerate(indices)])
            at += size
        return found

    def times(self, bits: list[int], values: list[int], k: int) -> list[int]:
        """Shares of bit times value, mod 2^k."""
        if self.wire is None:
            self.products += len(bits)
            return [0] * len(bits)
        mask, size = (1 << k) - 1, (k + 1 + 7) // 8
        taken = [self._products.popleft() for _ in bits]
        message = b""
        for bit, value, (choice, _, _, step) in zip(bits, values, taken, strict=True):
            sent = ((-value if choice else value) - step) & mask
            message += (sent | (bit ^ choice) << k).to_bytes(size, "little")
        other = self.wire.receive(PRODUCT, len(message))
        self.wire.send(PRODUCT, message)
        found = []
        for n, (bit, value, (choice, got, zero, _)) in enumerate(zip(bits, values, taken, strict=True)):
            theirs = int.from_bytes(other[n * size : (n + 1) * size], "little")
            product = got - zero + (value + theirs if choice else 0)
            flipped = bit ^ choice ^ (theirs >> k & 1)
            found.append((value - product if flipped else product) & mask)
        return found

    def opened(self, own: list[int], k: int) -> list[int]:
        if self.wire is None:
            return own
        other = unpack(self.wire.receive(OPEN, packed(len(own), k)), len(own), k)
        return [(one + two) % (1 << k) for one, two in zip(own, other, strict=True)]


def word(block: bytes) -> int:
    return int.from_bytes(block[:8], "little")


def carry(engine: Engine, values: list[int], width: int) -> list[int]:
    size = 6 if width <= 24 and -(-width // 6) < -(-width // 5) else 5
    blocks, mask = -(-width // size), (1 << size) - 1
    moved = [(value & ((1 << width) - 1)) << (blocks * size - width) for value in values]
    (pairs,) = engine.ask(((size, 2), [value >> (size * b) & mask for value in moved for b in range(blocks)]))
    while blocks > 4:
        rows = [pairs[at : at + blocks] for at in range(0, len(pairs), blocks)]
        whole = [pair for row in rows for pair in row + [0] * (-blocks % 4)]
        (pairs,) = engine.ask(((8, 2), [joined(whole[at : at + 4]) for at in range(0, len(whole), 4)]))
        blocks = -(-blocks // 4)
    index = []
    for at in range(0, len(pairs), blocks):
        rest = sum(pair << (2 * p + 1) for p, pair in enumerate(pairs[at + 1 : at + blocks]))
        index.append(pairs[at] & 1 | rest)
    return engine.ask(((2 * blocks - 1, 1), index))[0]


def joined(pairs: list[int]) -> int:
    return sum(pair << (2 * place) for place, pair in enumerate(pairs))


def walking_carry(engine: Engine, values: list[int], width: int) -> list[int]:
    steps, at, carried = -(-width // 5), 0, [0] * len(values)
    for number in range(steps):
        size = (width - at) // (steps - number)
        index = [value >> at & ((1 << size) - 1) | c << size for value, c in zip(values, carried, strict=True)]
        (carried,) = engine.ask(((size + (at > 0), 1), index))
        at += size
    return carried


def is_negative(engine: Engine, values: list[int], k: int, how: Any = carry) -> list[int]:
    if k == 1:
        return values
    return [c ^ (value >> (k - 1) & 1) for c, value in zip(how(engine, values, k - 1), values, strict=True)]


def maximum(engine: Engine, left: list[int], right: list[int], k: int) -> list[int]:
    """right + [left >= right] (left - right); the first party alone turns bits round."""
    difference = [(one - two) % (1 << k) for one, two in zip(left, right, strict=True)]
    gained = engine.times(is_negative(engine, difference, k), difference, k)
    return [(two + more) % (1 << k) for two, more in zip(right, gained, strict=True)]


def log_add(engine: Engine, left: list[int], right: list[int], k: int, fraction: int) -> list[int]:
    step = max(0, fraction - 3)
    bits = k - step - 6
    if 12 < bits <= 2 * (8 if len(left) <= 400 else 7):
        upper = [bits // 2, bits - bits // 2]
    else:
        upper = [6] * ((bits - 1) // 6) + [(bits - 1) % 6 + 1]
    difference = [(one - two) % (1 << k) for one, two in zip(left, right, strict=True)]
    short = [value >> step for value in difference]
    groups, at = [((6, k + 2), [value & 63 for value in short])], 6
    for width in upper:
        groups.append(((width, 3), [value >> at & ((1 << width) - 1) for value in short]))
        at += width
    found, *parts = engine.ask(*groups)
    corrections, place = [value & ((1 << k) - 1) for value in found], [value >> k for value in found]
    top, middle = parts[-1], parts[:-1]
    while len(middle) > 1:
        pairs = [
            [low | high << 3 for low, high in zip(*middle[n : n + 2], strict=True)]
            for n in range(0, len(middle) - 1, 2)
        ]
        middle = engine.ask(*(((6, 3), pair) for pair in pairs)) + middle[2 * len(pairs) :]
    index = [p | t << 2 for p, t in zip(place, top, strict=True)]
    if middle:
        index = [i | m << 5 for i, m in zip(index, middle[0], strict=True)]
    (last,) = engine.ask(((8 if middle else 5, 2), index))
    products = engine.times([x & 1 for x in last] + [x >> 1 for x in last], difference + corrections, k)
    half = len(right)
    return [(r + products[n] + products[half + n]) % (1 << k) for n, r in enumerate(right)]


def choose(engine: Engine, rows: list[list[int]], index: list[int], k: int) -> list[int]:
    total, candidates = [row[i] for row, i in zip(rows, index, strict=True)], len(rows[0])
    while candidates > 1:
        bits = min(8, max(1, (candidates - 1).bit_length()))
        tables = -(-candidates >> bits)
        (found,) = engine.ask(((bits, k), [i & ((1 << bits) - 1) for i in index for _ in range(tables)]))
        index, candidates = [i >> bits for i in index], tables
        total = [t + found[n * tables + i] for n, (t, i) in enumerate(zip(total, index, strict=True))]
    return [t % (1 << k) for t in total]


def all_bits(engine: Engine, rows: list[list[int]]) -> list[int]:
    while (count := len(rows[0])) > 1:
        parts = -(-count // 8)
        sizes = [count // parts + (part < count % parts) for part in range(parts)]
        groups, at = [], 0
        for size in sizes:
            groups.append(((size, 1), [sum(bit << n for n, bit in enumerate(row[at : at + size])) for row in rows]))
            at += size
        rows = [list(row) for row in zip(*engine.ask(*groups), strict=True)]
    return [row[0] for row in rows]


def best_places(engine: Engine, rows: list[list[int]], k: int) -> list[int]:
    """Our part of the place, counted from 1, of each row's largest."""
    count = len(rows[0])
    if count == 1:
        return [0] * len(rows)
    pairs = [(low, high) for low in range(count) for high in range(low + 1, count)]
    loses = is_negative(engine, [(row[low] - row[high]) % (1 << k) for row in rows for low, high in pairs], k)
    wins = []
    for at in range(len(rows)):
        lost = dict(zip(pairs, loses[at * len(pairs) : (at + 1) * len(pairs)], strict=True))
        wins += [[lost[min(a, b), max(a, b)] for b in range(count) if b != a] for a in range(count)]
    won, places = all_bits(engine, wins), []
    for at in range(len(rows)):
        place = 0
        for candidate in range(count):
            place ^= won[at * count + candidate] * (candidate + 1)
        places.append(place)
    return places
