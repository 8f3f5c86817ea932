"""What each party sees of the other's shares: uniform words, in shapes that say nothing.

Chi-square tests at a false-alarm rate of 1e-4 a test, over the low byte of every masked number; about thirty run, so
a false alarm is expected once in three hundred runs of the suite. The mutants leave out a mask, or use a correlation
twice, and must fail by far.
"""

import copy
import pickle
import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from scipy import stats

from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.packing import packed_bytes, unpack_numbers
from ppspeech.crypto.randomness import uniform_bytes, uniform_residues
from ppspeech.crypto.shares import correlations
from ppspeech.crypto.shares.best import argmax
from ppspeech.crypto.shares.compare import BLOCK, carry, is_negative
from ppspeech.crypto.shares.correlations import Asked, Correlations, Offered, Products
from ppspeech.crypto.shares.cost import Cost
from ppspeech.crypto.shares.engine import HEADER, FlightChannel, ShareEngine
from ppspeech.crypto.shares.log_add import LogAdd, log_add
from ppspeech.crypto.shares.recorder import blank, record
from ppspeech.crypto.shares.select import multiply_bit
from ppspeech.crypto.shares.shared import Shared
from ppspeech.crypto.shares.shared import maximum as maximum_of_shared
from ppspeech.crypto.transfer.setup import PairSetup, Side
from ppspeech.errors import BadLengthError, BadTypeError, ProtocolError
from ppspeech.network import Transcript, memory_pair, run_together

from .pairs import agree, together

ALARM = 1e-4
RING = Ring(21)
HOW = LogAdd(RING, 6, 3)
RUNS = 4096


