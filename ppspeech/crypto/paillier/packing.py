"""Many small signed integers in one plaintext, and masks that turn packed results into additive shares.

Slot i of a packed integer V = sum_i v_i 2^(b i) holds a signed value of b bits. Adding packed integers and scaling
them by integers acts on every slot at once, as long as every result keeps |v_i| < 2^(b - 1): negative slots borrow
from the next one, and adding 2^(b - 1) to every slot undoes all borrows at once.

Shares. The evaluator adds a mask R uniform in 0..2^(b s + g) - 1, s slots and g guard bits *at the top only*; the key
holder decrypts V' + R, where V' = V + sum_i 2^(b - 1 + b i) lies in 0..2^(b s) - 1. Two facts make one guard enough:

- Hiding: V' + R and R are distributed within 2^(b s) / 2^(b s + g) = 2^-g of each other, whatever V' is. The slots are
  hidden together because the whole integer is; a guard in every slot would hide no more.
- Correctness: the low b s bits of V' + R are an ordinary sum, so slot i of it is v'_i + R_i + carry mod 2^b with a
  carry of 0 or 1 from the slots below. The two parties' slots are therefore shares of v_i or v_i + 1: one unit in the
  last place, which a scale with a spare fraction bit makes harmless.
"""

from dataclasses import dataclass

import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from ppspeech.crypto.randomness import uniform_bytes
from ppspeech.errors import RangeError


@dataclass(frozen=True, slots=True)
class Packing:
    """A layout of slots in a plaintext. `slot_bits`: width of a slot: 8, 16, ... 64 bits, whole bytes, so that packing
    is a matter of memory layout. `guard_bits`: how far a mask reaches beyond the slots: whole bytes; statistical
    security of the shares.

    >>> packing = Packing(slot_bits=16, slots=3)
    >>> packed = packing.pack(np.array([1, -2, 3]))
    >>> packing.unpack(5 * packed).tolist()
    [5, -10, 15]
    """

    slot_bits: int
    slots: int
    guard_bits: int = 40

    def __post_init__(self) -> None:
        if self.slot_bits % 8 or not 8 <= self.slot_bits <= 64:
            raise RangeError(f"a slot has 8, 16, ... or 64 bits, got {self.slot_bits}")
        if self.slots < 1:
            raise RangeError(f"a packing has at least one slot, got {self.slots}")
        if self.guard_bits % 8 or self.guard_bits < 40:
            raise RangeError(f"the guard has 40, 48, ... bits, got {self.guard_bits}: fewer would not hide the slots")

    @classmethod
    def fitting(cls, plaintext_modulus: mpz, slot_bits: int, guard_bits: int = 40) -> "Packing":
        """The layout with the most slots that a plaintext of this modulus can hold, mask included."""
        slots = (int(plaintext_modulus).bit_length() - 3 - guard_bits) // slot_bits
        if slots < 1:
            raise RangeError(
                f"a plaintext of {int(plaintext_modulus).bit_length()} bits holds no slot of {slot_bits} bits "
                f"with a guard of {guard_bits}: use a longer key"
            )
        return cls(slot_bits, slots, guard_bits)

    @property
    def plaintext_bits(self) -> int:
        """Bits of the largest integer that a plaintext must hold: a masked sum, and its sign."""
        return self.slots * self.slot_bits + self.guard_bits + 2

    def check_fits(self, plaintext_modulus: mpz) -> None:
        """Refuse a key whose plaintexts are too short for this layout."""
        if self.plaintext_bits >= int(plaintext_modulus).bit_length():
            raise RangeError(
                f"{self.slots} slots of {self.slot_bits} bits and the guard take {self.plaintext_bits} bits; "
                f"the key's plaintexts have {int(plaintext_modulus).bit_length()}"
            )

    def check_magnitude(self, largest: int) -> None:
        """Refuse results whose magnitude, `largest` after all that will be computed, might leave their slots."""
        if largest >= 1 << (self.slot_bits - 1):
            raise RangeError(f"slots of {self.slot_bits} bits hold less than 2^{self.slot_bits - 1}, not {largest}")

    def pack(self, values: NDArray[np.int64]) -> mpz:
        """One integer from `(slots,)` signed integers. Raises RangeError unless all are below 2^(slot_bits - 1)."""
        return self.pack_rows(values[np.newaxis])[0]

    def pack_rows(self, values: NDArray[np.int64]) -> list[mpz]:
        """One integer a row of `(rows, slots)`."""
        if values.ndim != 2 or values.shape[1] != self.slots or not np.issubdtype(values.dtype, np.signedinteger):
            raise RangeError(
                f"a packing of {self.slots} slots takes rows of that many signed integers, got {values.dtype} of shape "
                f"{values.shape}"
            )
        outside = np.flatnonzero((values >= self._half) | (values <= -self._half))
        if outside.size:
            raise RangeError(
                f"{int(values.ravel()[outside[0]])} does not fit a slot of {self.slot_bits} bits: "
                f"magnitudes stay below {self._half}"
            )
        raised = values.astype(np.int64).view(np.uint64) + np.uint64(self._half)
        slots = np.ascontiguousarray(raised.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : self.slot_bits // 8])
        offset = self._offset
        return [mpz.from_bytes(row.tobytes(), "little") - offset for row in slots.reshape(len(values), -1)]

    def unpack(self, packed: int | mpz) -> NDArray[np.int64]:
        """The slots of a packed integer, `(slots,)`. Raises RangeError if no slots in range make it."""
        raised = mpz(packed) + self._offset
        if not 0 <= raised < mpz(1) << (self.slots * self.slot_bits):
            raise RangeError(f"not a packed integer of {self.slots} slots of {self.slot_bits} bits: a slot overflowed")
        return (self._split(raised) - np.uint64(self._half)).view(np.int64)

    def draw_mask(self) -> tuple[mpz, NDArray[np.uint64]]:
        """What the evaluator adds to a packed result, and its own shares mod 2^slot_bits, `(slots,)`."""
        mask = mpz.from_bytes(uniform_bytes((self.slots * self.slot_bits + self.guard_bits) // 8), "little")
        shares = np.uint64(0) - self._split(mask) - np.uint64(self._half)
        return mask + self._offset, shares & self._ones

    def masked_shares(self, masked: int | mpz) -> NDArray[np.uint64]:
        """The key holder's shares of a decrypted masked result: residues mod 2^slot_bits, shape `(slots,)`.

        They and the evaluator's add up to the slots, or to one more (see the head of this file). Raises RangeError if
        no mask can give this number.
        """
        if not 0 <= masked < mpz(1) << (self.plaintext_bits - 1):
            raise RangeError("not a masked packed integer: negative, or longer than slots and guard")
        return self._split(mpz(masked))

    @property
    def _half(self) -> int:
        return 1 << (self.slot_bits - 1)

    @property
    def _ones(self) -> np.uint64:
        return np.uint64((1 << self.slot_bits) - 1)

    @property
    def _offset(self) -> mpz:
        """2^(slot_bits - 1) in every slot."""
        return self._half * (((mpz(1) << (self.slots * self.slot_bits)) - 1) // ((mpz(1) << self.slot_bits) - 1))

    def _split(self, number: mpz) -> NDArray[np.uint64]:
        width = self.slot_bits // 8
        low = number % (mpz(1) << (self.slots * self.slot_bits))
        slots = np.frombuffer(low.to_bytes(self.slots * width, "little"), np.uint8).reshape(self.slots, width)
        residues = np.zeros((self.slots, 8), np.uint8)
        residues[:, :width] = slots
        return residues.view("<u8").ravel().astype(np.uint64)
