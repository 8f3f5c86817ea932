"""Paillier's cryptosystem (1999), the additively homomorphic scheme of the papers, with the known ways to make it fast.

    c = (1 + N)^m rho  mod N^2,   rho a random N-th power;   (1 + N)^m = 1 + m N

The randomizer rho is what costs. `randomness` says where it comes from:

- `"full"`: rho = r^N for r uniform among the units mod N. Secure if N-th powers mod N^2 look like random units (the
  decisional composite residuosity assumption, DCR), nothing else.
- `"djn"` (Damgard, Jurik, Nielsen 2010): rho = (h^N)^alpha for h = -x^2 mod N and a short random alpha, from tables.
  N is a product of Blum primes with gcd(p - 1, q - 1) = 2, so h generates nearly all numbers of Jacobi symbol 1.
  Whoever has only N draws alpha of ceil(|N|/2) bits. Beside DCR this assumes that h^alpha for such alpha looks like
  h^alpha for full-length alpha, which for half-length exponents follows from the hardness of factoring (Goldreich,
  Rosen 2003). The key holder works mod p^2 and q^2 apart, with independent exponents of 384 bits each. That is the
  short-exponent assumption of Diffie-Hellman groups (exponents of twice the security level, 256 bits for level 128;
  RFC 7919) with half as much again; without the primes the best known attack takes about 2^192 steps, far above the
  cost of factoring N.

Every party draws its own h: a peer cannot choose one that undoes re-randomization. Parties are semi-honest; Python is
not constant-time beyond `powmod_sec`, which is used wherever an exponent is secret and not looked up in tables.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Literal, NoReturn

import gmpy2
from gmpy2 import mpz

from ppspeech.crypto.paillier.cores import map_numbers
from ppspeech.crypto.paillier.fixed_base import FixedBase
from ppspeech.crypto.paillier.group import Ciphertext, CiphertextGroup
from ppspeech.crypto.paillier.primes import (
    DEFAULT_BITS,
    SECURE_BITS,
    check_key_size,
    check_modulus,
    check_primes,
    prime_pair,
)
from ppspeech.crypto.paillier.randomizers import RandomizerPool
from ppspeech.crypto.randomness import uniform_unit
from ppspeech.errors import BadLengthError, BadTypeError, NotInGroupError, WrongKeyError

Randomness = Literal["djn", "full"]

HOLDER_EXPONENT_BYTES = 48
"""Length of the key holder's exponents modulo each prime; see the head of this file."""


