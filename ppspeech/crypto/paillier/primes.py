"""Primes for keys, from the operating system's generator, and the key sizes that are let through."""

import secrets
from collections.abc import Callable

import gmpy2
from gmpy2 import mpz

from ppspeech.errors import NotInGroupError, PrivacyError

SECURE_BITS = 2048
"""The smallest modulus that is accepted without `insecure_demo`: about 112 bits of security; 3072 gives 128."""

DEFAULT_BITS = 3072

_SMALL_PRIMES = gmpy2.primorial(2000)


def check_key_size(bits: int, *, insecure_demo: bool) -> None:
    """Refuse a modulus that can be factored, unless the caller says that nothing depends on it. Raises PrivacyError for
    fewer than 2048 bits without `insecure_demo`, an odd number of bits, or fewer than 32.
    """
    if bits < 32 or bits % 2:
        raise PrivacyError(f"a modulus has an even number of bits, at least 32, got {bits}")
    if bits < SECURE_BITS and not insecure_demo:
        raise PrivacyError(
            f"a {bits}-bit modulus can be factored and protects nothing: use at least {SECURE_BITS} bits, "
            "or say insecure_demo=True if that does not matter here"
        )


def check_modulus(n: mpz, *, insecure_demo: bool) -> None:
    """Refuse a public modulus that is too short or plainly no product of two large primes. Raises PrivacyError as
    `check_key_size`, NotInGroupError for a prime, a square, or a number with a small factor.
    """
    check_key_size(n.bit_length(), insecure_demo=insecure_demo)
    if gmpy2.is_prime(n) or gmpy2.is_square(n) or gmpy2.gcd(n, _SMALL_PRIMES) != 1:
        raise NotInGroupError("the modulus is no product of two large primes: this is not a public key")


def check_primes(p: mpz, q: mpz) -> None:
    """Refuse a secret key that is not made of two different primes."""
    if p == q or not (gmpy2.is_prime(p) and gmpy2.is_prime(q)):
        raise NotInGroupError("a key needs two different primes")


def random_prime(bits: int, *, blum: bool = True) -> mpz:
    """A prime of exactly `bits` bits whose two top bits are set, so that a product of two has exactly `2 * bits`.
    `bits`: at least 8. `blum`: ask for p = 3 mod 4, so that -1 is no square.

    Candidates are independent draws rather than a walk from one start, which would favor primes after long gaps.
    """
    fixed = (3 << (bits - 2)) | (3 if blum else 1)
    while True:
        candidate = mpz(secrets.randbits(bits)) | fixed
        if gmpy2.is_prime(candidate, 40):
            return candidate


def prime_pair(bits: int, fits: Callable[[mpz, mpz], bool]) -> tuple[mpz, mpz]:
    """Two different Blum primes whose product has exactly `bits` bits and that satisfy `fits(p, q)`.

    They are never close to each other (Fermat's method would find them), and p - 1 and q - 1 share no factor but 2.
    """
    half = bits // 2
    while True:
        p, q = random_prime(half), random_prime(half)
        apart = abs(p - q).bit_length() > half - 100
        if p != q and apart and gmpy2.gcd(p - 1, q - 1) == 2 and fits(p, q):
            return p, q
