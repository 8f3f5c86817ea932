"""Cryptography on numbers: additively homomorphic encryption, fixed point and packing. Knows no torch and no speech."""

from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.numbers import Ring, Scale, exact_product
from ppspeech.crypto.packing import pack_numbers, packed_bytes, unpack_numbers
from ppspeech.crypto.paillier.additive import AdditiveDecryptor, AdditiveScheme, Ciphertext, Unfinished
from ppspeech.crypto.paillier.benaloh import BenalohPublicKey, BenalohSecretKey, generate_benaloh
from ppspeech.crypto.paillier.damgard_jurik import DamgardJurikPublicKey, DamgardJurikSecretKey, generate_damgard_jurik
from ppspeech.crypto.paillier.packing import Packing
from ppspeech.crypto.paillier.powers import WeightPlan
from ppspeech.crypto.paillier.scheme import PaillierPublicKey, PaillierSecretKey, generate_paillier
from ppspeech.crypto.randomness import uniform_below, uniform_bytes, uniform_residues

__all__ = [
    "AdditiveDecryptor",
    "AdditiveScheme",
    "BenalohPublicKey",
    "BenalohSecretKey",
    "Ciphertext",
    "DamgardJurikPublicKey",
    "DamgardJurikSecretKey",
    "Kind",
    "Packing",
    "PaillierPublicKey",
    "PaillierSecretKey",
    "Ring",
    "Scale",
    "Unfinished",
    "WeightPlan",
    "exact_product",
    "generate_benaloh",
    "generate_damgard_jurik",
    "generate_paillier",
    "pack_numbers",
    "packed_bytes",
    "uniform_below",
    "uniform_bytes",
    "uniform_residues",
    "unpack_numbers",
]
