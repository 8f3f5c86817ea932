"""One party program, every kind of channel: the same results, the same refusals."""

import ast
import hashlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ppspeech.channel import Channel
from ppspeech.errors import (
    BadLengthError,
    BadTypeError,
    FrameTooLargeError,
    PeerGoneError,
    PeerTimeoutError,
    PpspeechError,
    ProtocolError,
    WrongSessionError,
)
from ppspeech.network import (
    Address,
    Limits,
    Listener,
    connect,
    memory_pair,
    run_in_processes,
    run_in_threads,
    run_together,
    socket_pair,
)
from tests.network.conftest import QUICK, Identity

LOCAL = Address("127.0.0.1", 0)
SIZES = [0, 1, 27, 28, 1000, 2**14, 2**14 + 1, 2**16, 2**16 + 1, 300_000]
Pairs = dict[str, Callable[[Limits], tuple[Channel, Channel]]]


def tcp_pair(limits: Limits, identity: Identity | None = None) -> tuple[Channel, Channel]:
    client, server = (identity.client, identity.server) if identity else (None, None)
    with Listener(LOCAL, tls=server, insecure=identity is None, limits=limits) as listener:
        found: list[Channel] = []
        waiting = threading.Thread(target=lambda: found.append(listener.wait("toy", {"n": 1}, seconds=10)))
        waiting.start()
        channel = connect(listener.address, "toy", {"n": 1}, tls=client, insecure=identity is None, limits=limits)
        waiting.join()
    return channel, found[0]


@pytest.fixture(params=["memory", "socket pair", "tcp", "tls"])
def pair(request: pytest.FixtureRequest, identity: Identity) -> Callable[[Limits], tuple[Channel, Channel]]:
    pairs: Pairs = {
        "memory": memory_pair,
        "socket pair": socket_pair,
        "tcp": tcp_pair,
        "tls": lambda limits: tcp_pair(limits, identity),
    }
    return pairs[request.param]


def asks(channel: Channel) -> list[str]:
    answers = []
    for size in SIZES:
        channel.send(3, bytes([size % 251]) * size)
        answers.append(channel.receive(4, size=32).hex())
    return answers


def digests(channel: Channel) -> None:
    for _ in SIZES:
        channel.send(4, hashlib.sha256(channel.receive(3, at_most=max(SIZES))).digest())


def test_messages_of_all_sizes_arrive_whole(pair: Callable[[Limits], tuple[Channel, Channel]]) -> None:
    answers, _ = run_together(asks, digests, pair(QUICK))  # type: ignore[arg-type]
    assert answers == [hashlib.sha256(bytes([size % 251]) * size).hexdigest() for size in SIZES]


def test_both_may_send_twenty_megabytes_at_once(pair: Callable[[Limits], tuple[Channel, Channel]]) -> None:
    size = 20_000_000

    def exchange(channel: Channel) -> bool:
        for fill in (b"a", b"b"):
            channel.send(1, fill * size)
            if channel.receive(1, size=size) != fill * size:
                return False
        return True

    assert run_together(exchange, exchange, pair(Limits(message_seconds=60))) == (True, True)  # type: ignore[arg-type]


def test_several_messages_may_wait(pair: Callable[[Limits], tuple[Channel, Channel]]) -> None:
    here, there = pair(QUICK)
    for number in range(100):
        here.send(1, b"%d" % number)
    assert [there.receive(1, at_most=3) for _ in range(100)] == [b"%d" % number for number in range(100)]
    here.close()  # type: ignore[attr-defined]
    with pytest.raises(PeerGoneError):
        there.receive(1, size=1)


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ({"kind": 2, "size": 4}, BadTypeError),
        ({"kind": 1, "size": 5}, BadLengthError),
        ({"kind": 1, "size": 3}, FrameTooLargeError),
        ({"kind": 1, "at_most": 3}, FrameTooLargeError),
    ],
)
def test_what_the_step_does_not_allow_ends_both_sides(
    pair: Callable[[Limits], tuple[Channel, Channel]], step: dict[str, int], error: type[ProtocolError]
) -> None:
    here, there = pair(QUICK)
    here.send(1, b"four")
    with pytest.raises(error):
        there.receive(**step)
    with pytest.raises(PeerGoneError):
        here.receive(1, size=1)
    for end in (here, there):
        with pytest.raises(PeerGoneError):
            end.send(1, b"")
        end.close()  # type: ignore[attr-defined]


def test_a_silent_peer(pair: Callable[[Limits], tuple[Channel, Channel]]) -> None:
    here, there = pair(replace(QUICK, message_seconds=0.1))
    with pytest.raises(PeerTimeoutError):
        here.receive(1, size=1)
    there.close()  # type: ignore[attr-defined]


def test_memory_views_and_arrays_are_sent_as_their_bytes(pair: Callable[[Limits], tuple[Channel, Channel]]) -> None:
    here, there = pair(QUICK)
    array = np.arange(6, dtype=np.uint32).reshape(2, 3)
    for payload in (memoryview(array), bytearray(b"abc"), memoryview(b"abcdef")[::2].tobytes()):
        here.send(1, payload)
    assert there.receive(1, size=24) == array.tobytes()
    assert there.receive(1, size=3) == b"abc"
    assert there.receive(1, size=3) == b"ace"
    here.close()  # type: ignore[attr-defined]
    there.close()  # type: ignore[attr-defined]


