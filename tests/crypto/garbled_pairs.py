"""Two parties with a circuit between them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppspeech.channel import Channel
from ppspeech.crypto.garbled import Builder, Circuit, Evaluator, Garbler, Meaning
from ppspeech.crypto.garbled.half_gates import run_circuit, table_buffer
from ppspeech.crypto.randomness import uniform_bytes, uniform_residues
from ppspeech.crypto.transfer.block_hash import BlockHash
from ppspeech.crypto.transfer.setup import PairSetup, Side
from ppspeech.network import Transcript, run_together

from .pairs import lasting_setup


def bits_of(numbers: np.ndarray, bits: int) -> np.ndarray:
    """`(lanes,)` to `(bits, lanes)`."""
    return (np.asarray(numbers, np.uint64) >> np.arange(bits, dtype=np.uint64)[:, None]) & np.uint64(1)


def number_of(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint64) << np.arange(len(bits), dtype=np.uint64)[:, None]).sum(axis=0, dtype=np.uint64)


def fresh_delta() -> np.ndarray:
    delta = uniform_residues(2)
    delta[0] |= np.uint64(1)
    return delta


@dataclass
class Ran:
    """Both sides of a circuit in one place: labels of 0, active labels, Δ and the tables."""

    zero: np.ndarray
    active: np.ndarray
    delta: np.ndarray
    table: np.ndarray

    def value(self, wires: np.ndarray) -> np.ndarray:
        """What wires are; each label is one of its two."""
        apart = self.zero[wires] ^ self.active[wires]
        ones = (apart == self.delta).all(axis=-1)
        assert (ones | (apart == 0).all(axis=-1)).all()
        return ones.astype(np.uint64)


def run_alone(circuit: Circuit, inputs: np.ndarray, values: np.ndarray, first: int = 5) -> Ran:
    """Garble and evaluate without a channel; `values`: bits of the input wires, of the same shape."""
    delta, hasher = fresh_delta(), BlockHash(uniform_bytes(16))
    zero, active = (np.zeros((circuit.wires, 2), np.uint64) for _ in range(2))
    zero[inputs] = uniform_residues((*inputs.shape, 2))
    active[inputs] = zero[inputs] ^ values.astype(np.uint64)[..., None] * delta
    table = table_buffer(circuit.gates)
    run_circuit(circuit, zero, hasher, delta, table, first)
    run_circuit(circuit, active, hasher, None, table, first)
    return Ran(zero, active, delta, table[: 4 * circuit.gates].reshape(-1, 2, 2))


@dataclass
class Sum:
    """max(late + known, own) and whether the left is chosen, as two parties with all kinds of inputs run it."""

    late: np.ndarray
    known: np.ndarray
    own: np.ndarray
    bits: int
    told: np.ndarray | None = None
    """The garbler's inputs that it learns late, XORed to `own`."""

    def __post_init__(self) -> None:
        build, lanes = Builder(), len(self.late)
        self.wires = [build.inputs(self.bits, lanes) for _ in range(4)]
        late, known, own, told = self.wires
        best, takes = build.maximum(build.add(late, known), build.xor(own, told))
        self.outputs = np.concatenate([best, takes[None]])
        self.circuit = build.finish()

    @property
    def inputs(self) -> int:
        return self.late.size * self.bits

    def expected(self) -> np.ndarray:
        ring = np.uint64((1 << self.bits) - 1)
        other = self.own ^ (0 if self.told is None else self.told)
        total = (self.late + self.known) & ring
        takes = ((total - other) & ring) >> np.uint64(self.bits - 1) == 0
        return np.concatenate([bits_of(np.where(takes, total, other), self.bits), takes[None]]).astype(np.uint8)

    def garble(self, channel: Channel, setup: PairSetup) -> Garbler:
        garbler, (late, known, own, told) = Garbler(channel, setup), self.wires
        offered, mine = garbler.late_inputs(self.inputs), garbler.own_inputs(self.inputs)
        wires = np.zeros((self.circuit.wires, 2), np.uint64)
        wires[late], wires[own] = offered.labels.reshape(*late.shape, 2), mine.reshape(*own.shape, 2)
        wires[known] = garbler.known(bits_of(self.known, self.bits), known.shape)
        wires[told] = uniform_residues((*told.shape, 2))
        garbler.begin(self.circuit.gates)
        garbler.run(self.circuit, wires)
        garbler.finish()
        garbler.answer(offered)
        garbler.send_known(wires[told], bits_of(np.zeros_like(self.own) if self.told is None else self.told, self.bits))
        garbler.tell(wires[self.outputs.reshape(-1)])
        self.zero = wires
        return garbler

    def evaluate(
        self, channel: Channel, setup: PairSetup, spoil: Callable[["Evaluator", np.ndarray], None] | None = None
    ) -> Meaning:
        evaluator, (late, _, own, told) = Evaluator(channel, setup), self.wires
        asked = evaluator.late_inputs(self.inputs)
        mine = evaluator.own_inputs(bits_of(self.own, self.bits).astype(np.uint8).reshape(-1))
        evaluator.begin(self.circuit.gates)
        evaluator.ask(asked, bits_of(self.late, self.bits).astype(np.uint8).reshape(-1))
        wires = np.zeros((self.circuit.wires, 2), np.uint64)
        wires[own] = mine.reshape(*own.shape, 2)
        wires[late] = evaluator.labels(asked).reshape(*late.shape, 2)
        wires[told] = evaluator.receive_known(told.size).reshape(*told.shape, 2)
        if spoil:
            spoil(evaluator, wires)
        evaluator.run(self.circuit, wires)
        evaluator.finish()
        self.active = wires
        return evaluator.read(wires[self.outputs.reshape(-1)])


