"""A setup that is kept: counters in step, refused after an abort, in another process, or by a stranger."""

import os

import numpy as np
import pytest

from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.shares.compare import is_negative
from ppspeech.crypto.shares.correlations import Correlations
from ppspeech.crypto.shares.cost import Cost, TableShape
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.recorder import blank, record
from ppspeech.crypto.transfer.setup import PairSetup
from ppspeech.errors import NotInGroupError, PeerGoneError, ProtocolError, WrongSessionError
from ppspeech.network import memory_pair, run_together

from .pairs import agree, lasting_setup, together

RING = Ring(21)
COST = record(lambda engine: is_negative(engine, blank(3), RING))


def compare(engine: ShareEngine, _: object) -> np.ndarray:
    return is_negative(engine, np.zeros(3, np.uint64), RING)


def test_many_sessions_use_one_setup_and_repeat_no_pad() -> None:
    setup = agree()
    seen = set()
    for _ in range(5):
        first, second, offline, _ = together(compare, COST, setup)
        assert not (first ^ second).any()
        seen.add(offline.entries[0].payload)
    assert len(seen) == 5
    assert setup[0].code.done == setup[1].code.done == 5 * 15


def test_an_abort_leaves_the_setup_spent_on_both_sides() -> None:
    setup = agree()

    def fail(engine: ShareEngine, party: int) -> None:
        if party:
            raise RuntimeError("power cut")
        compare(engine, party)

    with pytest.raises(RuntimeError):
        together(fail, COST, setup)
    for half in setup:
        assert not half.usable
        with pytest.raises(ProtocolError, match="spent: agree on a new one"), half.session(memory_pair()[0]):
            pass
        with pytest.raises(ProtocolError, match="spent"):
            half.check_in_use()


def test_halves_of_different_setups_or_positions_do_not_start() -> None:
    one, other = agree(), agree()

    def session(half: PairSetup, channel: object) -> None:
        with half.session(channel):
            pass

    with pytest.raises(WrongSessionError):
        run_together(lambda c: session(one[0], c), lambda c: session(other[1], c))
    third = agree()
    third[0].sender.done += 128
    with pytest.raises(WrongSessionError):
        run_together(lambda c: session(third[0], c), lambda c: session(third[1], c))
    assert not third[0].usable
    assert not third[1].usable


def test_one_session_at_a_time_and_none_without() -> None:
    setup = lasting_setup()
    with pytest.raises(ProtocolError, match="open a session"):
        Correlations(setup[0], memory_pair()[0], COST)
    here, there = memory_pair()
    there.send(Kind.RESUME, setup[0]._position())
    with setup[0].session(here), pytest.raises(ProtocolError, match="in use"), setup[0].session(here):
        pass


def test_a_forked_process_may_not_use_the_parents_setup() -> None:
    setup = lasting_setup()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with setup[0].session(memory_pair()[0]):
                pass
        except ProtocolError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    assert "another process" in said
    assert setup[0].usable


def test_a_peer_that_vanishes_in_the_setup_or_offers_rubbish() -> None:
    with pytest.raises(PeerGoneError):
        run_together(lambda c: PairSetup.agree(c, 0), lambda c: c.close())
    with pytest.raises(NotInGroupError):
        run_together(lambda c: PairSetup.agree(c, 0), lambda c: c.send(Kind.BASE_POINT, bytes(32)))


def test_correlations_are_used_once_and_no_more_than_planned() -> None:
    shape = TableShape(5, 2)

    def take(engine: ShareEngine, party: int) -> tuple[np.ndarray, np.ndarray]:
        store = engine.correlations
        taken = [(store.take_asked if party else store.take_offered)(shape, 2).pads for _ in range(2)]
        with pytest.raises(ProtocolError, match="none is used twice"):
            (store.take_asked if party else store.take_offered)(shape, 1)
        with pytest.raises(ProtocolError, match="none is used twice"):
            (store.take_asked if party else store.take_offered)(TableShape(4, 2), 1)
        with pytest.raises(ProtocolError, match="none is used twice"):
            store.take_products(1)
        return taken[0], taken[1]

    setup = lasting_setup()

    def party(half: PairSetup, channel: object) -> tuple[np.ndarray, np.ndarray]:
        with half.session(channel):
            return take(ShareEngine(channel, half, Cost(tables={shape: 4})), half.party)

    first, _ = run_together(lambda c: party(setup[0], c), lambda c: party(setup[1], c))
    assert (first[0] != first[1]).any()


def test_products_are_used_once_and_no_more_than_planned() -> None:
    setup = lasting_setup()

    def party(half: PairSetup, channel: object) -> None:
        with half.session(channel):
            store = Correlations(half, channel, Cost(products=4))
            one, other = (store.take_products(2).zero for _ in range(2))
            assert len({*one.tolist(), *other.tolist()}) == 4
            with pytest.raises(ProtocolError, match="none is used twice"):
                store.take_products(1)

    run_together(lambda c: party(setup[0], c), lambda c: party(setup[1], c))


def test_correlations_die_with_the_session() -> None:
    setup = agree()
    kept = {}

    def party(half: PairSetup, channel: object) -> None:
        with half.session(channel):
            kept[half.party] = Correlations(half, channel, Cost(products=4))

    run_together(lambda c: party(setup[0], c), lambda c: party(setup[1], c))
    with pytest.raises(ProtocolError, match="open a session"):
        kept[0].take_products(1)


def test_roles_are_not_mixed_up() -> None:
    def swap(engine: ShareEngine, party: int) -> None:
        store = engine.correlations
        with pytest.raises(ProtocolError):
            (store.take_offered if party else store.take_asked)(TableShape(5, 2), 1)

    setup = lasting_setup()

    def party(half: PairSetup, channel: object) -> None:
        with half.session(channel):
            swap(ShareEngine(channel, half, Cost(tables={TableShape(5, 2): 1})), half.party)

    run_together(lambda c: party(setup[0], c), lambda c: party(setup[1], c))
