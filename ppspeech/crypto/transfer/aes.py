"""AES-128 by the processor's instructions inside numba, so that what hashes stays in registers.

OpenSSL encrypts a buffer; a hash around it is three more passes over memory, which take longer than AES itself. Here a
kernel loads, permutes twice and cuts to size without storing anything between. Processors with VAES and AVX-512 take
four blocks a register, others with AES instructions one; where there are none, `AVAILABLE` is false: OpenSSL is used.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from ppspeech.arrays import Residues
from ppspeech.crypto.packing import Numbers

_FEATURES = frozenset(cpu_target.target_context.codegen().magic_tuple()[2].split(","))  # what numba compiles for
AVAILABLE = "+aes" in _FEATURES
BLOCKS = 4 if {"+vaes", "+avx512f"} <= _FEATURES else 1
"""Blocks of a register."""

AT_ONCE = 16
"""Rows that `hash_rows` and `hash_blocks` take at a time: enough that no instruction waits for the one before."""

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_SUFFIX = {1: "", 4: ".512"}[BLOCKS]
_ROUNDS = 10


def expand_key(key: bytes) -> Residues:
    """The 11 round keys of AES-128 (FIPS 197, 5.2) as 22 words."""
    box, words, constant = _substitutions(), [key[at : at + 4] for at in range(0, 16, 4)], 1
    for number in range(4, 4 * (_ROUNDS + 1)):
        last = words[-1]
        if number % 4 == 0:
            turned = bytes(box[byte] for byte in last[1:] + last[:1])
            last = bytes([turned[0] ^ constant]) + turned[1:]
            constant = _double(constant)
        words.append(bytes(a ^ b for a, b in zip(words[-4], last, strict=True)))
    return np.frombuffer(b"".join(words), np.uint64).copy()


def _double(byte: int) -> int:
    """Times x in the field of AES."""
    return (byte << 1) ^ (0x11B if byte & 0x80 else 0)


def _substitutions() -> list[int]:
    """The S-box: inverses, from powers of 3 and of its inverse, and the affine map."""
    box, power, inverse = [0x63] * 256, 1, 1
    for _ in range(255):
        power ^= _double(power)
        for shift in (1, 2, 4):
            inverse = (inverse ^ inverse << shift) & 0xFF
        inverse ^= 0x09 if inverse & 0x80 else 0
        turns = [(inverse << turn | inverse >> (8 - turn)) & 0xFF for turn in range(5)]
        box[power] = turns[0] ^ turns[1] ^ turns[2] ^ turns[3] ^ turns[4] ^ 0x63
    return box


class Writer:
    """Writes the instructions of one kernel; a list of registers holds blocks in order."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.context, self.builder, self.signature, self.args = context, builder, signature, args
        self.register = ir.VectorType(_I64, 2 * BLOCKS)
        kind = ir.FunctionType(self.register, [self.register, self.register])
        self._round, self._last = (
            builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
            for name in (f"llvm.x86.aesni.{each}{_SUFFIX}" for each in ("aesenc", "aesenclast"))
        )
        self._keys = [self.splat(self.load(0, ir.Constant(_I64, 2 * r), 2)) for r in range(_ROUNDS + 1)]

    def data(self, number: int) -> Any:
        """The pointer of an array among the arguments."""
        return self.context.make_array(self.signature.args[number])(self.context, self.builder, self.args[number]).data

    def load(self, number: int, at: Any, words: int) -> Any:
        """So many words of an array, from a word on."""
        pointer = self.builder.gep(self.data(number), [at])
        value = self.builder.load(self.builder.bitcast(pointer, ir.VectorType(_I64, words).as_pointer()))
        value.align = 8
        return value

    def pick(self, vector: Any, lanes: list[int], other: Any = None) -> Any:
        """Some lanes of a vector, or of two after each other."""
        where = ir.Constant(ir.VectorType(_I32, len(lanes)), lanes)
        return self.builder.shuffle_vector(
            vector, ir.Constant(vector.type, ir.Undefined) if other is None else other, where
        )

    def splat(self, pair: Any) -> Any:
        """Two words in every block of a register."""
        return self.pick(pair, [0, 1] * BLOCKS)

    def vector(self, *words: Any) -> Any:
        """A vector of some words."""
        made = ir.Constant(ir.VectorType(_I64, len(words)), ir.Undefined)
        for lane, word in enumerate(words):
            made = self.builder.insert_element(made, word, ir.Constant(_I32, lane))
        return made

    def split(self, vector: Any) -> list[Any]:
        """A long vector as registers."""
        size = 2 * BLOCKS
        return [self.pick(vector, list(range(at, at + size))) for at in range(0, vector.type.count, size)]

    def join(self, registers: list[Any]) -> Any:
        """Registers as one long vector; a power of two of them."""
        while len(registers) > 1:
            lanes = list(range(2 * registers[0].type.count))
            registers = [self.pick(a, lanes, b) for a, b in zip(registers[::2], registers[1::2], strict=True)]
        return registers[0]

    def xor(self, left: list[Any], right: list[Any]) -> list[Any]:
        """Register by register."""
        return [self.builder.xor(a, b) for a, b in zip(left, right, strict=True)]

    def permute(self, blocks: list[Any]) -> list[Any]:
        """π of every block; registers take turns, so that no round waits for the one before."""
        blocks = [self.builder.xor(each, self._keys[0]) for each in blocks]
        for key in self._keys[1:-1]:
            blocks = [self.builder.call(self._round, [each, key]) for each in blocks]
        return [self.builder.call(self._last, [each, self._keys[-1]]) for each in blocks]

    def hashed(self, u: list[Any], tweaks: list[Any]) -> list[Any]:
        """π(u ⊕ i) ⊕ u."""
        return self.xor(self.permute(self.xor(u, tweaks)), u)

    def store(self, number: int, at: Any, vector: Any) -> None:
        """A vector into an array, cut to what its entries hold."""
        width = self.signature.args[number].dtype.bitwidth
        if width < 64:
            vector = self.builder.trunc(vector, ir.VectorType(ir.IntType(width), vector.type.count))
        pointer = self.builder.gep(self.data(number), [at])
        self.builder.store(vector, self.builder.bitcast(pointer, vector.type.as_pointer())).align = 1

    def first_words(self, blocks: list[Any], mask: Any) -> Any:
        """The first word of every block, masked."""
        whole = self.join(blocks)
        words = self.pick(whole, list(range(0, whole.type.count, 2)))
        return self.builder.and_(words, self.pick(self.vector(mask), [0] * words.type.count))


