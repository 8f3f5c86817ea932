"""Additively homomorphic encryption: Paillier and its relatives, with the known ways to make them fast."""

from ppspeech.crypto.paillier.group import KEY_ID_BYTES
from ppspeech.crypto.paillier.primes import SECURE_BITS, check_key_size, prime_pair

__all__ = ["KEY_ID_BYTES", "SECURE_BITS", "check_key_size", "prime_pair"]
