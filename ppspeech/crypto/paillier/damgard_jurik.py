"""Damgard and Jurik's generalization of Paillier (2001): plaintexts mod N^s, ciphertexts mod N^(s + 1).

    c = (1 + N)^m r^(N^s)  mod N^(s + 1)

A ciphertext is (s + 1) / s times as long as its plaintext, where Paillier's is twice as long; s = 1 is Paillier, and
the two share ciphertexts. Secure under the same assumption (DCR) for every s.
"""

from functools import cached_property
from typing import NoReturn

import gmpy2
from gmpy2 import mpz

from ppspeech.crypto.paillier.group import Ciphertext, CiphertextGroup
from ppspeech.crypto.paillier.primes import (
    DEFAULT_BITS,
    SECURE_BITS,
    check_key_size,
    check_modulus,
    check_primes,
    prime_pair,
)
from ppspeech.crypto.randomness import uniform_unit
from ppspeech.errors import NotInGroupError, RangeError, WrongKeyError


class DamgardJurikPublicKey(CiphertextGroup):
    """The modulus N and the exponent s. `s`: plaintexts are integers mod N^s; 1 to 16."""

    def __init__(self, n: int | mpz, s: int, *, insecure_demo: bool = False) -> None:
        if not 1 <= s <= 16:
            raise RangeError(f"s lies between 1 and 16, got {s}")
        modulus = mpz(n)
        check_modulus(modulus, insecure_demo=insecure_demo)
        self.s = s
        super().__init__(f"damgard-jurik {s}", modulus, modulus ** (s + 1), modulus**s)

    def __repr__(self) -> str:
        demo = " INSECURE demo," if self.n.bit_length() < SECURE_BITS else ""
        return f"DamgardJurikPublicKey({self.n.bit_length()} bits, s={self.s},{demo} id {self.key_id[:4].hex()})"

    def _embed(self, value: mpz) -> mpz:
        """(1 + N)^m = sum_i binomial(m, i) N^i, where the terms beyond i = s vanish."""
        term = total = mpz(1)
        for i in range(1, self.s + 1):
            term = term * (value - i + 1) * self.n * gmpy2.invert(i, self.modulus) % self.modulus
            total += term
        return total % self.modulus

    def _fresh_zeros(self, count: int) -> list[mpz]:
        return [gmpy2.powmod(uniform_unit(self.n), self.plaintext_modulus, self.modulus) for _ in range(count)]


class DamgardJurikSecretKey:
    """The primes of a Damgard-Jurik key. Never shown, pickled or copied."""

    def __init__(self, p: int | mpz, q: int | mpz, s: int, *, insecure_demo: bool = False) -> None:
        first, second = mpz(p), mpz(q)
        check_primes(first, second)
        if gmpy2.gcd(first * second, (first - 1) * (second - 1)) != 1:
            raise NotInGroupError("these primes make no Damgard-Jurik key: one divides the other minus 1")
        self.public = DamgardJurikPublicKey(first * second, s, insecure_demo=insecure_demo)
        self._first, self._second = (_Half(prime, s, self.public.n) for prime in (first, second))

    def __repr__(self) -> str:
        return repr(self.public).replace("Public", "Secret")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret key is never pickled or copied: keep it in the process that made it")

    def decrypt(self, ciphertext: Ciphertext) -> int:
        """The plaintext, as the residue nearest to zero."""
        if ciphertext.key_id != self.public.key_id:
            raise WrongKeyError("the ciphertext belongs to another key")
        mod_p, mod_q = self._first.plaintext(ciphertext.value), self._second.plaintext(ciphertext.value)
        p_part, q_part = self._first.order, self._second.order
        lifted = mod_q + (mod_p - mod_q) * gmpy2.invert(q_part, p_part) % p_part * q_part
        return self.public.centered(lifted)


class _Half:
    """Decryption modulo one prime: a logarithm in the numbers 1 mod p, by its power series.

    c^(p - 1) = (1 + N)^(m (p - 1)) mod p^(s + 1), since r^(N^s (p - 1)) = 1. With log(1 + x) = x - x^2/2 + ..., which
    stops after s terms because p divides x, m = log(c^(p - 1)) / log((1 + N)^(p - 1)) mod p^s. (Damgard and Jurik give
    an equivalent recursion.)
    """

    def __init__(self, prime: mpz, s: int, n: mpz) -> None:
        self._prime, self._s = prime, s
        self._modulus = prime ** (s + 1)
        self.order = prime**s
        self._generator = n + 1

    @cached_property
    def _unscale(self) -> mpz:
        return gmpy2.invert(self._logarithm(self._generator), self.order)

    def _logarithm(self, base: mpz) -> mpz:
        """log(base^(p - 1)) / p mod p^s."""
        x = gmpy2.powmod_sec(base % self._modulus, self._prime - 1, self._modulus) - 1
        total, power = mpz(0), mpz(1)
        for i in range(1, self._s + 1):
            power = power * x % self._modulus
            total += (power if i % 2 else -power) * gmpy2.invert(i, self._modulus)
        return total % self._modulus // self._prime

    def plaintext(self, ciphertext: mpz) -> mpz:
        """The plaintext mod p^s."""
        return self._logarithm(ciphertext) * self._unscale % self.order


def generate_damgard_jurik(
    bits: int = DEFAULT_BITS, *, s: int = 2, insecure_demo: bool = False
) -> DamgardJurikSecretKey:
    """Make a key from the operating system's randomness.

    >>> key = generate_damgard_jurik(64, s=3, insecure_demo=True)
    >>> key.decrypt(key.public.finish(key.public.scale(key.public.encrypt(10**30), -7))) == -7 * 10**30
    True
    """
    check_key_size(bits, insecure_demo=insecure_demo)
    p, q = prime_pair(bits, lambda p, q: gmpy2.gcd(p * q, (p - 1) * (q - 1)) == 1)
    return DamgardJurikSecretKey(p, q, s, insecure_demo=insecure_demo)