def typed_kernel(write: Callable[[Writer], None], *args: Any) -> Any:
    """What numba asks of an intrinsic, from what writes its instructions; the first argument holds the round keys."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        write(Writer(context, builder, signature, values))
        return context.get_dummy_value()

    return numba.void(*args), generate


def _row(blocks: int) -> Any:
    """One row with so many offsets."""

    def write(writer: Writer) -> None:
        at, x0, x1, y0, y1, tweak, mask = writer.args[3:10]
        first, count = writer.builder.shl(at, ir.Constant(_I64, 1)), blocks // BLOCKS
        lows, highs = (writer.split(writer.load(number, first, 2 * blocks)) for number in (1, 2))
        x, y, i = (writer.splat(writer.vector(*pair)) for pair in ((x0, x1), (y0, y1), (tweak, ir.Constant(_I64, 0))))
        u = writer.xor(writer.permute(writer.xor(lows, [x] * count)), writer.xor(highs, [y] * count))
        writer.store(10, writer.args[11], writer.first_words(writer.hashed(u, [i] * count), mask))

    def typed(
        _: Any, keys: Any, lows: Any, highs: Any, at: Any, x0: Any, x1: Any, y0: Any, y1: Any, tweak: Any, mask: Any,
        result: Any, to: Any,
    ) -> Any:  # fmt: skip
        return typed_kernel(write, keys, lows, highs, at, x0, x1, y0, y1, tweak, mask, result, to)

    return intrinsic(typed)


def _tweaks(writer: Writer, first: Any) -> list[Any]:
    """Of AT_ONCE rows in order, from the first one's."""
    steps = [n // 2 if n % 2 == 0 else 0 for n in range(2 * AT_ONCE)]
    start = writer.pick(writer.vector(first, ir.Constant(_I64, 0)), [0, 1] * AT_ONCE)
    return writer.split(writer.builder.add(start, ir.Constant(start.type, steps)))


def _write_rows(writer: Writer) -> None:
    at, tweak, mask = writer.args[3:6]
    offset = writer.pick(writer.load(2, ir.Constant(_I64, 0), 4), [0, 1, 2, 3] * AT_ONCE)
    rows = writer.builder.xor(writer.load(1, writer.builder.shl(at, ir.Constant(_I64, 2)), 4 * AT_ONCE), offset)
    x, y = (writer.split(writer.pick(rows, [n for n in range(4 * AT_ONCE) if n % 4 // 2 == half])) for half in (0, 1))
    u = writer.xor(writer.permute(x), y)
    writer.store(6, at, writer.first_words(writer.hashed(u, _tweaks(writer, tweak)), mask))


def _write_blocks(writer: Writer) -> None:
    at, tweak = writer.args[2:4]
    first = writer.builder.shl(at, ir.Constant(_I64, 1))
    inner = writer.permute(writer.split(writer.load(1, first, 2 * AT_ONCE)))
    writer.store(4, first, writer.join(writer.hashed(inner, _tweaks(writer, tweak))))


def _type_rows(_: Any, keys: Any, rows: Any, offset: Any, at: Any, tweak: Any, mask: Any, result: Any) -> Any:
    return typed_kernel(_write_rows, keys, rows, offset, at, tweak, mask, result)


def _type_blocks(_: Any, keys: Any, blocks: Any, at: Any, tweak: Any, result: Any) -> Any:
    return typed_kernel(_write_blocks, keys, blocks, at, tweak, result)


_row16, _row8, _row4 = (_row(blocks) for blocks in (16, 8, 4))
_rows: Any = intrinsic(_type_rows)
_blocks: Any = intrinsic(_type_blocks)


@numba.njit(nogil=True, cache=True)
def hash_wide(
    keys: Residues, rows: Residues, lows: Residues, highs: Residues, first: np.uint64, mask: np.uint64, result: Numbers
) -> None:
    """H(row_j ⊕ offset_w, first + j) & mask; a power of two of offsets, 4 or more, by halves. All arrays are flat."""
    words, at = len(lows) // 2, np.int64(0)
    for j in range(len(rows) // 4):
        x0, x1, y0, y1 = rows[4 * j], rows[4 * j + 1], rows[4 * j + 2], rows[4 * j + 3]
        tweak = first + np.uint64(j)
        if words == 4:
            _row4(keys, lows, highs, np.int64(0), x0, x1, y0, y1, tweak, mask, result, at)
        elif words == 8:
            _row8(keys, lows, highs, np.int64(0), x0, x1, y0, y1, tweak, mask, result, at)
        else:
            for w in range(0, words, 16):
                _row16(keys, lows, highs, w, x0, x1, y0, y1, tweak, mask, result, at + w)
        at += words


@numba.njit(nogil=True, cache=True)
def hash_rows(
    keys: Residues, rows: Residues, offset: Residues, first: np.uint64, mask: np.uint64, result: Numbers
) -> None:
    """H(row_j ⊕ offset, first + j) & mask; a multiple of AT_ONCE rows. All arrays are flat."""
    for j in range(0, len(result), AT_ONCE):
        _rows(keys, rows, offset, j, first + np.uint64(j), mask, result)


@numba.njit(nogil=True, cache=True)
def hash_blocks(keys: Residues, blocks: Residues, first: np.uint64, result: Residues) -> None:
    """H(x_j, first + j); a multiple of AT_ONCE blocks. All arrays are flat."""
    for j in range(0, len(result) // 2, AT_ONCE):
        _blocks(keys, blocks, j, first + np.uint64(j), result)
