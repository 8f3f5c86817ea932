"""The recorder: what a run on nothing counts is what goes over the wire, for either party."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.randomness import uniform_residues
from ppspeech.crypto.shares import (
    Cost,
    LogAdd,
    Shared,
    SharedBits,
    ShareEngine,
    argmax,
    blank,
    choose,
    extend,
    is_negative,
    log_add,
    look_up,
    maximum,
    multiply,
    multiply_bit,
    multiply_loaded,
    open_bits_to,
    open_to,
    record,
    scale_by_first,
    square,
)
from ppspeech.crypto.shares.cost import TableShape
from ppspeech.crypto.shares.engine import ROOM
from ppspeech.crypto.shares.recorder import BlankChannel
from ppspeech.crypto.transfer import Side
from ppspeech.errors import RangeError

from .pairs import together

RING = Ring(21)
COUNT = 37


def bits_of(residues: np.ndarray) -> np.ndarray:
    return (residues & np.uint64(1)).astype(np.uint8)


PROGRAMS: dict[str, Callable[[ShareEngine, np.ndarray], object]] = {
    "sign": lambda e, x: is_negative(e, x, RING),
    "maximum": lambda e, x: maximum(Shared(e, x, RING), Shared(e, x[::-1], RING)),
    "log-add": lambda e, x: log_add(e, x, x[::-1].copy(), LogAdd(RING, 6, 3)),
    "log-add of three middle blocks": lambda e, x: log_add(e, x, x, LogAdd(Ring(45), 20, 17)),
    "and": lambda e, x: SharedBits(e, bits_of(x)) & SharedBits(e, bits_of(x)),
    "product with a bit": lambda e, x: multiply_bit(e, bits_of(x), x, RING),
    "product with a load": lambda e, x: multiply_loaded(e, bits_of(x), x, x, RING, 17),
    "look-up": lambda e, x: look_up(e, x, np.arange(64, dtype=np.uint64), RING),
    "product": lambda e, x: multiply(Shared(e, x, RING), Shared(e, x, RING), Ring(42)),
    "square": lambda e, x: square(Shared(e, x, RING), Ring(42)),
    "scaling": lambda e, x: scale_by_first(Shared(e, x, RING), x if e.is_first else None, Ring(42)),
    "extension": lambda e, x: extend(Shared(e, x, RING), Ring(40)),
    "argmax of one": lambda e, x: argmax(Shared(e, x[:, None], RING)),
    "argmax": lambda e, x: argmax(Shared(e, x[:36].reshape(4, 9), RING)),
    "choice among 300": lambda e, x: choose(Shared(e, np.tile(x, (2, 10))[:, :300], RING), None if e.is_first else 299),
    "opening to the first": lambda e, x: open_to(e, Side.FIRST, x, RING),
    "opening to the second": lambda e, x: open_bits_to(e, Side.SECOND, bits_of(x)),
}


@pytest.mark.parametrize("flying", [False, True], ids=["plain", "in flights"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_record_of_either_party_is_what_goes_over_the_wire(name: str, flying: bool) -> None:
    def program(engine: ShareEngine, own: np.ndarray) -> None:
        if not flying:
            PROGRAMS[name](engine, own)
            return
        with engine.in_flights():
            PROGRAMS[name](engine, own)
            PROGRAMS[name](engine, own)
        with engine.in_flights():
            PROGRAMS[name](engine, own)

    first, second = (record(lambda e: program(e, blank(COUNT)), side) for side in Side)
    assert first == second
    own = [uniform_residues(COUNT, RING.bits) for _ in Side]
    together(lambda e, side: program(e, own[side]), second)


def test_flights_that_are_full_are_recorded_as_they_leave() -> None:
    """Two messages one way that do not fit one flight: the peer's frames are counted as it cuts them."""
    count = ROOM // 4

    def program(engine: ShareEngine, own: np.ndarray) -> None:
        with engine.in_flights():
            for _ in range(3):
                maximum(Shared(engine, own, RING), Shared(engine, own, RING))

    cost = record(lambda e: program(e, blank(count)))
    assert cost == record(lambda e: program(e, blank(count)), Side.FIRST)
    assert "ss" in cost.directions  # directions alone do not tell how many frames there are
    own = [uniform_residues(count, RING.bits) for _ in Side]
    together(lambda e, side: program(e, own[side]), cost)


def test_a_record_that_misses_a_message_is_not_the_wire() -> None:
    cost = record(lambda e: is_negative(e, blank(COUNT), RING))
    own = [uniform_residues(COUNT, RING.bits) for _ in Side]
    for wrong in (replace(cost, bytes_first=cost.bytes_first + 1), replace(cost, directions=cost.directions + "s")):
        with pytest.raises(AssertionError):
            together(lambda e, side: is_negative(e, own[side], RING), wrong)


def test_nothing_costs_nothing() -> None:
    assert record(lambda _: None) == Cost()


def test_what_is_counted_by_hand() -> None:
    """Signs of 21 bits: 4 blocks of 5 bits, then one table of 7; 2 rounds."""
    cost = record(lambda e: is_negative(e, blank(8), RING))
    assert cost.tables == {TableShape(5, 2): 32, TableShape(7, 1): 8}
    assert cost.directions == "srsr"
    assert (cost.bytes_second, cost.bytes_first) == (32 * 5 // 8 + 8 * 7 // 8, 32 * 32 * 2 // 8 + 8 * 128 // 8)


def test_sizes_that_nobody_could_hold_are_refused_before_they_are_allocated() -> None:
    with pytest.raises(RangeError, match="3,000,000,000"):
        blank(3000, 1_000_000)


def test_a_channel_to_nobody_gives_zeros() -> None:
    channel = BlankChannel()
    channel.send(1, b"abc")
    assert channel.receive(2, 4) == bytes(4)
    assert (channel.sent, channel.received, channel.order) == (3, 4, ["s", "r"])
    with pytest.raises(ValueError, match="size or at_most"):
        channel.receive(2)
