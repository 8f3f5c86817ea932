"""A trellis by garbled circuits, from shares of emissions to what the best path met: no round trip a frame.

The first party (a server, with the weights) garbles, the second (a client) evaluates and alone reads the result. Shares
of emissions are additive mod 2^k.

Whole utterances: the server's share is fixed beforehand (`lattice.ReplyMask`) and becomes constants; the client's comes
online, after the reply. Which frame is the last one stays with the client.

    offline   C → S  columns of transfers           S → C  key, tables
    online    C → S  its choices, masked            S → C  labels, meaning                    one round trip

A path that sets one field once can be named by a text instead of told: the exclusive or of what it met in all frames
has the labels of one number, and the server hides a text under those of each.

While someone speaks: the client's share is fixed beforehand, as the mask of what it sends, and its labels are the
transfers' own; the server's comes with every message. How many frames came, both see.

    offline   C → S  columns of transfers           S → C  key, tables of the longest run
    a chunk   (masked scores, by the caller)        S → C  labels of its share
    the end                                         S → C  key, tables of the way back, meaning

What either party can do that does not follow this: `crypto.garbled.parties`. The client's messages never depend on what
it reads; `PathRead.records` raises if it was nothing, and should be asked for when the session is over.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ppspeech.arrays import Bits, Residues
from ppspeech.channel import Channel
from ppspeech.crypto import uniform_residues
from ppspeech.crypto.garbled import (
    KEY_BYTES,
    LABEL_BYTES,
    MEANING_BYTES,
    TABLE_BYTES,
    Evaluator,
    Garbler,
    Meaning,
    Party,
    blinded_bytes,
    text_bytes,
    transfer_bytes,
)
from ppspeech.crypto.transfer import PairSetup
from ppspeech.errors import CheatError, RangeError
from ppspeech.protocols.trellis.circuit import Forward, TrellisCircuit

Records = tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True, slots=True)
class GarbledCost:
    """Payload of one utterance, from public sizes alone: bytes from the client (`up`) and from the server (`down`),
    before and after the client's features are there.
    """

    offline_up: int
    offline_down: int
    online_up: int
    online_down: int

    @property
    def total(self) -> int:
        """Of all."""
        return self.offline_up + self.offline_down + self.online_up + self.online_down


def whole_cost(circuit: TrellisCircuit, text: int | None = None) -> GarbledCost:
    """Of a whole utterance of as many frames as the plan has. `text`: the size of the texts of which one is told; None:
    what the path met is.
    """
    inputs, outputs = _inputs(circuit) + circuit.last_bits, circuit.outputs * (1 + circuit.plan.frames)
    told = MEANING_BYTES * outputs if text is None else text_bytes(circuit.outputs, text)
    return GarbledCost(
        transfer_bytes(inputs),
        KEY_BYTES + TABLE_BYTES * _whole_gates(circuit),
        blinded_bytes(inputs),
        LABEL_BYTES * inputs + told,
    )


def stream_cost(circuit: TrellisCircuit, frames: int) -> GarbledCost:
    """Of an utterance of `frames`, with tables for as many as the plan has; the shares' own messages not counted."""
    return GarbledCost(
        transfer_bytes(_inputs(circuit)),
        KEY_BYTES + TABLE_BYTES * circuit.forward_gates,
        0,
        LABEL_BYTES * circuit.bits * sum(circuit.columns[:frames])
        + KEY_BYTES
        + TABLE_BYTES * circuit.back_gates(frames)
        + MEANING_BYTES * circuit.outputs * (1 + frames),
    )


@dataclass(frozen=True, eq=False)
class PathRead:
    """What the client read of the best path."""

    circuit: TrellisCircuit
    meaning: Meaning

    def records(self) -> Records:
        """For each field that is read: the frames at which it was set on the path, and to what, in order. Raises
        CheatError if what came from the server meant nothing: ask when the session is over, it must not learn so.
        """
        if not self.meaning.sound:
            raise CheatError("what the server garbled means nothing: it does not follow the protocol, or was damaged")
        return self.circuit.read(self.meaning.bits.reshape(-1, self.circuit.outputs))


