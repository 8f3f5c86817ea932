"""Benaloh's cryptosystem (1994): small plaintexts mod r in ciphertexts as short as N.

    c = y^m u^r  mod N,   r divides p - 1, r coprime to (p - 1) / r and to q - 1

Decryption needs y to have an r-part of full order mod p. Benaloh's own condition, y^((p - 1)(q - 1) / r) != 1, does not
ensure that when r is composite: some keys decrypt two plaintexts to one (Fousse, Lafourcade, Alnuaimi 2011). The
corrected condition is y^((p - 1)(q - 1) / f) != 1 for *every prime factor* f of r; mod p, where r lives, it reads
y^((p - 1) / f) != 1. Security: r-th powers mod N look like random units (higher residuosity).
"""

import math
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
    random_prime,
)
from ppspeech.crypto.randomness import uniform_below, uniform_unit
from ppspeech.errors import NotInGroupError, RangeError, WrongKeyError

LARGEST_R = 1 << 32
"""Decryption takes about 2 sqrt(r) products."""


class BenalohPublicKey(CiphertextGroup):
    """The modulus N, the plaintext modulus r and the generator y. `r`: odd, 3 to 2^32."""

    def __init__(self, n: int | mpz, r: int, y: int | mpz, *, insecure_demo: bool = False) -> None:
        modulus, generator = mpz(n), mpz(y)
        check_modulus(modulus, insecure_demo=insecure_demo)
        _check_r(r)
        if not 1 < generator < modulus or gmpy2.gcd(generator, modulus) != 1:
            raise NotInGroupError("y must lie between 1 and N and have an inverse mod N")
        self.r, self.y = r, generator
        super().__init__(f"benaloh {r} {int(generator):x}", modulus, modulus, mpz(r))

    def __repr__(self) -> str:
        demo = " INSECURE demo," if self.n.bit_length() < SECURE_BITS else ""
        return f"BenalohPublicKey({self.n.bit_length()} bits, r={self.r},{demo} id {self.key_id[:4].hex()})"

    def _embed(self, value: mpz) -> mpz:
        # One to r, never 0, which powmod_sec refuses; y^r is an r-th power, so it encrypts zero.
        return gmpy2.powmod_sec(self.y, value % self.r or self.r, self.modulus)

    def _fresh_zeros(self, count: int) -> list[mpz]:
        return [gmpy2.powmod(uniform_unit(self.n), self.r, self.modulus) for _ in range(count)]


class BenalohSecretKey:
    """The primes of a Benaloh key. Never shown, pickled or copied. `p`: the prime with r | p - 1. Raises
    NotInGroupError if r does not divide p - 1 exactly once, or y would make decryption ambiguous.
    """

    def __init__(self, p: int | mpz, q: int | mpz, r: int, y: int | mpz, *, insecure_demo: bool = False) -> None:
        first, second = mpz(p), mpz(q)
        check_primes(first, second)
        _check_r(r)
        cofactor, rest = divmod(first - 1, mpz(r))
        if rest or gmpy2.gcd(cofactor, r) != 1 or gmpy2.gcd(second - 1, r) != 1:
            raise NotInGroupError(f"r = {r} must divide p - 1, and be coprime to (p - 1) / r and to q - 1")
        if not generates(mpz(y), first, r):
            raise NotInGroupError(
                f"y has no part of full order {r} mod p: several plaintexts would decrypt to one "
                "(Fousse, Lafourcade, Alnuaimi 2011)"
            )
        self.public = BenalohPublicKey(first * second, r, y, insecure_demo=insecure_demo)
        self._prime, self._cofactor = first, cofactor
        root = gmpy2.powmod_sec(mpz(y) % first, cofactor, first)
        # Baby steps root^0..root^(width - 1); giant steps divide by root^width.
        self._width = math.isqrt(r - 1) + 1
        self._baby: dict[mpz, int] = {}
        step = mpz(1)
        for i in range(self._width):
            self._baby[step] = i
            step = step * root % first
        self._giant = gmpy2.invert(step, first)

    def __repr__(self) -> str:
        return repr(self.public).replace("Public", "Secret")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret key is never pickled or copied: keep it in the process that made it")

    def decrypt(self, ciphertext: Ciphertext) -> int:
        """The plaintext, as the residue nearest to zero, by baby steps and giant steps."""
        if ciphertext.key_id != self.public.key_id:
            raise WrongKeyError("the ciphertext belongs to another key")
        target = gmpy2.powmod_sec(ciphertext.value % self._prime, self._cofactor, self._prime)
        for giant in range(self._width):
            baby = self._baby.get(target)
            if baby is not None:
                return self.public.centered(mpz(giant * self._width + baby))
            target = target * self._giant % self._prime
        raise NotInGroupError("the number is no ciphertext of this key: it has no logarithm")


def generates(y: mpz, p: mpz, r: int) -> bool:
    """Whether decryption with y is unambiguous: y^((p - 1) / f) != 1 mod p for every prime factor f of r."""
    return y % p != 0 and all(gmpy2.powmod(y, (p - 1) // f, p) != 1 for f in prime_factors(r))


def prime_factors(number: int) -> list[int]:
    """The different primes that divide a number, by trial division.

    >>> prime_factors(3 * 3 * 35)
    [3, 5, 7]
    """
    found, factor = [], 2
    while factor * factor <= number:
        if number % factor == 0:
            found.append(factor)
            while number % factor == 0:
                number //= factor
        factor += 1
    return [*found, number] if number > 1 else found


def generate_benaloh(bits: int = DEFAULT_BITS, *, r: int = 65537, insecure_demo: bool = False) -> BenalohSecretKey:
    """Make a key from the operating system's randomness.

    >>> key = generate_benaloh(128, r=15, insecure_demo=True)
    >>> key.decrypt(key.public.finish(key.public.add(key.public.encrypt(4), key.public.encrypt(-7))))
    -3
    """
    check_key_size(bits, insecure_demo=insecure_demo)
    _check_r(r)
    half = bits // 2
    if r.bit_length() > half - 16:
        raise RangeError(f"r = {r} leaves no room in primes of {half} bits: use a longer key")
    low, high = mpz(3) << (half - 2), mpz(1) << half
    while True:
        cofactor = low // r + 1 + uniform_below((high - low) // r - 1)
        p = cofactor * r + 1
        if gmpy2.gcd(cofactor, r) == 1 and gmpy2.is_prime(p, 40):
            break
    while True:
        q = random_prime(half)
        if q != p and gmpy2.gcd(q - 1, r) == 1:
            break
    while True:
        y = uniform_unit(p * q)
        if generates(y, p, r):
            return BenalohSecretKey(p, q, r, y, insecure_demo=insecure_demo)


def _check_r(r: int) -> None:
    if not 3 <= r <= LARGEST_R or r % 2 == 0:
        raise RangeError(f"r must be odd, between 3 and 2^32, got {r}")
