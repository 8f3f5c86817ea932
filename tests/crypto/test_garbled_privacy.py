"""What the parties of a garbled circuit receive: one label a wire, nothing of Δ, no tweak twice; and who cheats."""

import hashlib
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ppspeech.channel import Channel
from ppspeech.crypto.garbled import Builder, Evaluator, Garbler
from ppspeech.crypto.garbled.circuit import Circuit
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.transfer.block_hash import BlockHash
from ppspeech.crypto.transfer.setup import PairSetup, Side
from ppspeech.errors import CheatError, ProtocolError, WrongSessionError
from ppspeech.network import Transcript, run_together

from .garbled_pairs import Sum, run_alone, run_pair, run_thrice
from .pairs import agree, lasting_setup
from .test_transfer_check import flipping, one_a_row

FALSE_ALARM = 1e-6


def fixed(fill: int, lanes: int = 40, bits: int = 8) -> Sum:
    """All inputs the same number: whatever varies is labels."""
    return Sum(*(np.full(lanes, fill, np.uint64) for _ in range(3)), bits, np.full(lanes, fill, np.uint64))


def payloads(transcript: Transcript, *kinds: Kind) -> Iterator[bytes]:
    return (each.payload or b"" for each in transcript.entries if each.kind in kinds and each.direction == "received")


def blocks(data: bytes) -> set[bytes]:
    return {data[at : at + 16] for at in range(0, len(data), 16)}


def shifted(data: set[bytes], delta: bytes) -> set[bytes]:
    number = int.from_bytes(delta, "little")
    return {(int.from_bytes(each, "little") ^ number).to_bytes(16, "little") for each in data}


def is_uniform(values: np.ndarray) -> bool:
    return bool(stats.chisquare(np.bincount(values.reshape(-1), minlength=256)).pvalue > FALSE_ALARM)


@pytest.mark.parametrize("fill", [0, 255])
def test_the_evaluator_holds_one_label_of_each_wire_and_nothing_of_delta(fill: int) -> None:
    """Of all it receives and computes no two blocks are Δ apart, and none is Δ; it has no wire's other label."""
    setup, job = lasting_setup(), fixed(fill)
    _, mine, _ = run_pair(job, setup)
    delta = setup[0].labels.delta.tobytes()
    received = b"".join(payloads(mine, *Kind))
    assert delta not in received
    held = blocks(job.active.tobytes()) | {
        b for data in payloads(mine, Kind.GARBLED, Kind.LABELS) for b in blocks(data)
    }
    assert delta not in held
    assert not held & shifted(held, delta)
    apart = job.zero ^ job.active
    assert ((apart == 0).all(axis=1) | (apart == setup[0].labels.delta).all(axis=1)).all()
    assert not blocks((job.active ^ setup[0].labels.delta).tobytes()) & held
    meaning = np.frombuffer(b"".join(payloads(mine, Kind.MEANING)), np.uint64).reshape(-1, 2)
    assert (meaning[:, 0] ^ meaning[:, 1] | np.uint64(1) != setup[0].labels.delta[0]).all()


def test_tables_of_equal_gates_differ_by_nothing_that_delta_explains() -> None:
    """The same two wires again and again, as they are and turned: without a tweak, tables would be equal or Δ apart."""
    build = Builder()
    x, y = build.inputs(1, 2)[0]
    lanes = 64
    one, other = np.full(lanes, x), np.where(np.arange(lanes) % 2, y, build.opposite(np.array([y]))[0])
    build.both(one, other)
    build.both(other, one)
    ran = run_alone(build.finish(), np.array([x, y]), np.array([0, 1]))
    words = [row.tobytes() for row in ran.table.reshape(-1, 2)]
    assert len(set(words)) == len(words) == 4 * lanes
    sums = {(a ^ b).tobytes() for n, a in enumerate(ran.table[:, 0]) for b in ran.table[:n, 0]}
    assert len(sums) == 2 * lanes * (2 * lanes - 1) // 2
    assert ran.delta.tobytes() not in sums


def test_a_gate_of_a_wire_with_itself_shows_no_label() -> None:
    """T ⊕ E would be the label, or Δ from it, if both halves of a gate had one tweak."""
    build = Builder()
    x = build.inputs(1, 16)[0]
    build.both(x, x)
    ran = run_alone(build.finish(), x, np.arange(16) % 2)
    halves = ran.table[:, 0] ^ ran.table[:, 1]
    for label in (ran.zero[x], ran.zero[x] ^ ran.delta):
        assert (halves != label).any(axis=1).all()


