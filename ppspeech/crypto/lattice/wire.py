"""The two messages of the kernel as bytes: exact lengths, a header that names job and key, and residues.

    query   header | polynomials x (seed, 64 bytes | first part, 6 bytes a coefficient)
    reply   header | polynomials x (kept coefficients of the first part, then the second part; 4 bytes each)

A query carries the upper 48 bits of a residue; what is dropped lies below the noise. A reply carries residues rounded
to 32 bits. Every value of either has exactly one encoding, and nothing in a message chooses how long it is.
"""

import hashlib
import struct

import numpy as np

from ppspeech.arrays import Residues
from ppspeech.crypto.lattice.parameters import SENT_BITS, LatticeParameters
from ppspeech.crypto.lattice.zeros import SEED_BYTES
from ppspeech.errors import BadCiphertextError, WrongKeyError

IDENTITY_BYTES = 8
_HEADER = struct.Struct(f"<4s{IDENTITY_BYTES}s{IDENTITY_BYTES}s")
HEADER_BYTES = _HEADER.size
_SENT_BYTES = SENT_BITS // 8
QUERY, REPLY = b"LATQ", b"LATR"


def key_identity(public_key: bytes, coins: bytes) -> bytes:
    """Eight bytes that name a key in messages."""
    return hashlib.sha256(public_key + coins).digest()[:IDENTITY_BYTES]


def query_length(parameters: LatticeParameters, polynomials: int) -> int:
    """Bytes of a query."""
    return HEADER_BYTES + polynomials * (SEED_BYTES + _SENT_BYTES * parameters.degree)


def reply_length(parameters: LatticeParameters, polynomials: int, kept: int) -> int:
    """Bytes of a reply of polynomials with `kept` coefficients each."""
    return HEADER_BYTES + polynomials * 4 * (kept + parameters.degree)


def _open(received: bytes, kind: bytes, job: bytes, key: bytes, length: int) -> memoryview:
    if len(received) != length:
        raise BadCiphertextError(f"the message must have {length} bytes, got {len(received)}")
    named_kind, named_job, named_key = _HEADER.unpack_from(received)
    if named_kind != kind:
        raise BadCiphertextError(f"the message must be a {kind.decode()}, got {named_kind!r}")
    if named_job != job:
        raise BadCiphertextError("the message belongs to a product of other sizes, scales or ring")
    if named_key != key:
        raise WrongKeyError("the message belongs to another key than the one agreed on")
    return memoryview(received)[HEADER_BYTES:]


def dump_query(parameters: LatticeParameters, job: bytes, key: bytes, seeds: list[bytes], residues: Residues) -> bytes:
    """A query from seeds and first parts `(polynomials, degree)`."""
    records = np.empty((len(seeds), SEED_BYTES + _SENT_BYTES * parameters.degree), dtype=np.uint8)
    records[:, :SEED_BYTES] = np.frombuffer(b"".join(seeds), dtype=np.uint8).reshape(-1, SEED_BYTES)
    sent = (residues >> np.uint64(parameters.dropped_bits)).astype("<u8").view(np.uint8)
    kept = sent.reshape(len(seeds), parameters.degree, 8)[:, :, :_SENT_BYTES]
    records[:, SEED_BYTES:] = kept.reshape(len(seeds), -1)
    return _HEADER.pack(QUERY, job, key) + records.tobytes()


def load_query(
    received: bytes, parameters: LatticeParameters, job: bytes, key: bytes, polynomials: int
) -> tuple[list[bytes], Residues]:
    """Seeds and first parts of a received query. Raises BadCiphertextError for another length or job, or a residue that
    is not below the prime, or a seed that comes twice, which no key holder draws; WrongKeyError for another key.
    """
    body = _open(received, QUERY, job, key, query_length(parameters, polynomials))
    records = np.frombuffer(body, dtype=np.uint8).reshape(polynomials, -1)
    words = np.zeros((polynomials, parameters.degree, 8), dtype=np.uint8)
    words[:, :, :_SENT_BYTES] = records[:, SEED_BYTES:].reshape(polynomials, parameters.degree, _SENT_BYTES)
    residues = words.reshape(polynomials, -1).view("<u8").astype(np.uint64, copy=False)
    dropped = parameters.dropped_bits
    if (residues > np.uint64((parameters.prime - 1) >> dropped)).any():
        raise BadCiphertextError("a residue of the query is not below the prime")
    if dropped:  # the middle of what may have been dropped
        residues = ((residues << np.uint64(dropped)) + np.uint64(1 << (dropped - 1))) % np.uint64(parameters.prime)
    seeds = [record[:SEED_BYTES].tobytes() for record in records]
    if len(set(seeds)) < polynomials:
        raise BadCiphertextError("a seed comes twice in the query: its polynomials must be encrypted afresh")
    return seeds, residues


def dump_reply(job: bytes, key: bytes, first: Residues, second: Residues) -> bytes:
    """A reply from rounded parts, shapes `(polynomials, kept)` and `(polynomials, degree)`."""
    return _HEADER.pack(REPLY, job, key) + np.hstack((first, second)).astype("<u4").tobytes()


def load_reply(
    received: bytes, parameters: LatticeParameters, job: bytes, key: bytes, polynomials: int, kept: int
) -> tuple[Residues, Residues]:
    """A reply's rounded parts. Raises BadCiphertextError for another length or job, WrongKeyError for another key."""
    body = _open(received, REPLY, job, key, reply_length(parameters, polynomials, kept))
    words = np.frombuffer(body, dtype="<u4").reshape(polynomials, -1).astype(np.uint64)
    return words[:, :kept], words[:, kept:]
