"""Garbled circuits: every gate against its truth table, numbers against numpy, two parties against the record."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.channel import Channel
from ppspeech.crypto.garbled import (
    FRAME_BYTES,
    KEY_BYTES,
    LABEL_BYTES,
    MEANING_BYTES,
    ONE,
    TABLE_BYTES,
    ZERO,
    Builder,
    Evaluator,
    Garbler,
    blinded_bytes,
    text_bytes,
    transfer_bytes,
)
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.randomness import uniform_residues
from ppspeech.crypto.transfer import aes
from ppspeech.crypto.transfer.setup import PairSetup, Side
from ppspeech.errors import PpspeechError, ProtocolError, RangeError
from ppspeech.network import Transcript, run_together

from .garbled_pairs import Sum, bits_of, number_of, run_alone, run_pair, run_thrice
from .pairs import lasting_setup


@pytest.fixture(params=[True, False], ids=["instructions", "numpy"])
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aes, "AVAILABLE", aes.AVAILABLE and request.param)


@pytest.mark.usefixtures("_both_ways")
def test_every_operation_is_its_truth_table() -> None:
    """All pairs of numbers of three bits, and both choices: wrapped differences too."""
    left, right, select = (each.reshape(-1) for each in np.meshgrid(np.arange(8), np.arange(8), np.arange(2)))
    build, lanes = Builder(), len(left)
    a, b, s = build.inputs(3, lanes), build.inputs(3, lanes), build.inputs(1, lanes)
    made = {
        "add": build.add(a, b),
        "at_least": build.at_least(a, b)[None],
        "maximum": build.maximum(a, b)[0],
        "minimum": build.minimum(a, b)[0],
        "choose": build.choose(s[0], a, b),
        "both": build.both(a, b),
        "xor": build.xor(a, b),
        "opposite": build.opposite(a),
    }
    ran = run_alone(
        build.finish(), np.concatenate([a, b, s]), np.concatenate([bits_of(left, 3), bits_of(right, 3), select[None]])
    )
    takes = (left - right) % 8 < 4
    expected = {
        "add": (left + right) % 8,
        "at_least": takes,
        "maximum": np.where(takes, left, right),
        "minimum": np.where(takes, right, left),
        "choose": np.where(select, left, right),
        "both": left & right,
        "xor": left ^ right,
        "opposite": 7 - left,
    }
    for name, wires in made.items():
        assert (number_of(ran.value(wires)) == expected[name]).all(), name


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize("garbler_knows", ["left", "right", "both", "neither"])
def test_gates_with_constants_are_their_truth_tables(garbler_knows: str) -> None:
    """The wires of 0 and 1, and of what the garbler knows: labels 0 in the evaluator's hands."""
    build = Builder()
    wires = build.inputs(2, 4)
    values = np.array([[0, 0, 1, 1], [0, 1, 0, 1]], np.uint64)
    held = wires.copy()
    for row, name in enumerate(("left", "right")):
        if garbler_knows in {name, "both"}:
            held[row] = np.where(values[row] == 1, ONE, ZERO)
    out = build.both(held[0], held[1])
    ran = run_alone(build.finish(), wires, values)
    assert ran.value(out).tolist() == [0, 0, 0, 1]
    assert not ran.active[[ZERO, ONE]].any()
    assert (ran.zero[ONE] == ran.delta).all()
    assert not ran.zero[ZERO].any()


def test_a_circuit_is_what_it_was_when_it_was_made() -> None:
    """Arrays of wires belong to whoever asked for them, and may be used for others afterwards."""
    build = Builder()
    wires = build.inputs(1, 2)[0]
    kept, mine = wires.copy(), wires.copy()
    out = build.both(mine[:1], mine[1:])
    mine[:] = ZERO
    ran = run_alone(build.finish(), kept, np.array([1, 1]))
    assert ran.value(out).tolist() == [1]


@settings(max_examples=25, deadline=None)
@given(bits=st.integers(1, 60), lanes=st.integers(1, 40), data=st.data())
def test_numbers_are_numpys(bits: int, lanes: int, data: st.DataObject) -> None:
    numbers = st.lists(st.integers(0, 2**bits - 1), min_size=lanes, max_size=lanes)
    left, right = (np.array(data.draw(numbers), np.uint64) for _ in range(2))
    build = Builder()
    a, b = build.inputs(bits, lanes), build.inputs(bits, lanes)
    total = build.add(a, b)
    best, takes = build.maximum(total, b)
    circuit = build.finish()
    assert circuit.gates == lanes * (2 * (bits - 1) + bits)
    ran = run_alone(circuit, np.concatenate([a, b]), np.concatenate([bits_of(left, bits), bits_of(right, bits)]))
    ring = np.uint64((1 << bits) - 1)
    added = (left + right) & ring
    wins = ((added - right) & ring) >> np.uint64(bits - 1) == 0
    assert (number_of(ran.value(total)) == added).all()
    assert (ran.value(takes) == wins).all()
    assert (number_of(ran.value(best)) == np.where(wins, added, right)).all()


