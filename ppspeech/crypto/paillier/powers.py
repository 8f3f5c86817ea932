"""Many products of powers of the same bases: prod_i b_i^(w_ji) for every row j of a weight matrix.

Straus's method with signed sliding windows. Every weight is written with odd digits of `window` bits, at most one
in `window` places (the width-w non-adjacent form); the odd powers of every base are computed once and shared by all
rows, and a row costs one product a non-zero digit and one squaring a place. Factors with negative digits are gathered
in a second product that is inverted once a row.

The weights are public or belong to whoever computes: the time depends on how many digits are not zero.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from ppspeech.crypto.paillier.cores import map_numbers
from ppspeech.errors import RangeError


def signed_windows(weights: NDArray[np.int64], window: int) -> NDArray[np.int64]:
    """Digits of the width-`window` non-adjacent form. `weights`: shape `(...)`, magnitudes below 2^62. `window`: 2 or
    more. Returns shape `(places, ...)`: digits that are zero or odd and smaller than 2^(window - 1) in magnitude, with
    `sum_place digit 2^place = weight`.

    >>> signed_windows(np.array([7]), 2).ravel().tolist()
    [-1, 0, 0, 1]
    """
    rest = np.array(weights, dtype=np.int64)
    outside = np.flatnonzero((rest >= 1 << 62) | (rest <= -(1 << 62)))
    if outside.size:
        raise RangeError(f"weights must stay below 2^62 in magnitude, got {int(rest.ravel()[outside[0]])}")
    half, full = 1 << (window - 1), 1 << window
    places = []
    while rest.any():
        signed = (rest + half) % full - half
        digits = np.where(rest & 1, signed, 0)
        places.append(digits)
        rest = (rest - digits) >> 1
    return np.stack(places) if places else np.zeros((0, *rest.shape), np.int64)


@dataclass(frozen=True, slots=True)
class RecodedWeights:
    """A weight matrix recoded once, to be applied to many vectors of bases. `window`: bits of a digit; every base gets
    2^(window - 2) odd powers. `steps`: for every row, from the highest place down, the table positions to multiply in
    and those to divide by.
    """

    rows: int
    terms: int
    window: int
    steps: tuple[tuple[tuple[tuple[int, ...], tuple[int, ...]], ...], ...]

    @classmethod
    def of(cls, weights: NDArray[np.int64]) -> "RecodedWeights":
        """Recode integer weights of shape `(rows, terms)`, with the window that needs the fewest products."""
        if weights.ndim != 2 or not np.issubdtype(weights.dtype, np.signedinteger):
            raise RangeError(
                f"weights must be signed integers of shape (rows, terms), got {weights.dtype} of shape {weights.shape}"
            )
        rows, terms = weights.shape
        bits = max(int(weights.max(initial=0)), -int(weights.min(initial=0))).bit_length()
        window = min(range(2, 13), key=lambda w: (1 << (w - 2)) + rows * (bits + 1) / (w + 1))
        digits = signed_windows(weights, window)
        positions = (np.abs(digits) >> 1) + (np.arange(terms) << (window - 2))
        steps = tuple(
            tuple(
                (tuple(where[row][sign[row] > 0].tolist()), tuple(where[row][sign[row] < 0].tolist()))
                for where, sign in zip(positions[::-1], digits[::-1], strict=True)
            )
            for row in range(rows)
        )
        return cls(rows, terms, window, steps)

    def apply(self, bases: Sequence[mpz], modulus: mpz, *, root: mpz | None = None, workers: int = 1) -> list[mpz]:
        """The products of powers, one a row.

        Args:
            bases: `terms` units mod `modulus`.
            modulus: odd.
            root: the square root of `modulus`, where it has one. Table entries are then kept as a (1 + l root) with a
                below the root, as in `fixed_base`: the products run over numbers of half the length.
            workers: processes that share the work. Each takes some of the terms for all rows, so that no table has to
                travel, and the parts are multiplied together.
        """
        if len(bases) != self.terms:
            raise RangeError(f"the weights are for {self.terms} terms, got {len(bases)} ciphertexts")

        def partial_products(part: Sequence[int]) -> list[mpz]:
            own = [bases[term] for term in part]
            first = (part[0] if part else 0) << (self.window - 2)
            if root is None:
                powers = [power for base in own for power in self._odd_powers(base, modulus)]
                return [self._row(row, powers, first, modulus) for row in range(self.rows)]
            powers = [number for base in own for number in self._split_odd_powers(base, root)]
            residues, slopes = powers[::2], powers[1::2]
            return [self._split_row(row, residues, slopes, first, root) for row in range(self.rows)]

        size = (modulus.bit_length() + 7) // 8
        parts = map_numbers(partial_products, range(self.terms), size=size, workers=workers)
        products = parts[: self.rows]
        for start in range(self.rows, len(parts), max(1, self.rows)):
            more = parts[start : start + self.rows]
            products = [left * right % modulus for left, right in zip(products, more, strict=True)]
        return products

    def _odd_powers(self, base: mpz, modulus: mpz) -> list[mpz]:
        square, powers = base * base % modulus, [base]
        for _ in range((1 << (self.window - 2)) - 1):
            powers.append(powers[-1] * square % modulus)
        return powers

    def _split_odd_powers(self, base: mpz, root: mpz) -> list[mpz]:
        """The odd powers mod root^2 as a (1 + l root): a, l, a, l, ...

        (a (1 + l root)) (b (1 + m root)) with a b = c + k root is c (1 + (l + m + k / c) root).
        """
        carry, residue = gmpy2.f_divmod(base, root)
        inverse = gmpy2.invert(residue, root)
        slope = carry * inverse % root
        carry, square = gmpy2.f_divmod(residue * residue, root)
        square_inverse = inverse * inverse % root
        square_slope = (2 * slope + carry * square_inverse) % root
        powers = [residue, slope]
        for _ in range((1 << (self.window - 2)) - 1):
            carry, residue = gmpy2.f_divmod(residue * square, root)
            inverse = inverse * square_inverse % root
            slope = (slope + square_slope + carry * inverse) % root
            powers += [residue, slope]
        return powers

    def _row(self, row: int, powers: list[mpz], first: int, modulus: mpz) -> mpz:
        """One row's product over the terms whose odd powers are given, the first of them at position `first`."""
        above, below = mpz(1), mpz(1)
        for times, over in self._within(row, first, len(powers)):
            above, below = above * above % modulus, below * below % modulus
            for position in times:
                above = above * powers[position - first] % modulus
            for position in over:
                below = below * powers[position - first] % modulus
        return above * gmpy2.invert(below, modulus) % modulus

    def _split_row(self, row: int, residues: list[mpz], slopes: list[mpz], first: int, root: mpz) -> mpz:
        slope = mpz(0)
        for times, over in self._within(row, first, len(slopes)):
            slope += slope
            slope += sum(slopes[i - first] for i in times) - sum(slopes[i - first] for i in over)
        return self._row(row, residues, first, root * root) * (1 + slope % root * root) % (root * root)

    def _within(self, row: int, first: int, count: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """A row's steps, only the table positions from `first` on, `count` of them; they are in rising order."""
        for step in self.steps[row]:
            times, over = (part[bisect_left(part, first) : bisect_left(part, first + count)] for part in step)
            yield times, over