def run_pair(
    job: Sum, setup: tuple[PairSetup, PairSetup] | None = None, spoil: Any = None
) -> tuple[Meaning, Transcript, Transcript]:
    """What the evaluator read, and the transcripts of evaluator and garbler."""
    halves = setup or lasting_setup()
    records: dict[Side, Transcript] = {}

    def party(channel: Channel, side: Side) -> Any:
        with halves[side].session(channel):
            records[side] = Transcript(channel, keep_payloads=True)
            if side is Side.FIRST:
                return job.garble(records[side], halves[side])
            return job.evaluate(records[side], halves[side], spoil)

    _, read = run_together(lambda c: party(c, Side.FIRST), lambda c: party(c, Side.SECOND))
    return read, records[Side.SECOND], records[Side.FIRST]


def run_thrice(lanes: int, setup: tuple[PairSetup, PairSetup] | None = None) -> list[tuple[int, int]]:
    """One circuit three times under one key: kinds and sizes of what the evaluator received, which read its inputs."""
    build = Builder()
    inputs = build.inputs(1, lanes)[0]
    out = build.both(inputs, inputs)
    circuit, (first, second) = build.finish(), setup or lasting_setup()
    values = uniform_residues(lanes, 1).astype(np.uint8)

    def party(channel: Channel, half: PairSetup) -> Any:
        wires = np.zeros((circuit.wires, 2), np.uint64)
        with half.session(channel):
            record = Transcript(channel)
            player = Garbler(record, half) if half.party is Side.FIRST else Evaluator(record, half)
            wires[inputs] = player.own_inputs(lanes if isinstance(player, Garbler) else values)
            player.begin(3 * lanes)
            for _ in range(3):
                player.run(circuit, wires)
            player.finish()
            if isinstance(player, Garbler):
                return player.tell(wires[out])
            assert (player.read(wires[out]).bits == values).all()
            return [(kind, size) for direction, kind, size in record.shape() if direction == "received"]

    return run_together(lambda c: party(c, first), lambda c: party(c, second))[1]
