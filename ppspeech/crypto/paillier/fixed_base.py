"""Powers of one base modulo a square, from tables: how a randomizer is made without a full exponentiation.

Write the exponent in bytes, d_0 + 256 d_1 + ...; the table holds base^(d 256^j) for every place j and byte d, and a
power is a product of one entry a place: no squarings (Brickell, Gordon, McCurley, Wilson 1992).

The modulus is always a square M^2 (M = N, p or q), which halves the work again. Any unit of Z_{M^2} is a (1 + l M) with
a = its residue mod M and l mod M, so

    prod_j a_j (1 + l_j M)  =  (prod_j a_j) (1 + M sum_j l_j)   mod M^2 :

the long product runs over numbers of half the length, and the l_j are only added.
"""

import secrets
from collections.abc import Sequence

import gmpy2
from gmpy2 import mpz

from ppspeech.errors import NotInGroupError

BATCH = 64
"""Exponents that are worked on together: their products and two tables fit a core's own cache."""


class FixedBase:
    """Tables for `base ** exponent % modulus ** 2`.

    Look-ups and products depend on the exponent, so timing and cache traces of this process do too; a party that runs
    hostile code beside its keys needs more than this library (stated limit). `length`: bytes of the longest exponent;
    the tables take about `length * 512` numbers as long as M.

    >>> seven = FixedBase(mpz(7), mpz(1009), length=2)
    >>> seven.powers([bytes([3, 0]), bytes([1, 2])]) == [pow(7, 3 + 256, 1009**2), pow(7, 512, 1009**2)]
    True
    """

    def __init__(self, base: mpz, modulus: mpz, length: int) -> None:
        self.modulus = modulus
        self.square = modulus * modulus
        if gmpy2.gcd(base, modulus) != 1:
            raise NotInGroupError("the base has no inverse modulo the square: it shares a factor with the modulus")
        if length < 1:
            raise ValueError(f"exponents have at least one byte, got {length}")
        self._residues: list[list[mpz]] = []
        self._slopes: list[list[mpz]] = []
        for _ in range(length):
            base = self._add_place(base)

    def _add_place(self, base: mpz) -> mpz:
        """Append the table of base^0..base^255 and return base^256."""
        residues, slopes = [mpz(1)], [mpz(0)]
        step = gmpy2.invert(base % self.modulus, self.modulus)
        power, inverse = base, step
        for _ in range(255):
            carry, residue = gmpy2.f_divmod(power, self.modulus)
            residues.append(residue)
            slopes.append(carry * inverse % self.modulus)
            power = power * base % self.square
            inverse = inverse * step % self.modulus
        self._residues.append(residues)
        self._slopes.append(slopes)
        return power

    @property
    def length(self) -> int:
        """Bytes of the longest exponent."""
        return len(self._residues)

    def random_powers(self, count: int) -> list[mpz]:
        """`base` to `count` independent exponents of `length` random bytes."""
        powers = []
        for start in range(0, count, BATCH):
            batch = min(BATCH, count - start)
            powers += self.powers([secrets.token_bytes(batch) for _ in range(self.length)])
        return powers

    def powers(self, columns: Sequence[bytes]) -> list[mpz]:
        """`base` to several exponents: byte i of the `length` columns, lowest place first, is of exponent i."""
        if len(columns) != self.length:
            raise ValueError(f"exponents have {self.length} bytes, got {len(columns)}")
        odd = self.length % 2
        products = [mpz(1)] * len(columns[0])
        if odd:
            products = [self._residues[0][byte] for byte in columns[0]]
        # Two short factors are joined before each reduction: the quotient is then as long as the modulus, where
        # division is at its best. Place by place, not exponent by exponent, so that the tables stay in cache.
        for place in range(odd, self.length, 2):
            low, high = self._residues[place], self._residues[place + 1]
            bytes_low, bytes_high = columns[place], columns[place + 1]
            products = [
                product * (low[i] * high[j]) % self.square
                for product, i, j in zip(products, bytes_low, bytes_high, strict=True)
            ]
        slopes = [mpz(0)] * len(products)
        for table, column in zip(self._slopes, columns, strict=True):
            slopes = [slope + table[i] for slope, i in zip(slopes, column, strict=True)]
        return [
            product * (1 + slope % self.modulus * self.modulus) % self.square
            for product, slope in zip(products, slopes, strict=True)
        ]
