"""Polynomials modulo X^n + 1 and a prime, fast: number-theoretic transform and multiply-accumulate in numba.

The transform is negacyclic and laid out as SEAL's (values at odd powers of the smallest primitive 2n-th root, in
bit-reversed order), so that what SEAL transformed can be used as it is. Butterflies are Harvey's: products by a
constant w use its quotient floor(w 2^64 / q), and values stay below 4q until the end (arXiv:1205.2926). Sums of
products run in 128 bits without reduction and end in one Montgomery reduction.

Everything releases the interpreter lock; `spread` divides work over threads.
"""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.extending import intrinsic

from ppspeech.arrays import Residues
from ppspeech.crypto.lattice.parameters import LatticeParameters

_WORD, _WIDE = ir.IntType(64), ir.IntType(128)


def _high_residue(_typing: Any, _left: Any, _right: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, words: Any) -> Any:
        product = builder.mul(builder.zext(words[0], _WIDE), builder.zext(words[1], _WIDE))
        return builder.trunc(builder.lshr(product, ir.Constant(_WIDE, 64)), _WORD)

    return numba.uint64(numba.uint64, numba.uint64), generate


def _accumulate(_typing: Any, _high: Any, _low: Any, _left: Any, _right: Any) -> Any:
    types: Any = numba.types
    pair = types.UniTuple(numba.uint64, 2)

    def generate(context: Any, builder: Any, signature: Any, words: Any) -> Any:
        high, low, left, right = (builder.zext(word, _WIDE) for word in words)
        upper = builder.shl(high, ir.Constant(_WIDE, 64))
        total = builder.add(builder.or_(upper, low), builder.mul(left, right))
        halves = (builder.trunc(builder.lshr(total, ir.Constant(_WIDE, 64)), _WORD), builder.trunc(total, _WORD))
        return context.make_tuple(builder, signature.return_type, halves)

    return pair(numba.uint64, numba.uint64, numba.uint64, numba.uint64), generate


high_residue: Any = intrinsic(_high_residue)
"""high_residue(left, right): the upper 64 bits of a product of two 64-bit words."""

accumulate: Any = intrinsic(_accumulate)
"""accumulate(high, low, left, right): the 128-bit number (high, low) plus a product of two words, as (high, low)."""


@numba.njit(nogil=True, cache=True)
def _forward(rows: Residues, roots: Residues, quotients: Residues, q: np.uint64, first: int, last: int) -> None:
    n = rows.shape[1]
    twice = q + q
    for r in range(first, last):
        x = rows[r]
        gap, blocks = n >> 1, 1
        while gap > 0:
            for block in range(blocks):
                w, quotient = roots[blocks + block], quotients[blocks + block]
                start = 2 * block * gap
                for i in range(start, start + gap):
                    u, v = x[i], x[i + gap]
                    if u >= twice:
                        u -= twice
                    t = w * v - high_residue(quotient, v) * q
                    x[i] = u + t
                    x[i + gap] = u + twice - t
            gap >>= 1
            blocks <<= 1
        for i in range(n):
            u = x[i]
            if u >= twice:
                u -= twice
            if u >= q:
                u -= q
            x[i] = u


@numba.njit(nogil=True, cache=True)
def _inverse(
    rows: Residues, roots: Residues, quotients: Residues, scale: np.uint64, scale_quotient: np.uint64, q: np.uint64,
    first: int, last: int,
) -> None:  # fmt: skip
    n = rows.shape[1]
    twice = q + q
    for r in range(first, last):
        x = rows[r]
        gap, blocks = 1, n >> 1
        while blocks > 0:
            for block in range(blocks):
                w, quotient = roots[blocks + block], quotients[blocks + block]
                start = 2 * block * gap
                for i in range(start, start + gap):
                    u, v = x[i], x[i + gap]
                    total = u + v
                    if total >= twice:
                        total -= twice
                    x[i] = total
                    difference = u + twice - v
                    x[i + gap] = w * difference - high_residue(quotient, difference) * q
            gap <<= 1
            blocks >>= 1
        for i in range(n):
            u = scale * x[i] - high_residue(scale_quotient, x[i]) * q
            if u >= q:
                u -= q
            x[i] = u


@numba.njit(nogil=True, cache=True, inline="always")
def _montgomery(high: np.uint64, low: np.uint64, q: np.uint64, q_inverse: np.uint64) -> Any:
    """(high 2^64 + low) / 2^64 mod q, for high below q."""
    less = high_residue(low * q_inverse, q)
    return high - less if high >= less else high + q - less


@numba.njit(nogil=True, cache=True)
def _multiply_accumulate(
    query: Residues, weights: Residues, results: Residues, q: np.uint64, q_inverse: np.uint64, first: int, last: int
) -> None:
    outputs, terms = weights.shape[1], weights.shape[2]
    zero = np.uint64(0)
    for j in range(first, last):
        for out in range(0, outputs, 2):  # four sums at a time keep the multiplier busy
            other = min(out + 1, outputs - 1)
            high0, low0, high1, low1 = zero, zero, zero, zero
            high2, low2, high3, low3 = zero, zero, zero, zero
            for term in range(terms):
                w, v = weights[j, out, term], weights[j, other, term]
                x, y = query[j, 0, term], query[j, 1, term]
                high0, low0 = accumulate(high0, low0, x, w)
                high1, low1 = accumulate(high1, low1, y, w)
                high2, low2 = accumulate(high2, low2, x, v)
                high3, low3 = accumulate(high3, low3, y, v)
            results[out, 0, j] = _montgomery(high0, low0, q, q_inverse)
            results[out, 1, j] = _montgomery(high1, low1, q, q_inverse)
            results[other, 0, j] = _montgomery(high2, low2, q, q_inverse)
            results[other, 1, j] = _montgomery(high3, low3, q, q_inverse)