class WholeGarbling:
    """The server's side of one whole utterance. Offline: its `share` of the emissions, `(frames, columns)` mod 2^k, and
    `weights` of the arcs. Raises CheatError for a client whose transfers do not agree.
    """

    def __init__(
        self, channel: Channel, setup: PairSetup, circuit: TrellisCircuit, weights: Residues, share: Residues
    ) -> None:
        _check_share(circuit, share)
        self._circuit, self._garbler = circuit, Garbler(channel, setup)
        self._inputs = self._garbler.late_inputs(_inputs(circuit) + circuit.last_bits)
        self._garbler.begin(_whole_gates(circuit))
        walk = _Walk(self._garbler, circuit, circuit.constants(weights))
        late, last = _frames(circuit, self._inputs.labels)
        for frame, labels in enumerate(late):
            own = share[frame, circuit.forward(frame).columns]
            walk.forward(labels, self._garbler.known(_bits(own, circuit.bits), labels.shape[:-1]))
        self._outputs = walk.back(walk.last(last))
        self._garbler.finish()

    def answer(self) -> None:
        """Online: labels of what the client chooses, and what its outputs mean."""
        self._garbler.answer(self._inputs)
        self._garbler.tell(self._outputs)

    def name(self, texts: Sequence[bytes]) -> None:
        """The same, for paths that meet one field once, and of its settings the text alone: nothing else is told."""
        self._garbler.answer(self._inputs)
        self._garbler.tell_text(_met_once(self._circuit, self._outputs), texts)


class WholeEvaluation:
    """The client's side: offline transfers, and tables that are kept; then `finish`, once."""

    def __init__(self, channel: Channel, setup: PairSetup, circuit: TrellisCircuit) -> None:
        self._circuit = circuit
        self._evaluator = Evaluator(channel, setup)
        self._inputs = self._evaluator.late_inputs(_inputs(circuit) + circuit.last_bits)
        self._evaluator.begin(_whole_gates(circuit))

    def finish(self, share: Residues, frames: int) -> PathRead:
        """Online: from this party's share of the emissions, `(frames, columns)` mod 2^k, whose first `frames` are those
        of the utterance. Raises RangeError before anything is sent, for others than the plan's.
        """
        self.ask(share, frames)
        return PathRead(self._circuit, self._evaluator.read(self._walk()))

    def ask(self, share: Residues, frames: int) -> None:
        """The first half of `finish`."""
        circuit = self._circuit
        _check_share(circuit, share)
        if not 1 <= frames <= circuit.plan.frames:
            raise RangeError(f"an utterance has 1 to {circuit.plan.frames} frames, got {frames}")
        chosen = _chosen(circuit, share)
        last = _bits(np.array([frames - 1], np.uint64), circuit.last_bits).astype(np.uint8)
        self._evaluator.ask(self._inputs, np.concatenate([chosen, last.reshape(-1)]))

    def named(self, size: int) -> bytes | None:
        """The second, where the server names what the path met, in texts of so many bytes. None if none opens, which it
        must not learn.
        """
        return self._evaluator.read_text(_met_once(self._circuit, self._walk()), size)

    def _walk(self) -> Residues:
        circuit = self._circuit
        walk = _Walk(self._evaluator, circuit, None)
        late, begins = _frames(circuit, self._evaluator.labels(self._inputs))
        for labels in late:
            walk.forward(labels, self._evaluator.known(None, labels.shape[:-1]))
        outputs = walk.back(walk.last(begins))
        self._evaluator.finish()
        return outputs


