"""What both parties agree on before a product: ring, scales, and which coefficients carry results.

The key holder's number x stands in a polynomial as round(x q / 2^(R + f)), the other's weight w as round(w 2^f). A
coefficient of their product is then sum(x w) at scale q / 2^R: the modulus stands for 2^R units (nats, cosines), and
a result is known up to multiples of that. R = `result.bits - result.fraction`.
"""

import functools
import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Residues
from ppspeech.crypto.lattice.parameters import KEPT_BITS, LARGEST_ERROR, LatticeParameters
from ppspeech.crypto.lattice.wire import IDENTITY_BYTES, query_length, reply_length
from ppspeech.crypto.numbers import Ring, Scale
from ppspeech.errors import PpspeechError, RangeError

KEYWORD_RESULT = Scale(bits=21, fraction=6)
"""Shares mod 2^21 of scores in steps of 1/64 over +-16,384."""


@dataclass(frozen=True, slots=True)
class Precision:
    """Ring and scales of a product.

    Attributes:
        limit: public bound on the magnitude of the key holder's numbers; beyond it nothing is sent.
        weights: the other party's scale.
        result: the scale of the shares, at most 32 bits.
    """

    parameters: LatticeParameters = LatticeParameters()  # noqa: RUF009 - frozen
    limit: float = 64.0
    weights: Scale = Scale(bits=28, fraction=15)  # noqa: RUF009 - frozen
    result: Scale = KEYWORD_RESULT

    def __post_init__(self) -> None:
        if self.result.bits > KEPT_BITS or self.result.fraction > self.result.bits:
            raise RangeError(f"results have at most {KEPT_BITS} bits and no more after the point, got {self.result}")
        if self.unit < 1:
            raise RangeError(
                f"one unit of a result times 2^{self.weights.fraction} does not fit a {self.parameters.prime_bits}-bit "
                "prime: use fewer bits after the point of the weights or a smaller range of results"
            )
        if not 0 < self.limit * self.unit < self.parameters.prime / 2:
            raise RangeError(f"the limit must be above 0 and far below the range of results, got {self.limit}")

    @property
    def unit(self) -> float:
        """What the number 1 of the key holder becomes: q / 2^(R + f)."""
        return self.parameters.prime / 2.0 ** (self.range_bits + self.weights.fraction)

    @property
    def range_bits(self) -> int:
        """R: results are known modulo 2^R units."""
        return self.result.bits - self.result.fraction

    def encode(self, values: NDArray[np.floating]) -> NDArray[np.int64]:
        """The key holder's numbers as integers. Raises RangeError for NaN or a magnitude above the limit."""
        given = np.asarray(values, dtype=np.float64)
        outside = np.flatnonzero(~(np.abs(given) <= self.limit))
        if outside.size:
            raise RangeError(
                f"{given.ravel()[outside[0]]} is beyond the public limit of {self.limit}: clip before encrypting"
            )
        return np.rint(given * self.unit).astype(np.int64)

    def shorten(self, share: Residues) -> Residues:
        """A party's share mod 2^32 as one mod 2^k: rounded on its own, which moves the sum by less than one step."""
        dropped = KEPT_BITS - self.result.bits
        if not dropped:
            return share
        return Ring(self.result.bits).reduce((share + np.uint64(1 << (dropped - 1))) >> np.uint64(dropped))


@dataclass(frozen=True, slots=True)
class Job:
    """The shape of an evaluation: groups of uploaded polynomials, each multiplied into replies.

    reply[g, o] = sum over terms of query[g, term] weights[o, term], of which `kept` coefficients are shared.

    Attributes:
        groups: how many times the weights are applied.
        terms: polynomials of a group of the query.
        outputs: reply polynomials of a group.
        kept: indices of the coefficients that carry results, ascending.
    """

    precision: Precision
    groups: int
    terms: int
    outputs: int
    kept: range

    def __post_init__(self) -> None:
        if min(self.groups, self.terms, self.outputs, len(self.kept)) < 1:
            raise PpspeechError(f"groups, terms, outputs and kept coefficients are at least 1, got {self}")
        if self.terms >= 1 << (64 - self.parameters.prime_bits):
            raise PpspeechError(f"{self.terms} terms are too many for one sum")

    @property
    def parameters(self) -> LatticeParameters:
        """The ring."""
        return self.precision.parameters

    @property
    def identity(self) -> bytes:
        """Eight bytes that two parties share only if they mean the same job."""
        return _identity(self)

    @property
    def kept_index(self) -> NDArray[np.intp]:
        """`kept` as an array."""
        return np.asarray(self.kept, dtype=np.intp)

    @property
    def query_bytes(self) -> int:
        """Bytes that the key holder sends."""
        return query_length(self.parameters, self.groups * self.terms)

    @property
    def reply_bytes(self) -> int:
        """Bytes that come back."""
        return reply_length(self.parameters, self.groups * self.outputs, len(self.kept))


@functools.lru_cache(maxsize=64)
def _identity(job: Job) -> bytes:
    return hashlib.sha256(repr(job).encode()).digest()[:IDENTITY_BYTES]


@dataclass(frozen=True, slots=True)
class ErrorBound:
    """How far a result can be from the product of the real matrices, by cause, in units of the result; certain.

    Attributes:
        weights: weights rounded to 2^-f: half a step times the 1-norm of the key holder's row.
        noise: errors of the uploaded encryptions, bits dropped and messages rounded: times the 1-norm of the weights.
        zero: errors of the encryption of zero.
        reply: the reply's residues rounded to 32 bits, the second part's times a ternary secret.
        shares: each party's share rounded to the result's scale.

    Lemma 2.13 in docs/theory/asking.md.
    """

    weights: float
    noise: float
    zero: float
    reply: float
    shares: float

    @property
    def total(self) -> float:
        """The sum of all."""
        return self.weights + self.noise + self.zero + self.reply + self.shares


def error_bound(precision: Precision, row_norm: float, column_norm: float, terms: int, packed: int) -> ErrorBound:
    """The worst case for rows of 1-norm `row_norm` times weight columns of 1-norm `column_norm`. `packed`: how many
    columns stand in one polynomial, at the most: every coefficient of a ciphertext has an error, those between numbers
    too, and so a result meets that of all weights of its polynomial.

    >>> bound = error_bound(Precision(), row_norm=700, column_norm=350, terms=820, packed=1)
    >>> round(bound.total, 4)
    0.042
    """
    n, q = precision.parameters.degree, precision.parameters.prime
    step = 2.0**-precision.weights.fraction
    residue = 2.0**precision.range_bits / q
    word = 2.0 ** (precision.range_bits - KEPT_BITS)
    upload = LARGEST_ERROR + 0.5 + (1 << precision.parameters.dropped_bits) / 2
    return ErrorBound(
        weights=row_norm * step / 2,
        noise=upload * packed * (column_norm / step + terms / 2) * residue,
        zero=LARGEST_ERROR * (1 + 2 * n) * residue,
        reply=(n + 2) / 2 * word + n / 2 * residue,
        shares=2.0**-precision.result.fraction if precision.result.bits < KEPT_BITS else 0.0,
    )