@numba.njit(nogil=True, cache=True)
def _multiply_constant(
    rows: Residues, constants: Residues, quotients: Residues, q: np.uint64, first: int, last: int
) -> None:
    for r in range(first, last):
        for i in range(rows.shape[1]):
            u = constants[i] * rows[r, i] - high_residue(quotients[i], rows[r, i]) * q
            rows[r, i] = u - q if u >= q else u


def spread(work: Callable[[int, int], None], count: int, workers: int = 1) -> None:
    """Call `work(first, last)` on contiguous parts of `range(count)`, one thread a part."""
    parts = max(1, min(workers, count))
    if parts == 1:
        work(0, count)
        return
    bounds = [count * part // parts for part in range(parts + 1)]
    with ThreadPoolExecutor(parts - 1) as pool:
        running = [pool.submit(work, bounds[part], bounds[part + 1]) for part in range(1, parts)]
        work(bounds[0], bounds[1])
        for one in running:
            one.result()


def quotients_of(constants: Residues, q: int) -> Residues:
    """floor(c 2^64 / q) for constants below q: what makes products by them cheap."""
    return np.array([(int(c) << 64) // q for c in constants], dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Transform:
    """The tables of one ring and what is done with them. Get one by `transform_of`.

    Residues are `uint64` below the prime; arrays of polynomials have shape `(polynomials, degree)`.
    """

    prime: np.uint64
    degree: int
    roots: Residues
    root_quotients: Residues
    inverse_roots: Residues
    inverse_quotients: Residues
    scale: np.uint64
    scale_quotient: np.uint64
    prime_inverse: np.uint64

    @property
    def most_terms(self) -> int:
        """Products that one 128-bit sum can hold: beyond, the reduction would be wrong."""
        return (1 << 64) // int(self.prime)

    def forward_(self, rows: Residues, workers: int = 1) -> Residues:
        """Transform each row in place."""
        tables = self.roots, self.root_quotients, self.prime
        spread(functools.partial(_forward, rows, *tables), len(rows), workers)
        return rows

    def inverse_(self, rows: Residues, workers: int = 1) -> Residues:
        """Undo `forward_`, in place."""
        tables = self.inverse_roots, self.inverse_quotients, self.scale, self.scale_quotient, self.prime
        spread(functools.partial(_inverse, rows, *tables), len(rows), workers)
        return rows

    def multiply_(self, rows: Residues, constant: Residues, quotients: Residues, workers: int = 1) -> Residues:
        """Multiply each transformed row by one transformed polynomial whose `quotients_of` are given, in place."""
        spread(functools.partial(_multiply_constant, rows, constant, quotients, self.prime), len(rows), workers)
        return rows

    def for_accumulation(self, transformed: Residues, workers: int = 1) -> Residues:
        """Transformed rows in Montgomery form, w 2^64 mod q, as `multiply_accumulate` takes them."""
        radix = np.uint64((1 << 64) % int(self.prime))
        quotient = np.uint64((int(radix) << 64) // int(self.prime))
        rows = transformed.copy()
        return self.multiply_(rows, np.full(self.degree, radix), np.full(self.degree, quotient), workers)

    def multiply_accumulate(self, query: Residues, weights: Residues, workers: int = 1) -> Residues:
        """Sums of products of transformed polynomials, coefficient by coefficient. `query`: pairs (c0, c1), shape
        `(degree, 2, terms)`; at most `most_terms`. `weights`: from `for_accumulation`, shape `(degree, outputs,
        terms)`. Returns shape `(outputs, 2, degree)`, still transformed.
        """
        results = np.empty((weights.shape[1], 2, self.degree), dtype=np.uint64)
        operands = query, weights, results, self.prime, self.prime_inverse
        spread(functools.partial(_multiply_accumulate, *operands), self.degree, workers)
        return results


@functools.lru_cache(maxsize=8)
def transform_of(parameters: LatticeParameters) -> Transform:
    """The transform of a ring; its tables are computed once."""
    n, q = parameters.degree, parameters.prime
    root = _smallest_root(n, q)
    order = [int(format(i, f"0{n.bit_length() - 1}b")[::-1], 2) for i in range(n)]
    powers, inverses = [1], [1]
    inverse = pow(root, -1, q)
    for _ in range(n - 1):
        powers.append(powers[-1] * root % q)
        inverses.append(inverses[-1] * inverse % q)
    roots = np.array([powers[i] for i in order], dtype=np.uint64)
    inverse_roots = np.array([inverses[i] for i in order], dtype=np.uint64)
    scale = pow(n, -1, q)
    tables = (roots, quotients_of(roots, q), inverse_roots, quotients_of(inverse_roots, q))
    for table in tables:
        table.flags.writeable = False
    return Transform(
        np.uint64(q), n, *tables, np.uint64(scale), np.uint64((scale << 64) // q), np.uint64(pow(q, -1, 1 << 64))
    )


def _smallest_root(n: int, q: int) -> int:
    """The smallest primitive 2n-th root of one, SEAL's choice."""
    candidate = next(r for r in (pow(g, (q - 1) // (2 * n), q) for g in range(2, q)) if pow(r, n, q) == q - 1)
    square = candidate * candidate % q
    smallest, power = candidate, candidate
    for _ in range(n - 1):
        power = power * square % q
        smallest = min(smallest, power)
    return smallest
