"""The millionaires: right for all orders, silent about the rest, the same in memory and over a socket."""

import pytest

from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.shares import blank
from ppspeech.crypto.shares import record as record_cost
from ppspeech.errors import RangeError
from ppspeech.network import Transcript, memory_pair, run_together, socket_pair
from ppspeech.protocols import PROTOCOLS
from ppspeech.protocols.millionaires import _open_carry, alice, bob
from tests.protocols.alice_and_bob import as_alice, as_bob


@pytest.mark.parametrize(
    ("rich", "poor", "bits"), [(7, 5, 32), (5, 7, 32), (5, 5, 32), (2**60 - 1, 0, 60), (1, 0, 1), (0, 2**21 - 1, 21)]
)
def test_who_is_richer(rich: int, poor: int, bits: int) -> None:
    results = run_together(lambda c: alice(as_alice(c), rich, bits=bits), lambda c: bob(as_bob(c), poor, bits=bits))
    assert results == (("alice is richer" if rich > poor else "alice is not richer"),) * 2


def test_over_a_socket() -> None:
    results = run_together(lambda c: alice(as_alice(c), 9), lambda c: bob(as_bob(c), 8), socket_pair())
    assert results == ("alice is richer", "alice is richer")


def test_the_transcript_is_that_of_the_formula_whatever_the_numbers() -> None:
    shapes = []
    for numbers in ((0, 0), (2**32 - 1, 1), (1, 2**32 - 1)):
        here, there = memory_pair()
        record = Transcript(there)
        run_together(
            lambda c, n=numbers: alice(as_alice(c), n[0]),
            lambda c, n=numbers, r=record: bob(as_bob(r), n[1]),
            (here, there),
        )
        shapes.append(record.shape())
    assert shapes[0] == shapes[1] == shapes[2]
    cost = record_cost(lambda engine: _open_carry(engine, blank(1), 32))
    setup = {Kind.BASE_POINT, Kind.BASE_REPLY, Kind.BASE_COLUMNS, Kind.RESUME}
    after = [(direction, size) for direction, kind, size in shapes[0] if kind not in setup]
    sent = sum(size for direction, size in after if direction == "sent")
    assert sent == cost.bytes_second + cost.offline_bytes_second
    assert sum(size for _, size in after) == cost.total_bytes


@pytest.mark.parametrize(("wealth", "bits"), [(-1, 8), (256, 8), (2.5, 8), ("7", 8), (1, 0), (1, 61)])
def test_numbers_out_of_range_are_refused_before_anything_is_sent(wealth: object, bits: int) -> None:
    here, there = memory_pair()
    with pytest.raises(RangeError):
        alice(as_alice(here), wealth, bits=bits)
    here.close()
    with pytest.raises(Exception, match="the peer is gone"):
        there.receive(Kind.BASE_POINT, 32)


def test_it_is_registered_and_describes_itself() -> None:
    protocol = PROTOCOLS["millionaires"]
    assert list(protocol.parties) == ["alice", "bob"]
    assert "larger than bob's" in protocol.describe()