def maximum(engine: ShareEngine, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return maximum_of_shared(Shared(engine, left, RING), Shared(engine, right, RING)).residues


MAXIMUM = record(lambda engine: maximum(engine, blank(3), blank(3)))
CARRY = record(lambda engine: carry(engine, blank(2), 20))


def looks_uniform(values: np.ndarray, bits: int) -> bool:
    kept = (values.astype(np.uint64) & np.uint64((1 << bits) - 1)).astype(np.int64)
    return bool(stats.chisquare(np.bincount(kept, minlength=1 << bits)).pvalue > ALARM)


def run_maximum(engine: ShareEngine, party: Side, left: int, right: int) -> np.ndarray:
    """RUNS times the same inputs, shared in the same way: whatever varies is masks."""
    own = [np.full(RUNS, value if party is Side.FIRST else 0, np.uint64) for value in (left, right)]
    return maximum(engine, own[0], own[1])


def sent_and_received(record: Transcript) -> list[tuple[str, int, bytes]]:
    return [(entry.direction, entry.kind, entry.payload or b"") for entry in record.entries]


def masked_numbers(record: Transcript) -> dict[str, tuple[np.ndarray, int]]:
    """Every masked number of a run of `maximum`, by what it is, with its bits."""
    (_, _, ask), (_, _, tables), (_, _, ask_last), (_, _, tables_last), (_, _, theirs), (_, _, ours) = (
        sent_and_received(record)
    )
    size = -(-(RING.bits + 1) // 8)
    words = [unpack_numbers(data, RUNS, 8 * size).astype(np.uint64) for data in (theirs, ours)]
    top = np.uint64(RING.bits)
    return {
        "blocks asked for": (unpack_numbers(ask, 4 * RUNS, 5), 5),
        "entries of the blocks": (unpack_numbers(tables, 4 * 32 * RUNS, 2), 2),
        "carries asked for": (unpack_numbers(ask_last, RUNS, 7), 7),
        "entries of the carries": (np.frombuffer(tables_last, np.uint8), 8),
        "first's word": (words[0], 8),
        "first's word, high": (words[0] >> np.uint64(13), 8),
        "first's bit": (words[0] >> top, 1),
        "second's word": (words[1], 8),
        "second's word, high": (words[1] >> np.uint64(13), 8),
        "second's bit": (words[1] >> top, 1),
    }


@pytest.mark.parametrize("inputs", [(0, 0), (5, 3), (3, 2**21 - 7)])
def test_every_masked_number_of_a_maximum_is_uniform(inputs: tuple[int, int]) -> None:
    program = partial(run_maximum, left=inputs[0], right=inputs[1])
    first, second, _, online = together(program)
    for name, (values, bits) in masked_numbers(online).items():
        assert looks_uniform(values, bits), name
    assert looks_uniform(first, 8), "first's share of the result"
    assert looks_uniform(second, 8), "second's share of the result"


def without_choice(self: Correlations, shape: object, count: int) -> Asked:
    own = _take_asked(self, shape, count)
    return Asked(np.zeros_like(own.choices), own.pads)


def without_pad(self: Correlations, shape: object, count: int) -> Offered:
    own = _take_offered(self, shape, count)
    return Offered(np.zeros_like(own.pads), np.zeros_like(own.masks))


def without_step(self: Correlations, count: int) -> Products:
    own = _take_products(self, count)
    return Products(np.zeros_like(own.bits), own.got, own.zero, np.zeros_like(own.step))


_take_asked, _take_offered = Correlations.take_asked, Correlations.take_offered
_take_products = Correlations.take_products

MUTANTS: list[tuple[str, Callable, list[str]]] = [
    ("take_asked", without_choice, ["blocks asked for"]),
    ("take_offered", without_pad, ["entries of the blocks", "entries of the carries"]),
    (
        "take_products",
        without_step,
        ["first's word", "first's word, high", "second's word", "second's word, high"],
    ),
]


@pytest.mark.parametrize(("name", "mutant", "seen"), MUTANTS, ids=[mutant.__name__ for _, mutant, _ in MUTANTS])
def test_a_mask_left_out_is_noticed(
    name: str, mutant: Callable, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Correlations, name, mutant)
    program = partial(run_maximum, left=5, right=3)
    _, _, _, online = together(program, setup=agree())
    numbers = masked_numbers(online)
    for what in seen:
        assert not looks_uniform(*numbers[what]), what


def test_a_correlation_used_twice_is_noticed() -> None:
    """The difference of two words under one mask is that of the words: far from uniform."""
    fresh, replayed = (received_products(replay) for replay in (False, True))
    assert looks_uniform(fresh[0] - fresh[1], 8)
    assert not looks_uniform(replayed[0] - replayed[1], 8)


def received_products(replay: bool) -> list[np.ndarray]:
    """What the second party receives in two products of known words; with `replay`, under the same correlations."""
    setup = agree()
    seen: list[np.ndarray] = []

    def party(half: PairSetup, channel: object) -> None:
        with half.session(channel):
            engine = ShareEngine(channel, half, Cost(products=2 * RUNS))
            engine.channel = record = Transcript(channel, keep_payloads=True)
            for word in (100, 103):
                multiply_bit(engine, np.zeros(RUNS, np.uint8), np.full(RUNS, word, np.uint64), RING)
                engine.correlations._products_left += RUNS * replay
            if half.party is Side.SECOND:
                received = [entry.payload for entry in record.entries if entry.direction == "received"]
                seen.extend(unpack_numbers(data or b"", RUNS, 24).astype(np.uint64) for data in received)

    run_together(lambda c: party(setup[0], c), lambda c: party(setup[1], c))
    return seen


@pytest.mark.parametrize("word", [0, 77])
def test_every_table_of_a_log_add_is_uniform(word: int) -> None:
    count = 1024

    def program(engine: ShareEngine, party: Side) -> np.ndarray:
        own = np.full(count, word if party is Side.FIRST else 0, np.uint64)
        return log_add(engine, own, np.zeros(count, np.uint64), HOW)

    first, second, _, online = together(program)
    messages = [payload for direction, kind, payload in sent_and_received(online) if kind == Kind.TABLES]
    entries = unpack_numbers(messages[0][: packed_bytes(count * 64, 22)], count * 64, 22)
    assert looks_uniform(entries, 8)
    assert looks_uniform(entries >> np.uint64(14), 8)
    assert looks_uniform(np.frombuffer(messages[1], np.uint8), 8)
    assert looks_uniform(first, 6)
    assert looks_uniform(second, 6)


PROGRAMS = {
    "maximum": (lambda e, w: maximum(e, w[:, 0], w[:, 1])),
    "log-add": (lambda e, w: log_add(e, w[:, 0], w[:, 1], HOW)),
    "argmax": (lambda e, w: argmax(Shared(e, w, RING)).own),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_shapes_say_nothing_of_the_values(name: str) -> None:
    run = PROGRAMS[name]
    shapes = []
    for values in (np.zeros((20, 4), np.int64), np.tile([2**18, -(2**18), 5, 5], (20, 1))):
        shares = RING.share(RING.from_signed(values))
        _, _, offline, online = together(lambda e, p, s=shares: run(e, s[p]))
        shapes.append((offline.shape(), online.shape()))
    assert shapes[0] == shapes[1]


def test_no_secret_of_one_party_is_in_the_messages_or_the_objects_of_the_other() -> None:
    setup = agree()
    program = partial(run_maximum, left=1, right=2)
    _, _, offline, online = together(program, setup=setup)
    said = b"".join(entry.payload or b"" for entry in (*offline.entries, *online.entries))
    for half in setup:
        secrets = [half.sender.delta.tobytes(), *(key.tobytes() for key in half.receiver.keys.reshape(-1, 16))]
        assert not any(secret in said for secret in secrets)
    first, second = setup
    held = {key.tobytes() for key in second.receiver.keys.reshape(-1, 16)}
    known = {key.tobytes() for key in first.sender.keys}
    assert len(held & known) == 128  # of each pair one, by the choices of the base transfers
    assert all(len({key.tobytes() for key in pair} & known) == 1 for pair in second.receiver.keys)


def test_nothing_secret_is_shown_or_copied() -> None:
    setup = agree()

    def party(half: PairSetup, channel: object) -> None:
        with half.session(channel):
            engine = ShareEngine(channel, half, MAXIMUM)
            for thing in (engine, engine.correlations, half):
                assert "array" not in repr(thing)
            for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(TypeError):
                    attempt(engine.correlations)
            taken = engine.correlations.take_products(1)
            assert "array" not in repr(taken)

    run_together(lambda c: party(setup[0], c), lambda c: party(setup[1], c))


def cheating(kind: int, payload: bytes, before: int) -> tuple[PairSetup, PairSetup, Callable]:
    """A first party that sends `payload` as `kind` after `before` messages of the second."""

    def cheat(half: PairSetup, channel: object) -> None:
        with half.session(channel):
            ShareEngine(channel, half, MAXIMUM)
            for _ in range(before):
                channel.receive(Kind.ASK, at_most=1000)
            channel.send(kind, payload)
            channel.receive(1, 1)

    return *agree(), cheat


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (Kind.TABLES, bytes(packed_bytes(3 * 4 * 32, 2) - 1)),
        (Kind.TABLES, bytes(packed_bytes(3 * 4 * 32, 2) + 1)),
        (Kind.TABLES, b""),
        (Kind.PRODUCT, bytes(packed_bytes(3 * 4 * 32, 2))),
    ],
)
def test_messages_of_another_length_or_kind_end_the_session_and_the_setup(kind: int, payload: bytes) -> None:
    first, second, cheat = cheating(kind, payload, 1)

    def honest(channel: object) -> None:
        with second.session(channel):
            engine = ShareEngine(channel, second, MAXIMUM)
            maximum(engine, np.zeros(3, np.uint64), np.zeros(3, np.uint64))

    with pytest.raises(ProtocolError):
        run_together(lambda c: cheat(first, c), honest)
    assert not second.usable


@pytest.mark.parametrize(
    ("flight", "error"),
    [
        (b"\x01\x00", BadLengthError),
        (HEADER.pack(Kind.ASK, 2) + b"ab", BadTypeError),
        (HEADER.pack(Kind.TABLES, 3) + b"abc", BadLengthError),
        (HEADER.pack(Kind.TABLES, 2) + b"a", BadLengthError),
        (HEADER.pack(Kind.TABLES, 2**32 - 1), BadLengthError),
    ],
)
def test_flights_are_checked_message_by_message(flight: bytes, error: type[ProtocolError]) -> None:
    here, there = memory_pair()
    here.send(Kind.FLIGHT, flight)
    with pytest.raises(error):
        FlightChannel(there).receive(Kind.TABLES, 2)


def test_a_flight_with_more_than_was_asked_for_is_refused() -> None:
    here, there = memory_pair()
    here.send(Kind.FLIGHT, (HEADER.pack(Kind.TABLES, 2) + b"ab") * 2)
    flights = FlightChannel(there)
    assert flights.receive(Kind.TABLES, 2) == b"ab"
    with pytest.raises(BadLengthError, match="no step asked"):
        flights.finish()
    with pytest.raises(ValueError, match="size or at_most"):
        flights.receive(Kind.TABLES)


def test_long_messages_do_not_wait_for_a_flight_to_fill() -> None:
    here, there = memory_pair()
    flights, other = FlightChannel(here), FlightChannel(there)
    for size in (10, 70_000, 70_000, 5):
        flights.send(Kind.TABLES, bytes(size))
    flights.flush()
    assert [len(other.receive(Kind.TABLES, at_most=70_000)) for _ in range(4)] == [10, 70_000, 70_000, 5]


def test_rubbish_gives_rubbish_and_never_a_crash() -> None:
    """Semi-honest security promises nothing for lies, but a decoder must stand them: any bytes of the right length."""
    setup = agree()

    def cheat(channel: object) -> None:
        with setup[0].session(channel):
            ShareEngine(channel, setup[0], MAXIMUM)
            channel.receive(Kind.ASK, at_most=1000)
            channel.send(Kind.TABLES, b"\xff" * packed_bytes(3 * 4 * 32, 2))
            channel.receive(Kind.ASK, at_most=1000)
            channel.send(Kind.TABLES, b"\xff" * packed_bytes(3 * 128, 1))
            channel.send(Kind.PRODUCT, b"\xff" * 9)
            channel.receive(Kind.PRODUCT, 9)

    def honest(channel: object) -> np.ndarray:
        with setup[1].session(channel):
            engine = ShareEngine(channel, setup[1], MAXIMUM)
            return maximum(engine, np.zeros(3, np.uint64), np.zeros(3, np.uint64))

    _, result = run_together(cheat, honest)
    assert (result < 1 << RING.bits).all()


def test_the_first_party_stands_rubbish_too() -> None:
    setup = agree()

    def cheat(channel: object) -> None:
        with setup[1].session(channel):
            ShareEngine(channel, setup[1], CARRY)
            channel.send(Kind.ASK, b"\xff" * packed_bytes(8, BLOCK))
            channel.receive(Kind.TABLES, at_most=10_000)
            channel.send(Kind.ASK, b"\xff" * packed_bytes(2, 7))
            channel.receive(Kind.TABLES, at_most=10_000)

    def honest(channel: object) -> np.ndarray:
        with setup[0].session(channel):
            return is_negative(ShareEngine(channel, setup[0], CARRY), np.zeros(2, np.uint64), RING)

    result, _ = run_together(honest, cheat)
    assert (result <= 1).all()


def test_the_room_draws_masks_from_one_place() -> None:
    assert correlations.uniform_residues.__module__ == "ppspeech.crypto.randomness"


class Rubbish:
    """A channel on which anything may come."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload

    def send(self, kind: int, payload: bytes) -> None:
        raise AssertionError("nothing is to be sent")

    def receive(self, kind: int, size: int | None = None, *, at_most: int | None = None) -> bytes:
        return self.payload


def read_rubbish(count: int) -> int:
    """Read flights of random bytes, half of them with a header that may come: how many were taken."""
    lengths = uniform_residues(count, 5).astype(int)
    noise = uniform_bytes(32 * count)
    taken = 0
    for at, length in enumerate(lengths):
        payload = noise[32 * at : 32 * at + length]
        if at % 2:
            payload = HEADER.pack(Kind.TABLES, payload[0] % 32 if payload else 0) + payload
        flights = FlightChannel(Rubbish(payload))
        try:
            assert len(flights.receive(Kind.TABLES, at_most=16)) <= 16
            flights.finish()
        except ProtocolError:
            continue
        taken += 1
    return taken


def test_flights_of_rubbish() -> None:
    assert 0 < read_rubbish(5000) < 2500


@pytest.mark.slow
def test_a_million_flights_of_rubbish_leave_no_memory_behind() -> None:
    tracemalloc.start()
    read_rubbish(1000)
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(100):
        read_rubbish(10_000)
    assert tracemalloc.get_traced_memory()[0] - before < 2**20
    tracemalloc.stop()
