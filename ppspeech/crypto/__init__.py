"""Cryptography on numbers: additively homomorphic encryption, fixed point and packing. Knows no torch and no speech."""

from ppspeech.crypto.additive import AdditiveDecryptor, AdditiveScheme, Ciphertext, Unfinished
from ppspeech.crypto.benaloh import BenalohPublicKey, BenalohSecretKey, generate_benaloh
from ppspeech.crypto.damgard_jurik import DamgardJurikPublicKey, DamgardJurikSecretKey, generate_damgard_jurik
from ppspeech.crypto.fixed_point import Ring, Scale
from ppspeech.crypto.multi_exponentiation import WeightPlan
from ppspeech.crypto.packing import Packing
from ppspeech.crypto.paillier import PaillierPublicKey, PaillierSecretKey, generate_paillier

__all__ = [
    "AdditiveDecryptor",
    "AdditiveScheme",
    "BenalohPublicKey",
    "BenalohSecretKey",
    "Ciphertext",
    "DamgardJurikPublicKey",
    "DamgardJurikSecretKey",
    "Packing",
    "PaillierPublicKey",
    "PaillierSecretKey",
    "Ring",
    "Scale",
    "Unfinished",
    "WeightPlan",
    "generate_benaloh",
    "generate_damgard_jurik",
    "generate_paillier",
]
