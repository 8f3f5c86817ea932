"""Plain CKKS and BFV vectors through TenSEAL, with the same three steps as the matrix product, for who wants those.

What differs from the kernel of this package: the key holder reads X W itself, not a share of it; it can compare the
noise of what it decrypts with what it sent, which tells it about W; and the evaluator never learns anything it could
compute on further. CKKS results must not be passed on as they are: their noise tells about the key (Li and Micciancio,
2021). Use this where the key holder may know the scores, and for comparison.
"""

import struct
from typing import Any, Literal, NoReturn

import numpy as np
import tenseal

from ppspeech.arrays import Reals
from ppspeech.errors import BadCiphertextError, PpspeechError, RangeError

Scheme = Literal["ckks", "bfv"]

DEGREE = 8192
CKKS_PRIMES, CKKS_SCALE = [60, 40, 60], 2.0**40
BFV_MODULUS = 1032193
"""Integers of BFV results are known modulo this prime, nearest to zero."""

_LENGTH = struct.Struct("<I")
_LONGEST = 1 << 20  # bytes of one ciphertext; those of this degree take half of it at most


def _dump(vectors: list[Any]) -> bytes:
    return b"".join(_LENGTH.pack(len(data)) + data for data in (vector.serialize() for vector in vectors))


def _load(scheme: Scheme, context: Any, received: bytes, count: int) -> list[Any]:
    read = tenseal.ckks_vector_from if scheme == "ckks" else tenseal.bfv_vector_from
    vectors: list[Any] = []
    place = 0
    for _ in range(count):
        if len(received) - place < _LENGTH.size:
            raise BadCiphertextError(f"the message must hold {count} ciphertexts, it ends after {len(vectors)}")
        (length,) = _LENGTH.unpack_from(received, place)
        place += _LENGTH.size
        if not 0 < length <= min(_LONGEST, len(received) - place):
            raise BadCiphertextError(f"a ciphertext of {length} bytes cannot be in the message")
        try:
            vectors.append(read(context, received[place : place + length]))
        except (ValueError, RuntimeError) as refused:
            raise BadCiphertextError(f"not a ciphertext of this scheme: {refused}") from None
        place += length
    if place != len(received):
        raise BadCiphertextError(f"{len(received) - place} bytes follow the last ciphertext")
    return vectors


class VectorKeyHolder:
    """A TenSEAL key: encrypts the rows of X and reads the product. Cannot be pickled. `scheme`: `ckks` for real
    numbers, `bfv` for integers. `public_context`: bytes for the evaluator; without the secret key, with the rotation
    keys that `dot` needs.
    """

    def __init__(self, scheme: Scheme = "ckks") -> None:
        self.scheme: Scheme = scheme
        if scheme == "ckks":
            self._context = tenseal.context(tenseal.SCHEME_TYPE.CKKS, DEGREE, coeff_mod_bit_sizes=CKKS_PRIMES)
            self._context.global_scale = CKKS_SCALE
        elif scheme == "bfv":
            self._context = tenseal.context(tenseal.SCHEME_TYPE.BFV, DEGREE, plain_modulus=BFV_MODULUS)
        else:
            raise PpspeechError(f"scheme must be 'ckks' or 'bfv', got {scheme!r}")
        self._context.generate_galois_keys()
        self.public_context: bytes = self._context.serialize(
            save_public_key=True, save_secret_key=False, save_galois_keys=True, save_relin_keys=False
        )

    def __reduce__(self) -> NoReturn:
        raise PpspeechError("a secret key stays in the process that made it")

    def query(self, features: Reals) -> bytes:
        """Encrypt the rows of X, shape `(rows, inner)`; whole numbers for BFV."""
        rows = np.asarray(features)
        if not np.isfinite(rows).all():
            raise RangeError("features must be finite numbers")
        if self.scheme == "bfv" and not np.array_equal(rows, np.rint(rows)):
            raise RangeError("BFV vectors hold whole numbers only")
        if self.scheme == "bfv":
            return _dump([tenseal.bfv_vector(self._context, row) for row in rows.astype(np.int64).tolist()])
        return _dump([tenseal.ckks_vector(self._context, row) for row in rows.astype(np.float64).tolist()])

    def finish(self, reply: bytes, rows: int, columns: int) -> Reals:
        """The product, `(rows, columns)`. Raises BadCiphertextError unless it holds so many ciphertexts."""
        vectors = _load(self.scheme, self._context, reply, rows * columns)
        return np.array([vector.decrypt()[0] for vector in vectors], dtype=np.float64).reshape(rows, columns)


class VectorEvaluator:
    """Multiplies encrypted rows by a plain matrix, one inner product a column. Holds no secret key. Raises
    BadCiphertextError if the context is malformed, PpspeechError if it carries the secret key.
    """

    def __init__(self, public_context: bytes, scheme: Scheme = "ckks") -> None:
        self.scheme: Scheme = scheme
        try:
            self._context = tenseal.context_from(public_context)
        except (ValueError, RuntimeError) as refused:
            raise BadCiphertextError(f"not a TenSEAL context: {refused}") from None
        if self._context.has_secret_key():
            raise PpspeechError("the context carries the secret key: the key holder must keep it")

    def reply(self, query: bytes, rows: int, weights: Reals) -> bytes:
        """Encrypted X W for weights `(inner, columns)`. Raises BadCiphertextError unless the rows fit them."""
        numbers = np.rint(weights).astype(np.int64) if self.scheme == "bfv" else np.asarray(weights, np.float64)
        vectors = _load(self.scheme, self._context, query, rows)
        if any(vector.size() != len(numbers) for vector in vectors):
            raise BadCiphertextError(f"the rows of the query must have {len(numbers)} numbers")
        columns = numbers.T.tolist()
        return _dump([vector.dot(column) for vector in vectors for column in columns])