class StreamGarbling:
    """The server's side of an utterance that comes in chunks. Offline: tables for as many frames as the plan has."""

    def __init__(self, channel: Channel, setup: PairSetup, circuit: TrellisCircuit, weights: Residues) -> None:
        self._circuit, self._frames = circuit, 0
        self._garbler = Garbler(channel, setup)
        theirs, _ = _frames(circuit, self._garbler.own_inputs(_inputs(circuit)))
        own, _ = _frames(circuit, uniform_residues((_inputs(circuit), 2)))
        self._own = deque(own)
        self._garbler.begin(circuit.forward_gates)
        self._walk = _Walk(self._garbler, circuit, circuit.constants(weights))
        for labels, mine in zip(theirs, own, strict=True):
            self._walk.forward(labels, mine)
        self._garbler.finish()

    def send(self, share: Residues) -> None:
        """A chunk: its share of the next frames' emissions, `(frames, columns)` mod 2^k."""
        _check_chunk(self._circuit, self._frames, share)
        for row in share:
            bits = _bits(row[self._circuit.forward(self._frames).columns], self._circuit.bits)
            self._garbler.send_known(self._own.popleft(), bits)  # once: two of them would be Δ apart
            self._frames += 1

    def finish(self) -> None:
        """No further frame comes: the way back, and what it means."""
        self._garbler.begin(self._circuit.back_gates(self._frames))
        outputs = self._walk.back(None, self._frames)
        self._garbler.finish()
        self._garbler.tell(outputs)


