"""Additively homomorphic encryption: Paillier and its relatives, with the known ways to make them fast."""

from ppspeech.crypto.paillier.benaloh import BenalohPublicKey, BenalohSecretKey, generate_benaloh
from ppspeech.crypto.paillier.damgard_jurik import DamgardJurikPublicKey, DamgardJurikSecretKey, generate_damgard_jurik
from ppspeech.crypto.paillier.group import KEY_ID_BYTES, Ciphertext, Unfinished
from ppspeech.crypto.paillier.packing import Packing
from ppspeech.crypto.paillier.powers import RecodedWeights
from ppspeech.crypto.paillier.primes import SECURE_BITS, check_key_size, prime_pair
from ppspeech.crypto.paillier.scheme import PaillierPublicKey, PaillierSecretKey, generate_paillier

__all__ = [
    "KEY_ID_BYTES",
    "SECURE_BITS",
    "BenalohPublicKey",
    "BenalohSecretKey",
    "Ciphertext",
    "DamgardJurikPublicKey",
    "DamgardJurikSecretKey",
    "Packing",
    "PaillierPublicKey",
    "PaillierSecretKey",
    "RecodedWeights",
    "Unfinished",
    "check_key_size",
    "generate_benaloh",
    "generate_damgard_jurik",
    "generate_paillier",
    "prime_pair",
]
