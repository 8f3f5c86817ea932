"""Half gates (Zahur, Rosulek and Evans 2015) by the instructions of a circuit, as the one who garbles or evaluates.

A wire has two labels of 128 bits, W and W ⊕ Δ, which stand for 0 and 1; the garbler knows W and Δ, the evaluator the
one that stands for what the wire is. Exclusive or is exclusive or of labels and costs nothing. z = x & y, gate g, with
p = the lowest bit of a label and that of Δ 1:

    garbler    T = H(X, 2g) ⊕ H(X ⊕ Δ, 2g) ⊕ p(Y) Δ           E = H(Y, 2g+1) ⊕ H(Y ⊕ Δ, 2g+1) ⊕ X
               Z = H(X, 2g) ⊕ p(X) T ⊕ H(Y, 2g+1) ⊕ p(Y) (E ⊕ X)
    evaluator  Z = H(X, 2g) ⊕ p(X) T ⊕ H(Y, 2g+1) ⊕ p(Y) (E ⊕ X)

T and E are the gate's table, 32 bytes. H(x, i) = π(π(x) ⊕ i) ⊕ π(x) (`block_hash`). The formula for Z is the same on
both sides, so one program runs for both. With AES instructions (`aes`) all gates of an instruction go through registers
without a call of Python; elsewhere numpy and OpenSSL do the same, instruction by instruction.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.extending import intrinsic

from ppspeech.arrays import Residues, Whole
from ppspeech.crypto.garbled.circuit import Circuit, Op
from ppspeech.crypto.transfer import aes
from ppspeech.crypto.transfer.aes import BLOCKS, Writer, typed_kernel
from ppspeech.crypto.transfer.block_hash import BlockHash

TABLE_WORDS = 4
"""Of a gate: T and E."""
AT_ONCE = 8
"""Gates that go through registers together: enough that no instruction waits for the one before."""
SLACK = AT_ONCE
"""Gates by which buffers of tables are longer than their tables: registers are loaded and stored whole."""

_I64 = ir.IntType(64)


class _Gates(Writer):
    """Some gates in registers: `x` and `y` are flat scratch of labels, two words each."""

    def words(self, number: int, at: Any) -> list[Any]:
        """Labels of the gates from one on."""
        return self.split(self.load(number, self.builder.shl(at, ir.Constant(_I64, 1)), 2 * AT_ONCE))

    def tweaks(self, first: Any) -> list[Any]:
        """2g of each gate in the first word of its block."""
        steps = [n if n % 2 == 0 else 0 for n in range(2 * AT_ONCE)]
        start = self.pick(self.vector(first, ir.Constant(_I64, 0)), [0, 1] * AT_ONCE)
        return self.split(self.builder.add(start, ir.Constant(start.type, steps)))

    def next_tweaks(self, tweaks: list[Any]) -> list[Any]:
        """2g + 1."""
        one = ir.Constant(self.register, [1, 0] * BLOCKS)
        return [self.builder.add(each, one) for each in tweaks]

    def points(self, labels: list[Any]) -> list[Any]:
        """All ones where the lowest bit of a label is 1, else nothing."""
        one, none = (ir.Constant(self.register, [value] * 2 * BLOCKS) for value in (1, 0))
        lows = [self.pick(each, [n - n % 2 for n in range(2 * BLOCKS)]) for each in labels]
        return [self.builder.sub(none, self.builder.and_(each, one)) for each in lows]

    def chosen(self, masks: list[Any], values: list[Any]) -> list[Any]:
        return [self.builder.and_(mask, value) for mask, value in zip(masks, values, strict=True)]

    def hashes(self, blocks: list[Any], tweaks: list[Any]) -> list[Any]:
        """H of every block."""
        return self.hashed(self.permute(blocks), tweaks)


def _write_garbled(writer: Writer) -> None:
    gates = _Gates(writer.context, writer.builder, writer.signature, writer.args)
    at, tweak, to = gates.args[4], gates.args[5], gates.args[8]
    x, y = gates.words(2, at), gates.words(3, at)
    count = len(x)
    step = [gates.splat(gates.load(1, ir.Constant(_I64, 0), 2))] * count
    even = gates.tweaks(tweak)
    odd = gates.next_tweaks(even)
    hashed = gates.hashes([*x, *gates.xor(x, step), *y, *gates.xor(y, step)], [*even, *even, *odd, *odd])
    x0, x1, y0, y1 = (hashed[n * count : (n + 1) * count] for n in range(4))
    of_x, of_y = gates.points(x), gates.points(y)
    t = gates.xor(gates.xor(x0, x1), gates.chosen(of_y, step))
    plain = gates.xor(y0, y1)
    z = gates.xor(gates.xor(x0, gates.chosen(of_x, t)), gates.xor(y0, gates.chosen(of_y, plain)))
    gates.store(6, gates.builder.shl(at, ir.Constant(_I64, 1)), gates.join(z))
    both = gates.join([gates.join(t), gates.join(gates.xor(plain, x))])
    half = 2 * AT_ONCE
    order = [lane for n in range(AT_ONCE) for lane in (2 * n, 2 * n + 1, half + 2 * n, half + 2 * n + 1)]
    gates.store(7, to, gates.pick(both, order))


def _write_evaluated(writer: Writer) -> None:
    gates = _Gates(writer.context, writer.builder, writer.signature, writer.args)
    at, tweak, to = gates.args[4], gates.args[5], gates.args[8]
    x, y = gates.words(2, at), gates.words(3, at)
    count = len(x)
    even = gates.tweaks(tweak)
    hashed = gates.hashes([*x, *y], [*even, *gates.next_tweaks(even)])
    table = gates.load(7, to, TABLE_WORDS * AT_ONCE)
    t, e = (
        gates.split(gates.pick(table, [n for n in range(TABLE_WORDS * AT_ONCE) if n % 4 // 2 == half]))
        for half in (0, 1)
    )
    generated = gates.xor(hashed[:count], gates.chosen(gates.points(x), t))
    z = gates.xor(generated, gates.xor(hashed[count:], gates.chosen(gates.points(y), gates.xor(e, x))))
    gates.store(6, gates.builder.shl(at, ir.Constant(_I64, 1)), gates.join(z))


def _type_garbled(
    _: Any, keys: Any, step: Any, x: Any, y: Any, at: Any, tweak: Any, z: Any, table: Any, to: Any
) -> Any:
    return typed_kernel(_write_garbled, keys, step, x, y, at, tweak, z, table, to)


def _type_evaluated(
    _: Any, keys: Any, step: Any, x: Any, y: Any, at: Any, tweak: Any, z: Any, table: Any, to: Any
) -> Any:
    return typed_kernel(_write_evaluated, keys, step, x, y, at, tweak, z, table, to)


_garbled: Any = intrinsic(_type_garbled)
_evaluated: Any = intrinsic(_type_evaluated)


@numba.njit(nogil=True, cache=True)
def _gates(
    keys: Residues, step: Residues, garbles: bool, x: Residues, y: Residues, z: Residues, count: int, table: Residues,
    done: int, first: int,
) -> None:  # fmt: skip
    """z = x & y for so many gates, of which `done` came before in this table and `first` in all."""
    for j in range(0, count, AT_ONCE):
        tweak = np.uint64(2 * (first + done + j))
        to = TABLE_WORDS * (done + j)
        if garbles:
            _garbled(keys, step, x, y, j, tweak, z, table, to)
        else:
            _evaluated(keys, step, x, y, j, tweak, z, table, to)


@numba.njit(nogil=True, cache=True)
def _run(
    code: Whole, index: Whole, wires: Residues, keys: Residues, step: Residues, garbles: bool, table: Residues,
    first: int, scratch: int,
) -> None:  # fmt: skip
    """Every instruction of a circuit. `wires` and `table` are flat; `scratch`: gates that are ready together."""
    x, y, z = np.zeros(2 * scratch, np.uint64), np.zeros(2 * scratch, np.uint64), np.zeros(2 * scratch, np.uint64)
    carry = np.zeros(2 * scratch, np.uint64)
    one0, one1 = wires[2], wires[3]
    done = 0
    for i in range(len(code)):
        op, bits, lanes, at = code[i, 0], code[i, 1], code[i, 2], code[i, 3]
        size = bits * lanes
        left, right, out = at, at + size, at + 2 * size
        if op == 0:  # XOR
            for j in range(size):
                a, b, c = 2 * index[left + j], 2 * index[right + j], 2 * index[out + j]
                wires[c] = wires[a] ^ wires[b]
                wires[c + 1] = wires[a + 1] ^ wires[b + 1]
        elif op == 1:  # AND
            for j in range(size):
                a, b = 2 * index[left + j], 2 * index[right + j]
                x[2 * j], x[2 * j + 1] = wires[a], wires[a + 1]
                y[2 * j], y[2 * j + 1] = wires[b], wires[b + 1]
            _gates(keys, step, garbles, x, y, z, size, table, done, first)
            done += size
            for j in range(size):
                c = 2 * index[out + j]
                wires[c], wires[c + 1] = z[2 * j], z[2 * j + 1]
        elif op == 2:  # CHOOSE: right ^ select (left ^ right), one select a lane
            for j in range(size):
                a, b, s = 2 * index[left + j], 2 * index[right + j], 2 * index[out + size + j % lanes]
                x[2 * j], x[2 * j + 1] = wires[s], wires[s + 1]
                y[2 * j], y[2 * j + 1] = wires[a] ^ wires[b], wires[a + 1] ^ wires[b + 1]
            _gates(keys, step, garbles, x, y, z, size, table, done, first)
            done += size
            for j in range(size):
                b, c = 2 * index[right + j], 2 * index[out + j]
                wires[c], wires[c + 1] = wires[b] ^ z[2 * j], wires[b + 1] ^ z[2 * j + 1]
        else:  # ADD, AT_LEAST: a carry through all bits
            compares = op == 4
            turn0, turn1 = (one0, one1) if compares else (np.uint64(0), np.uint64(0))
            for j in range(lanes):
                carry[2 * j], carry[2 * j + 1] = turn0, turn1
            for bit in range(bits):
                for j in range(lanes):
                    a, b = 2 * index[left + bit * lanes + j], 2 * index[right + bit * lanes + j]
                    b0, b1 = wires[b] ^ turn0, wires[b + 1] ^ turn1
                    x0, x1 = wires[a] ^ carry[2 * j], wires[a + 1] ^ carry[2 * j + 1]
                    x[2 * j], x[2 * j + 1] = x0, x1
                    y[2 * j], y[2 * j + 1] = b0 ^ carry[2 * j], b1 ^ carry[2 * j + 1]
                    if not compares:
                        c = 2 * index[out + bit * lanes + j]
                        wires[c], wires[c + 1] = x0 ^ b0, x1 ^ b1
                    elif bit == bits - 1:
                        c = 2 * index[out + j]
                        wires[c], wires[c + 1] = x0 ^ b0 ^ one0, x1 ^ b1 ^ one1
                if bit < bits - 1:
                    _gates(keys, step, garbles, x, y, z, lanes, table, done, first)
                    done += lanes
                    for j in range(2 * lanes):
                        carry[j] ^= z[j]


class _Slow:
    """The same without instructions for AES: numpy, an instruction at a time."""

    def __init__(self, hasher: BlockHash, delta: Residues | None, first: int, table: Residues) -> None:
        self._hasher, self._delta, self._first, self._done = hasher, delta, first, 0
        self._table = table[: len(table) // TABLE_WORDS * TABLE_WORDS].reshape(-1, 2, 2)

    def both(self, x: Residues, y: Residues) -> Residues:
        """z = x & y, labels `(gates, 2)`."""
        count = len(x)
        blocks = np.stack([x, y], axis=1)
        tweak = 2 * (self._first + self._done)
        hashed = self._hasher.hash_blocks(blocks.reshape(-1, 2), tweak).reshape(blocks.shape)
        of_x, of_y = (-(each[:, :1] & np.uint64(1)) for each in (x, y))
        table = self._table[self._done : self._done + count]
        if self._delta is not None:
            other = self._hasher.hash_blocks((blocks ^ self._delta).reshape(-1, 2), tweak).reshape(blocks.shape)
            table[:] = hashed ^ other
            table[:, 0] ^= of_y & self._delta
            table[:, 1] ^= x
        self._done += count
        return hashed[:, 0] ^ (of_x & table[:, 0]) ^ hashed[:, 1] ^ (of_y & (table[:, 1] ^ x))

    def run(self, circuit: Circuit, wires: Residues) -> None:
        """Every instruction."""
        for op, bits, lanes, at in circuit.code.tolist():
            size = bits * lanes
            left, right, out = (circuit.index[at + n * size : at + (n + 1) * size] for n in range(3))
            if op == Op.XOR:
                wires[out] = wires[left] ^ wires[right]
            elif op == Op.AND:
                wires[out] = self.both(wires[left], wires[right])
            elif op == Op.CHOOSE:
                select = np.tile(circuit.index[at + 3 * size : at + 3 * size + lanes], bits)
                wires[out] = wires[right] ^ self.both(wires[select], wires[left] ^ wires[right])
            else:
                self._ripple(Op(op), wires, left.reshape(bits, lanes), right.reshape(bits, lanes), out)

    def _ripple(self, op: Op, wires: Residues, left: Whole, right: Whole, out: Whole) -> None:
        turn = wires[1] if op is Op.AT_LEAST else np.zeros(2, np.uint64)
        carry = np.repeat(turn[None], left.shape[1], axis=0)
        for bit in range(len(left)):
            x, other = wires[left[bit]] ^ carry, wires[right[bit]] ^ turn
            if op is Op.ADD:
                wires[out.reshape(left.shape)[bit]] = x ^ other
            elif bit == len(left) - 1:
                wires[out[: left.shape[1]]] = x ^ other ^ wires[1]
            if bit < len(left) - 1:
                carry = carry ^ self.both(x, other ^ carry)


def table_buffer(gates: int) -> Residues:
    """Room for the tables of so many gates, flat, and the slack that registers need."""
    return np.zeros(TABLE_WORDS * (gates + SLACK), np.uint64)


def run_circuit(
    circuit: Circuit, wires: Residues, hasher: BlockHash, delta: Residues | None, table: Residues, first: int
) -> None:
    """Fill the labels of all wires, `(wires, 2)`, from those of the inputs. `delta`: the garbler's, who fills `table`
    (`table_buffer`, from its beginning); None for the evaluator, who reads it. `first`: the number of the first gate.
    """
    wires[0] = 0
    wires[1] = 0 if delta is None else delta
    if aes.AVAILABLE:
        step = np.zeros(2, np.uint64) if delta is None else delta
        _run(
            circuit.code, circuit.index, wires.reshape(-1), hasher.round_keys, step, delta is not None, table, first,
            circuit.scratch + AT_ONCE,
        )  # fmt: skip
    else:
        _Slow(hasher, delta, first, table).run(circuit, wires)
