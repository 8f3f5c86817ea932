"""Who garbles and who evaluates: labels of inputs, tables sent ahead, and what outputs mean.

The first party garbles, the second evaluates and alone reads the outputs. Offline the second's choices go through
checked transfers (`transfer.check`) whose rows are labels already: the garbler's q_j stands for 0, q_j ⊕ Δ for 1, and
the evaluator holds t_j = q_j ⊕ c_j Δ. Only then is a key for the hash drawn, and tables are made under it and sent.

    own inputs      the evaluator knows c_j offline: nothing is sent for them any more
    late inputs     c_j is random offline; online it sends d = bit ⊕ c_j, the garbler L ⊕ q_j ⊕ d Δ, which t_j opens to
                    L ⊕ bit Δ, and to nothing else
    constants       what the garbler knows costs nothing: the label in the evaluator's hands is 0, the garbler's 0 or Δ
    meaning         of an output with labels L, L ⊕ Δ: 64 bits each of H(L, i) ⊕ 0 and H(L ⊕ Δ, i) ⊕ 1, ordered by the
                    lowest bits of the labels. It is sent when all inputs have been chosen, so that what an evaluator
                    chooses cannot depend on it
    texts           instead of that, of a number n whose b bits are outputs: 2^b rows, that of n hidden under a hash of
                    the labels of n's bits and of one more output, which is 1 where there is a number at all. Rows are
                    ordered by the lowest bits of labels: an evaluator opens the one of its number, and does not learn
                    the number; who holds other labels opens none

Against an evaluator that does anything: it can choose its inputs, and no more. Every choice goes through a checked
transfer, whatever it sends as d is some choice, and nothing else is ever received from it. Of each wire it holds one
label, and the other stays behind the 127 unknown bits of Δ (the lowest is 1) as long as no tweak is used twice: gates
are numbered through the life of a setup. A wrong label opens no table and has no meaning. π is modeled as an ideal
permutation, which also covers inputs that are chosen after the tables were seen.

Against a garbler that does anything: it receives columns under key streams, and d under random choices, and so learns
nothing of the inputs. It can garble another function than the one agreed on, and nobody notices. Labels that were
damaged, by accident or so that they fail for some inputs only, have no meaning but for one output in 2^63: the
evaluator notices, and must not show it. `Meaning.sound` is therefore a value and not an error, every message of the
evaluator is the same either way, and it should be looked at when the session is over. Theorem 2.14 in
docs/theory/asking.md.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from ppspeech.arrays import Bits, Residues
from ppspeech.channel import Channel
from ppspeech.crypto.garbled.circuit import Circuit
from ppspeech.crypto.garbled.half_gates import TABLE_WORDS, run_circuit, table_buffer
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.randomness import uniform_bytes, uniform_residues
from ppspeech.crypto.transfer.block_hash import BlockHash
from ppspeech.crypto.transfer.extension import Code, ColumnReceiver, ColumnSender
from ppspeech.crypto.transfer.setup import PairSetup
from ppspeech.errors import ProtocolError, RangeError

FRAME_BYTES = 4 * 2**20
"""The most that one message holds: of tables 2^17 gates, of labels 2^18."""
FRAME_WORDS = FRAME_BYTES // 8
KEY_BYTES = 16
TABLE_BYTES = 8 * TABLE_WORDS
"""Of a gate."""
LABEL_BYTES = 16
MEANING_BYTES = 16
"""Of an output."""
CHECK_BYTES = 16
"""Of a text, zeros when it opens."""


def transfer_bytes(inputs: int) -> int:
    """What the evaluator sends offline for so many bits of its inputs."""
    return Code.total_bytes(inputs)


def blinded_bytes(inputs: int) -> int:
    """What it sends online for late ones."""
    return -(-inputs // 8)


def text_bytes(outputs: int, size: int) -> int:
    """What the garbler sends for texts of so many bytes, by a number that has one bit less than there are outputs."""
    return (size + CHECK_BYTES) << (outputs - 1)


@dataclass(frozen=True, eq=False)
class Meaning:
    """What an evaluator read: bits, one an output, and whether all of its labels had a meaning. Where not, the bits say
    nothing, and the peer must not learn of it: look at `sound` when nothing is sent any more.
    """

    bits: Bits
    sound: bool


class Garbler:
    """The first party, with a session open on the channel. Raises ProtocolError for the second, or outside one."""

    def __init__(self, channel: Channel, setup: PairSetup) -> None:
        setup.check_in_use()
        if not isinstance(setup.labels, ColumnSender):
            raise ProtocolError("the first party garbles, the second evaluates")
        self.channel, self.setup = channel, setup
        self._labels = setup.labels
        self._open: _Gates | None = None
        self._unsent: list[Residues] = []

    def own_inputs(self, count: int) -> Residues:
        """The evaluator chooses now: labels of 0 of so many bits, `(count, 2)`. Raises CheatError for one that cheats,
        ProtocolError once a key was drawn: choices come before it.
        """
        _check_early(self._open)
        return self._labels.rows(self.channel, count)

    def late_inputs(self, count: int) -> "OfferedInputs":
        """It will choose later."""
        return OfferedInputs(self.own_inputs(count), uniform_residues((count, 2)))

    def known(self, bits: Residues | None, shape: tuple[int, ...]) -> Residues:
        """Labels of what the garbler knows, `(*shape, 2)`; `bits`: 0 or 1, of that shape."""
        if bits is None or bits.shape != shape:
            raise RangeError(f"the garbler knows bits of shape {shape}, got {None if bits is None else bits.shape}")
        return bits[..., None] * self._labels.delta

    def begin(self, gates: int) -> None:
        """So many gates come now, all the evaluator's transfers for them being done: a key of their own is drawn."""
        key = uniform_bytes(KEY_BYTES)
        self.channel.send(Kind.GARBLE_KEY, key)
        self._open, self._unsent = _Gates(BlockHash(key), self.setup.take_gates(gates), gates), []

    def run(self, circuit: Circuit, wires: Residues) -> None:
        """Fill the labels of 0 of all wires, `(wires, 2)`; what is full of its tables is sent, and not kept."""
        gates, table = _begun(self._open), table_buffer(circuit.gates)
        _, first = gates.take(circuit.gates)
        run_circuit(circuit, wires, gates.hasher, self._labels.delta, table, first)
        self._unsent.append(table[: TABLE_WORDS * circuit.gates])
        if sum(part.nbytes for part in self._unsent) >= FRAME_BYTES:
            self._send_tables(whole=True)

    def finish(self) -> None:
        """Send what is left of the tables. Raises ProtocolError if other gates were announced."""
        _begun(self._open).check_done()
        self._send_tables(whole=False)

    def _send_tables(self, *, whole: bool) -> None:
        """What was not sent yet, in frames; only `whole` ones, or the last too."""
        words = np.concatenate([np.zeros(0, np.uint64), *self._unsent])
        sent = len(words) // FRAME_WORDS * FRAME_WORDS if whole else len(words)
        _send_in_frames(self.channel, Kind.GARBLED, words[:sent])
        self._unsent = [words[sent:].copy()]

    def answer(self, inputs: "OfferedInputs") -> None:
        """Receive what was chosen, blinded, and send what opens to its labels. Raises ProtocolError the second time, or
        after the end.
        """
        _begun(self._open)
        count = len(inputs.labels)
        received = self.channel.receive(Kind.BLIND_CHOICES, blinded_bytes(count))
        turned = np.unpackbits(np.frombuffer(received, np.uint8), count=count, bitorder="little")
        self._send_labels(inputs.take() ^ turned[:, None] * self._labels.delta)

    def send_known(self, labels: Residues, bits: Residues) -> None:
        """Labels of inputs of the garbler, `(..., 2)`, that were garbled before it knew their bits, `(...)`."""
        self._send_labels(labels ^ bits[..., None] * self._labels.delta)

    def tell(self, outputs: Residues) -> None:
        """What outputs mean, by their labels of 0, `(outputs, 2)`: the end, after which no input can be chosen."""
        count = len(outputs)
        gates, first = _begun(self._open), 2 * self.setup.take_gates(count)
        self._open = None
        zero, one = (gates.hasher.hash_blocks(each, first)[:, 0] for each in (outputs, outputs ^ self._labels.delta))
        swapped = (outputs[:, 0] & np.uint64(1)).astype(np.bool_)
        meaning = np.stack([zero, one ^ np.uint64(1)], axis=1)
        meaning[swapped] = meaning[swapped][:, ::-1]
        _send_in_frames(self.channel, Kind.MEANING, meaning)

    def tell_text(self, outputs: Residues, texts: Sequence[bytes]) -> None:
        """A text, of the number that outputs say, by their labels of 0, `(1 + bits, 2)`: the first is whether there is
        a number, the others are its bits, the lowest first. `texts`: of one length, by number. The end, as in `tell`.
        """
        bits, size = len(outputs) - 1, len(texts[0])
        if not 0 < len(texts) <= 1 << bits or any(len(text) != size for text in texts):
            raise RangeError(f"numbers of {bits} bits are of up to {1 << bits} texts of one length, got {len(texts)}")
        _begun(self._open)
        self._open, first = None, self.setup.take_gates(1)
        rows = [uniform_bytes(size + CHECK_BYTES) for _ in range(1 << bits)]
        swapped = _row(outputs)
        for number, text in enumerate(texts):
            is_one = np.array([1, *(number >> bit & 1 for bit in range(bits))], np.uint64)
            labels = outputs ^ is_one[:, None] * self._labels.delta
            rows[number ^ swapped] = _hidden(self.setup, first, labels, text + bytes(CHECK_BYTES))
        message = b"".join(rows)
        for at in range(0, len(message), FRAME_BYTES):
            self.channel.send(Kind.HIDDEN_TEXTS, message[at : at + FRAME_BYTES])

    def _send_labels(self, labels: Residues) -> None:
        _send_in_frames(self.channel, Kind.LABELS, labels)

    def __reduce__(self) -> NoReturn:
        raise TypeError("who garbles holds secrets and positions: it cannot be pickled or copied")


