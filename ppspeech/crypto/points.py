"""The group of ed25519: scalars, products, points that were received, and hashes into it."""

import hashlib

import nacl.bindings as sodium
from nacl.exceptions import CryptoError

from ppspeech.crypto.randomness import uniform_bytes
from ppspeech.errors import NotInGroupError

POINT_BYTES = 32


def random_scalar() -> bytes:
    """A uniform scalar."""
    return sodium.crypto_core_ed25519_scalar_reduce(uniform_bytes(64))


def base_times(scalar: bytes) -> bytes:
    """The base point times a scalar."""
    return sodium.crypto_scalarmult_ed25519_base_noclamp(scalar)


def multiply(scalar: bytes, point: bytes) -> bytes:
    """A point times a scalar. Raises NotInGroupError for the neutral element."""
    try:
        return sodium.crypto_scalarmult_ed25519_noclamp(scalar, point)
    except CryptoError:
        raise NotInGroupError("a received point gives the neutral element") from None


def checked(point: bytes) -> bytes:
    """The point, if it is one; libsodium's addition alone would take points outside the prime-order group. Raises
    NotInGroupError for what is no canonical point of that group.
    """
    if not sodium.crypto_core_ed25519_is_valid_point(point):
        raise NotInGroupError("a received point is not a canonical point of the prime-order group of ed25519")
    return point


def hash_to_group(data: bytes) -> bytes:
    """A point of which nobody knows the logarithm: the sum of two images of Elligator, which no one can tell from a
    random function (Brier et al. 2010).
    """
    digest = hashlib.sha512(data).digest()
    return sodium.crypto_core_ed25519_add(*map(sodium.crypto_core_ed25519_from_uniform, (digest[:32], digest[32:])))