def test_registers_and_numpy_garble_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables and labels, bit for bit: one of the two parties may have a processor without the instructions."""
    build = Builder()
    a, b = build.inputs(9, 21), build.inputs(9, 21)
    build.maximum(build.add(a, b), b)
    circuit = build.finish()
    drawn = [np.frombuffer(bytes(range(16)), np.uint64).copy(), uniform_residues((18, 21, 2))]
    tables = []
    for available in (aes.AVAILABLE, False):
        monkeypatch.setattr(aes, "AVAILABLE", available)
        stream = iter(drawn)
        monkeypatch.setattr("tests.crypto.garbled_pairs.uniform_residues", lambda *_, s=stream: next(s).copy())
        monkeypatch.setattr("tests.crypto.garbled_pairs.uniform_bytes", lambda count: bytes(count))
        ran = run_alone(circuit, np.concatenate([a, b]), np.ones((18, 21), np.uint64))
        tables.append((ran.table.copy(), ran.zero, ran.active))
    for one, other in zip(*tables, strict=True):
        assert (one == other).all()


@pytest.mark.skipif(not aes.AVAILABLE or aes.BLOCKS == 1, reason="this processor has no wider registers")
def test_processors_without_wide_registers_evaluate_the_same() -> None:
    """Numba is told of a processor with AES instructions and no AVX-512."""
    environment = os.environ | {"NUMBA_CPU_NAME": "skylake", "NUMBA_CPU_FEATURES": "+aes,+sse4.2,+avx,+avx2"}
    program = (
        "from ppspeech.crypto.transfer import aes\n"
        "assert aes.AVAILABLE and aes.BLOCKS == 1\n"
        "import numpy as np\n"
        "from tests.crypto.garbled_pairs import *\n"
        "build = Builder()\n"
        "a, b = build.inputs(4, 256), build.inputs(4, 256)\n"
        "best, _ = build.maximum(a, b)\n"
        "left, right = np.divmod(np.arange(256), 16)\n"
        "values = np.concatenate([bits_of(left, 4), bits_of(right, 4)])\n"
        "ran = run_alone(build.finish(), np.concatenate([a, b]), values)\n"
        "assert (number_of(ran.value(best)) == np.where((left - right) % 16 < 8, left, right)).all()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


@pytest.mark.parametrize("told", [False, True])
def test_two_parties_and_every_kind_of_input(told: bool) -> None:
    lanes, bits = 33, 14
    job = Sum(*(uniform_residues(lanes, bits) for _ in range(3)), bits, uniform_residues(lanes, bits) if told else None)
    read, _, _ = run_pair(job)
    assert read.sound
    assert (read.bits.reshape(bits + 1, lanes) == job.expected()).all()


def test_bytes_and_rounds_are_what_was_said_before() -> None:
    """Of public sizes alone: other inputs give the same messages."""
    shapes = []
    for fill in (0, 2**7 - 1):
        job = Sum(*(np.full(20, fill, np.uint64) for _ in range(3)), bits=7)
        _, mine, _ = run_pair(job)
        shapes.append(mine.shape())
    assert shapes[0] == shapes[1]
    count, gates, outputs = job.inputs, job.circuit.gates, job.outputs.size
    assert mine.bytes_up == 2 * transfer_bytes(count) + blinded_bytes(count)
    assert mine.bytes_down == KEY_BYTES + TABLE_BYTES * gates + 2 * LABEL_BYTES * count + MEANING_BYTES * outputs
    assert mine.rounds == 2  # tables for transfers; labels and meaning for choices


@pytest.mark.parametrize(("bits", "texts"), [(0, 1), (1, 2), (2, 3), (3, 8)])
def test_a_text_opens_to_its_number_and_to_nothing_else(bits: int, texts: int) -> None:
    """Every number that the evaluator can choose, those without a text and none at all included."""
    said, halves = [bytes([7 * n]) * 40 for n in range(texts)], lasting_setup()
    build = Builder()
    inputs = build.inputs(1, 1 + bits)[0]
    circuit = build.finish()
    for chosen in range(2 << bits):
        is_one = np.array([chosen >> bit & 1 for bit in range(1 + bits)], np.uint8)

        def party(channel: Channel, half: PairSetup, is_one: np.ndarray = is_one) -> Any:
            with half.session(channel):
                record = Transcript(channel)
                player = Garbler(record, half) if half.party is Side.FIRST else Evaluator(record, half)
                own = player.own_inputs(len(inputs) if isinstance(player, Garbler) else is_one)
                player.begin(circuit.gates)
                if isinstance(player, Garbler):
                    return player.tell_text(own, said)
                found = player.read_text(own, 40)
                assert record.entries[-1].size == text_bytes(len(inputs), 40)
                return found

        _, found = run_together(*(lambda c, half=half: party(c, half) for half in halves))
        number = chosen >> 1
        assert found == (said[number] if chosen & 1 and number < texts else None)


def test_choices_come_before_the_key_and_meaning_after_all_choices() -> None:
    job = Sum(*(np.zeros(3, np.uint64) for _ in range(3)), bits=4)
    kinds = [kind for _, kind, _ in run_pair(job)[1].shape()]
    assert kinds == [
        *(Kind.COLUMNS, Kind.COLUMNS),
        *(Kind.GARBLE_KEY, Kind.GARBLED),
        *(Kind.BLIND_CHOICES, Kind.LABELS, Kind.LABELS, Kind.MEANING),
    ]


def test_tables_travel_in_frames_of_four_megabytes() -> None:
    """2^17 gates a frame, though circuits end elsewhere."""
    sizes = run_thrice(50_000)
    tables = [size for kind, size in sizes if kind == Kind.GARBLED]
    assert tables == [FRAME_BYTES, TABLE_BYTES * 150_000 - FRAME_BYTES]


Doors = dict[str, tuple[Side, Callable[[Channel, PairSetup], object], type[PpspeechError], str]]


def begun(party: Garbler, gates: int = 3) -> Garbler:
    party.begin(gates)
    return party


DOORS: Doors = {
    "the second garbles": (Side.SECOND, Garbler, ProtocolError, "the first party garbles"),
    "the first evaluates": (Side.FIRST, Evaluator, ProtocolError, "the first party garbles"),
    "gates unannounced": (
        Side.FIRST,
        lambda c, s: Garbler(c, s).run(Builder().finish(), np.zeros((2, 2), np.uint64)),
        ProtocolError,
        "call begin first",
    ),
    "fewer gates than announced": (
        Side.FIRST,
        lambda c, s: begun(Garbler(c, s)).finish(),
        ProtocolError,
        "0 were made",
    ),
    "inputs after the key": (
        Side.FIRST,
        lambda c, s: begun(Garbler(c, s)).own_inputs(1),
        ProtocolError,
        "younger than the choices",
    ),
    "no bits": (Side.FIRST, lambda c, s: Garbler(c, s).known(None, (3,)), RangeError, "of shape"),
    "texts of two lengths": (
        Side.FIRST,
        lambda c, s: Garbler(c, s).tell_text(np.zeros((2, 2), np.uint64), [b"a", b"bc"]),
        RangeError,
        "of one length",
    ),
    "more texts than numbers": (
        Side.FIRST,
        lambda c, s: Garbler(c, s).tell_text(np.zeros((2, 2), np.uint64), [b"a"] * 3),
        RangeError,
        "up to 2 texts",
    ),
    "gates below none": (Side.FIRST, lambda c, s: s.take_gates(-1), RangeError, "-1 gates"),
    "operands of two shapes": (
        Side.FIRST,
        lambda *_: Builder().add(np.zeros((2, 1), np.int64), np.zeros((2, 2), np.int64)),
        RangeError,
        "one shape",
    ),
    "a choice of two": (
        Side.FIRST,
        lambda *_: Builder().choose(np.zeros(2, np.int64), *(np.zeros((2, 1), np.int64),) * 2),
        RangeError,
        "one bit a lane",
    ),
    "a copy": (Side.FIRST, lambda c, s: pickle.dumps(Garbler(c, s)), TypeError, "cannot be pickled"),
}


@pytest.mark.parametrize("name", DOORS)
def test_what_makes_no_sense_is_refused(name: str) -> None:
    side, door, error, words = DOORS[name]
    setup = lasting_setup()

    def party(channel: Channel, who: Side) -> None:
        with setup[who].session(channel):
            if who is side:
                with pytest.raises(error, match=words):
                    door(channel, setup[who])

    run_together(lambda c: party(c, Side.FIRST), lambda c: party(c, Side.SECOND))
    setup[0].gates = setup[1].gates = max(setup[0].gates, setup[1].gates)  # one of them announced some to nobody


def test_nobody_garbles_outside_a_session() -> None:
    setup = lasting_setup()
    with pytest.raises(ProtocolError, match="open a session"):
        Garbler(None, setup[0])
    with pytest.raises(ProtocolError, match="open a session"):
        setup[0].take_gates(1)
