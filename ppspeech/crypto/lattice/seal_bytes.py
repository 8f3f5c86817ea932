"""SEAL's objects as bytes and back. No byte that came from elsewhere gets here: messages are residues (`wire`).

SEAL saves to a path and always compresses; an anonymous file in memory serves as the path, and the decompressor is the
one inside SEAL's own library.

An uncompressed ciphertext, all little-endian: 16-byte header (magic, header size, version, compression, length); ring
identity (32 bytes); whether transformed (1 byte); parts, degree, primes (8 bytes each); scale and correction factor
(8 bytes each, always one here); a header of the array, its count, its residues. A seeded one holds the first part's
residues only, then a header and 65 bytes that say how the second is drawn.
"""

import ctypes
import functools
import os
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import tenseal.sealapi as seal

from ppspeech.arrays import Residues
from ppspeech.crypto.lattice.parameters import LatticeParameters, seal_context
from ppspeech.errors import PpspeechError

SEED_BYTES = 64
_HEADER = struct.Struct("<HBBBBHQ")
_FIELDS = struct.Struct("<32s?QQQdQ")
_COUNT = struct.Struct("<Q")
_BLAKE2XB = 1


def _header(length: int) -> bytes:
    own = seal.Serialization.SEALHeader()
    return _HEADER.pack(own.magic, own.header_size, own.version_major, own.version_minor, 0, 0, length)


@functools.cache
def _decompressor() -> Callable[..., int]:
    library = ctypes.CDLL(sys.modules[seal.Ciphertext.__module__].__file__)
    try:
        function = library.ZSTD_decompress
    except AttributeError:
        raise PpspeechError(
            "this build of tenseal does not export its decompressor; use tenseal 0.3.16 to 0.3.x"
        ) from None
    function.restype = ctypes.c_size_t
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    return function


def saved(thing: Any, capacity: int) -> bytes:
    """What SEAL saves of an object, decompressed and without outer header, in at most `capacity` bytes."""
    memory = os.memfd_create("seal", os.MFD_CLOEXEC)
    try:
        thing.save(f"/proc/self/fd/{memory}")
        compressed = os.pread(memory, os.fstat(memory).st_size, 0)
    finally:
        os.close(memory)
    content = ctypes.create_string_buffer(capacity)
    length = _decompressor()(content, capacity, compressed[_HEADER.size :], len(compressed) - _HEADER.size)
    if length > capacity:
        raise PpspeechError("SEAL saved something else than expected; this version of tenseal cannot be used")
    return content.raw[:length]


def _load(thing: Any, parameters: LatticeParameters, content: bytes) -> Any:
    """Give SEAL bytes that this module wrote itself."""
    memory = os.memfd_create("seal", os.MFD_CLOEXEC)
    try:
        os.write(memory, _header(_HEADER.size + len(content)) + content)
        thing.load(seal_context(parameters), f"/proc/self/fd/{memory}")
    finally:
        os.close(memory)
    return thing


def _fields(parameters: LatticeParameters, transformed: bool) -> bytes:
    return _FIELDS.pack(_ring_identity(parameters), transformed, 2, parameters.degree, 1, 1.0, 1)


@functools.lru_cache(maxsize=8)
def _ring_identity(parameters: LatticeParameters) -> bytes:
    return struct.pack("<4Q", *seal_context(parameters).first_parms_id())


def _array(residues: Residues) -> bytes:
    body = _COUNT.pack(residues.size) + np.ascontiguousarray(residues, dtype="<u8").tobytes()
    return _header(_HEADER.size + len(body)) + body


def ciphertext_length(parameters: LatticeParameters) -> int:
    """Bytes of every ciphertext of two parts, and of every public key, as SEAL saves them."""
    return 2 * _HEADER.size + _FIELDS.size + _COUNT.size + 16 * parameters.degree


def residues_of(ciphertext: Any, parameters: LatticeParameters) -> Residues:
    """The residues of a ciphertext or public key of this process, shape `(2, degree)`."""
    content = saved(ciphertext, ciphertext_length(parameters))
    return np.frombuffer(content, dtype="<u8", offset=len(content) - 16 * parameters.degree).reshape(2, -1)


def secret_residues(secret_key: Any, parameters: LatticeParameters) -> Residues:
    """The transformed secret, shape `(degree,)`."""
    content = saved(secret_key, ciphertext_length(parameters))
    return np.frombuffer(content, dtype="<u8", offset=len(content) - 8 * parameters.degree).copy()


def seeded_parts(serializable: Any, parameters: LatticeParameters) -> tuple[Residues, bytes]:
    """First part and seed of the second, of what `encrypt_zero_symmetric` returned."""
    content = saved(serializable, ciphertext_length(parameters))
    end = len(content) - _HEADER.size - 1 - SEED_BYTES
    if content[end + _HEADER.size] != _BLAKE2XB:
        raise PpspeechError("SEAL draws with another generator than Blake2xb; this version of tenseal cannot be used")
    residues = np.frombuffer(content[end - 8 * parameters.degree : end], dtype="<u8")
    return residues, content[-SEED_BYTES:]


def as_public_key(residues: Residues, parameters: LatticeParameters) -> Any:
    """A public key, transformed, shape `(2, degree)`, as SEAL's object. What it is made of was checked before."""
    return _load(seal.PublicKey(), parameters, _fields(parameters, transformed=True) + _array(residues))
