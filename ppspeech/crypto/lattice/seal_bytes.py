"""Secret keys out of SEAL. No byte that came from elsewhere gets there: messages are residues (`wire`).

SEAL saves to a path and always compresses; an anonymous file in memory serves as the path, and the decompressor is the
one inside SEAL's own library. What it saved begins with a header of 16 bytes and ends with the residues.
"""

import ctypes
import functools
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import tenseal.sealapi as seal

from ppspeech.arrays import Residues
from ppspeech.crypto.lattice.parameters import LatticeParameters
from ppspeech.errors import PpspeechError

HEADER_BYTES = 16
_ROOM = 256  # more than everything that SEAL saves beside residues


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


def saved(thing: Any, residues: int) -> bytes:
    """What SEAL saves of an object of so many residues, decompressed and without outer header."""
    memory = os.memfd_create("seal", os.MFD_CLOEXEC)
    try:
        thing.save(f"/proc/self/fd/{memory}")
        compressed = os.pread(memory, os.fstat(memory).st_size, 0)
    finally:
        os.close(memory)
    capacity = 8 * residues + _ROOM
    content = ctypes.create_string_buffer(capacity)
    length = _decompressor()(content, capacity, compressed[HEADER_BYTES:], len(compressed) - HEADER_BYTES)
    if length > capacity:
        raise PpspeechError("SEAL saved something else than expected; this version of tenseal cannot be used")
    return content.raw[:length]


def secret_residues(secret_key: Any, parameters: LatticeParameters) -> Residues:
    """The transformed secret, shape `(degree,)`."""
    content = saved(secret_key, parameters.degree)
    return np.frombuffer(content, dtype="<u8", offset=len(content) - 8 * parameters.degree).copy()
