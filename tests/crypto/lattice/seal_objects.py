"""SEAL's ciphertexts from residues and back, to compare with.

An uncompressed ciphertext, all little-endian: 16-byte header (magic, header size, version, compression, length); ring
identity (32 bytes); whether transformed (1 byte); parts, degree, primes (8 bytes each); scale and correction factor
(8 bytes each, always one here); a header of the array, its count, its residues. A seeded one holds the first part's
residues only, then a header and 65 bytes that say how the second is drawn.
"""

import os
import struct
from typing import Any

import numpy as np
import tenseal.sealapi as seal

from ppspeech.crypto.lattice.parameters import LatticeParameters, seal_context
from ppspeech.crypto.lattice.seal_bytes import HEADER_BYTES, saved

HEADER = struct.Struct("<HBBBBHQ")
FIELDS = struct.Struct("<32s?QQQdQ")
COUNT = struct.Struct("<Q")


def header(length: int) -> bytes:
    own = seal.Serialization.SEALHeader()
    return HEADER.pack(own.magic, own.header_size, own.version_major, own.version_minor, 0, 0, length)


def loaded(thing: Any, ring: LatticeParameters, residues: np.ndarray, *, transformed: bool, drawn: bytes = b"") -> Any:
    """A ciphertext or key of SEAL that holds these residues; `drawn` says how a missing second part is drawn."""
    identity = struct.pack("<4Q", *seal_context(ring).first_parms_id())
    fields = FIELDS.pack(identity, transformed, 2, ring.degree, 1, 1.0, 1)
    array = COUNT.pack(residues.size) + np.ascontiguousarray(residues, dtype="<u8").tobytes()
    content = fields + header(HEADER_BYTES + len(array)) + array + drawn
    memory = os.memfd_create("seal", os.MFD_CLOEXEC)
    try:
        os.write(memory, header(HEADER_BYTES + len(content)) + content)
        thing.load(seal_context(ring), f"/proc/self/fd/{memory}")
    finally:
        os.close(memory)
    return thing


def residues_of(ciphertext: Any, ring: LatticeParameters) -> np.ndarray:
    """The residues of a ciphertext or public key, `(2, degree)`."""
    content = saved(ciphertext, 2 * ring.degree)
    return np.frombuffer(content, dtype="<u8", offset=len(content) - 16 * ring.degree).reshape(2, -1)