class PaillierPublicKey(CiphertextGroup):
    """What the evaluator has: N, and nothing of the key holder's. `randomness`: `"djn"` only where the key holder made
    N for it (`generate_paillier` does); keys of other libraries take `"full"`. Raises PrivacyError for a modulus too
    short, NotInGroupError for a number that cannot be a product of two large primes.
    """

    def __init__(self, n: int | mpz, *, randomness: Randomness = "full", insecure_demo: bool = False) -> None:
        modulus = mpz(n)
        check_modulus(modulus, insecure_demo=insecure_demo)
        if randomness not in ("djn", "full"):
            raise ValueError(f"randomness is 'djn' or 'full', got {randomness!r}")
        self.randomness: Randomness = randomness
        super().__init__(f"paillier {randomness}", modulus, modulus * modulus, modulus)

    @property
    def bits(self) -> int:
        """The length of N."""
        return int(self.n.bit_length())

    @property
    def insecure_demo(self) -> bool:
        """Whether N is so short that it protects nothing."""
        return self.bits < SECURE_BITS

    def __repr__(self) -> str:
        return f"PaillierPublicKey({_describe(self)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PaillierPublicKey) and self.key_id == other.key_id

    def __hash__(self) -> int:
        return hash(self.key_id)

    def to_bytes(self) -> bytes:
        """Length of N in bits (2 bytes), kind of randomness (1 byte), N."""
        return (
            self.bits.to_bytes(2, "big")
            + bytes([self.randomness == "djn"])
            + bytes(self.n.to_bytes((self.bits + 7) // 8, "big"))
        )

    @classmethod
    def from_bytes(cls, data: bytes, *, insecure_demo: bool = False) -> "PaillierPublicKey":
        """Check and read a key. Raises BadLengthError if the bytes are not exactly one key, BadTypeError if they say
        something no key says, PrivacyError, NotInGroupError as for the constructor.
        """
        bits = int.from_bytes(data[:2], "big")
        if len(data) != 3 + (bits + 7) // 8 or len(data) < 4:
            raise BadLengthError(f"a public key of {bits} bits takes {3 + (bits + 7) // 8} bytes, got {len(data)}")
        n = mpz.from_bytes(data[3:], "big")
        if data[2] > 1 or n.bit_length() != bits:
            raise BadTypeError(
                f"not a public key: randomness {data[2]}, {n.bit_length()} bits where {bits} are announced"
            )
        return cls(n, randomness="djn" if data[2] else "full", insecure_demo=insecure_demo)

    def _embed(self, value: mpz) -> mpz:
        return (1 + value * self.n) % self.modulus

    @cached_property
    def _tables(self) -> FixedBase:
        base = gmpy2.powmod(-(uniform_unit(self.n) ** 2), self.n, self.modulus)
        return FixedBase(base, self.n, length=-(-self.bits // 16))

    def _fresh_zeros(self, count: int) -> list[mpz]:
        if self.randomness == "full":
            return [gmpy2.powmod(uniform_unit(self.n), self.n, self.modulus) for _ in range(count)]
        return self._tables.random_powers(count)

    def prepare(self, count: int, *, workers: int = 1) -> None:
        """Make the tables and `count` randomizers ahead of time."""
        if self.randomness == "djn":
            _ = self._tables  # before the processes fork, so that they share them
        super().prepare(count, workers=workers)


class PaillierSecretKey:
    """What the key holder has: the primes. It encrypts faster than others and alone decrypts.

    It shows none of its numbers in `repr`, refuses to be pickled or copied, and nothing the evaluator is given (public
    key, ciphertexts) refers to it. `randomness`: `"djn"` needs p = q = 3 mod 4 and gcd(p - 1, q - 1) = 2.
    """

    def __init__(
        self, p: int | mpz, q: int | mpz, *, randomness: Randomness = "full", insecure_demo: bool = False
    ) -> None:
        first, second = mpz(p), mpz(q)
        check_primes(first, second)
        if gmpy2.gcd(first * second, (first - 1) * (second - 1)) != 1:
            raise NotInGroupError("these primes make no Paillier key: one divides the other minus 1")
        blum = first % 4 == second % 4 == 3 and gmpy2.gcd(first - 1, second - 1) == 2
        if randomness == "djn" and not blum:
            raise NotInGroupError(
                "randomness='djn' needs Blum primes that share no factor but 2: use randomness='full'"
            )
        self.public = PaillierPublicKey(first * second, randomness=randomness, insecure_demo=insecure_demo)
        self._halves = tuple(_Half(own, other, self.public.n) for own, other in ((first, second), (second, first)))
        self._q_squared_inverse = gmpy2.invert(second * second, first * first)
        self._q_inverse = gmpy2.invert(second, first)
        self.randomizers = RandomizerPool(self._fresh_zeros, self.public.ciphertext_bytes)

    def __repr__(self) -> str:
        return f"PaillierSecretKey({_describe(self.public)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret key is never pickled or copied: keep it in the process that made it")

    def prepare(self, count: int, *, workers: int = 1) -> None:
        """Make the tables and `count` randomizers ahead of time."""
        if self.public.randomness == "djn":
            for half in self._halves:
                _ = half.tables
        self.randomizers.prepare(count, workers=workers)

    def encrypt(self, value: int) -> Ciphertext:
        """Encrypt an integer of magnitude below N / 2."""
        return self.encrypt_many([value])[0]

    def encrypt_many(self, values: Sequence[int], *, workers: int = 1) -> list[Ciphertext]:
        """Encrypt several integers; randomizers that are not prepared are made on `workers` cores."""
        return self.public.encrypt_with(self.randomizers, values, workers=workers)

    def decrypt(self, ciphertext: Ciphertext) -> int:
        """The plaintext, as the residue nearest to zero. Raises WrongKeyError for a ciphertext of another key."""
        return self.decrypt_many([ciphertext])[0]

    def decrypt_many(self, ciphertexts: Sequence[Ciphertext], *, workers: int = 1) -> list[int]:
        """Decrypt several ciphertexts on `workers` cores."""
        for ciphertext in ciphertexts:
            if ciphertext.key_id != self.public.key_id:
                raise WrongKeyError(
                    f"encrypted under key {ciphertext.key_id[:4].hex()}…, this is {self.public.key_id[:4].hex()}…"
                )
        size = (self.public.bits + 7) // 8
        values = [ciphertext.value for ciphertext in ciphertexts]
        residues = map_numbers(lambda part: [self._residue(v) for v in part], values, size=size, workers=workers)
        return [self.public.centered(residue) for residue in residues]

    def _residue(self, value: mpz) -> mpz:
        first, second = self._halves
        mod_p, mod_q = first.plaintext(value), second.plaintext(value)
        return mod_q + (mod_p - mod_q) * self._q_inverse % first.prime * second.prime

    def _fresh_zeros(self, count: int) -> list[mpz]:
        first, second = self._halves
        if self.public.randomness == "full":
            units = [uniform_unit(self.public.n) for _ in range(count)]
            halves = zip(map(first.nth_power, units), map(second.nth_power, units), strict=True)
        else:
            halves = zip(first.tables.random_powers(count), second.tables.random_powers(count), strict=True)
        return [
            mod_q + (mod_p - mod_q) * self._q_squared_inverse % first.square * second.square for mod_p, mod_q in halves
        ]


class _Half:
    """The arithmetic modulo one prime of the key; the Chinese remainder theorem joins two of them."""

    def __init__(self, prime: mpz, other: mpz, n: mpz) -> None:
        self.prime = prime
        self.square = prime * prime
        self._n = n
        # (1 + N)^(p - 1) = 1 + (p - 1) N = 1 - q p  mod p^2
        self._unscale = gmpy2.invert(-other, prime)
        # r^N mod p^2 depends on r mod p only, and N = q p, so the exponent may be reduced mod p (p - 1).
        self._nth = n % (prime * (prime - 1))

    @cached_property
    def tables(self) -> FixedBase:
        """Powers of h^N mod p^2 for short exponents."""
        base = gmpy2.powmod(-(uniform_unit(self.prime) ** 2), self._n, self.square)
        return FixedBase(base, self.prime, length=min(HOLDER_EXPONENT_BYTES, -(-self._n.bit_length() // 16)))

    def plaintext(self, ciphertext: mpz) -> mpz:
        """The plaintext mod p: L(c^(p - 1)) / L((1 + N)^(p - 1)) with L(u) = (u - 1) / p."""
        power = gmpy2.powmod_sec(ciphertext % self.square, self.prime - 1, self.square)
        return (power - 1) // self.prime * self._unscale % self.prime

    def nth_power(self, unit: mpz) -> mpz:
        """unit^N mod p^2."""
        return gmpy2.powmod_sec(unit % self.prime, self._nth, self.square)


def generate_paillier(
    bits: int = DEFAULT_BITS, *, randomness: Randomness = "djn", insecure_demo: bool = False
) -> PaillierSecretKey:
    """Make a key from the operating system's randomness. `bits`: length of N: 2048 or more. `insecure_demo`: allow
    shorter keys, for demonstrations that protect nothing.

    >>> key = generate_paillier(64, insecure_demo=True)
    >>> key
    PaillierSecretKey(64 bits, INSECURE demo, randomness djn, id ...)
    >>> key.decrypt(key.public.finish(key.public.add_plain(key.encrypt(-5), 3)))
    -2
    """
    check_key_size(bits, insecure_demo=insecure_demo)
    p, q = prime_pair(bits, lambda p, q: gmpy2.gcd(p * q, (p - 1) * (q - 1)) == 1)
    return PaillierSecretKey(p, q, randomness=randomness, insecure_demo=insecure_demo)


def _describe(public: PaillierPublicKey) -> str:
    demo = " INSECURE demo," if public.insecure_demo else ""
    return f"{public.bits} bits,{demo} randomness {public.randomness}, id {public.key_id[:4].hex()}"
