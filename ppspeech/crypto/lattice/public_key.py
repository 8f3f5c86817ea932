"""Public keys whose second half neither party chooses.

A key is (b, a) with b = -(a s + e). An evaluator hides what it multiplied by adding (b u + e1, a u + e2) for a fresh
ternary u. That hides nothing if the key holder has chosen a: with a = 1 the second part is u + e2, which is smaller
than what a reply rounds away, and the weights follow from the known rest by lattice reduction. Nor may the evaluator
choose it: from b = -(s + e), or a sparse a, it reads the key. So a is the output of an extendable hash,

    a = Blake2xb(Blake2b(ring | coins)), coefficient by coefficient mod q,

and only b travels. Coins are what both parties have said before: in a meeting, the hash of their base transfers, to
which each contributed hundreds of random bits. With the hash a random oracle, a is uniform whatever either party does:
(a, a u + e2) is a sample of ring-LWE, so that the second part of every reply is pseudorandom to any key holder, also to
one that sends a b that is no key, ciphertexts of its own making, or the same ones again. The party that speaks last may
try many coins and keep the a it likes best; each try is an independent uniform a, so T tries multiply the chance of a
weak one by T at most, and those who could find one so would break ring-LWE in as much time. A keeper who publishes one
key for everybody draws its coins alone: the same holds. No two keys have the same coins, so that no work on one a
serves against another key. Lemma 2.9 in docs/theory/asking.md.
"""

import hashlib

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto.lattice.blake2xb import expand_seeds
from ppspeech.crypto.lattice.ntt import quotients_of, transform_of
from ppspeech.crypto.lattice.parameters import LatticeParameters
from ppspeech.crypto.lattice.zeros import add_errors_
from ppspeech.crypto.packing import pack_numbers, packed_bytes, unpack_numbers
from ppspeech.errors import BadCiphertextError

COIN_BYTES = 32
"""Of coins that one party draws alone."""


def second_half(coins: bytes, parameters: LatticeParameters) -> Residues:
    """a, `(degree,)`, transformed: what is uniform in one form is uniform in the other."""
    ring = f"ppspeech lattice key {parameters.degree} {parameters.prime} ".encode()
    expanded: Residues = expand_seeds([hashlib.blake2b(ring + coins).digest()], parameters)[0]
    return expanded


def first_half(secret: Residues, coins: bytes, parameters: LatticeParameters) -> bytes:
    """b as it travels, for a transformed secret `(degree,)`: a new error each time."""
    transform, prime = transform_of(parameters), np.uint64(parameters.prime)
    product = transform.multiply_(second_half(coins, parameters)[None], secret, quotients_of(secret, parameters.prime))
    hidden = transform.forward_(add_errors_(transform.inverse_(product), parameters))
    return pack_numbers((prime - hidden[0]) % prime, parameters.prime_bits)


def key_length(parameters: LatticeParameters) -> int:
    """Bytes of a public key that travels."""
    return packed_bytes(parameters.degree, parameters.prime_bits)


def load_public_key(received: bytes, coins: bytes, parameters: LatticeParameters) -> Residues:
    """A received first half, with the second of these coins, `(2, degree)`, transformed. Raises BadCiphertextError for
    another length, or a residue that is not below the prime.
    """
    if len(received) != key_length(parameters):
        raise BadCiphertextError(f"a public key has {key_length(parameters)} bytes here, got {len(received)}")
    first = unpack_numbers(received, parameters.degree, 8 * len(received) // parameters.degree).astype(np.uint64)
    if (first >= np.uint64(parameters.prime)).any():
        raise BadCiphertextError("a residue of the public key is not below the prime")
    return np.stack((first, second_half(coins, parameters)))