def test_a_payload_may_be_changed_after_it_is_sent(pair: Callable[[Limits], tuple[Channel, Channel]]) -> None:
    here, there = pair(QUICK)
    payload = bytearray(b"before")
    here.send(1, payload)
    payload[:] = b"after!"
    assert there.receive(1, size=6) == b"before"
    here.close()  # type: ignore[attr-defined]
    there.close()  # type: ignore[attr-defined]


def test_the_first_real_error_is_raised() -> None:
    def fails(channel: Channel) -> None:
        channel.receive(1, size=1)
        raise ZeroDivisionError

    def waits(channel: Channel) -> None:
        channel.send(1, b"x")
        channel.receive(2, size=1)

    for channels in (None, socket_pair()):
        with pytest.raises(ZeroDivisionError):
            run_together(waits, fails, channels)
    for channels in (None, socket_pair()):
        with pytest.raises(ZeroDivisionError):
            run_together(fails, waits, channels)
    with pytest.raises(PeerGoneError):
        run_together(waits, lambda channel: None)


def test_a_mesh_sums() -> None:
    def party(number: int) -> Callable[[Mapping[int, Channel]], int]:
        def run(others: Mapping[int, Channel]) -> int:
            for channel in others.values():
                channel.send(1, bytes([number]))
            return number + sum(channel.receive(1, size=1)[0] for channel in others.values())

        return run

    assert run_in_threads([party(number) for number in range(5)]) == [10] * 5
    assert run_in_threads([party(3)]) == [3]
    with pytest.raises(ZeroDivisionError):
        run_in_threads([party(0), party(1), lambda others: 1 // 0])


@pytest.mark.parametrize("with_tls", [False, True])
def test_parties_as_processes(identity: Identity, with_tls: bool) -> None:
    tls = (identity.client, identity.server) if with_tls else None
    assert len(run_in_processes(asks, digests, tls=tls, limits=QUICK)) == len(SIZES)

    def fails(channel: Channel) -> None:
        channel.receive(3, size=0)
        raise ZeroDivisionError

    with pytest.raises(ProtocolError, match="ZeroDivisionError"):
        run_in_processes(asks, fails, tls=tls, limits=QUICK)
    with pytest.raises(ZeroDivisionError):
        run_in_processes(lambda channel: 1 // 0, digests, tls=tls, limits=QUICK)


@pytest.mark.parametrize(
    ("protocol", "params"), [("other", {"n": 1}), ("toy", {"n": 2}), ("toy", {}), ("toy", {"n": 1.0})]
)
def test_parties_that_want_different_things_do_not_begin(protocol: str, params: dict[str, object]) -> None:
    with Listener(LOCAL, insecure=True, limits=QUICK) as listener:
        errors: list[Exception] = []

        def wait() -> None:
            try:
                listener.wait("toy", {"n": 1}, seconds=10)
            except ProtocolError as error:
                errors.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        with pytest.raises(PeerGoneError):
            connect(listener.address, protocol, params, insecure=True, limits=QUICK)
        waiting.join()
        assert [type(error) for error in errors] == [WrongSessionError]


def test_nobody_there() -> None:
    with Listener(LOCAL, insecure=True) as listener:
        address = listener.address
        with pytest.raises(PeerTimeoutError, match="nobody connected"):
            listener.wait("toy", {}, seconds=0.05)
    with pytest.raises(PeerGoneError, match="nobody listens"):
        connect(address, "toy", {}, insecure=True)


def test_plain_tcp_is_refused_unless_it_is_asked_for_and_local(identity: Identity) -> None:
    with pytest.raises(ValueError, match="needs TLS"):
        connect(Address("127.0.0.1", 9), "toy", {})
    with pytest.raises(ValueError, match="needs TLS"):
        Listener(LOCAL)
    for host in ("10.0.0.1", "example.org", "localhost", "0.0.0.0"):
        with pytest.raises(ValueError, match="loopback"):
            connect(Address(host, 9), "toy", {}, insecure=True)
        with pytest.raises(ValueError, match="loopback"):
            Listener(Address(host, 0), insecure=True)
    with pytest.raises(ValueError, match="leave it out"):
        connect(Address("127.0.0.1", 9), "toy", {}, insecure=True, tls=identity.client)


@pytest.mark.parametrize("text", ["", "host", ":80", "host:", "host:x", "host:65536", "host:-1", "[]:80"])
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(PpspeechError, match="HOST:PORT"):
        Address.parse(text)


@pytest.mark.parametrize(
    "field",
    [
        {"message_seconds": 0},
        {"message_seconds": float("inf")},
        {"handshake_seconds": float("nan")},
        {"message_bytes": 0},
        {"message_bytes": 2**32},
        {"session_seconds": -1},
    ],
)
def test_limits_must_be_positive(field: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(field))):
        Limits(**field)  # type: ignore[arg-type]


def test_the_room_imports_no_pickle_and_no_plain_randomness() -> None:
    room = Path(__file__).parents[2] / "ppspeech" / "network"
    files = list(room.rglob("*.py"))
    assert len(files) > 10
    refused = {"pickle", "cPickle", "marshal", "shelve", "dill", "random", "multiprocessing", "torch", "numpy"}
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not {name.split(".")[0] for name in names} & refused, file.name
