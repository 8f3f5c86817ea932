"""The ring that everything here computes in, and its security.

    R_q = Z_q[X] / (X^n + 1),   q one prime of 46 to 50 bits, q = 1 mod 2n

With ternary secrets and errors of standard deviation 3.2, the Homomorphic Encryption Standard (2018, table 1) gives
the largest modulus at which the best known attacks take 2^128 steps. One prime means no key switching and no prime
held in reserve. SEAL makes keys and encrypts; its scheme is BFV, used only for encryptions of zero: messages are added
to them at a scale of our own (`ProductPlan`), so its plaintext modulus and its noise budget mean nothing here.
"""

import functools
import math
from dataclasses import dataclass
from typing import Any

import gmpy2
import tenseal.sealapi as seal

from ppspeech.errors import PpspeechError

MOST_MODULUS_BITS = {1024: 27, 2048: 54, 4096: 109, 8192: 218}
"""Ring degree to the modulus bits that keep 128-bit security (ternary secret, classical attacks)."""

LARGEST_ERROR = 21
"""SEAL's errors are centered binomial on 42 bits: never beyond this, standard deviation 3.24."""

SENT_BITS = 48
"""Bits of a residue that travel; the lowest ones of a longer prime are below the noise and stay at home."""

KEPT_BITS = 32
"""Bits of a residue that a reply keeps: the modulus 2^32 over which it is masked and shared."""


@dataclass(frozen=True, slots=True)
class LatticeParameters:
    """A ring of the module's kind, refused unless it has 128-bit security. `degree`: n, a power of two of the table.
    `prime`: q; the default is 2^50 - 2^14 + 1.

    >>> LatticeParameters().prime_bits
    50
    >>> LatticeParameters(degree=1024)
    Traceback (most recent call last):
    ppspeech.errors.PpspeechError: a 50-bit modulus at ring degree 1024 is below 128-bit security: at most 27 bits ...
    """

    degree: int = 2048
    prime: int = (1 << 50) - (1 << 14) + 1

    def __post_init__(self) -> None:
        if self.degree not in MOST_MODULUS_BITS:
            raise PpspeechError(f"ring degree must be one of {sorted(MOST_MODULUS_BITS)}, got {self.degree}")
        most = MOST_MODULUS_BITS[self.degree]
        if self.prime_bits > most:
            raise PpspeechError(
                f"a {self.prime_bits}-bit modulus at ring degree {self.degree} is below 128-bit security: "
                f"at most {most} bits there"
            )
        if not 46 <= self.prime_bits <= 50:
            raise PpspeechError(f"the prime must have 46 to 50 bits, got {self.prime_bits}")
        if self.prime % (2 * self.degree) != 1 or not gmpy2.is_prime(self.prime):
            raise PpspeechError(f"{self.prime} is not a prime that leaves 1 when divided by {2 * self.degree}")

    @property
    def prime_bits(self) -> int:
        """Bits of q."""
        return self.prime.bit_length()

    @property
    def leakable_bits(self) -> int:
        """Bits about a key that its holder may let out, by answering what it decrypts, before it makes a new one.

        The ring has more coordinates than 128-bit security at its modulus needs; a ternary one that is known is worth
        log2 3 bits and leaves a problem with one fewer (Dachman-Soled, Ducas, Gong and Rossi 2020, perfect hints).

        >>> LatticeParameters().leakable_bits
        239
        """
        needed = -(-self.degree * self.prime_bits // MOST_MODULUS_BITS[self.degree])
        return int((self.degree - needed) * math.log2(3))

    @property
    def dropped_bits(self) -> int:
        """Low bits of a residue that do not travel in a query."""
        return max(0, self.prime_bits - SENT_BITS)


@functools.lru_cache(maxsize=8)
def seal_context(parameters: LatticeParameters) -> Any:
    """SEAL's own object for the ring, which checks the security once more."""
    chosen = seal.EncryptionParameters(seal.SCHEME_TYPE.BFV)
    chosen.set_poly_modulus_degree(parameters.degree)
    chosen.set_coeff_modulus([seal.Modulus(parameters.prime)])
    chosen.set_plain_modulus(1 << 40)  # SEAL wants one; encryptions of zero do not depend on it
    context = seal.SEALContext(chosen, True, seal.SEC_LEVEL_TYPE.TC128)
    if not context.parameters_set():
        raise PpspeechError(f"SEAL refuses these parameters: {context.parameters_error_message()}")
    return context