class StreamEvaluation:
    """The client's side. Offline: its `share` of all emissions, `(frames, columns)` mod 2^k, uniform, fixed before."""

    def __init__(self, channel: Channel, setup: PairSetup, circuit: TrellisCircuit, share: Residues) -> None:
        _check_share(circuit, share)
        self._circuit, self.frames = circuit, 0
        self._evaluator = Evaluator(channel, setup)
        self._own, _ = _frames(circuit, self._evaluator.own_inputs(_chosen(circuit, share)))
        self._evaluator.begin(circuit.forward_gates)
        self._walk = _Walk(self._evaluator, circuit, None)

    def advance(self, frames: int) -> None:
        """Receive the labels of so many frames and walk them."""
        if not 0 <= frames <= self._circuit.plan.frames - self.frames:
            raise RangeError(f"up to {self._circuit.plan.frames - self.frames} frames may come, got {frames}")
        for _ in range(frames):
            own = self._own[self.frames]
            theirs = self._evaluator.receive_known(own.size // 2)
            self._walk.forward(own, theirs.reshape(own.shape))
            self.frames += 1

    def finish(self) -> PathRead:
        """The way back from the last frame that came."""
        self._evaluator.begin(self._circuit.back_gates(self.frames))
        outputs = self._walk.back(None, self.frames)
        self._evaluator.finish()
        return PathRead(self._circuit, self._evaluator.read(outputs))


class _Walk:
    """The circuits of a trellis, frame by frame, in the hands of either party. `constants`: the garbler's."""

    def __init__(self, party: Party, circuit: TrellisCircuit, constants: Residues | None) -> None:
        self._party, self._circuit, self._constants = party, circuit, constants
        nothing = np.zeros((0, 2), np.uint64)
        self.scores = [nothing, nothing]
        self._decisions: list[Residues] = []
        self._added: dict[int, Residues] = {}

    def forward(self, *shares: Residues) -> None:
        """The next frame; labels of both shares, `(k, columns, 2)` each."""
        step = self._circuit.forward(len(self._decisions))
        wires = np.empty((step.circuit.wires, 2), np.uint64)
        for (taken, span), then in zip(step.before, reversed(self.scores), strict=True):
            if len(taken):
                wires[span] = then.take(taken, axis=0)
        for span, labels in zip(step.shares, shares, strict=True):
            wires[span] = labels.reshape(-1, 2)
        wires[step.constant_span] = self._constant_labels(step)
        self._party.run(step.circuit, wires)
        self.scores = [self.scores[1], wires.take(step.scores, axis=0)]
        self._decisions.append(wires.take(step.decisions, axis=0))

    def _constant_labels(self, step: Forward) -> Residues:
        """Of what is added in frames with this circuit."""
        if id(step) not in self._added:
            bits = None if self._constants is None else _bits(self._constants[step.constants], self._circuit.bits)
            shape = (self._circuit.bits, len(step.constants))
            self._added[id(step)] = self._party.known(bits, shape).reshape(-1, 2)
        return self._added[id(step)]

    def last(self, labels: Residues) -> Residues:
        """From labels of the last frame's number, one a frame that says whether it is the last."""
        circuit, number, found = self._circuit.last
        wires = np.empty((circuit.wires, 2), np.uint64)
        wires[number] = labels
        self._party.run(circuit, wires)
        return wires[found]

    def back(self, last: Residues | None, frames: int | None = None) -> Residues:
        """What the path met, labels `((1 + frames) * outputs, 2)`, of the starts first. `last`: see there; None where
        both know how many frames there are.
        """
        count = self._circuit.plan.frames if frames is None else frames
        rows = np.zeros((1 + count, self._circuit.outputs, 2), np.uint64)
        tokens = [np.zeros((len(self._circuit.plan.trellis.columns), 2), np.uint64) for _ in range(3)]
        one, left = self._public(np.ones(1, np.uint64)), self._left()
        for back, frame in self._circuit.backs(frames):
            wires = np.empty((back.circuit.wires, 2), np.uint64)
            wires[back.cursor] = tokens[0].take(back.vertices, axis=0)
            wires[back.begins] = one if last is None else last[frame]
            wires[back.decisions] = self._decisions[frame]
            wires[back.left[0]] = left
            self._party.run(back.circuit, wires)
            left = wires.take(back.left[1], axis=0)
            rows[1 + frame] = wires.take(back.met, axis=0)
            if back.met_at_start is not None:
                rows[0] = wires.take(back.met_at_start, axis=0)
            for late, (vertices, found) in enumerate(back.sources, 1):
                tokens[late][vertices] ^= wires.take(found, axis=0)
            tokens = [*tokens[1:], np.zeros_like(tokens[0])]
        return rows.reshape(-1, 2)

    def _left(self) -> Residues:
        """Labels of how often fields may be told, at the end of the path."""
        most = np.full(len(self._circuit.fields), self._circuit.most, np.uint64)
        return self._public(_bits(most, self._circuit.left_bits).T.reshape(-1))

    def _public(self, bits: Residues) -> Residues:
        """Labels of bits that both know."""
        return self._party.known(None if self._constants is None else bits, bits.shape)


def _met_once(circuit: TrellisCircuit, outputs: Residues) -> Residues:
    """Labels of what a path met, `(outputs, 2)`, from those of all frames: in all others they are those of 0."""
    met: Residues = np.bitwise_xor.reduce(outputs.reshape(-1, circuit.outputs, 2), axis=0)
    return met


def _whole_gates(circuit: TrellisCircuit) -> int:
    return circuit.forward_gates + circuit.last[0].gates + circuit.back_gates()


def _inputs(circuit: TrellisCircuit) -> int:
    """Bits of a party's share that the circuits take."""
    return circuit.bits * sum(circuit.columns)


def _bits(numbers: Residues, bits: int) -> Residues:
    """`(n,)` to `(bits, n)`."""
    return (numbers >> np.arange(bits, dtype=np.uint64)[:, None]) & np.uint64(1)


def _chosen(circuit: TrellisCircuit, share: Residues) -> Bits:
    """The bits of a share in the order of the inputs: frame by frame, the lowest of all columns first."""
    rows = [
        _bits(share[frame, circuit.forward(frame).columns], circuit.bits).reshape(-1)
        for frame in range(circuit.plan.frames)
    ]
    return np.concatenate(rows).astype(np.uint8)


def _frames(circuit: TrellisCircuit, labels: Residues) -> tuple[list[Residues], Residues]:
    """Labels of inputs, `(count, 2)`, as those of the frames, `(k, columns, 2)`, and the rest."""
    sizes = [circuit.bits * columns for columns in circuit.columns]
    *parts, rest = np.split(labels, np.cumsum(sizes))
    return [part.reshape(circuit.bits, -1, 2) for part in parts], rest


def _check_share(circuit: TrellisCircuit, share: Residues) -> None:
    expected = (circuit.plan.frames, circuit.plan.trellis.emissions)
    if share.shape != expected:
        raise RangeError(f"a share of the emissions has shape {expected}, got {share.shape}")


def _check_chunk(circuit: TrellisCircuit, done: int, share: Residues) -> None:
    left, columns = circuit.plan.frames - done, circuit.plan.trellis.emissions
    if share.ndim != 2 or share.shape[1] != columns or len(share) > left:
        raise RangeError(f"up to {left} frames of {columns} columns may come, got {share.shape}")