class OfferedInputs:
    """Late inputs, as the garbler has them. `labels`: those of 0, for the circuit."""

    def __init__(self, rows: Residues, labels: Residues) -> None:
        self.labels = labels
        self._rows: Residues | None = rows

    def take(self) -> Residues:
        """L ⊕ q, once: with two answers an evaluator would hold both labels."""
        if self._rows is None:
            raise ProtocolError("these inputs were chosen already: labels of new ones must be agreed on")
        rows, self._rows = self._rows, None
        return self.labels ^ rows


class Evaluator:
    """The second party, with a session open on the channel. Raises ProtocolError for the first, or outside one."""

    def __init__(self, channel: Channel, setup: PairSetup) -> None:
        setup.check_in_use()
        if not isinstance(setup.labels, ColumnReceiver):
            raise ProtocolError("the first party garbles, the second evaluates")
        self.channel, self.setup = channel, setup
        self._labels = setup.labels
        self._open: _Gates | None = None
        self._tables = table_buffer(0)

    def own_inputs(self, bits: Bits) -> Residues:
        """Choose now: the labels of these bits, `(count, 2)`. Raises ProtocolError once a key was received."""
        _check_early(self._open)
        return self._labels.rows(self.channel, bits)

    def late_inputs(self, count: int) -> "AskedInputs":
        """Choose later."""
        choices = uniform_residues(count, 1).astype(np.uint8)
        return AskedInputs(choices, self.own_inputs(choices))

    def known(self, bits: Residues | None, shape: tuple[int, ...]) -> Residues:  # noqa: ARG002 - the garbler's
        """Labels of what the garbler knows: zeros."""
        return np.zeros((*shape, 2), np.uint64)

    def begin(self, gates: int) -> None:
        """Receive the key of so many gates and all their tables, and keep them."""
        hasher = BlockHash(self.channel.receive(Kind.GARBLE_KEY, KEY_BYTES))
        self._open, self._tables = _Gates(hasher, self.setup.take_gates(gates), gates), table_buffer(gates)
        into = self._tables.data.cast("B")
        _receive_in_frames(self.channel, Kind.GARBLED, into[: TABLE_BYTES * gates])

    def run(self, circuit: Circuit, wires: Residues) -> None:
        """Fill the labels of all wires, `(wires, 2)`."""
        gates = _begun(self._open)
        at, first = gates.take(circuit.gates)
        run_circuit(circuit, wires, gates.hasher, None, self._tables[TABLE_WORDS * at :], first)

    def finish(self) -> None:
        """Raises ProtocolError if other gates were announced."""
        _begun(self._open).check_done()

    def ask(self, inputs: "AskedInputs", bits: Bits) -> None:
        """Choose late inputs; `labels` gives what they become."""
        turned = inputs.choices ^ bits
        self.channel.send(Kind.BLIND_CHOICES, np.packbits(turned, bitorder="little").tobytes())

    def labels(self, inputs: "AskedInputs") -> Residues:
        """The labels of what was asked for, `(count, 2)`."""
        return self.receive_known(len(inputs.rows)) ^ inputs.rows

    def receive_known(self, count: int) -> Residues:
        """Labels of inputs that the garbler knows, `(count, 2)`."""
        labels = np.empty((count, 2), np.uint64)
        _receive_in_frames(self.channel, Kind.LABELS, labels.reshape(-1).data.cast("B"))
        return labels

    def read(self, outputs: Residues) -> Meaning:
        """Receive what outputs mean and read them by their labels, `(outputs, 2)`: the end."""
        count = len(outputs)
        gates, first = _begun(self._open), 2 * self.setup.take_gates(count)
        self._open = None
        meaning = np.empty((count, 2), np.uint64)
        _receive_in_frames(self.channel, Kind.MEANING, meaning.reshape(-1).data.cast("B"))
        chosen = meaning[np.arange(count), (outputs[:, 0] & np.uint64(1)).astype(np.intp)]
        words = chosen ^ gates.hasher.hash_blocks(outputs, first)[:, 0]
        return Meaning((words & np.uint64(1)).astype(np.uint8), bool((words <= 1).all()))

    def read_text(self, outputs: Residues, size: int) -> bytes | None:
        """Receive hidden texts of so many bytes and open the one whose number these labels, `(1 + bits, 2)`, say: the
        end. None where none opens, which the peer must not learn: look at it when nothing is sent any more.
        """
        _begun(self._open)
        self._open, first = None, self.setup.take_gates(1)
        message = bytearray(text_bytes(len(outputs), size))
        _receive_in_frames(self.channel, Kind.HIDDEN_TEXTS, memoryview(message))
        at = _row(outputs) * (size + CHECK_BYTES)
        opened = _hidden(self.setup, first, outputs, message[at : at + size + CHECK_BYTES])
        return opened[:size] if opened[size:] == bytes(CHECK_BYTES) else None

    def __reduce__(self) -> NoReturn:
        raise TypeError("who evaluates holds secrets and positions: it cannot be pickled or copied")