def test_what_travels_is_uniform() -> None:
    """Chi-square at 1e-6 of the bytes of tables, labels and meanings, and of choices, inputs being fixed."""
    seen: dict[Kind, list[bytes]] = {Kind.GARBLED: [], Kind.LABELS: [], Kind.MEANING: [], Kind.BLIND_CHOICES: []}
    for _ in range(4):
        _, mine, theirs = run_pair(fixed(0, lanes=64))
        for kind, data in seen.items():
            data += payloads(theirs if kind is Kind.BLIND_CHOICES else mine, kind)
    for kind, data in seen.items():
        assert is_uniform(np.frombuffer(b"".join(data), np.uint8)), kind
    tables = np.frombuffer(b"".join(seen[Kind.GARBLED]), np.uint8).reshape(-1, 32)
    lowest = tables[:, [0, 16]] & 1  # where the labels' lowest bits stand
    assert stats.chisquare(np.bincount(lowest.reshape(-1), minlength=2)).pvalue > FALSE_ALARM


def test_colors_of_labels_tell_nothing() -> None:
    """The lowest bit of a label is as often 1 for a wire that is 0 as for one that is 1, and in the outputs too."""
    for fill in (0, 255):
        bits = []
        for _ in range(4):
            job = fixed(fill, lanes=64)
            run_pair(job)
            late, _, own, told = job.wires
            bits.append(job.active[np.concatenate([late, own, told, job.outputs])][..., 0].reshape(-1) & np.uint64(1))
        assert stats.chisquare(np.bincount(np.concatenate(bits).astype(int), minlength=2)).pvalue > FALSE_ALARM


class Hashed:
    """Every hash of a circuit that was taken: under which key, from which tweak on, and how many."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.used: dict[bool, list[tuple[bytes, int, int]]] = {True: [], False: []}
        parties = import_module("ppspeech.crypto.garbled.parties")
        plain, run = BlockHash.hash_blocks, parties.run_circuit

        def spied_run(circuit: Circuit, wires: Any, hasher: BlockHash, delta: Any, table: Any, first: int) -> None:
            self.used[delta is not None].append((hasher.round_keys.tobytes(), 2 * first, 2 * circuit.gates))
            run(circuit, wires, hasher, delta, table, first)

        def spied_hash(hasher: BlockHash, rows: np.ndarray, first: int) -> np.ndarray:
            key = hasher.round_keys.tobytes()
            if any(key == known for known, _, _ in self.used[True]) and (key, first, len(rows)) not in self.used[True]:
                self.used[True].append((key, first, len(rows)))  # an output, once for both of its labels
            return plain(hasher, rows, first)

        monkeypatch.setattr(parties, "run_circuit", spied_run)
        monkeypatch.setattr(BlockHash, "hash_blocks", spied_hash)

    def tweaks(self) -> list[int]:
        return [tweak for _, first, count in self.used[True] for tweak in range(first, first + count)]


def test_no_tweak_is_used_twice_in_the_life_of_a_setup(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a circuit, from circuit to circuit of a session, and from session to session, whatever the keys are."""
    hashed, setup = Hashed(monkeypatch), agree()
    for _ in range(3):
        run_pair(fixed(3, lanes=5), setup)
        run_thrice(30, setup)
    tweaks = hashed.tweaks()
    assert len(tweaks) == len(set(tweaks)) > 1000
    assert set(hashed.used[False]) <= set(hashed.used[True])  # the evaluator's are the garbler's
    assert setup[0].gates == setup[1].gates > 0
    assert len({key for key, _, _ in hashed.used[True]}) == 6


def test_every_circuit_has_a_key_of_its_own() -> None:
    keys = [next(payloads(run_pair(fixed(1, lanes=2))[1], Kind.GARBLE_KEY)) for _ in range(3)]
    assert len(set(keys)) == 3
    assert all(len(set(key)) > 4 for key in keys)


@pytest.mark.parametrize("what", ["gates", "labels"])
def test_parties_that_count_differently_do_not_start(what: str) -> None:
    setup = agree()
    if what == "gates":
        setup[1].gates += 1
    else:
        setup[1].labels.done += 1
    with pytest.raises(WrongSessionError):
        run_pair(fixed(1, lanes=2), setup)


def test_delta_has_a_lowest_bit_and_is_a_secret_of_its_own() -> None:
    deltas = []
    for _ in range(6):
        first, _ = agree()
        assert int(first.labels.delta[0]) & 1
        for other in (first.sender.delta, first.code.delta[:2], first.code.delta[2:]):
            assert (first.labels.delta ^ other > 1).any()
        deltas.append(first.labels.delta.tobytes())
    ones = np.unpackbits(np.frombuffer(b"".join(deltas), np.uint8)).mean()
    assert len(set(deltas)) == 6
    assert 0.4 < ones < 0.6


# Evaluators that do anything.


