"""What additively homomorphic schemes share: ciphertexts that can be added and scaled by whoever lacks the key.

Two kinds of object are kept apart by type. A `Ciphertext` is fresh: it was just encrypted, was re-randomized, or came
from the peer and passed its checks. An `Unfinished` result of homomorphic operations still carries a trace of how it
was made (its randomness is a known combination of the inputs' randomness), so it has no byte form; `finish` multiplies
it by a fresh encryption of zero and gives a `Ciphertext`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Ciphertext:
    """A ciphertext that may leave.

    Attributes:
        key_id: names the public key it belongs to.
        value: the number.
    """

    key_id: bytes
    value: mpz = field(repr=False)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The result of homomorphic operations, not yet re-randomized. It cannot be serialized; `finish` it first."""

    key_id: bytes
    value: mpz = field(repr=False)

    def __reduce__(self) -> NoReturn:
        raise TypeError("an unfinished result would reveal how it was computed: finish() it before it leaves")


class AdditiveScheme(Protocol):
    """The public side of Paillier, Damgard-Jurik and Benaloh: plaintexts are integers mod `plaintext_modulus`.

    Integers are taken and given as the residue nearest to zero; a sum that leaves the range wraps around, so the
    caller chooses scales for which no sum can.
    """

    @property
    def key_id(self) -> bytes:
        """16 bytes that name the key."""
        ...

    @property
    def plaintext_modulus(self) -> mpz:
        """Plaintexts live mod this."""
        ...

    def encrypt(self, value: int) -> Ciphertext:
        """Encrypt one integer."""
        ...

    def add(self, left: Ciphertext | Unfinished, right: Ciphertext | Unfinished) -> Unfinished:
        """Enc(a), Enc(b) -> Enc(a + b)."""
        ...

    def add_plain(self, left: Ciphertext | Unfinished, right: int) -> Unfinished:
        """Enc(a), b -> Enc(a + b)."""
        ...

    def scale(self, left: Ciphertext | Unfinished, right: int) -> Unfinished:
        """Enc(a), b -> Enc(a b)."""
        ...

    def scalar_products(
        self, ciphertexts: Sequence[Ciphertext], weights: NDArray[np.int64], *, workers: int = 1
    ) -> list[Unfinished]:
        """Enc(x_i), w -> Enc(sum_i w_ji x_i) for every row j of `weights`."""
        ...

    def finish(self, result: Unfinished) -> Ciphertext:
        """Re-randomize, so that the result may leave."""
        ...

    def dump(self, ciphertexts: Sequence[Ciphertext]) -> bytes:
        """The bytes of a vector of ciphertexts."""
        ...

    def load(self, data: bytes, count: int) -> list[Ciphertext]:
        """Check and read a vector of exactly `count` ciphertexts."""
        ...


class AdditiveDecryptor(Protocol):
    """The secret side."""

    @property
    def public(self) -> AdditiveScheme:
        """The other side of the key."""
        ...

    def decrypt(self, ciphertext: Ciphertext) -> int:
        """The plaintext, as the residue nearest to zero."""
        ...