@dataclass(frozen=True, eq=False, repr=False)
class AskedInputs:
    """Late inputs, as the evaluator has them: random choices, and the rows they gave."""

    choices: Bits
    rows: Residues


Party = Garbler | Evaluator
"""Both run the same circuits, in the same order."""


class _Gates:
    """Gates that were announced, under one key: how many, and how many were garbled or evaluated."""

    def __init__(self, hasher: BlockHash, first: int, gates: int) -> None:
        self.hasher, self._first, self._gates, self._done = hasher, first, gates, 0

    def take(self, gates: int) -> tuple[int, int]:
        """How many came before the next ones under this key, and the number of the first of them."""
        if self._done + gates > self._gates:
            raise ProtocolError(f"{self._gates:,} gates were announced and {self._done + gates:,} are asked for")
        at, self._done = self._done, self._done + gates
        return at, self._first + at

    def check_done(self) -> None:
        """Raises ProtocolError if some were not asked for."""
        if self._done != self._gates:
            raise ProtocolError(f"{self._gates:,} gates were announced and {self._done:,} were made")


def _begun(gates: _Gates | None) -> _Gates:
    if gates is None:
        raise ProtocolError("no gates were announced: call begin first")
    return gates


def _check_early(gates: _Gates | None) -> None:
    if gates is not None:
        raise ProtocolError("inputs are chosen before gates are announced: their key must be younger than the choices")


def _row(outputs: Residues) -> int:
    """Where the row of a number stands, by the lowest bits of its labels; of labels of 0: what rows are moved by."""
    return sum(int(low & 1) << bit for bit, low in enumerate(outputs[1:, 0].tolist()))


def _hidden(setup: PairSetup, first: int, labels: Residues, text: bytes | bytearray) -> bytes:
    """A text under a hash of labels, or what it hides; `first`: of the place in the setup, used once."""
    pad = hashlib.shake_256(b"ppspeech text" + setup.id + first.to_bytes(8, "big") + labels.tobytes())
    return bytes(np.frombuffer(text, np.uint8) ^ np.frombuffer(pad.digest(len(text)), np.uint8))


def _send_in_frames(channel: Channel, kind: Kind, residues: Residues) -> None:
    view = np.ascontiguousarray(residues).reshape(-1).data.cast("B")
    for at in range(0, len(view), FRAME_BYTES):
        channel.send(kind, view[at : at + FRAME_BYTES])


def _receive_in_frames(channel: Channel, kind: Kind, into: memoryview) -> None:
    for at in range(0, len(into), FRAME_BYTES):
        part = into[at : at + FRAME_BYTES]
        part[:] = channel.receive(kind, len(part))