@pytest.mark.parametrize("bit", [0, 1, 64, 127])
def test_a_label_that_was_changed_means_nothing(bit: int) -> None:
    """One bit of one label of an input: its lane is garbage, the others stand, and the evaluator knows."""
    job = fixed(5, lanes=8)

    def spoil(_: Evaluator, wires: np.ndarray) -> None:
        wires[job.wires[0][0, 3], bit // 64] ^= np.uint64(1) << np.uint64(bit % 64)

    read, _, _ = run_pair(job, spoil=spoil)
    assert not read.sound
    others = [lane for lane in range(8) if lane != 3]
    assert (read.bits.reshape(9, 8)[:, others] == job.expected()[:, others]).all()
    assert not set(map(bytes, job.active[job.outputs[:, 3]])) & set(map(bytes, job.zero[job.outputs[:, 3]]))


def test_labels_of_another_value_cannot_be_made() -> None:
    """An evaluator that wants its input turned needs Δ: whatever else it adds, no output has a meaning."""
    job = fixed(5, lanes=16)

    def spoil(_: Evaluator, wires: np.ndarray) -> None:
        wires[job.wires[0][0]] ^= np.frombuffer(hashlib.sha256(b"a guess").digest()[:16], np.uint64)

    read, _, _ = run_pair(job, spoil=spoil)
    assert not read.sound


def test_choices_in_columns_that_do_not_agree_end_the_session_and_the_setup() -> None:
    setup, job = agree(), fixed(5, lanes=32)
    setup[1].labels.code = flipping(setup[1].labels.code, one_a_row)
    with pytest.raises(CheatError):
        run_pair(job, setup)
    assert not setup[0].usable


def test_inputs_are_chosen_once() -> None:
    """With a second answer to other choices an evaluator would hold both labels, and Δ."""
    setup = agree()

    def garble(channel: Channel, half: PairSetup) -> None:
        with half.session(channel):
            garbler = Garbler(channel, half)
            inputs = garbler.late_inputs(8)
            garbler.begin(0)
            garbler.answer(inputs)
            with pytest.raises(ProtocolError, match="chosen already"):
                garbler.answer(inputs)
            garbler.tell(inputs.labels)
            with pytest.raises(ProtocolError, match="call begin first"):
                garbler.answer(inputs)

    def evaluate(channel: Channel, half: PairSetup) -> None:
        with half.session(channel):
            evaluator = Evaluator(channel, half)
            inputs = evaluator.late_inputs(8)
            evaluator.begin(0)
            for fill in (0, 1):
                evaluator.ask(inputs, np.full(8, fill, np.uint8))
            labels = evaluator.labels(inputs)
            assert not evaluator.read(labels).bits.any()

    run_together(lambda c: garble(c, setup[0]), lambda c: evaluate(c, setup[1]))


@pytest.mark.parametrize("fill", [0, 255])
def test_what_the_garbler_receives_says_nothing_of_the_choices(fill: int) -> None:
    """Chi-square of choices that are all the same; and they differ from run to run."""
    data = [b"".join(payloads(run_pair(fixed(fill, lanes=64))[2], Kind.BLIND_CHOICES)) for _ in range(16)]
    assert is_uniform(np.frombuffer(b"".join(data), np.uint8))
    assert len(set(data)) == 16


# Garblers that do anything.


@pytest.mark.parametrize("place", [0, 15, 16, 31])
def test_damaged_tables_are_noticed_and_the_garbler_is_not_told(place: int) -> None:
    """Every gate of a circuit, a byte of T or E: either it did not matter, or the evaluator knows; and what it sends is
    the same."""
    job, shapes, noticed = fixed(5, lanes=8), [], []
    for damaged in (False, True):

        def spoil(evaluator: Evaluator, _: np.ndarray, damaged: bool = damaged) -> None:
            if damaged:
                evaluator._tables.view(np.uint8)[place::32] ^= 1

        read, mine, theirs = run_pair(job, spoil=spoil)
        shapes.append((mine.shape(), theirs.shape()))
        noticed.append(not read.sound)
    assert shapes[0] == shapes[1]
    assert noticed == [False, True]


def test_bits_without_a_meaning_are_told_from_zeros_and_ones() -> None:
    """Of 200 labels that are none, not one is taken for a bit (63 zeros: 2^-56 that this fails)."""
    job = fixed(9, lanes=25)

    def spoil(_: Evaluator, wires: np.ndarray) -> None:
        wires[job.wires[0]] ^= np.uint64(1 << 40)

    read, _, _ = run_pair(job, spoil=spoil)
    assert not read.sound
    assert set(np.unique(read.bits)) <= {0, 1}


def test_an_evaluator_sends_the_same_whatever_it_reads() -> None:
    """After its choices it sends nothing at all: a garbler that fails for some inputs learns nothing from it."""
    entries = run_pair(fixed(2, lanes=3))[1].entries
    last = max(n for n, each in enumerate(entries) if each.direction == "sent")
    assert entries[last].kind == Kind.BLIND_CHOICES
    assert {each.kind for each in entries[last + 1 :]} == {Kind.LABELS, Kind.MEANING}
    assert {each.kind for each in entries if each.direction == "sent"} == {Kind.COLUMNS, Kind.BLIND_CHOICES}


def test_sides_of_a_setup_keep_their_roles() -> None:
    setup = lasting_setup()
    assert setup[Side.FIRST].labels.delta.shape == (2,)
    assert not hasattr(setup[Side.SECOND].labels, "delta")
