"""A circuit on bits and on numbers mod 2^k: public, and the same for who garbles it and who evaluates it.

A circuit is a list of instructions on many lanes at once. Wires have numbers; a number of k bits in n lanes is an array
`(k, n)` of them, the lowest bit first. And costs a table of 32 bytes, exclusive or nothing:

    add                k - 1 a lane      c' = c ⊕ (a ⊕ c)(b ⊕ c)
    at_least           k - 1             the opposite of the sign of a - b mod 2^k
    choose             k                 b ⊕ s (a ⊕ b)
    maximum, minimum   2 k - 1
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from ppspeech.arrays import Whole
from ppspeech.errors import RangeError


class Op(IntEnum):
    """Instructions."""

    XOR = 0
    AND = 1
    CHOOSE = 2
    ADD = 3
    AT_LEAST = 4


ZERO, ONE = 0, 1
"""Wires that are what their names say; nobody fills them."""


@dataclass(frozen=True, eq=False)
class Circuit:
    """Instructions, ready to run. `code`: `(instructions, 4)`, what, bits, lanes, and where in `index` its wires stand.
    `wires`: how many. `gates`: how many tables. `scratch`: the most gates that are ready together.
    """

    code: Whole
    index: Whole
    wires: int
    gates: int
    scratch: int


class Builder:
    """Makes a circuit, operation by operation. Wires 0 and 1 are the constants.

    >>> build = Builder()
    >>> left, right = build.inputs(4, 1), build.inputs(4, 1)
    >>> best, _ = build.maximum(left, right)
    >>> build.finish().gates
    7
    """

    def __init__(self) -> None:
        self._code: list[tuple[int, int, int, int]] = []
        self._index: list[Whole] = []
        self._at = 0
        self._wires = 2
        self._gates = 0
        self._scratch = 1

    def inputs(self, bits: int, lanes: int) -> Whole:
        """Wires that both parties fill before they run it, `(bits, lanes)`."""
        first, self._wires = self._wires, self._wires + bits * lanes
        return np.arange(first, self._wires, dtype=np.int64).reshape(bits, lanes)

    def xor(self, left: Whole, right: Whole) -> Whole:
        """Bit by bit; any shape that both have."""
        return self._emit(Op.XOR, left, right, 0).reshape(left.shape)

    def opposite(self, bits: Whole) -> Whole:
        """1 - b."""
        return self.xor(bits, np.full_like(bits, ONE))

    def both(self, left: Whole, right: Whole) -> Whole:
        """And, bit by bit; any shape that both have."""
        self._scratch = max(self._scratch, left.size)
        return self._emit(Op.AND, left, right, left.size).reshape(left.shape)

    def choose(self, select: Whole, left: Whole, right: Whole) -> Whole:
        """`left` in lanes where `select`, `(lanes,)`, is 1, else `right`, both `(bits, lanes)`."""
        if select.shape != left.shape[1:]:
            raise RangeError(f"a choice has one bit a lane, got {select.shape} for {left.shape}")
        self._scratch = max(self._scratch, left.size)
        return self._emit(Op.CHOOSE, left, right, left.size, select).reshape(left.shape)

    def add(self, left: Whole, right: Whole) -> Whole:
        """The sum mod 2^bits, `(bits, lanes)`."""
        return self._emit(Op.ADD, left, right, self._carries(left)).reshape(left.shape)

    def at_least(self, left: Whole, right: Whole) -> Whole:
        """`(lanes,)`: whether left >= right, where the two are less than 2^(bits - 1) apart."""
        return self._emit(Op.AT_LEAST, left, right, self._carries(left), lanes_out=True)

    def maximum(self, left: Whole, right: Whole) -> tuple[Whole, Whole]:
        """The larger, and whether it is the left one, which a tie is."""
        takes = self.at_least(left, right)
        return self.choose(takes, left, right), takes

    def minimum(self, left: Whole, right: Whole) -> tuple[Whole, Whole]:
        """The smaller, and whether it is the right one, which a tie is."""
        takes = self.at_least(left, right)
        return self.choose(takes, right, left), takes

    def finish(self) -> Circuit:
        """What was made."""
        code = np.array(self._code, np.int64).reshape(-1, 4)
        index = np.concatenate([np.zeros(0, np.int64), *self._index])
        return Circuit(code, index, self._wires, self._gates, self._scratch)

    def _carries(self, left: Whole) -> int:
        bits, lanes = map(int, left.shape)
        self._scratch = max(self._scratch, lanes)
        return (bits - 1) * lanes

    def _emit(
        self, op: Op, left: Whole, right: Whole, gates: int, select: Whole | None = None, *, lanes_out: bool = False
    ) -> Whole:
        if left.shape != right.shape:
            raise RangeError(f"operands must have one shape, got {left.shape} and {right.shape}")
        bits, lanes = left.shape if left.ndim == 2 else (1, left.size)
        out: Whole = self.inputs(1, lanes if lanes_out else bits * lanes)[0]
        parts = [left.flatten(), right.flatten(), out.copy(), *([] if select is None else [select.copy()])]
        self._code.append((int(op), bits, lanes, self._at))
        self._index += parts
        self._at += sum(len(part) for part in parts)
        self._gates += gates
        return out
