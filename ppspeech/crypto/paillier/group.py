"""The group that ciphertexts of one key live in: everything the additively homomorphic schemes do in the same way.

Two kinds of object are kept apart by type. A `Ciphertext` is fresh: it was just encrypted, was re-randomized, or came
from the peer and passed its checks. An `Unfinished` result of homomorphic operations still carries a trace of how it
was made (its randomness is a known combination of the inputs' randomness), so it has no byte form; `finish` multiplies
it by a fresh encryption of zero and gives a `Ciphertext`.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from ppspeech.crypto.paillier.powers import RecodedWeights
from ppspeech.crypto.paillier.randomizers import RandomizerPool
from ppspeech.errors import BadCiphertextError, BadLengthError, NotInGroupError, RangeError, WrongKeyError

KEY_ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Ciphertext:
    """A ciphertext that may leave."""

    key_id: bytes
    value: mpz = field(repr=False)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The result of homomorphic operations, not yet re-randomized. It cannot be serialized; `finish` it first."""

    key_id: bytes
    value: mpz = field(repr=False)

    def __reduce__(self) -> NoReturn:
        raise TypeError("an unfinished result would reveal how it was computed: finish() it before it leaves")


class CiphertextGroup(ABC):
    """Units modulo `modulus`, in which Enc(a) Enc(b) = Enc(a + b). The public keys of the schemes are kinds of it.

    Integers are taken and given as the residue nearest to zero; a sum that leaves the range wraps around, so the caller
    chooses scales for which no sum can. A scheme adds `_embed(m)`, its generator to the power m, and
    `_fresh_zeros(count)`, random encryptions of zero.

    Args:
        name: the scheme and all that defines the key; hashed into `key_id`.
        modulus: what ciphertexts are reduced by, a power of `n`.
        plaintext_modulus: what plaintexts are reduced by.
    """

    def __init__(self, name: str, n: mpz, modulus: mpz, plaintext_modulus: mpz) -> None:
        self.n = n
        self.modulus = modulus
        self.plaintext_modulus = plaintext_modulus
        self.key_id = hashlib.sha256(f"ppspeech {name} {int(n):x}".encode()).digest()[:KEY_ID_BYTES]
        self.ciphertext_bytes: int = (modulus.bit_length() + 7) // 8
        self.randomizers = RandomizerPool(self._fresh_zeros, self.ciphertext_bytes)

    @abstractmethod
    def _embed(self, value: mpz) -> mpz:
        """A plaintext as a ciphertext without randomness."""

    @abstractmethod
    def _fresh_zeros(self, count: int) -> list[mpz]:
        """Encryptions of zero, fresh ones."""

    # Encrypting

    def prepare(self, count: int, *, workers: int = 1) -> None:
        """Make `count` randomizers ahead of time; encrypting and finishing then take one product each."""
        self.randomizers.prepare(count, workers=workers)

    def encrypt(self, value: int) -> Ciphertext:
        """Encrypt an integer of magnitude below half the plaintext modulus. Raises RangeError for a larger one."""
        return self.encrypt_many([value])[0]

    def encrypt_many(self, values: Sequence[int], *, workers: int = 1) -> list[Ciphertext]:
        """Encrypt several integers; randomizers that are not prepared are made on `workers` cores."""
        return self.encrypt_with(self.randomizers, values, workers=workers)

    def encrypt_with(self, pool: RandomizerPool, values: Sequence[int], *, workers: int = 1) -> list[Ciphertext]:
        """Encrypt with randomizers from another pool of the same key: the key holder makes them faster."""
        embedded = [self._embed(self._plaintext(value)) for value in values]
        zeros = pool.take(len(embedded), workers=workers)
        return [
            Ciphertext(self.key_id, plain * zero % self.modulus) for plain, zero in zip(embedded, zeros, strict=True)
        ]

    # Computing

    def add(self, left: Ciphertext | Unfinished, right: Ciphertext | Unfinished) -> Unfinished:
        """Enc(a), Enc(b) -> Enc(a + b)."""
        return self._unfinished(self._own(left) * self._own(right))

    def add_plain(self, left: Ciphertext | Unfinished, right: int) -> Unfinished:
        """Enc(a), b -> Enc(a + b)."""
        return self._unfinished(self._own(left) * self._embed(self._plaintext(right)))

    def scale(self, left: Ciphertext | Unfinished, right: int, *, secret: bool = True) -> Unfinished:
        """Enc(a), b -> Enc(a b). `secret`: keep b out of the timing, but for its sign and its length in machine words;
        a public b is several times faster without.
        """
        base, factor = self._own(left), self._plaintext(right)
        if factor == 0:
            return self._unfinished(mpz(1))
        if factor < 0:
            base, factor = gmpy2.invert(base, self.modulus), -factor
        power = gmpy2.powmod_sec if secret else gmpy2.powmod
        return self._unfinished(power(base, factor, self.modulus))

    def scalar_products(
        self, ciphertexts: Sequence[Ciphertext], weights: NDArray[np.int64] | RecodedWeights, *, workers: int = 1
    ) -> list[Unfinished]:
        """Enc(x_i), w -> Enc(sum_i w_ji x_i) for every row j of `weights`, `(rows, terms)`, recoded or not."""
        plan = weights if isinstance(weights, RecodedWeights) else RecodedWeights.of(weights)
        bases = [self._own(ciphertext) for ciphertext in ciphertexts]
        root = self.n if self.modulus == self.n * self.n else None
        return [self._unfinished(value) for value in plan.apply(bases, self.modulus, root=root, workers=workers)]

    def finish(self, result: Unfinished) -> Ciphertext:
        """Multiply by a fresh encryption of zero: the result then looks like any new encryption of its plaintext."""
        return self.finish_many([result])[0]

    def finish_many(self, results: Sequence[Unfinished], *, workers: int = 1) -> list[Ciphertext]:
        """Re-randomize several results."""
        values = [self._own(result) for result in results]
        zeros = self.randomizers.take(len(values), workers=workers)
        return [Ciphertext(self.key_id, value * zero % self.modulus) for value, zero in zip(values, zeros, strict=True)]

    # Sending and receiving

    def wire_bytes(self, count: int) -> int:
        """The length of `dump` for a vector of `count` ciphertexts."""
        return KEY_ID_BYTES + count * self.ciphertext_bytes

    def dump(self, ciphertexts: Sequence[Ciphertext]) -> bytes:
        """The key's name and the numbers, each of the same length, most significant byte first. Raises TypeError for an
        unfinished result, WrongKeyError for a ciphertext of another key.
        """
        for ciphertext in ciphertexts:
            if not isinstance(ciphertext, Ciphertext):
                raise TypeError(f"only finished ciphertexts may leave, got {type(ciphertext).__name__}: finish() it")
        return self.key_id + b"".join(self._own(c).to_bytes(self.ciphertext_bytes, "big") for c in ciphertexts)

    def load(self, data: bytes, count: int) -> list[Ciphertext]:
        """Read a vector of exactly `count` ciphertexts. Raises BadLengthError for any other length, WrongKeyError if it
        names another key, BadCiphertextError for a number that is zero or not reduced, NotInGroupError for a number
        without an inverse.
        """
        if len(data) != self.wire_bytes(count):
            raise BadLengthError(f"{count} ciphertexts take {self.wire_bytes(count)} bytes, got {len(data)}")
        if data[:KEY_ID_BYTES] != self.key_id:
            raise WrongKeyError(f"encrypted under key {data[:4].hex()}…, expected {self.key_id[:4].hex()}…")
        size = self.ciphertext_bytes
        starts = range(KEY_ID_BYTES, len(data), size)
        return [self.accept(mpz.from_bytes(data[start : start + size], "big")) for start in starts]

    def accept(self, value: int | mpz) -> Ciphertext:
        """Check a bare number from elsewhere (another library, a peer) and make it a ciphertext of this key."""
        number = mpz(value)
        if not 0 < number < self.modulus:
            raise BadCiphertextError(
                f"a ciphertext lies between 0 and the {self.modulus.bit_length()}-bit modulus; got a number "
                f"{'of ' + str(number.bit_length()) + ' bits beyond it' if number > 0 else 'that is zero or negative'}"
            )
        if gmpy2.gcd(number, self.n) != 1:
            raise NotInGroupError("the ciphertext shares a factor with the modulus: no encryption gives it")
        return Ciphertext(self.key_id, number)

    def centered(self, residue: mpz) -> int:
        """The integer nearest to zero with this residue mod `plaintext_modulus`."""
        residue %= self.plaintext_modulus
        return int(residue - self.plaintext_modulus if 2 * residue >= self.plaintext_modulus else residue)

    def _plaintext(self, value: int) -> mpz:
        number = mpz(value)
        if 2 * abs(number) >= self.plaintext_modulus:
            raise RangeError(
                f"{_shown(number)} does not fit: plaintexts of this key stay below "
                f"{_shown(self.plaintext_modulus // 2)} in magnitude; use a coarser scale"
            )
        return number

    def _own(self, ciphertext: Ciphertext | Unfinished) -> mpz:
        if ciphertext.key_id != self.key_id:
            raise WrongKeyError(
                f"a ciphertext of key {ciphertext.key_id[:4].hex()}… was given to key {self.key_id[:4].hex()}…"
            )
        return ciphertext.value

    def _unfinished(self, value: mpz) -> Unfinished:
        return Unfinished(self.key_id, value % self.modulus)


def _shown(number: mpz) -> str:
    bits = number.bit_length()
    return str(number) if bits < 64 else f"a number of {bits} bits"
