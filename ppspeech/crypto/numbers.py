"""Real numbers as integers of one agreed scale, and integers as residues of a ring Z_{2^k}.

    fxp(x, f) = round(x 2^f),   |fxp| < 2^(k - 1)

Both parties hold the same `Scale`; a value beyond its range is refused before anything is sent.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppspeech.crypto.randomness import uniform_residues
from ppspeech.errors import RangeError

_MASKS = tuple(np.uint64((1 << bits) - 1) for bits in range(65))


@dataclass(frozen=True, slots=True)
class Ring:
    """Integers mod 2^bits, kept in numpy `uint64` residues; arithmetic wraps around. `bits`: 1 to 64.

    >>> ring = Ring(8)
    >>> ring.from_signed(np.array([-1, 127])).tolist()
    [255, 127]
    >>> ring.to_signed(ring.reduce(np.array([255, 127], np.uint64) + np.uint64(1))).tolist()
    [0, -128]
    """

    bits: int

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 64:
            raise RangeError(f"a ring has 1 to 64 bits, got {self.bits}")

    @property
    def mask(self) -> np.uint64:
        """2^bits - 1."""
        return _MASKS[self.bits]

    def reduce(self, residues: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Residues mod 2^bits."""
        return np.bitwise_and(residues, self.mask)

    def from_signed(self, values: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Two's complement: negative v becomes 2^bits + v. Refuses what lies outside -2^(bits-1)..2^(bits-1) - 1."""
        low, high = -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        outside = np.flatnonzero((values < low) | (values > high))
        if outside.size:
            raise RangeError(
                f"{int(values.ravel()[outside[0]])} is not between {low} and {high}, the range of {self.bits} bits"
            )
        return self.reduce(values.astype(np.int64).view(np.uint64))

    def to_signed(self, residues: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The signed integer with the same residue, nearest to zero."""
        spare = np.uint64(64 - self.bits)
        shifted: NDArray[np.int64] = np.left_shift(residues, spare).view(np.int64)
        return np.right_shift(shifted, np.int64(64 - self.bits))

    def share(self, residues: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Two residues that add up to each residue; either alone is uniform, whatever the residue is."""
        mask = uniform_residues(residues.shape, self.bits)
        return self.reduce(residues - mask), mask

    def join(self, left: NDArray[np.uint64], right: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The residues that two shares add up to."""
        return self.reduce(left + right)


@dataclass(frozen=True, slots=True)
class Scale:
    """How real numbers are written as integers: `bits` k, sign included, 2 to 64; `fraction` f bits after the point.

    >>> scale = Scale(bits=12, fraction=8)
    >>> scale.encode(np.array([1.5, -0.25])).tolist()
    [384, -64]
    >>> scale.encode(np.array([8.0]))
    Traceback (most recent call last):
    ppspeech.errors.RangeError: 8.0 does not fit 12 bits with 8 after the point: magnitudes stay below 8.0; ...
    """

    bits: int
    fraction: int

    def __post_init__(self) -> None:
        if not 2 <= self.bits <= 64:
            raise RangeError(f"a scale has 2 to 64 bits, got {self.bits}")
        if not 0 <= self.fraction <= 1000:
            raise RangeError(f"bits after the point are 0 to 1000, got {self.fraction}")

    @property
    def bound(self) -> float:
        """Magnitudes stay below this."""
        return float(2.0 ** (self.bits - 1 - self.fraction))

    @property
    def ring(self) -> Ring:
        """The ring whose residues hold this scale's integers."""
        return Ring(self.bits)

    def encode(self, values: NDArray[np.floating]) -> NDArray[np.int64]:
        """Round to the nearest multiple of 2^-f, ties to even; exact for everything a float64 can hold. Raises
        RangeError for NaN, an infinity, or a value beyond the bound, with the value and the bound.
        """
        given = np.asarray(values, dtype=np.float64)
        if not np.isfinite(given).all():
            bad = given.ravel()[np.flatnonzero(~np.isfinite(given))[0]]
            raise RangeError(f"{bad} cannot be encoded: values must be finite numbers")
        rounded = np.rint(np.ldexp(given, self.fraction))
        outside = np.flatnonzero(np.abs(rounded) >= 2.0 ** (self.bits - 1))
        if outside.size:
            raise RangeError(
                f"{given.ravel()[outside[0]]} does not fit {self.bits} bits with {self.fraction} after the point: "
                f"magnitudes stay below {self.bound}; clip to a public bound first"
            )
        return rounded.astype(np.int64)

    def decode(self, integers: NDArray[np.int64]) -> NDArray[np.float64]:
        """The real numbers that encoded integers stand for."""
        return np.ldexp(np.asarray(integers).astype(np.float64), -self.fraction)

    def product(self, other: "Scale", terms: int) -> "Scale":
        """The scale of a sum of `terms` products with `other`: wide enough for the worst case.

        >>> Scale(15, 8).product(Scale(16, 12), terms=820)
        Scale(bits=40, fraction=20)
        """
        if terms < 1:
            raise RangeError(f"a sum has at least one term, got {terms}")
        bits = self.bits + other.bits - 1 + (terms - 1).bit_length()
        if bits > 64:
            raise RangeError(
                f"a sum of {terms} such products needs {bits} bits, more than a residue: use coarser scales"
            )
        return Scale(bits, self.fraction + other.fraction)


def exact_product(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.object_]:
    """The matrix product in unbounded integers: the twin that encrypted results are compared with."""
    return np.asarray(left.astype(object) @ right.astype(object), dtype=object)
