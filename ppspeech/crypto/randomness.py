"""Random numbers for keys, masks and shares: all from the operating system, none from a seed anyone could keep.

Single numbers come from `secrets`. Bulk masks come from AES-256 in counter mode under a key that the operating system
gives for this one call and nobody keeps: no state is shared between calls, so threads and forked processes cannot
draw the same residues.
"""

import os
import secrets

import gmpy2
import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from gmpy2 import mpz
from numpy.typing import NDArray

from ppspeech.errors import RangeError


def uniform_bytes(count: int) -> bytes:
    """`count` bytes of AES-256-CTR key stream under a fresh key."""
    if count < 0:
        raise RangeError(f"cannot draw {count} bytes")
    stream = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(bytes(16))).encryptor()
    return stream.update(bytes(count))


def uniform_residues(shape: int | tuple[int, ...], bits: int = 64) -> NDArray[np.uint64]:
    """Residues uniform in 0..2^bits - 1, for masks and shares. `bits`: 1..64.

    >>> residues = uniform_residues((2, 3), bits=7)
    >>> residues.shape, residues.dtype.name, bool((residues < 128).all())
    ((2, 3), 'uint64', True)
    """
    if not 1 <= bits <= 64:
        raise RangeError(f"residues have 1 to 64 bits, got {bits}")
    count = int(np.prod(shape, dtype=np.int64))
    residues = np.frombuffer(uniform_bytes(8 * count), dtype="<u8").astype(np.uint64)
    return (residues >> np.uint64(64 - bits)).reshape(shape)


def uniform_below(bound: mpz) -> mpz:
    """A number uniform in 0..bound - 1."""
    return mpz(secrets.randbelow(int(bound)))


def uniform_unit(modulus: mpz) -> mpz:
    """A number uniform among those in 1..modulus - 1 that have an inverse."""
    while True:
        candidate = uniform_below(modulus)
        if gmpy2.gcd(candidate, modulus) == 1:
            return candidate
