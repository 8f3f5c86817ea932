"""Cryptography on numbers. Knows no torch and no speech.

Here is what all of it stands on: fixed point and rings, packing, randomness, points of a group; and a map that is
looked into obliviously. The rooms behind it: `transfer` (oblivious transfer), `shares` (two parties computing on
shares), `garbled` (and with a circuit), `lattice` (encrypted linear algebra), `paillier` (additively homomorphic
encryption).
"""

from typing import TYPE_CHECKING

from ppspeech.doors import door

if TYPE_CHECKING:
    from ppspeech.crypto.message_kinds import Kind
    from ppspeech.crypto.numbers import Ring, Scale, exact_product
    from ppspeech.crypto.oblivious_map import MapKey, SealedMap, ask_points
    from ppspeech.crypto.packing import pack_numbers, packed_bytes, unpack_floats, unpack_numbers
    from ppspeech.crypto.randomness import uniform_below, uniform_bytes, uniform_residues

__all__ = [
    "Kind",
    "MapKey",
    "Ring",
    "Scale",
    "SealedMap",
    "ask_points",
    "exact_product",
    "pack_numbers",
    "packed_bytes",
    "uniform_below",
    "uniform_bytes",
    "uniform_residues",
    "unpack_floats",
    "unpack_numbers",
]

if not TYPE_CHECKING:
    __getattr__ = door(__name__)
